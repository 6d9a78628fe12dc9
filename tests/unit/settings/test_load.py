"""Settings of load balancing and of the broker as a client of others, as those parts are given them."""

from __future__ import annotations

import pytest

from pulsar_py.server.broker_settings import call_settings
from pulsar_py.server.cluster_load import (
    balancing_settings,
    placement_rules,
    report_settings,
)
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.load.large_bundles import SplitRules
from pulsar_py.server.load.shedding import UsageWeights
from pulsar_py.server.settings.load import SheddingStrategy
from pulsar_py.server.settings.topics import SplitAlgorithm
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE
from tests.unit.settings.parts import broker


@pytest.mark.setting(
    "loadBalancerDistributeBundlesEvenlyEnabled",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "failureDomainsEnabled",
)
def test_rules_of_placement() -> None:
    rules = placement_rules(
        BrokerConfig(
            loadBalancerDistributeBundlesEvenlyEnabled=False,
            loadBalancerBrokerMaxTopics=7,
            loadBalancerBrokerOverloadedThresholdPercentage=70,
            failureDomainsEnabled=True,
        )
    )
    assert not rules.is_even
    assert (rules.max_topics, rules.overloaded_share, rules.uses_domains) == (7, 0.7, True)


@pytest.mark.setting(
    "loadBalancerReportUpdateMinIntervalMillis",
    "loadBalancerHostUsageCheckIntervalMinutes",
    "loadBalancerReportUpdateMaxIntervalMinutes",
    "loadBalancerReportUpdateThresholdPercentage",
    "loadBalancerOverrideBrokerNicSpeedGbps",
)
def test_when_a_broker_reports() -> None:
    settings = report_settings(
        BrokerConfig(
            loadBalancerReportUpdateMinIntervalMillis=500,
            loadBalancerHostUsageCheckIntervalMinutes=2,
            loadBalancerReportUpdateMaxIntervalMinutes=3,
            loadBalancerReportUpdateThresholdPercentage=40,
            loadBalancerOverrideBrokerNicSpeedGbps=2.5,
            statsUpdateFrequencyInSecs=600,
        )
    )
    assert settings.look_seconds == 0.5
    assert settings.measure_seconds == 120
    rates_are_new = report_settings(BrokerConfig(statsUpdateFrequencyInSecs=5))
    assert rates_are_new.measure_seconds == 5
    assert settings.max_interval_seconds == 180
    assert settings.worth_share == 0.4
    assert settings.network_kilobits == 2_500_000


@pytest.mark.setting(
    "loadBalancerSheddingEnabled",
    "loadBalancerSheddingIntervalMinutes",
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerSheddingBundlesWithPoliciesEnabled",
    "loadBalancerAutoBundleSplitEnabled",
    "loadBalancerAutoUnloadSplitBundlesEnabled",
    "loadBalancerResourceQuotaUpdateIntervalMinutes",
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport",
)
def test_what_the_leader_does() -> None:
    settings = balancing_settings(
        BrokerConfig(
            loadBalancerSheddingEnabled=False,
            loadBalancerSheddingIntervalMinutes=2,
            loadBalancerSheddingGracePeriodMinutes=3,
            loadBalancerSheddingExcludedNamespaces=frozenset({"public/default"}),
            loadBalancerSheddingBundlesWithPoliciesEnabled=True,
            loadBalancerAutoBundleSplitEnabled=False,
            loadBalancerAutoUnloadSplitBundlesEnabled=False,
            loadBalancerResourceQuotaUpdateIntervalMinutes=4,
            loadBalancerMaxNumberOfBundlesInBundleLoadReport=5,
        )
    )
    assert not settings.is_shedding
    assert (settings.shedding_seconds, settings.grace_seconds) == (120, 180)
    assert settings.excluded_namespaces == {"public/default"}
    assert settings.moves_bound_bundles
    assert not settings.is_splitting
    assert not settings.unloads_parts
    assert (settings.store_seconds, settings.stored_bundles_per_broker) == (240, 5)


@pytest.mark.setting(
    "loadBalancerNamespaceBundleMaxTopics",
    "loadBalancerNamespaceBundleMaxSessions",
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "loadBalancerNamespaceMaximumBundles",
)
def test_bundles_that_are_too_large() -> None:
    settings = balancing_settings(
        BrokerConfig(
            loadBalancerNamespaceBundleMaxTopics=1,
            loadBalancerNamespaceBundleMaxSessions=2,
            loadBalancerNamespaceBundleMaxMsgRate=3,
            loadBalancerNamespaceBundleMaxBandwidthMbytes=4,
            loadBalancerNamespaceMaximumBundles=5,
        )
    )
    assert settings.splitting == SplitRules(
        max_topics=1, max_sessions=2, max_messages_rate=3, max_mebibytes_rate=4, max_bundles=5
    )


@pytest.mark.setting(
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerCPUResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBrokerThresholdShedderPercentage",
    "loadBalancerHistoryResourcePercentage",
    "loadBalancerBundleUnloadMinThroughputThreshold",
    "lowerBoundarySheddingEnabled",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
    "minUnloadMessage",
    "minUnloadMessageThroughput",
    "maxUnloadPercentage",
    "maxUnloadBundleNumPerShedding",
)
def test_rules_of_shedding() -> None:
    rules = balancing_settings(
        BrokerConfig(
            loadBalancerLoadSheddingStrategy=SheddingStrategy.UNIFORM,
            loadBalancerCPUResourceWeight=0.1,
            loadBalancerDirectMemoryResourceWeight=0.2,
            loadBalancerBandwidthInResourceWeight=0.3,
            loadBalancerBandwidthOutResourceWeight=0.4,
            loadBalancerBrokerThresholdShedderPercentage=20,
            loadBalancerHistoryResourcePercentage=0.5,
            loadBalancerBundleUnloadMinThroughputThreshold=0.6,
            lowerBoundarySheddingEnabled=True,
            loadBalancerBrokerOverloadedThresholdPercentage=70,
            loadBalancerMsgRateDifferenceShedderThreshold=30.0,
            loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold=6.0,
            minUnloadMessage=7,
            minUnloadMessageThroughput=8,
            maxUnloadPercentage=0.9,
            maxUnloadBundleNumPerShedding=10,
        )
    ).shedding
    assert rules.strategy == "UniformLoadShedder"
    assert rules.weights == UsageWeights(cpu=0.1, memory=0.2, bandwidth_in=0.3, bandwidth_out=0.4)
    assert (rules.threshold_share, rules.history_weight) == (0.2, 0.5)
    assert (rules.min_mebibytes_rate, rules.has_lower_boundary) == (0.6, True)
    assert (rules.overloaded_share, rules.max_rate_difference_share) == (0.7, 0.3)
    assert (rules.max_throughput_factor, rules.min_messages, rules.min_bytes) == (6, 7, 8)
    assert (rules.max_moved_share, rules.max_bundles) == (0.9, 10)


@pytest.mark.setting(
    "brokerClientAuthenticationParameters",
    "brokerClientTlsEnabled",
    "brokerClientTrustCertsFilePath",
    "brokerClientCertificateFilePath",
    "brokerClientKeyFilePath",
    "tlsHostnameVerificationEnabled",
)
def test_how_other_brokers_are_called() -> None:
    settings = call_settings(
        BrokerConfig(
            brokerClientAuthenticationParameters="token:abc",
            brokerClientTlsEnabled=True,
            brokerClientTrustCertsFilePath="ca.pem",
            brokerClientCertificateFilePath="broker.pem",
            brokerClientKeyFilePath="broker.key",
            tlsHostnameVerificationEnabled=True,
        )
    )
    assert settings.parameters == "token:abc"
    assert settings.uses_tls
    assert settings.verifies_hostname
    paths = (settings.trust_path, settings.certificate_path, settings.key_path)
    assert paths == ("ca.pem", "broker.pem", "broker.key")


@pytest.mark.setting("defaultNamespaceBundleSplitAlgorithm")
async def test_where_a_bundle_is_cut_if_nobody_says_how(virtual_clock: VirtualClock) -> None:
    algorithm = SplitAlgorithm.TOPIC_COUNT
    async with broker(virtual_clock, defaultNamespaceBundleSplitAlgorithm=algorithm) as rig:
        for number in range(12):
            await rig.topic(f"t{number}")
        service = rig.broker
        content = await service.bundle_moves.content_of(NAMESPACE)
        bundle = max(content, key=lambda each: len(content[each]))
        before = set((await service.namespaces.bundles_of(NAMESPACE)).boundaries)
        await service.bundle_moves.split_here(NAMESPACE, bundle, unloads_parts=False)
        (cut,) = set((await service.namespaces.bundles_of(NAMESPACE)).boundaries) - before
        below = sum(topic < cut for topic, _ in content[bundle])
        assert abs(2 * below - len(content[bundle])) <= 1, "as many topics on either side"
        lower, upper = (int(text, 16) for text in bundle.split("_"))
        assert cut != (lower + upper) // 2
