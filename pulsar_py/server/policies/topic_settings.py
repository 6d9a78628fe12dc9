"""`TopicSettings`: the effective settings of one topic.

`effective_settings` takes each from the topic's policy, else the namespace's, else broker.conf. A
change makes a new value, which the registry passes to the running topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pulsar_py.common.policies import (
    BacklogQuota,
    BacklogQuotaType,
    InactiveTopicDeleteMode,
    InactiveTopicPolicy,
    PublishRate,
    SubscribeRate,
)
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.schema_registry import SchemaPolicies


class TopicSettings(Struct, frozen=True, kw_only=True):
    """Effective settings of one topic; limits of 0 are off. Comments name those of broker.conf."""

    max_producers: int = 0  # maxProducersPerTopic
    max_same_address_producers: int = 0  # maxSameAddressProducersPerTopic
    max_subscriptions: int = 0  # maxSubscriptionsPerTopic
    max_message_bytes: int = 0  # the topic policy only
    max_delay_millis: int = 0  # delayedDeliveryMaxDelayInMillis
    allows_subscription_creation: bool = True  # allowAutoSubscriptionCreation
    is_encryption_required: bool = False  # encryptionRequireOnProducer
    system_cursor_names: frozenset[str] = frozenset()  # additionalSystemCursorNames
    message_ttl_seconds: int = 0  # ttlDurationDefaultInSeconds
    subscription_expiration_minutes: int = 0  # subscriptionExpirationTimeMinutes
    backlog_quotas: Mapping[BacklogQuotaType, BacklogQuota] = field(default_factory=dict)
    is_backlog_quota_checked: bool = True  # backlogQuotaCheckEnabled
    is_age_quota_precise: bool = False  # preciseTimeBasedBacklogQuotaCheck
    is_deduplication_enabled: bool = False  # brokerDeduplicationEnabled
    deduplication_snapshot_entries: int = 1000  # brokerDeduplicationEntriesInterval
    deduplication_snapshot_seconds: int = 120  # brokerDeduplicationSnapshotIntervalSeconds
    deduplication_max_producers: int = 10_000  # brokerDeduplicationMaxNumberOfProducers
    deduplication_inactivity_seconds: float = 21_600.0  # …ProducerInactivityTimeoutMinutes
    compaction_threshold_bytes: int = 0  # brokerServiceCompactionThresholdInBytes
    inactive: InactiveTopicPolicy = field(
        default_factory=lambda: InactiveTopicPolicy(
            InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS, 60, is_deletion_enabled=True
        )
    )
    publish_rate: PublishRate | None = None  # maxPublishRatePerTopicIn…
    subscribe_rate: SubscribeRate | None = None  # subscribeThrottlingRatePerConsumer
    is_publishing_limited_by_broker: bool = False  # brokerPublisherThrottlingMax…
    resource_group: str = ""  # the namespace's; empty for none
    entry_metadata_interceptors: tuple[str, ...] = ()  # brokerEntryMetadataInterceptors
    replicator_prefix: str = "pulsar.repl"  # replicatorPrefix
    schema: SchemaPolicies = field(default_factory=SchemaPolicies)
    dispatch: DispatchSettings = field(default_factory=DispatchSettings)
    managed_ledger: ManagedLedgerConfig = field(default_factory=ManagedLedgerConfig)
