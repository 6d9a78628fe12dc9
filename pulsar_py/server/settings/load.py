"""Settings of how the brokers of a cluster share its load.

They have their effect with `pulsar-py broker`. A standalone broker has nobody to share with.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from enum import Enum
from typing import Final

from pulsar_py.server.settings.declaring import Settings, setting

LOAD: Final = "Load balancing"
MAX_PERCENT: Final = 100


class SheddingStrategy(Enum):
    """How bundles are chosen that move from busy brokers to others, by Pulsar's names."""

    THRESHOLD = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    OVERLOAD = "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"
    UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"


class LoadSettings(Settings):
    """Placement of bundles, shedding, and splits."""

    loadBalancerDistributeBundlesEvenlyEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=LOAD,
        doc="Whether a bundle without owner goes to one of the brokers with the fewest bundles of "
        "its namespace.",
    )
    loadBalancerBrokerMaxTopics: int = setting(
        default=50_000,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Topics from which on a broker gets no further bundle where there are others.",
    )
    loadBalancerBrokerOverloadedThresholdPercentage: int = setting(
        default=85,
        minimum=1,
        maximum=MAX_PERCENT,
        dynamic=True,
        category=LOAD,
        doc="Usage of its busiest resource in percent from which on a broker gets no further "
        "bundle where there are others, and from which OverloadShedder moves bundles away.",
    )
    failureDomainsEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=LOAD,
        doc="Whether namespaces of one anti-affinity group are spread over the failure domains of "
        "the cluster first, and over brokers then.",
    )
    loadBalancerSheddingEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=LOAD,
        doc="Whether the leader moves bundles from busy brokers to others.",
    )
    loadBalancerLoadSheddingStrategy: SheddingStrategy = setting(
        default=SheddingStrategy.THRESHOLD,
        dynamic=True,
        category=LOAD,
        doc="How the bundles to move are chosen: from brokers above the mean usage, from brokers "
        "that are overloaded, or from the busiest to the idlest by rate.",
    )
    loadBalancerSheddingIntervalMinutes: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Minutes between two looks at which bundles to move.",
    )
    loadBalancerSheddingGracePeriodMinutes: int = setting(
        default=30,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Minutes for which a bundle that was moved stays where it is.",
    )
    loadBalancerSheddingExcludedNamespaces: frozenset[str] = setting(
        default=frozenset(),
        dynamic=True,
        category=LOAD,
        doc="Namespaces whose bundles are not moved.",
    )
    loadBalancerSheddingBundlesWithPoliciesEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=LOAD,
        doc="Whether bundles of namespaces with an isolation policy or an anti-affinity group are "
        "moved.",
    )
    loadBalancerBrokerThresholdShedderPercentage: int = setting(
        default=10,
        minimum=0,
        maximum=MAX_PERCENT,
        dynamic=True,
        category=LOAD,
        doc="Percent of usage above the mean of all brokers from which ThresholdShedder moves "
        "bundles away.",
    )
    lowerBoundarySheddingEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=LOAD,
        doc="Whether ThresholdShedder moves a bundle of the busiest broker, too, when the idlest "
        "one is that far below the mean.",
    )
    loadBalancerBundleUnloadMinThroughputThreshold: float = setting(
        default=10.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="MiB a second that a round has to move at least, or it moves nothing. One broker here "
        "is one core: with small messages it is busy at less than that, so set it to 0.1 there.",
    )
    loadBalancerHistoryResourcePercentage: float = setting(
        default=0.9,
        minimum=0,
        maximum=1,
        dynamic=True,
        category=LOAD,
        doc="Weight of what was known of a broker's usage before against a new report, 0 to 1.",
    )
    loadBalancerCPUResourceWeight: float = setting(
        default=1.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Weight of the processor in a broker's usage: the share of one core that its loop has.",
    )
    loadBalancerBandwidthInResourceWeight: float = setting(
        default=1.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Weight of incoming bytes, where the network's speed is known.",
    )
    loadBalancerBandwidthOutResourceWeight: float = setting(
        default=1.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Weight of outgoing bytes, where the network's speed is known.",
    )
    loadBalancerDirectMemoryResourceWeight: float = setting(
        default=0.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Weight of the memory of the process; 0: it says nothing of how busy a broker is.",
    )
    loadBalancerMsgRateDifferenceShedderThreshold: float = setting(
        default=50.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: percent by which the highest message rate of a broker may exceed "
        "the lowest; 0: any.",
    )
    loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold: float = setting(
        default=4.0,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: how many times the lowest throughput of a broker the highest may "
        "be; 0: any.",
    )
    minUnloadMessage: int = setting(
        default=1000,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: messages a second that a round has to move at least.",
    )
    minUnloadMessageThroughput: int = setting(
        default=1024 * 1024,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: bytes a second that a round has to move at least.",
    )
    maxUnloadPercentage: float = setting(
        default=0.2,
        minimum=0,
        maximum=1,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: the share of the difference that a round moves at most.",
    )
    maxUnloadBundleNumPerShedding: int = setting(
        default=-1,
        minimum=-1,
        dynamic=True,
        category=LOAD,
        doc="UniformLoadShedder: bundles that a round moves at most; -1: any number.",
    )
    loadBalancerAutoBundleSplitEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=LOAD,
        doc="Whether the leader has bundles split that are too large.",
    )
    loadBalancerAutoUnloadSplitBundlesEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=LOAD,
        doc="Whether the parts of a bundle are unloaded then, so that other brokers can take them.",
    )
    loadBalancerNamespaceBundleMaxTopics: int = setting(
        default=1000,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Topics above which a bundle is too large.",
    )
    loadBalancerNamespaceBundleMaxSessions: int = setting(
        default=1000,
        minimum=-1,
        dynamic=True,
        category=LOAD,
        doc="Producers and consumers above which a bundle is too large; 0 or -1: any number.",
    )
    loadBalancerNamespaceBundleMaxMsgRate: int = setting(
        default=30_000,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Messages a second, in and out, above which a bundle is too large.",
    )
    loadBalancerNamespaceBundleMaxBandwidthMbytes: int = setting(
        default=100,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="MiB a second, in and out, above which a bundle is too large.",
    )
    loadBalancerNamespaceMaximumBundles: int = setting(
        default=128,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Bundles of a namespace from which on none of it is split by load.",
    )
    loadBalancerResourceQuotaUpdateIntervalMinutes: int = setting(
        default=15,
        minimum=1,
        category=LOAD,
        doc="Minutes after which the leader stores the mean load of the bundles again.",
    )
    loadBalancerMaxNumberOfBundlesInBundleLoadReport: int = setting(
        default=10,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Bundles for each broker whose mean load is stored, the busiest of all.",
    )
    loadBalancerReportUpdateThresholdPercentage: int = setting(
        default=10,
        minimum=0,
        dynamic=True,
        category=LOAD,
        doc="Percent by which a figure has to move for a broker to report it at once.",
    )
    loadBalancerReportUpdateMinIntervalMillis: int = setting(
        default=5000,
        minimum=100,
        dynamic=True,
        category=LOAD,
        doc="Milliseconds between two reports of a broker at least.",
    )
    loadBalancerReportUpdateMaxIntervalMinutes: int = setting(
        default=15,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Minutes after which a broker reports in any case.",
    )
    loadBalancerHostUsageCheckIntervalMinutes: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=LOAD,
        doc="Minutes between two measurements of a broker's usage. It is measured as often as "
        "rates are, if statsUpdateFrequencyInSecs is shorter.",
    )
    loadBalancerOverrideBrokerNicSpeedGbps: float | None = setting(
        default=None,
        minimum=0,
        category=LOAD,
        doc="Speed of the network in Gbit/s; empty: that of the machine's network cards, if they "
        "say it.",
    )
