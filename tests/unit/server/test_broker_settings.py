"""broker_settings: settings of broker.conf as those of the broker's parts."""

from __future__ import annotations

from pulsar_py.common.policies import (
    BacklogQuotaAction,
    BacklogQuotaType,
    InactiveTopicDeleteMode,
    SchemaCompatibilityStrategy,
    TopicType,
)
from pulsar_py.server.broker_settings import (
    connection_settings,
    dispatch_settings,
    managed_ledger_config,
    registry_settings,
    topic_settings,
)
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType


def test_settings_of_topics() -> None:
    config = BrokerConfig(
        maxProducersPerTopic=1,
        maxSameAddressProducersPerTopic=2,
        maxSubscriptionsPerTopic=3,
        delayedDeliveryMaxDelayInMillis=4,
        allowAutoSubscriptionCreation=False,
        encryptionRequireOnProducer=True,
        subscriptionExpirationTimeMinutes=5,
        backlogQuotaDefaultLimitBytes=6,
        backlogQuotaDefaultLimitSecond=7,
        backlogQuotaDefaultRetentionPolicy=BacklogQuotaAction.PRODUCER_EXCEPTION,
        backlogQuotaCheckEnabled=False,
        preciseTimeBasedBacklogQuotaCheck=True,
        brokerDeduplicationEnabled=True,
        brokerDeduplicationMaxNumberOfProducers=8,
        brokerDeduplicationProducerInactivityTimeoutMinutes=9,
        brokerDeleteInactiveTopicsMode=InactiveTopicDeleteMode.DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP,
        brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=10,
        brokerDeleteInactiveTopicsEnabled=False,
        brokerEntryMetadataInterceptors=frozenset({"a.b"}),
        schemaCompatibilityStrategy=SchemaCompatibilityStrategy.BACKWARD,
        isAllowAutoUpdateSchemaEnabled=False,
        isSchemaValidationEnforced=True,
    )
    settings = topic_settings(config)
    assert settings.max_producers == 1
    assert settings.max_same_address_producers == 2
    assert settings.max_subscriptions == 3
    assert settings.max_delay_millis == 4
    assert not settings.allows_subscription_creation
    assert settings.is_encryption_required
    assert settings.subscription_expiration_minutes == 5
    quotas = settings.backlog_quotas
    assert quotas[BacklogQuotaType.DESTINATION_STORAGE].limit_bytes == 6
    assert quotas[BacklogQuotaType.MESSAGE_AGE].limit_seconds == 7
    assert not settings.is_backlog_quota_checked
    assert settings.is_age_quota_precise
    assert settings.is_deduplication_enabled
    assert settings.deduplication_max_producers == 8
    assert settings.deduplication_inactivity_seconds == 540
    assert settings.inactive.max_inactive_seconds == 10
    assert not settings.inactive.is_deletion_enabled
    assert settings.entry_metadata_interceptors == ("a.b",)
    assert settings.schema.strategy is SchemaCompatibilityStrategy.BACKWARD
    assert not settings.schema.is_auto_update_allowed
    assert settings.schema.is_validation_enforced
    assert topic_settings(BrokerConfig()).backlog_quotas == {}


def test_settings_of_the_registry() -> None:
    config = BrokerConfig(
        allowAutoTopicCreation=False,
        allowAutoTopicCreationType=TopicType.PARTITIONED,
        defaultNumPartitions=3,
        maxTopicsPerNamespace=4,
        maxNumPartitionsPerPartitionedTopic=5,
        topicLoadTimeoutSeconds=6,
        maxConcurrentTopicLoadRequest=7,
        topicLevelPoliciesEnabled=False,
    )
    settings = registry_settings(config)
    assert not settings.auto_creation.is_allowed
    assert settings.auto_creation.topic_type is TopicType.PARTITIONED
    assert settings.auto_creation.default_partitions_count == 3
    assert settings.max_topics_per_namespace == 4
    assert settings.max_partitions == 5
    assert settings.load_timeout_seconds == 6
    assert settings.max_concurrent_loads == 7
    assert not settings.has_topic_policies


def test_settings_of_dispatch() -> None:
    config = BrokerConfig(
        subscriptionTypesEnabled=frozenset({"Shared", "Key_Shared"}),
        subscriptionKeySharedEnable=False,
        dispatcherMaxReadBatchSize=7,
        activeConsumerFailoverConsistentHashing=True,
        maxConsumersPerSubscription=3,
    )
    settings = dispatch_settings(config)
    assert settings.enabled_subscription_types == {SubscriptionType.SHARED}
    assert settings.max_read_batch_entries == 7
    assert settings.uses_failover_ring
    assert settings.max_consumers_per_subscription == 3


def test_settings_of_ledgers() -> None:
    config = BrokerConfig(
        managedLedgerMaxEntriesPerLedger=10,
        managedLedgerMaxSizePerLedgerMbytes=2,
        managedLedgerMinLedgerRolloverTimeMinutes=1,
        managedLedgerMaxLedgerRolloverTimeMinutes=2,
        defaultRetentionTimeInMinutes=3,
        defaultRetentionSizeInMB=-1,
        managedLedgerDefaultMarkDeleteRateLimit=2.0,
        acknowledgmentAtBatchIndexLevelEnabled=False,
        autoSkipNonRecoverableData=True,
    )
    ledger = managed_ledger_config(config)
    assert ledger.max_entries_per_ledger == 10
    assert ledger.max_size_per_ledger_bytes == 2 * 1024 * 1024
    assert ledger.minimum_rollover_seconds == 60
    assert ledger.maximum_rollover_seconds == 120
    assert ledger.retention_seconds == 180
    assert ledger.retention_size_bytes == -1
    assert ledger.cursor_persist_interval_seconds == 0.5
    assert not ledger.is_batch_index_ack_enabled
    assert ledger.skips_non_recoverable_data


def test_settings_of_connections() -> None:
    config = BrokerConfig(
        maxMessageSize=1_000_000,
        keepAliveIntervalSeconds=7,
        maxPendingPublishRequestsPerConnection=9,
        maxConcurrentNonPersistentMessagePerConnection=11,
        exposingBrokerEntryMetadataToClientEnabled=True,
    )
    settings = connection_settings(config)
    assert settings.max_message_bytes == 1_000_000
    assert settings.keep_alive_interval_seconds == 7
    assert settings.max_pending_publishes_per_connection == 9
    assert settings.max_pending_non_persistent_publishes == 11
    assert settings.is_broker_entry_metadata_exposed
