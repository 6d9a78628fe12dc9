"""The settings of broker.conf for topics; policies of namespaces and topics override most."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from enum import Enum
from typing import Final

from pulsar_py.common.policies import (
    BacklogQuotaAction,
    InactiveTopicDeleteMode,
    SchemaCompatibilityStrategy,
    TopicType,
)
from pulsar_py.server.settings.declaring import Settings, setting

CREATION: Final = "Topic creation"
INACTIVITY: Final = "Inactive topics and subscriptions"
LIMITS: Final = "Limits"
SUBSCRIPTIONS: Final = "Subscriptions"
KEY_SHARED: Final = "Key_Shared"
DISPATCH: Final = "Dispatch"
DELAYED: Final = "Delayed delivery"
RETENTION: Final = "Backlog, expiry and retention"
DEDUPLICATION: Final = "Deduplication"
SCHEMAS: Final = "Schemas"
COMPACTION: Final = "Compaction"
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")


class CompactionOrder(Enum):
    """Which message of a key is its newest, by the class that Apache Pulsar has for it."""

    PUBLISHING = "org.apache.pulsar.compaction.PulsarCompactionServiceFactory"
    EVENT_TIME = "org.apache.pulsar.compaction.EventTimeCompactionServiceFactory"


class SplitAlgorithm(Enum):
    """Where a bundle is cut, by Pulsar's names."""

    RANGE = "range_equally_divide"
    TOPIC_COUNT = "topic_count_equally_divide"
    POSITIONS = "specified_positions_divide"
    FLOW = "flow_or_qps_equally_divide"


class DelayedTrackerKind(Enum):
    """Where the times of delayed messages are kept, by the class that Apache Pulsar has for it."""

    MEMORY = "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
    BUCKETS = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"


class BrokerTopicSettings(Settings):
    """The settings of broker.conf for topics, subscriptions and dispatch.

    They hold where neither a topic nor its namespace has a policy.
    """

    allowAutoTopicCreation: bool = setting(
        default=True,
        dynamic=True,
        category=CREATION,
        doc="Whether a missing topic is created when a client uses it.",
    )
    allowAutoTopicCreationType: TopicType = setting(
        default=TopicType.NON_PARTITIONED,
        dynamic=True,
        category=CREATION,
        doc="The type of topics that are created on use.",
    )
    defaultNumPartitions: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=CREATION,
        doc="Partitions of a partitioned topic that is created on use.",
    )
    allowAutoSubscriptionCreation: bool = setting(
        default=True,
        dynamic=True,
        category=CREATION,
        doc="Whether SUBSCRIBE creates a missing durable subscription.",
    )
    maxNumPartitionsPerPartitionedTopic: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LIMITS,
        doc="The most partitions of a topic; 0 means 10000, a limit that Pulsar does not have.",
    )
    defaultNumberOfNamespaceBundles: int = setting(
        default=4,
        minimum=1,
        maximum=128,
        dynamic=True,
        category=CREATION,
        doc="Bundles of a new namespace.",
    )
    defaultNamespaceBundleSplitAlgorithm: SplitAlgorithm = setting(
        default=SplitAlgorithm.RANGE,
        dynamic=True,
        category=CREATION,
        doc="Where a bundle is cut, unless whoever has it split says otherwise.",
    )
    maxTenants: int = setting(
        default=0, minimum=0, dynamic=True, category=LIMITS, doc="Most tenants; 0 is no limit."
    )
    maxNamespacesPerTenant: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LIMITS,
        doc="Most namespaces of a tenant; 0: no limit.",
    )
    maxTopicsPerNamespace: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LIMITS,
        doc="Most topics of a namespace, each partition counted; 0 is no limit.",
    )
    maxProducersPerTopic: int = setting(
        default=0, minimum=0, category=LIMITS, doc="Most producers of a topic; 0 is no limit."
    )
    maxSameAddressProducersPerTopic: int = setting(
        default=0,
        minimum=0,
        category=LIMITS,
        doc="Most producers of a topic from one address; 0: no limit.",
    )
    maxConsumersPerTopic: int = setting(
        default=0, minimum=0, category=LIMITS, doc="Most consumers of a topic; 0 is no limit."
    )
    maxSameAddressConsumersPerTopic: int = setting(
        default=0,
        minimum=0,
        category=LIMITS,
        doc="Most consumers of a topic from one address; 0: no limit.",
    )
    maxConsumersPerSubscription: int = setting(
        default=0,
        minimum=0,
        category=LIMITS,
        doc="Most consumers of a subscription; 0 is no limit.",
    )
    maxSubscriptionsPerTopic: int = setting(
        default=0, minimum=0, category=LIMITS, doc="Most subscriptions of a topic; 0 is no limit."
    )
    subscriptionBacklogScanMaxEntries: int = setting(
        default=10_000,
        minimum=1,
        category=LIMITS,
        doc="Most entries that one analysis of a subscription's backlog looks at.",
    )
    subscriptionBacklogScanMaxTimeMs: int = setting(
        default=120_000,
        minimum=0,
        category=LIMITS,
        doc="Most milliseconds of one analysis of a subscription's backlog.",
    )
    encryptionRequireOnProducer: bool = setting(
        default=False, category=CREATION, doc="Whether producers must encrypt what they publish."
    )
    brokerEntryMetadataInterceptors: frozenset[str] = setting(
        default=frozenset[str](),
        category=CREATION,
        doc="The broker entry metadata that is stored in front of each entry: class names that "
        "end in `AppendBrokerTimestampMetadataInterceptor` or "
        "`AppendIndexMetadataInterceptor`.",
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = setting(
        default=False,
        category=CREATION,
        doc="Whether clients that understand broker entry metadata get it.",
    )
    forceDeleteTenantAllowed: bool = setting(
        default=False,
        dynamic=True,
        category=CREATION,
        doc="Whether a tenant may be deleted together with its namespaces.",
    )
    forceDeleteNamespaceAllowed: bool = setting(
        default=False,
        dynamic=True,
        category=CREATION,
        doc="Whether a namespace may be deleted together with its topics.",
    )
    topicLevelPoliciesEnabled: bool = setting(
        default=True,
        category=CREATION,
        doc="Whether single topics may have policies of their own; needs `systemTopicEnabled`.",
    )
    systemTopicEnabled: bool = setting(
        default=True,
        category=CREATION,
        doc="Whether single topics may have policies of their own, as `topicLevelPoliciesEnabled`: "
        "in Apache Pulsar a system topic holds them. Nothing else depends on it here.",
    )

    brokerDeleteInactiveTopicsEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=INACTIVITY,
        doc="Whether inactive topics are deleted.",
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        default=60,
        minimum=1,
        dynamic=True,
        category=INACTIVITY,
        doc="Seconds between two checks for inactive topics.",
    )
    brokerDeleteInactiveTopicsMode: InactiveTopicDeleteMode = setting(
        default=InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS,
        dynamic=True,
        category=INACTIVITY,
        doc="The topics that count as inactive.",
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int | None = setting(
        default=None,
        minimum=1,
        dynamic=True,
        category=INACTIVITY,
        doc="Seconds after which an inactive topic is deleted; empty means the time between two "
        "checks.",
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=INACTIVITY,
        doc="Whether a partitioned topic is deleted when its last partition was inactive and is "
        "deleted.",
    )
    subscriptionExpirationTimeMinutes: int = setting(
        default=0,
        minimum=0,
        category=INACTIVITY,
        doc="Minutes without a consumer after which a subscription is deleted; 0 is never.",
    )
    subscriptionExpiryCheckIntervalInMinutes: int = setting(
        default=5,
        minimum=1,
        category=INACTIVITY,
        doc="Minutes between two checks for expired subscriptions.",
    )

    subscriptionTypesEnabled: frozenset[str] = setting(
        default=frozenset(SUBSCRIPTION_TYPES),
        choices=SUBSCRIPTION_TYPES,
        dynamic=True,
        category=SUBSCRIPTIONS,
        doc="The allowed types of subscriptions.",
    )
    subscriptionKeySharedEnable: bool = setting(
        default=True,
        dynamic=True,
        category=KEY_SHARED,
        doc="Whether subscriptions of type Key_Shared are allowed.",
    )
    subscriptionRedeliveryTrackerEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=SUBSCRIPTIONS,
        doc="Whether redeliveries are counted, and the counts sent with the messages.",
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = setting(
        default=True,
        category=SUBSCRIPTIONS,
        doc="Whether single messages of a batch can be acknowledged.",
    )
    maxUnackedMessagesPerConsumer: int = setting(
        default=50_000,
        minimum=0,
        category=SUBSCRIPTIONS,
        doc="Unacknowledged messages after which a consumer gets no more; 0 is no limit.",
    )
    maxUnackedMessagesPerSubscription: int = setting(
        default=200_000,
        minimum=0,
        category=SUBSCRIPTIONS,
        doc="Unacknowledged messages of all consumers of a subscription together, after which "
        "they get no more; 0 is no limit.",
    )
    maxUnackedMessagesPerBroker: int = setting(
        default=0,
        minimum=0,
        category=SUBSCRIPTIONS,
        doc="Unacknowledged messages in the whole broker, after which subscriptions with many of "
        "them get no more; 0 is no limit.",
    )
    maxUnackedMessagesPerSubscriptionOnBrokerBlocked: float = setting(
        default=0.16,
        minimum=0.0,
        maximum=1.0,
        category=SUBSCRIPTIONS,
        doc="Share of maxUnackedMessagesPerBroker from which on a subscription has many.",
    )
    activeConsumerFailoverDelayTimeMillis: int = setting(
        default=1000,
        minimum=0,
        category=SUBSCRIPTIONS,
        doc="Milliseconds before a new active consumer of a Failover subscription gets messages.",
    )
    activeConsumerFailoverConsistentHashing: bool = setting(
        default=False,
        category=SUBSCRIPTIONS,
        doc="Whether the active consumer of a Failover subscription is chosen by consistent "
        "hashing, not by the order of names.",
    )
    subscriptionKeySharedUseConsistentHashing: bool = setting(
        default=True,
        category=KEY_SHARED,
        doc="Whether keys are spread by consistent hashing, not by splitting hash ranges.",
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = setting(
        default=100,
        minimum=1,
        category=KEY_SHARED,
        doc="Points of each consumer on the ring of consistent hashing.",
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = setting(
        default=2000,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="Messages held back for their keys, for each consumer, up to which a subscription "
        "reads on.",
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = setting(
        default=20_000,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="The most messages held back for their keys, however many consumers there are, up to "
        "which a subscription reads on.",
    )
    keySharedUnblockingIntervalMs: int = setting(
        default=10,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="Milliseconds to wait, after keys are no longer blocked, until their messages are "
        "read.",
    )

    dispatcherMaxReadBatchSize: int = setting(
        default=100,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="The most entries of one read; four times as many for a single consumer, if they are "
        "in memory.",
    )
    dispatcherMinReadBatchSize: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Entries of the first read after a failed one.",
    )
    dispatcherMaxReadSizeBytes: int = setting(
        default=5 * 1024 * 1024,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="The most bytes of one read.",
    )
    dispatcherMaxRoundRobinBatchSize: int = setting(
        default=20,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="The most entries that a consumer of a Shared subscription gets before the next "
        "consumer.",
    )
    dispatcherReadFailureBackoffInitialTimeInMs: int = setting(
        default=15_000,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Milliseconds to wait after a failed read; the time doubles with each further one.",
    )
    dispatcherReadFailureBackoffMaxTimeInMs: int = setting(
        default=60_000,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="The most milliseconds to wait after a failed read.",
    )

    delayedDeliveryEnabled: bool = setting(
        default=True, category=DELAYED, doc="Whether messages may have a delivery time."
    )
    delayedDeliveryTickTimeMillis: int = setting(
        default=1000,
        minimum=1,
        category=DELAYED,
        doc="Milliseconds by which a delayed message may be late: it never comes early, and may "
        "be delivered less than this after its time.",
    )
    delayedDeliveryFixedDelayDetectionLookahead: int = setting(
        default=50_000,
        minimum=0,
        category=DELAYED,
        doc="Delayed messages, all with the same delay, after which a subscription stops reading "
        "ahead.",
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=DELAYED,
        doc="Milliseconds of the longest allowed delay; 0 is no limit.",
    )
    delayedDeliveryTrackerFactoryClassName: DelayedTrackerKind = setting(
        default=DelayedTrackerKind.BUCKETS,
        category=DELAYED,
        doc="Where the times of delayed messages are kept: many of them in buckets on disk "
        "(Bucket…; in Apache Pulsar only if it is asked for), or all in memory.",
    )
    delayedDeliveryMinIndexCountPerBucket: int = setting(
        default=50_000,
        minimum=1,
        category=DELAYED,
        doc="Delayed messages of a subscription that are written to disk as one bucket, at least.",
    )
    delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds: int = setting(
        default=300,
        minimum=1,
        category=DELAYED,
        doc="Seconds between the first and last message of a segment, the part of a bucket that is "
        "loaded together.",
    )
    delayedDeliveryMaxIndexesPerBucketSnapshotSegment: int = setting(
        default=5000,
        minimum=1,
        category=DELAYED,
        doc="Messages of a segment at most.",
    )
    delayedDeliveryMaxNumBuckets: int = setting(
        default=-1,
        minimum=-1,
        category=DELAYED,
        doc="Buckets of a subscription from which on neighbours are merged, up to a million "
        "messages; -1 is no limit.",
    )

    backlogQuotaCheckEnabled: bool = setting(
        default=True, category=RETENTION, doc="Whether backlog quotas are enforced."
    )
    backlogQuotaCheckIntervalInSeconds: int = setting(
        default=60,
        minimum=1,
        category=RETENTION,
        doc="Seconds between two checks of the backlog quotas.",
    )
    backlogQuotaDefaultLimitBytes: int = setting(
        default=-1,
        minimum=-1,
        category=RETENTION,
        doc="Bytes of the largest allowed backlog; 0 or -1 is no limit.",
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        default=-1,
        minimum=-1,
        category=RETENTION,
        doc="Seconds that the oldest message of a backlog may be old; 0 or -1 is no limit.",
    )
    backlogQuotaDefaultRetentionPolicy: BacklogQuotaAction = setting(
        default=BacklogQuotaAction.PRODUCER_REQUEST_HOLD,
        category=RETENTION,
        doc="The action when a backlog quota is exceeded.",
    )
    preciseTimeBasedBacklogQuotaCheck: bool = setting(
        default=False,
        category=RETENTION,
        doc="Whether the age of a backlog is read from its oldest message, not from the ledger.",
    )
    additionalSystemCursorNames: frozenset[str] = setting(
        default=frozenset(),
        category=RETENTION,
        doc="Subscriptions whose messages do not expire by their age, on all topics.",
    )
    ttlDurationDefaultInSeconds: int = setting(
        default=0,
        minimum=0,
        category=RETENTION,
        doc="Seconds after which messages expire, which acknowledges them; 0 is never.",
    )
    messageExpiryCheckIntervalInMinutes: int = setting(
        default=5,
        minimum=1,
        category=RETENTION,
        doc="Minutes between two checks for expired messages.",
    )
    defaultRetentionTimeInMinutes: int = setting(
        default=0,
        minimum=-1,
        category=RETENTION,
        doc="Minutes for which acknowledged data is kept; -1 is for ever.",
    )
    defaultRetentionSizeInMB: int = setting(
        default=0,
        minimum=-1,
        category=RETENTION,
        doc="Megabytes of acknowledged data that are kept; -1 is all.",
    )
    retentionCheckIntervalInSeconds: int = setting(
        default=120,
        minimum=1,
        category=RETENTION,
        doc="Seconds between two checks for ledgers that can be deleted.",
    )

    brokerDeduplicationEnabled: bool = setting(
        default=False,
        category=DEDUPLICATION,
        doc="Whether messages that a producer sends again are dropped.",
    )
    brokerDeduplicationMaxNumberOfProducers: int = setting(
        default=10_000,
        minimum=1,
        category=DEDUPLICATION,
        doc="Producers of a topic whose sequence ids are stored for deduplication.",
    )
    brokerDeduplicationEntriesInterval: int = setting(
        default=1000,
        minimum=1,
        category=DEDUPLICATION,
        doc="Entries after which a topic's sequence ids are stored.",
    )
    brokerDeduplicationSnapshotIntervalSeconds: int = setting(
        default=120,
        minimum=1,
        category=DEDUPLICATION,
        doc="Seconds after which a topic's sequence ids are stored, if there are new ones.",
    )
    brokerDeduplicationSnapshotFrequencyInSeconds: int = setting(
        default=120,
        minimum=1,
        category=DEDUPLICATION,
        doc="Seconds between two checks whether sequence ids have to be stored.",
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = setting(
        default=360,
        minimum=1,
        category=DEDUPLICATION,
        doc="Minutes after which the sequence id of a disconnected producer is forgotten.",
    )

    brokerServiceCompactionThresholdInBytes: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=COMPACTION,
        doc="Bytes that are not compacted yet after which a topic is compacted; 0 is never. System "
        "topics are always.",
    )
    brokerServiceCompactionMonitorIntervalInSeconds: int = setting(
        default=60,
        minimum=1,
        dynamic=True,
        category=COMPACTION,
        doc="Seconds between two checks whether topics have to be compacted.",
    )
    brokerServiceCompactionPhaseOneLoopTimeInSeconds: int = setting(
        default=30,
        minimum=1,
        dynamic=True,
        category=COMPACTION,
        doc="Seconds that a compaction waits for one read before it fails.",
    )
    topicCompactionRetainNullKey: bool = setting(
        default=False,
        dynamic=True,
        category=COMPACTION,
        doc="Whether messages without a key stay in a compacted topic.",
    )
    compactionServiceFactoryClassName: CompactionOrder = setting(
        default=CompactionOrder.PUBLISHING,
        category=COMPACTION,
        doc="Whether the message of a key that stays is the one published last or the one with the "
        "latest event time.",
    )
    topicCompactionMaxMemoryMB: int = setting(
        default=64,
        minimum=1,
        dynamic=True,
        category=COMPACTION,
        doc="Megabytes of memory for the keys of one compaction; the others go to sorted files. "
        "Pulsar has no such setting.",
    )
    topicCompactionSpillDirectory: str = setting(
        default="",
        category=COMPACTION,
        doc="The directory for the sorted files of compactions; empty: `tmp` in the data "
        "directory, without one the system's for temporary files. What a killed broker left there "
        "is removed at the next start. Pulsar has no such setting.",
    )
    schemaCompatibilityStrategy: SchemaCompatibilityStrategy = setting(
        default=SchemaCompatibilityStrategy.FULL,
        category=SCHEMAS,
        doc="The compatibility that a new schema must have with older ones.",
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=SCHEMAS,
        doc="Whether producers and consumers may register new schemas.",
    )
    isSchemaValidationEnforced: bool = setting(
        default=False,
        category=SCHEMAS,
        doc="Whether a topic with a schema refuses producers without one.",
    )
