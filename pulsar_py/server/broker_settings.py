"""Translates broker.conf's settings into those of the broker's parts, with units (pure).

Each function takes the whole `BrokerConfig` and returns the settings of one part: connections, the
registry of topics, a topic without any policy, dispatchers, the index of delayed messages, managed
ledgers, calls of other brokers. Minutes become seconds and megabytes bytes here and nowhere else. A
new setting of a topic gets a line here. `BrokerService` calls all of them; policies of namespaces
and topics replace some fields afterwards (`policies/effective_settings.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.policies import (
    AutoTopicCreation,
    BacklogQuota,
    BacklogQuotaType,
    DispatchRate,
    InactiveTopicPolicy,
    PublishRate,
    RetentionPolicy,
    SubscribeRate,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.config import MEBIBYTE, ManagedLedgerConfig
from pulsar_py.managed_ledger.log.record_values import RecordCompression
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.limits.topic_list_budget import TopicListLimits
from pulsar_py.server.load.other_brokers import CallSettings
from pulsar_py.server.policies.effective_settings import (
    SUBSCRIPTION_TYPES,
    cursor_persist_interval_seconds,
    retention_seconds,
    retention_size_bytes,
)
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.schema_registry import SchemaPolicies
from pulsar_py.server.settings.topics import CompactionOrder, DelayedTrackerKind
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS, RegistrySettings

if TYPE_CHECKING:
    from pulsar_py.server.compaction.compactor import CompactionRules
    from pulsar_py.server.delayed.bucket_tracker import BucketSettings


def connection_settings(config: BrokerConfig) -> ConnectionSettings:
    """Settings of connections."""
    return ConnectionSettings(
        max_message_bytes=config.maxMessageSize,
        keep_alive_interval_seconds=float(config.keepAliveIntervalSeconds),
        liveness_check_timeout_seconds=config.connectionLivenessCheckTimeoutMillis / 1000,
        max_connections=config.brokerMaxConnections,
        max_connections_per_ip=config.brokerMaxConnectionsPerIp,
        max_pending_publishes_per_connection=config.maxPendingPublishRequestsPerConnection,
        max_pending_lookups=config.maxConcurrentLookupRequest,
        topic_lists=TopicListLimits(
            max_bytes=config.maxTopicListInFlightHeapMemSizeMB * MEBIBYTE,
            max_waiting=config.maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize,
            max_wait_seconds=(
                config.maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis / 1000
            ),
        ),
        max_pending_non_persistent_publishes=(
            config.maxConcurrentNonPersistentMessagePerConnection
        ),
        is_topic_list_watcher_enabled=config.enableBrokerTopicListWatcher,
        is_pattern_evaluation_enabled=config.enableBrokerSideSubscriptionPatternEvaluation,
        subscription_pattern_max_length=config.subscriptionPatternMaxLength,
        max_consumer_metadata_bytes=config.maxConsumerMetadataSize,
        authentication_refresh_check_seconds=float(config.authenticationRefreshCheckSeconds),
        is_transaction_coordinator_enabled=config.transactionCoordinatorEnabled,
        is_broker_entry_metadata_exposed=config.exposingBrokerEntryMetadataToClientEnabled,
    )


def registry_settings(
    config: BrokerConfig, ledger_options: LedgerOptions | None = None
) -> RegistrySettings:
    """Settings of the registry, with those of a topic without any policy."""
    return RegistrySettings(
        topic=topic_settings(config, ledger_options),
        auto_creation=AutoTopicCreation(
            is_allowed=config.allowAutoTopicCreation,
            topic_type=config.allowAutoTopicCreationType,
            default_partitions_count=config.defaultNumPartitions,
        ),
        max_topics_per_namespace=config.maxTopicsPerNamespace,
        max_partitions=config.maxNumPartitionsPerPartitionedTopic or MAX_PARTITIONS,
        load_timeout_seconds=float(config.topicLoadTimeoutSeconds),
        max_concurrent_loads=config.maxConcurrentTopicLoadRequest,
        serves_persistent=config.enablePersistentTopics,
        serves_non_persistent=config.enableNonPersistentTopics,
        has_topic_policies=config.topicLevelPoliciesEnabled and config.systemTopicEnabled,
    )


def topic_settings(
    config: BrokerConfig, ledger_options: LedgerOptions | None = None
) -> TopicSettings:
    """Settings of a topic without any policy."""
    max_inactive = config.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
    inactive = InactiveTopicPolicy(
        delete_mode=config.brokerDeleteInactiveTopicsMode,
        max_inactive_seconds=(
            config.brokerDeleteInactiveTopicsFrequencySeconds
            if max_inactive is None
            else max_inactive
        ),
        is_deletion_enabled=config.brokerDeleteInactiveTopicsEnabled,
    )
    return TopicSettings(
        max_producers=config.maxProducersPerTopic,
        max_same_address_producers=config.maxSameAddressProducersPerTopic,
        max_subscriptions=config.maxSubscriptionsPerTopic,
        max_delay_millis=config.delayedDeliveryMaxDelayInMillis,
        allows_subscription_creation=config.allowAutoSubscriptionCreation,
        is_encryption_required=config.encryptionRequireOnProducer,
        system_cursor_names=config.additionalSystemCursorNames,
        message_ttl_seconds=config.ttlDurationDefaultInSeconds,
        subscription_expiration_minutes=config.subscriptionExpirationTimeMinutes,
        backlog_quotas=_backlog_quotas(config),
        is_backlog_quota_checked=config.backlogQuotaCheckEnabled,
        is_age_quota_precise=config.preciseTimeBasedBacklogQuotaCheck,
        is_deduplication_enabled=config.brokerDeduplicationEnabled,
        deduplication_snapshot_entries=config.brokerDeduplicationEntriesInterval,
        deduplication_snapshot_seconds=config.brokerDeduplicationSnapshotIntervalSeconds,
        deduplication_max_producers=config.brokerDeduplicationMaxNumberOfProducers,
        deduplication_inactivity_seconds=(
            config.brokerDeduplicationProducerInactivityTimeoutMinutes * 60.0
        ),
        compaction_threshold_bytes=config.brokerServiceCompactionThresholdInBytes,
        inactive=inactive,
        publish_rate=PublishRate(
            config.maxPublishRatePerTopicInMessages, config.maxPublishRatePerTopicInBytes
        ),
        subscribe_rate=SubscribeRate(
            config.subscribeThrottlingRatePerConsumer,
            config.subscribeRatePeriodPerConsumerInSecond,
        ),
        is_publishing_limited_by_broker=config.brokerPublisherThrottlingMaxMessageRate > 0
        or config.brokerPublisherThrottlingMaxByteRate > 0,
        schema=SchemaPolicies(
            strategy=config.schemaCompatibilityStrategy,
            is_auto_update_allowed=config.isAllowAutoUpdateSchemaEnabled,
            is_validation_enforced=config.isSchemaValidationEnforced,
        ),
        entry_metadata_interceptors=tuple(sorted(config.brokerEntryMetadataInterceptors)),
        dispatch=dispatch_settings(config),
        managed_ledger=managed_ledger_config(config, ledger_options),
    )


def _dispatch_rate(config: BrokerConfig, messages_count: int, bytes_count: int) -> DispatchRate:
    relative = config.dispatchThrottlingRateRelativeToPublishRate
    return DispatchRate(messages_count, bytes_count, is_relative_to_publish_rate=relative)


def compaction_rules(config: BrokerConfig) -> CompactionRules:
    """What compactions keep."""
    from pulsar_py.server.compaction.compactor import (  # noqa: PLC0415 - at first use
        CompactionRules,
    )

    return CompactionRules(
        retains_null_keys=config.topicCompactionRetainNullKey,
        is_by_event_time=config.compactionServiceFactoryClassName is CompactionOrder.EVENT_TIME,
        keeps_broker_entry_metadata=config.exposingBrokerEntryMetadataToClientEnabled,
    )


def _backlog_quotas(config: BrokerConfig) -> dict[BacklogQuotaType, BacklogQuota]:
    action = config.backlogQuotaDefaultRetentionPolicy
    limit_bytes = config.backlogQuotaDefaultLimitBytes
    limit_seconds = config.backlogQuotaDefaultLimitSecond
    quotas = {}
    if limit_bytes > 0:
        quota = BacklogQuota(limit_bytes, -1, action)
        quotas[BacklogQuotaType.DESTINATION_STORAGE] = quota
    if limit_seconds > 0:
        quotas[BacklogQuotaType.MESSAGE_AGE] = BacklogQuota(-1, limit_seconds, action)
    return quotas


def dispatch_settings(config: BrokerConfig) -> DispatchSettings:
    """Dispatch settings of a topic without any policy."""
    types = {SUBSCRIPTION_TYPES[name] for name in config.subscriptionTypesEnabled}
    if not config.subscriptionKeySharedEnable:
        types.discard(SubscriptionType.KEY_SHARED)
    return DispatchSettings(
        max_read_batch_entries=config.dispatcherMaxReadBatchSize,
        min_read_batch_entries=config.dispatcherMinReadBatchSize,
        max_read_bytes=config.dispatcherMaxReadSizeBytes,
        max_round_robin_batch_entries=config.dispatcherMaxRoundRobinBatchSize,
        read_failure_backoff_initial_millis=config.dispatcherReadFailureBackoffInitialTimeInMs,
        read_failure_backoff_max_millis=config.dispatcherReadFailureBackoffMaxTimeInMs,
        max_consumers_per_topic=config.maxConsumersPerTopic,
        max_same_address_consumers_per_topic=config.maxSameAddressConsumersPerTopic,
        max_consumers_per_subscription=config.maxConsumersPerSubscription,
        max_unacked_messages_per_consumer=config.maxUnackedMessagesPerConsumer,
        max_unacked_messages_per_subscription=config.maxUnackedMessagesPerSubscription,
        enabled_subscription_types=frozenset(types),
        is_redelivery_tracked=config.subscriptionRedeliveryTrackerEnabled,
        is_batch_index_ack_enabled=config.acknowledgmentAtBatchIndexLevelEnabled,
        failover_delay_millis=config.activeConsumerFailoverDelayTimeMillis,
        uses_failover_ring=config.activeConsumerFailoverConsistentHashing,
        uses_consistent_hashing=config.subscriptionKeySharedUseConsistentHashing,
        hashing_replica_points=config.subscriptionKeySharedConsistentHashingReplicaPoints,
        look_ahead_per_consumer=config.keySharedLookAheadMsgInReplayThresholdPerConsumer,
        look_ahead_per_subscription=config.keySharedLookAheadMsgInReplayThresholdPerSubscription,
        unblocking_interval_millis=config.keySharedUnblockingIntervalMs,
        topic_rate=_dispatch_rate(
            config,
            config.dispatchThrottlingRatePerTopicInMsg,
            config.dispatchThrottlingRatePerTopicInByte,
        ),
        subscription_rate=_dispatch_rate(
            config,
            config.dispatchThrottlingRatePerSubscriptionInMsg,
            config.dispatchThrottlingRatePerSubscriptionInByte,
        ),
        is_limited_by_broker=config.dispatchThrottlingRateInMsg > 0
        or config.dispatchThrottlingRateInByte > 0,
        rates_count_entries=config.dispatchThrottlingOnBatchMessageEnabled,
        rates_count_filtered=config.dispatchThrottlingForFilteredEntriesEnabled,
        entry_filter_names=config.entryFilterNames,
        allows_filter_override=config.allowOverrideEntryFilters,
        rescheduled_delay_millis=config.dispatcherEntryFilterRescheduledMessageDelay,
        rates_hold_without_backlog=config.dispatchThrottlingOnNonBacklogConsumerEnabled,
        is_delayed_delivery_enabled=config.delayedDeliveryEnabled,
        delayed_delivery_tick_millis=config.delayedDeliveryTickTimeMillis,
        delayed_delivery_look_ahead=config.delayedDeliveryFixedDelayDetectionLookahead,
    )


def bucket_settings(config: BrokerConfig) -> BucketSettings | None:
    """Settings of delayed indexes on disk; None where delays are kept in memory."""
    if config.delayedDeliveryTrackerFactoryClassName is not DelayedTrackerKind.BUCKETS:
        return None
    from pulsar_py.server.delayed.bucket_tracker import (  # noqa: PLC0415 - at first use
        BucketSettings,
    )

    return BucketSettings(
        min_indexes=config.delayedDeliveryMinIndexCountPerBucket,
        max_segment_indexes=config.delayedDeliveryMaxIndexesPerBucketSnapshotSegment,
        max_step_seconds=config.delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds,
        max_buckets=config.delayedDeliveryMaxNumBuckets,
    )


def managed_ledger_config(
    config: BrokerConfig, ledger_options: LedgerOptions | None = None
) -> ManagedLedgerConfig:
    """Storage settings of a topic without any policy."""
    retention = RetentionPolicy(
        config.defaultRetentionTimeInMinutes, config.defaultRetentionSizeInMB
    )
    return ManagedLedgerConfig(
        max_entries_per_ledger=config.managedLedgerMaxEntriesPerLedger,
        max_size_per_ledger_bytes=config.managedLedgerMaxSizePerLedgerMbytes * MEBIBYTE,
        minimum_rollover_seconds=config.managedLedgerMinLedgerRolloverTimeMinutes * 60.0,
        maximum_rollover_seconds=config.managedLedgerMaxLedgerRolloverTimeMinutes * 60.0,
        inactive_ledger_rollover_seconds=float(
            config.managedLedgerInactiveLedgerRolloverTimeSeconds
        ),
        retention_seconds=retention_seconds(retention),
        retention_size_bytes=retention_size_bytes(retention),
        is_batch_index_ack_enabled=config.acknowledgmentAtBatchIndexLevelEnabled,
        cursor_persist_interval_seconds=cursor_persist_interval_seconds(
            config.managedLedgerDefaultMarkDeleteRateLimit
        ),
        cursor_max_entries_per_ledger=config.managedLedgerCursorMaxEntriesPerLedger,
        cursor_rollover_seconds=float(config.managedLedgerCursorRolloverTimeInSeconds),
        max_ranges_in_cursor_entry=config.managedLedgerMaxRangesInCursorEntry,
        max_unacked_ranges_to_persist=config.managedLedgerMaxUnackedRangesToPersist,
        max_unacked_ranges_to_persist_in_metadata=(
            config.managedLedgerMaxUnackedRangesToPersistInMetadataStore
        ),
        max_batch_deleted_indexes_to_persist=config.managedLedgerMaxBatchDeletedIndexToPersist,
        ledger_list_compression=RecordCompression(
            config.managedLedgerInfoCompressionType,
            config.managedLedgerInfoCompressionThresholdInBytes,
        ),
        cursor_compression=RecordCompression(
            config.managedCursorInfoCompressionType,
            config.managedCursorInfoCompressionThresholdInBytes,
        ),
        cursor_backlogged_threshold_entries=config.managedLedgerCursorBackloggedThreshold,
        skips_non_recoverable_data=config.autoSkipNonRecoverableData,
        ledger_options=ledger_options or LedgerOptions(),
        cluster=config.clusterName,
    )


def call_settings(config: BrokerConfig) -> CallSettings:
    """The settings of REST calls to other brokers."""
    return CallSettings(
        plugin=config.brokerClientAuthenticationPlugin,
        parameters=config.brokerClientAuthenticationParameters,
        uses_tls=config.brokerClientTlsEnabled,
        trust_path=config.brokerClientTrustCertsFilePath,
        certificate_path=config.brokerClientCertificateFilePath,
        key_path=config.brokerClientKeyFilePath,
        verifies_hostname=config.tlsHostnameVerificationEnabled,
    )
