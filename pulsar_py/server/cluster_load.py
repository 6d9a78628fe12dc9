"""`ClusterLoad`: one broker's part in sharing the load of its cluster (edge).

It puts together what `load` has, from the broker's settings: the membership with its rules, the
reports, and the balancer, which works while this broker leads.

Source: ModularLoadManagerImpl, PulsarService.startLoadManagementService in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.bundle_moves import BundleMoves
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.load.balancer import Balancer, BalancingSettings
from pulsar_py.server.load.bundle_averages import BundleAverages
from pulsar_py.server.load.cluster_membership import ClusterMembership
from pulsar_py.server.load.cluster_rules import ClusterRules
from pulsar_py.server.load.large_bundles import SplitRules
from pulsar_py.server.load.machine import no_process, this_process
from pulsar_py.server.load.placement import PlacementRules
from pulsar_py.server.load.shedding import SheddingRules, UsageWeights
from pulsar_py.server.load_reporter import LoadReporter, ReportingSettings
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.server.topics.topic import Topic


def cluster_membership(
    metadata: MetadataStore,
    resources: Resources,
    clock: Clock,
    chance: Random,
    config: Callable[[], BrokerConfig],
) -> ClusterMembership:
    """The membership of a broker, with the rules of its cluster."""

    async def group_of(namespace: NamespaceName) -> str | None:
        found = await resources.local_policies.get(namespace)
        return None if found is None else found.anti_affinity_group

    return ClusterMembership(
        metadata,
        clock,
        chance,
        rules=ClusterRules(resources.configuration, config().clusterName, group_of),
        placement_rules=lambda: placement_rules(config()),
    )


class ClusterLoad:
    """Reports and balancing of one broker that has joined; its owner closes `tasks`."""

    def __init__(
        self,
        *,
        membership: ClusterMembership,
        namespaces: NamespaceService,
        topics: TopicRegistry,
        moves: BundleMoves,
        metadata: MetadataStore,
        clock: Clock,
        config: Callable[[], BrokerConfig],
    ) -> None:
        async def bundle_of(topic: Topic) -> str:
            return f"{topic.name.namespace_name}/{await namespaces.bundle_of(topic.name)}"

        async def bundles_count_of(namespace: str) -> int:
            return len((await namespaces.bundles_of(NamespaceName.parse(namespace))).names)

        self._reporter = LoadReporter(
            membership,
            owned_bundles=lambda: [
                f"{namespace}/{bundle}" for namespace, bundle in namespaces.owned_bundles()
            ],
            topics=topics.topics.values,
            bundle_of=bundle_of,
            clock=clock,
            machine=this_process() if isinstance(clock, SystemClock) else no_process,
            settings=lambda: report_settings(config()),
        )
        self.balancer = Balancer(
            membership,
            BundleAverages(metadata),
            moves,
            settings=lambda: balancing_settings(config()),
            bundles_count_of=bundles_count_of,
            clock=clock,
        )

    def start(self, tasks: TaskOwner) -> None:
        """Report and balance until `tasks` is closed."""
        tasks.spawn(self._reporter.run(), "load reports")
        tasks.spawn(self.balancer.run(), "load balancer")


def placement_rules(config: BrokerConfig) -> PlacementRules:
    """The rules that choose brokers for bundles without owner."""
    return PlacementRules(
        is_even=config.loadBalancerDistributeBundlesEvenlyEnabled,
        max_topics=config.loadBalancerBrokerMaxTopics,
        overloaded_share=config.loadBalancerBrokerOverloadedThresholdPercentage / 100,
        uses_domains=config.failureDomainsEnabled,
    )


def report_settings(config: BrokerConfig) -> ReportingSettings:
    """The settings that say when a broker reports its load."""
    gbits = config.loadBalancerOverrideBrokerNicSpeedGbps
    return ReportingSettings(
        look_seconds=config.loadBalancerReportUpdateMinIntervalMillis / 1000,
        measure_seconds=min(
            config.loadBalancerHostUsageCheckIntervalMinutes * 60.0,
            config.statsUpdateFrequencyInSecs,
        ),
        max_interval_seconds=config.loadBalancerReportUpdateMaxIntervalMinutes * 60.0,
        worth_share=config.loadBalancerReportUpdateThresholdPercentage / 100,
        network_kilobits=None if gbits is None else gbits * 1_000_000,
    )


def balancing_settings(config: BrokerConfig) -> BalancingSettings:
    """The settings by which the leader moves and splits bundles."""
    return BalancingSettings(
        is_shedding=config.loadBalancerSheddingEnabled,
        shedding=_shedding_rules(config),
        shedding_seconds=config.loadBalancerSheddingIntervalMinutes * 60.0,
        grace_seconds=config.loadBalancerSheddingGracePeriodMinutes * 60.0,
        excluded_namespaces=config.loadBalancerSheddingExcludedNamespaces,
        moves_bound_bundles=config.loadBalancerSheddingBundlesWithPoliciesEnabled,
        is_splitting=config.loadBalancerAutoBundleSplitEnabled,
        splitting=SplitRules(
            max_topics=config.loadBalancerNamespaceBundleMaxTopics,
            max_sessions=config.loadBalancerNamespaceBundleMaxSessions,
            max_messages_rate=config.loadBalancerNamespaceBundleMaxMsgRate,
            max_mebibytes_rate=config.loadBalancerNamespaceBundleMaxBandwidthMbytes,
            max_bundles=config.loadBalancerNamespaceMaximumBundles,
        ),
        unloads_parts=config.loadBalancerAutoUnloadSplitBundlesEnabled,
        store_seconds=config.loadBalancerResourceQuotaUpdateIntervalMinutes * 60.0,
        stored_bundles_per_broker=config.loadBalancerMaxNumberOfBundlesInBundleLoadReport,
    )


def _shedding_rules(config: BrokerConfig) -> SheddingRules:
    return SheddingRules(
        strategy=config.loadBalancerLoadSheddingStrategy.value.rpartition(".")[2],
        weights=UsageWeights(
            cpu=config.loadBalancerCPUResourceWeight,
            memory=config.loadBalancerDirectMemoryResourceWeight,
            bandwidth_in=config.loadBalancerBandwidthInResourceWeight,
            bandwidth_out=config.loadBalancerBandwidthOutResourceWeight,
        ),
        threshold_share=config.loadBalancerBrokerThresholdShedderPercentage / 100,
        history_weight=config.loadBalancerHistoryResourcePercentage,
        min_mebibytes_rate=config.loadBalancerBundleUnloadMinThroughputThreshold,
        has_lower_boundary=config.lowerBoundarySheddingEnabled,
        overloaded_share=config.loadBalancerBrokerOverloadedThresholdPercentage / 100,
        max_rate_difference_share=config.loadBalancerMsgRateDifferenceShedderThreshold / 100,
        max_throughput_factor=config.loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold,
        min_messages=config.minUnloadMessage,
        min_bytes=config.minUnloadMessageThroughput,
        max_moved_share=config.maxUnloadPercentage,
        max_bundles=config.maxUnloadBundleNumPerShedding,
    )
