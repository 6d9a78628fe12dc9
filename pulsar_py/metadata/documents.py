"""Documents of clusters, tenants, namespaces and topics, which metadata holds as JSON (values).

Names and shapes of keys are Apache Pulsar's; an attribute is None where the document has no such
key.

Source: ClusterData, TenantInfo, Policies, LocalPolicies, TopicPolicies, PartitionedTopicMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulsar_py.metadata.json_document import Codec, JsonDocument, key
from pulsar_py.metadata.policies_format import (
    AUTO_SUBSCRIPTION_CREATION,
    AUTO_TOPIC_CREATION,
    BACKLOG_QUOTAS,
    BOOKIE_AFFINITY,
    BOOLEAN,
    DELAYED_DELIVERY,
    DISPATCH_RATE,
    INACTIVE_TOPICS,
    INTEGER,
    JSON_OBJECT,
    PERSISTENCE,
    PUBLISH_RATE,
    RETENTION,
    SCHEMA_COMPATIBILITY,
    SUBSCRIBE_RATE,
    TEXT,
    TEXT_MAP,
    TEXT_SET,
    TEXTS,
    mapping_codec,
)

FIRST_BOUNDARY: Final = 0
LAST_BOUNDARY: Final = 0xFFFFFFFF
HASH_SPACE: Final = 1 << 32

_BOUNDARIES: Codec[tuple[int, ...]] = Codec(
    lambda document: tuple(int(text, 16) for text in document["boundaries"]),
    lambda boundaries: {
        "boundaries": [f"0x{boundary:08x}" for boundary in boundaries],
        "numBundles": len(boundaries) - 1,
    },
)


def equal_boundaries(bundles_count: int) -> tuple[int, ...]:
    """The boundaries that cut the hash space into that many bundles of (nearly) one size."""
    assert bundles_count >= 1, f"{bundles_count} bundles"
    step = HASH_SPACE // bundles_count
    return (*(step * index for index in range(bundles_count)), LAST_BOUNDARY)


class ClusterData(JsonDocument):
    """The addresses of a cluster."""

    service_url = key("serviceUrl", TEXT)
    service_url_tls = key("serviceUrlTls", TEXT)
    broker_service_url = key("brokerServiceUrl", TEXT)
    broker_service_url_tls = key("brokerServiceUrlTls", TEXT)
    peer_cluster_names = key("peerClusterNames", TEXTS)
    listener_name = key("listenerName", TEXT)


class TenantInfo(JsonDocument):
    """A tenant's administrators, and the clusters in which it may have namespaces."""

    admin_roles = key("adminRoles", TEXTS)
    allowed_clusters = key("allowedClusters", TEXTS)


class LocalPolicies(JsonDocument):
    """The part of a namespace's policies that belongs to this cluster alone."""

    boundaries = key("bundles", _BOUNDARIES)
    """The ends of the hash space included: one more than there are bundles."""
    bookie_affinity = key("bookieAffinityGroup", BOOKIE_AFFINITY)
    anti_affinity_group = key("namespaceAntiAffinityGroup", TEXT)


class ResourceGroup(JsonDocument):
    """Rates that the topics of some namespaces share; below 0 they are off."""

    publish_messages_per_second = key("publishRateInMsgs", INTEGER)
    publish_bytes_per_second = key("publishRateInBytes", INTEGER)
    dispatch_messages_per_second = key("dispatchRateInMsgs", INTEGER)
    dispatch_bytes_per_second = key("dispatchRateInBytes", INTEGER)


class PartitionedTopicMetadata(JsonDocument):
    """A partitioned topic's number of partitions."""

    partitions_count = key("partitions", INTEGER)
    is_deleted = key("deleted", BOOLEAN)
    properties = key("properties", TEXT_MAP)


class NamespacePolicies(JsonDocument):
    """Pulsar's `Policies`: policies of a namespace's topics, unless these have their own."""

    auth_policies = key("auth_policies", JSON_OBJECT)
    subscription_auth_mode = key("subscription_auth_mode", TEXT)
    replication_clusters = key("replication_clusters", TEXTS)
    allowed_clusters = key("allowed_clusters", TEXTS)
    boundaries = key("bundles", _BOUNDARIES)
    backlog_quotas = key("backlog_quota_map", BACKLOG_QUOTAS)
    topic_dispatch_rates = key("topicDispatchRate", mapping_codec(DISPATCH_RATE))
    subscription_dispatch_rates = key("subscriptionDispatchRate", mapping_codec(DISPATCH_RATE))
    replicator_dispatch_rates = key("replicatorDispatchRate", mapping_codec(DISPATCH_RATE))
    subscribe_rates = key("clusterSubscribeRate", mapping_codec(SUBSCRIBE_RATE))
    publish_rates = key("publishMaxMessageRate", mapping_codec(PUBLISH_RATE))
    """The keys of the five rates above are names of clusters."""
    persistence = key("persistence", PERSISTENCE)
    is_deduplication_enabled = key("deduplicationEnabled", BOOLEAN)
    deduplication_snapshot_seconds = key("deduplicationSnapshotIntervalSeconds", INTEGER)
    auto_topic_creation = key("autoTopicCreationOverride", AUTO_TOPIC_CREATION)
    is_auto_subscription_creation_allowed = key(
        "autoSubscriptionCreationOverride", AUTO_SUBSCRIPTION_CREATION
    )
    message_ttl_seconds = key("message_ttl_in_seconds", INTEGER)
    subscription_expiration_minutes = key("subscription_expiration_time_minutes", INTEGER)
    retention = key("retention_policies", RETENTION)
    is_deleted = key("deleted", BOOLEAN)
    is_encryption_required = key("encryption_required", BOOLEAN)
    delayed_delivery = key("delayed_delivery_policies", DELAYED_DELIVERY)
    inactive_topics = key("inactive_topic_policies", INACTIVE_TOPICS)
    max_producers_per_topic = key("max_producers_per_topic", INTEGER)
    max_consumers_per_topic = key("max_consumers_per_topic", INTEGER)
    max_consumers_per_subscription = key("max_consumers_per_subscription", INTEGER)
    max_unacked_messages_per_consumer = key("max_unacked_messages_per_consumer", INTEGER)
    max_unacked_messages_per_subscription = key("max_unacked_messages_per_subscription", INTEGER)
    max_subscriptions_per_topic = key("max_subscriptions_per_topic", INTEGER)
    max_topics_per_namespace = key("max_topics_per_namespace", INTEGER)
    compaction_threshold_bytes = key("compaction_threshold", INTEGER)
    schema_compatibility_strategy = key("schema_compatibility_strategy", SCHEMA_COMPATIBILITY)
    is_schema_auto_update_allowed = key("is_allow_auto_update_schema", BOOLEAN)
    is_schema_validation_enforced = key("schema_validation_enforced", BOOLEAN)
    subscription_types = key("subscription_types_enabled", TEXT_SET)
    properties = key("properties", TEXT_MAP)
    resource_group = key("resource_group_name", TEXT)
    schema_auto_update_strategy = key("schema_auto_update_compatibility_strategy", TEXT)
    is_migrated = key("migrated", BOOLEAN)
    entry_filter_names = key("entryFilters", JSON_OBJECT)
    is_paused_on_unsaved_acks = key("dispatcherPauseOnAckStatePersistentEnabled", BOOLEAN)
    offload_policies = key("offload_policies", JSON_OBJECT)
    metrics_property_keys = key("allowed_topic_property_keys_for_metrics", TEXTS)


class TopicPolicies(JsonDocument):
    """Policies of one topic; they override the namespace's."""

    backlog_quotas = key("backLogQuotaMap", BACKLOG_QUOTAS)
    subscription_types = key("subscriptionTypesEnabled", TEXT_SET)
    replication_clusters = key("replicationClusters", TEXTS)
    persistence = key("persistence", PERSISTENCE)
    retention = key("retentionPolicies", RETENTION)
    is_deduplication_enabled = key("deduplicationEnabled", BOOLEAN)
    deduplication_snapshot_seconds = key("deduplicationSnapshotIntervalSeconds", INTEGER)
    message_ttl_seconds = key("messageTTLInSeconds", INTEGER)
    max_producers = key("maxProducerPerTopic", INTEGER)
    max_consumers = key("maxConsumerPerTopic", INTEGER)
    max_consumers_per_subscription = key("maxConsumersPerSubscription", INTEGER)
    max_subscriptions = key("maxSubscriptionsPerTopic", INTEGER)
    max_unacked_messages_per_consumer = key("maxUnackedMessagesOnConsumer", INTEGER)
    max_unacked_messages_per_subscription = key("maxUnackedMessagesOnSubscription", INTEGER)
    max_message_bytes = key("maxMessageSize", INTEGER)
    delayed_delivery_tick_millis = key("delayedDeliveryTickTimeMillis", INTEGER)
    is_delayed_delivery_enabled = key("delayedDeliveryEnabled", BOOLEAN)
    delayed_delivery_max_delay_millis = key("delayedDeliveryMaxDelayInMillis", INTEGER)
    inactive_topics = key("inactiveTopicPolicies", INACTIVE_TOPICS)
    dispatch_rate = key("dispatchRate", DISPATCH_RATE)
    subscription_dispatch_rate = key("subscriptionDispatchRate", DISPATCH_RATE)
    replicator_dispatch_rate = key("replicatorDispatchRate", DISPATCH_RATE)
    publish_rate = key("publishRate", PUBLISH_RATE)
    subscribe_rate = key("subscribeRate", SUBSCRIBE_RATE)
    compaction_threshold_bytes = key("compactionThreshold", INTEGER)
    schema_compatibility_strategy = key("schemaCompatibilityStrategy", SCHEMA_COMPATIBILITY)
    is_schema_validation_enforced = key("schemaValidationEnforced", BOOLEAN)
    is_auto_subscription_creation_allowed = key(
        "autoSubscriptionCreationOverride", AUTO_SUBSCRIPTION_CREATION
    )
    subscription_policies = key("subscriptionPolicies", JSON_OBJECT)
    subscription_expiration_minutes = key("subscriptionExpirationTimeInMinutes", INTEGER)
    entry_filter_names = key("entryFilters", JSON_OBJECT)
    is_paused_on_unsaved_acks = key("dispatcherPauseOnAckStatePersistentEnabled", BOOLEAN)
    offload_policies = key("offloadPolicies", JSON_OBJECT)
    shadow_topics = key("shadowTopics", TEXTS)

    def over(self, shared: TopicPolicies) -> TopicPolicies:
        """These, which are for one cluster, before those that a topic has for all clusters.

        Quotas count type by type, and what single subscriptions have, subscription by subscription.
        """
        merged = {**shared.json, **self.json}
        for name in (
            TopicPolicies.backlog_quotas.json_name,
            TopicPolicies.subscription_policies.json_name,
        ):
            below, above = shared.json.get(name), self.json.get(name)
            if isinstance(below, Mapping) and isinstance(above, Mapping):
                merged[name] = {**below, **above}
        return TopicPolicies(merged)


class DynamicConfiguration(JsonDocument):
    """Settings that were changed while brokers run: their names and new values."""

    @property
    def texts(self) -> dict[str, str]:
        """The new value of each, as text."""
        return {name: str(text) for name, text in self.json.items()}
