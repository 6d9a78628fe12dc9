"""The settings of broker.conf for topics; policies of namespaces and topics override most."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.common.policies import (
    BacklogQuotaAction,
    InactiveTopicDeleteMode,
    SchemaCompatibilityStrategy,
    TopicType,
)
from pulsar_py.server.settings import Settings, setting

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
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")


class BrokerTopicSettings(Settings):
    """The settings of broker.conf for topics, subscriptions and dispatch.

    They hold where neither a topic nor its namespace has a policy.
    """

    allowAutoTopicCreation: bool = setting(
        default=True,
        dynamic=True,
        category=CREATION,
        doc="Whether a topic that is asked for is created.",
    )
    allowAutoTopicCreationType: TopicType = setting(
        default=TopicType.NON_PARTITIONED,
        dynamic=True,
        category=CREATION,
        doc="As what it is created.",
    )
    defaultNumPartitions: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=CREATION,
        doc="Partitions of a partitioned topic created so.",
    )
    allowAutoSubscriptionCreation: bool = setting(
        default=True,
        dynamic=True,
        category=CREATION,
        doc="Whether SUBSCRIBE creates a durable subscription that is not there.",
    )
    maxNumPartitionsPerPartitionedTopic: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LIMITS,
        doc="Most partitions of a topic; 0: 10000, a limit of this broker's own.",
    )
    defaultNumberOfNamespaceBundles: int = setting(
        default=4,
        minimum=1,
        maximum=128,
        dynamic=True,
        category=CREATION,
        doc="Bundles a new namespace is cut into.",
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
    encryptionRequireOnProducer: bool = setting(
        default=False, category=CREATION, doc="Whether producers must encrypt what they publish."
    )
    brokerEntryMetadataInterceptors: frozenset[str] = setting(
        default=frozenset[str](),
        category=CREATION,
        doc="What is stored in front of each entry: class names that end in "
        "`AppendBrokerTimestampMetadataInterceptor` or `AppendIndexMetadataInterceptor`.",
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = setting(
        default=False,
        category=CREATION,
        doc="Whether clients that understand it get that metadata.",
    )
    forceDeleteTenantAllowed: bool = setting(
        default=False,
        dynamic=True,
        category=CREATION,
        doc="Whether a tenant may go with its namespaces.",
    )
    forceDeleteNamespaceAllowed: bool = setting(
        default=False,
        dynamic=True,
        category=CREATION,
        doc="Whether a namespace may go with its topics.",
    )
    topicLevelPoliciesEnabled: bool = setting(
        default=True, category=CREATION, doc="Whether single topics may have policies of their own."
    )

    brokerDeleteInactiveTopicsEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=INACTIVITY,
        doc="Whether topics nobody uses are deleted.",
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        default=60,
        minimum=1,
        dynamic=True,
        category=INACTIVITY,
        doc="Seconds between looks for them.",
    )
    brokerDeleteInactiveTopicsMode: InactiveTopicDeleteMode = setting(
        default=InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS,
        dynamic=True,
        category=INACTIVITY,
        doc="Which topics count as unused.",
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int | None = setting(
        default=None,
        minimum=1,
        dynamic=True,
        category=INACTIVITY,
        doc="Seconds a topic has to be unused; empty means the time between two looks.",
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=INACTIVITY,
        doc="Whether a partitioned topic goes with the last of its partitions.",
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
        doc="Minutes between looks for such subscriptions.",
    )

    subscriptionTypesEnabled: frozenset[str] = setting(
        default=frozenset(SUBSCRIPTION_TYPES),
        choices=SUBSCRIPTION_TYPES,
        dynamic=True,
        category=SUBSCRIPTIONS,
        doc="The types of subscription that may be made.",
    )
    subscriptionKeySharedEnable: bool = setting(
        default=True,
        dynamic=True,
        category=KEY_SHARED,
        doc="Whether Key_Shared may be used at all.",
    )
    subscriptionRedeliveryTrackerEnabled: bool = setting(
        default=True, dynamic=True, category=SUBSCRIPTIONS, doc="Whether deliveries are counted."
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
        doc="The same for all consumers of a subscription together.",
    )
    maxUnackedMessagesPerBroker: int = setting(
        default=0,
        minimum=0,
        category=SUBSCRIPTIONS,
        doc="The same for the whole broker: beyond it, subscriptions with many are paused.",
    )
    maxUnackedMessagesPerSubscriptionOnBrokerBlocked: float = setting(
        default=0.16,
        minimum=0.0,
        maximum=1.0,
        category=SUBSCRIPTIONS,
        doc="Share of maxUnackedMessagesPerBroker that is many.",
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
        doc="Whether a ring of hashes, not the order of names, picks the active consumer.",
    )
    subscriptionKeySharedUseConsistentHashing: bool = setting(
        default=True,
        category=KEY_SHARED,
        doc="Whether a ring of hashes, not the halving of ranges, spreads the keys.",
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = setting(
        default=100, minimum=1, category=KEY_SHARED, doc="Points of each consumer on that ring."
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = setting(
        default=2000,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="Messages held back for a blocked key, times consumers, up to which reading goes on.",
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = setting(
        default=20_000,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="The bound of that product.",
    )
    keySharedUnblockingIntervalMs: int = setting(
        default=10,
        minimum=0,
        dynamic=True,
        category=KEY_SHARED,
        doc="Milliseconds that the end of blocked keys is gathered before reading goes on.",
    )

    dispatcherMaxReadBatchSize: int = setting(
        default=100,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Most entries of one read; four times as many for one consumer, if in memory.",
    )
    dispatcherMinReadBatchSize: int = setting(
        default=1,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Entries of a read after a failed one.",
    )
    dispatcherMaxReadSizeBytes: int = setting(
        default=5 * 1024 * 1024,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Most bytes of one read.",
    )
    dispatcherMaxRoundRobinBatchSize: int = setting(
        default=20,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Most entries a Shared consumer gets before it is the next one's turn.",
    )
    dispatcherReadFailureBackoffInitialTimeInMs: int = setting(
        default=15_000,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="Wait after a failed read, in ms.",
    )
    dispatcherReadFailureBackoffMaxTimeInMs: int = setting(
        default=60_000,
        minimum=1,
        dynamic=True,
        category=DISPATCH,
        doc="The longest such wait, in ms.",
    )

    delayedDeliveryEnabled: bool = setting(
        default=True, category=DELAYED, doc="Whether messages may ask for a later delivery."
    )
    delayedDeliveryTickTimeMillis: int = setting(
        default=1000,
        minimum=1,
        category=DELAYED,
        doc="Milliseconds to which that time is exact: a message never comes early, and becomes "
        "deliverable less than this much late.",
    )
    delayedDeliveryFixedDelayDetectionLookahead: int = setting(
        default=50_000,
        minimum=0,
        category=DELAYED,
        doc="Messages after which a subscription whose delays are all alike stops reading ahead.",
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        default=0, minimum=0, category=DELAYED, doc="The longest delay, in ms; 0 is no limit."
    )

    backlogQuotaCheckEnabled: bool = setting(
        default=True, category=RETENTION, doc="Whether backlog quotas are enforced."
    )
    backlogQuotaCheckIntervalInSeconds: int = setting(
        default=60, minimum=1, category=RETENTION, doc="Seconds between looks at the backlogs."
    )
    backlogQuotaDefaultLimitBytes: int = setting(
        default=-1,
        minimum=-1,
        category=RETENTION,
        doc="Bytes a backlog may have; 0 or -1 is no limit.",
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        default=-1,
        minimum=-1,
        category=RETENTION,
        doc="Seconds its oldest message may be old; 0 or -1 is no limit.",
    )
    backlogQuotaDefaultRetentionPolicy: BacklogQuotaAction = setting(
        default=BacklogQuotaAction.PRODUCER_REQUEST_HOLD,
        category=RETENTION,
        doc="What happens beyond it.",
    )
    preciseTimeBasedBacklogQuotaCheck: bool = setting(
        default=False,
        category=RETENTION,
        doc="Whether that age is read from the message, not the ledger.",
    )
    ttlDurationDefaultInSeconds: int = setting(
        default=0,
        minimum=0,
        category=RETENTION,
        doc="Seconds after which a message counts as acknowledged; 0 is never.",
    )
    messageExpiryCheckIntervalInMinutes: int = setting(
        default=5, minimum=1, category=RETENTION, doc="Minutes between looks for such messages."
    )
    defaultRetentionTimeInMinutes: int = setting(
        default=0,
        minimum=-1,
        category=RETENTION,
        doc="Minutes acknowledged data stays; -1 is for ever.",
    )
    defaultRetentionSizeInMB: int = setting(
        default=0, minimum=-1, category=RETENTION, doc="Megabytes of it that stay; -1 is all."
    )
    retentionCheckIntervalInSeconds: int = setting(
        default=120, minimum=1, category=RETENTION, doc="Seconds between looks for what can go."
    )

    brokerDeduplicationEnabled: bool = setting(
        default=False, category=DEDUPLICATION, doc="Whether what a producer sends again is dropped."
    )
    brokerDeduplicationMaxNumberOfProducers: int = setting(
        default=10_000,
        minimum=1,
        category=DEDUPLICATION,
        doc="Producers of a topic that are remembered.",
    )
    brokerDeduplicationEntriesInterval: int = setting(
        default=1000,
        minimum=1,
        category=DEDUPLICATION,
        doc="Entries after which their state is stored.",
    )
    brokerDeduplicationSnapshotIntervalSeconds: int = setting(
        default=120,
        minimum=1,
        category=DEDUPLICATION,
        doc="Seconds after which it is stored anyway.",
    )
    brokerDeduplicationSnapshotFrequencyInSeconds: int = setting(
        default=120,
        minimum=1,
        category=DEDUPLICATION,
        doc="Seconds between looks whether that is due.",
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = setting(
        default=360,
        minimum=1,
        category=DEDUPLICATION,
        doc="Minutes after which a producer is forgotten.",
    )

    schemaCompatibilityStrategy: SchemaCompatibilityStrategy = setting(
        default=SchemaCompatibilityStrategy.FULL,
        category=SCHEMAS,
        doc="What a new schema has to respect.",
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=SCHEMAS,
        doc="Whether producers and consumers may bring one.",
    )
    isSchemaValidationEnforced: bool = setting(
        default=False,
        category=SCHEMAS,
        doc="Whether a topic with a schema takes producers with one only.",
    )
