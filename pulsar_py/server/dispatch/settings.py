"""`DispatchSettings`: the effective settings of one topic's subscriptions and their dispatchers.

`broker_settings.dispatch_settings` makes one from broker.conf alone, `policies.effective_settings`
replaces the fields for which the topic or its namespace has a policy. It is the field `dispatch` of
`TopicSettings`; subscriptions read it anew whenever it matters, so a change of a policy needs no
restart. Limits of 0 mean "no limit".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from pulsar_py.common.policies import DispatchRate
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType


class DispatchSettings(Struct, frozen=True, kw_only=True):
    """One immutable value for each topic; the comments name the settings of broker.conf."""

    max_read_batch_entries: int = 100  # dispatcherMaxReadBatchSize
    min_read_batch_entries: int = 1  # dispatcherMinReadBatchSize
    max_read_bytes: int = 5 * 1024 * 1024  # dispatcherMaxReadSizeBytes
    max_round_robin_batch_entries: int = 20  # dispatcherMaxRoundRobinBatchSize
    read_failure_backoff_initial_millis: int = 15_000  # dispatcherReadFailureBackoffInitialTimeInMs
    read_failure_backoff_max_millis: int = 60_000  # dispatcherReadFailureBackoffMaxTimeInMs

    max_consumers_per_topic: int = 0  # maxConsumersPerTopic
    max_same_address_consumers_per_topic: int = 0  # maxSameAddressConsumersPerTopic
    max_consumers_per_subscription: int = 0  # maxConsumersPerSubscription
    max_unacked_messages_per_consumer: int = 50_000  # maxUnackedMessagesPerConsumer
    max_unacked_messages_per_subscription: int = 200_000  # maxUnackedMessagesPerSubscription
    enabled_subscription_types: frozenset[SubscriptionType] = frozenset(SubscriptionType)
    # subscriptionTypesEnabled, and subscriptionKeySharedEnable for Key_Shared

    is_redelivery_tracked: bool = True  # subscriptionRedeliveryTrackerEnabled
    is_batch_index_ack_enabled: bool = True  # acknowledgmentAtBatchIndexLevelEnabled
    failover_delay_millis: int = 1000  # activeConsumerFailoverDelayTimeMillis
    uses_failover_ring: bool = False  # activeConsumerFailoverConsistentHashing

    uses_consistent_hashing: bool = True  # subscriptionKeySharedUseConsistentHashing
    hashing_replica_points: int = 100  # subscriptionKeySharedConsistentHashingReplicaPoints
    look_ahead_per_consumer: int = 2000  # keySharedLookAheadMsgInReplayThresholdPerConsumer
    look_ahead_per_subscription: int = 20_000  # keySharedLookAheadMsg…PerSubscription
    unblocking_interval_millis: int = 10  # keySharedUnblockingIntervalMs

    topic_rate: DispatchRate | None = None  # dispatchThrottlingRatePerTopicIn…
    subscription_rate: DispatchRate | None = None  # dispatchThrottlingRatePerSubscriptionIn…
    rates_of_subscriptions: Mapping[str, DispatchRate] = field(default_factory=dict)  # policies
    is_limited_by_broker: bool = False  # dispatchThrottlingRateIn…
    rates_count_entries: bool = False  # dispatchThrottlingOnBatchMessageEnabled
    rates_count_filtered: bool = False  # dispatchThrottlingForFilteredEntriesEnabled
    entry_filter_names: Sequence[str] = ()  # entryFilterNames
    entry_filters_of_policy: Sequence[str] = ()  # policies
    allows_filter_override: bool = False  # allowOverrideEntryFilters
    rescheduled_delay_millis: int = 1000  # dispatcherEntryFilterRescheduledMessageDelay
    rates_hold_without_backlog: bool = True  # dispatchThrottlingOnNonBacklogConsumerEnabled

    is_delayed_delivery_enabled: bool = True  # delayedDeliveryEnabled
    delayed_delivery_tick_millis: int = 1000  # delayedDeliveryTickTimeMillis
    delayed_delivery_look_ahead: int = 50_000  # delayedDeliveryFixedDelayDetectionLookahead
