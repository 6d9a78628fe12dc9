"""The table of topics' policies: how each is stored, and what applies where it is not (pure).

A policy's value has one JSON shape on all levels. `levels` are its values on topic, namespace and
broker, from which `Policy.pick` takes the one that applies, as `effective_settings` does for the
running topic.

Source: PersistentTopics and TopicPolicies in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.http_messages import EMPTY, NO_CONTENT, Response, json_response
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.policies import storage_values as storage
from pulsar_py.admin.policies.cluster_values import clusters, shadow_topics
from pulsar_py.admin.policies.offload_values import offload_policies
from pulsar_py.admin.policies.policy_places import (
    DelayedDelivery,
    Document,
    OneKey,
    Place,
)
from pulsar_py.admin.policies.policy_readers import Reader
from pulsar_py.admin.policies.rate_values import dispatch_rate, publish_rate, subscribe_rate
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.server.broker import BrokerService

Default = Callable[[BrokerService], Any]


def first_set(levels: Sequence[Any]) -> Any:
    """The value of the first level that has one."""
    return next((value for value in levels if value is not None), None)


def first_defined(levels: Sequence[Any]) -> Any:
    """As `first_set`, without `UNDEFINED`."""
    return first_set([None if value == "UNDEFINED" else value for value in levels])


def any_true(levels: Sequence[Any]) -> bool:
    """Whether one of the levels asks for it."""
    return any(levels)


class Policy(Struct, frozen=True, kw_only=True):
    """One policy.

    Attributes:
        word: Its last word in the path.
        place: Where it is stored.
        read: The reader of a body.
        default: The broker's value; None if `applied` is not asked for.
        inherits: The namespace's policy, if it has one.
        is_per_cluster: Whether the namespace has one for each cluster.
        pick: Chooses among the levels.
        unset: GET's answer where it is not set.
        deleted: The value that DELETE leaves.
    """

    word: str
    place: Place
    read: Reader
    default: Default | None = None
    inherits: OneKey | None = None
    is_per_cluster: bool = False
    pick: Callable[[Sequence[Any]], Any] = first_set
    unset: Response = EMPTY
    set_method: str = "POST"
    can_be_deleted: bool = True
    deleted: Any = None


def levels(
    policy: Policy, broker: BrokerService, own: Document, namespace: Document
) -> tuple[Any, ...]:
    """The policy's values: the topic's, the namespace's, the broker's; None where it is not set."""
    assert policy.default is not None, f"{policy.word}: no level below the topic"
    inherited = None
    if policy.inherits is not None:
        inherited = policy.inherits.get(namespace)
        if policy.is_per_cluster:
            inherited = (inherited or {}).get(broker.config.clusterName)
    return policy.place.get(own), inherited, policy.default(broker)


def _rate(messages: int = 0, size_bytes: int = 0, *, is_relative: bool = False) -> Any:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size_bytes,
        "relativeToPublishRate": is_relative,
        "ratePeriodInSecond": 1,
    }


def _dispatch_rate_of_broker(broker: BrokerService) -> Any:
    config = broker.config
    return _rate(
        config.dispatchThrottlingRatePerTopicInMsg,
        config.dispatchThrottlingRatePerTopicInByte,
        is_relative=config.dispatchThrottlingRateRelativeToPublishRate,
    )


def _subscription_rate_of_broker(broker: BrokerService) -> Any:
    config = broker.config
    return _rate(
        config.dispatchThrottlingRatePerSubscriptionInMsg,
        config.dispatchThrottlingRatePerSubscriptionInByte,
        is_relative=config.dispatchThrottlingRateRelativeToPublishRate,
    )


def _subscribe_rate_of_broker(broker: BrokerService) -> Any:
    return {
        "subscribeThrottlingRatePerConsumer": broker.config.subscribeThrottlingRatePerConsumer,
        "ratePeriodInSecond": broker.config.subscribeRatePeriodPerConsumerInSecond,
    }


def _retention_of_broker(broker: BrokerService) -> Any:
    return {
        "retentionTimeInMinutes": broker.config.defaultRetentionTimeInMinutes,
        "retentionSizeInMB": broker.config.defaultRetentionSizeInMB,
    }


def _persistence_of_broker(broker: BrokerService) -> Any:
    config = broker.config
    return {
        "bookkeeperEnsemble": config.managedLedgerDefaultEnsembleSize,
        "bookkeeperWriteQuorum": config.managedLedgerDefaultWriteQuorum,
        "bookkeeperAckQuorum": config.managedLedgerDefaultAckQuorum,
        "managedLedgerMaxMarkDeleteRate": config.managedLedgerDefaultMarkDeleteRateLimit,
    }


def _delayed_delivery_of_broker(broker: BrokerService) -> Any:
    return {
        "tickTime": broker.config.delayedDeliveryTickTimeMillis,
        "active": broker.config.delayedDeliveryEnabled,
        "maxDeliveryDelayInMillis": broker.config.delayedDeliveryMaxDelayInMillis,
    }


def _inactive_topics_of_broker(broker: BrokerService) -> Any:
    inactive = broker.topics.settings.topic.inactive
    return {
        "inactiveTopicDeleteMode": inactive.delete_mode.value,
        "maxInactiveDurationSeconds": inactive.max_inactive_seconds,
        "deleteWhileInactive": inactive.is_deletion_enabled,
    }


def quotas_of_broker(broker: BrokerService) -> dict[str, Any]:
    """The broker's backlog quotas by type, those without a limit included."""
    config = broker.config
    action = config.backlogQuotaDefaultRetentionPolicy.value
    size = {
        "limit": config.backlogQuotaDefaultLimitBytes,
        "limitSize": config.backlogQuotaDefaultLimitBytes,
        "limitTime": -1,
        "policy": action,
    }
    age = {
        "limit": -1,
        "limitSize": -1,
        "limitTime": config.backlogQuotaDefaultLimitSecond,
        "policy": action,
    }
    return {"destination_storage": size, "message_age": age}


POLICIES: Final = (
    Policy(
        word="maxMessageSize",
        place=OneKey(TopicPolicies.max_message_bytes),
        read=values.not_negative,
        unset=NO_CONTENT,
    ),
    Policy(
        word="retention",
        place=OneKey(TopicPolicies.retention),
        read=storage.retention,
        default=_retention_of_broker,
        inherits=OneKey(NamespacePolicies.retention),
    ),
    Policy(
        word="persistence",
        place=OneKey(TopicPolicies.persistence),
        read=storage.persistence,
        default=_persistence_of_broker,
        inherits=OneKey(NamespacePolicies.persistence),
    ),
    Policy(
        word="messageTTL",
        place=OneKey(TopicPolicies.message_ttl_seconds),
        read=values.number_in_query("messageTTL"),
        default=lambda broker: broker.config.ttlDurationDefaultInSeconds,
        inherits=OneKey(NamespacePolicies.message_ttl_seconds),
    ),
    Policy(
        word="subscriptionExpirationTime",
        place=OneKey(TopicPolicies.subscription_expiration_minutes),
        read=values.number_in_query("subscriptionExpirationTime"),
        default=lambda broker: broker.config.subscriptionExpirationTimeMinutes,
        inherits=OneKey(NamespacePolicies.subscription_expiration_minutes),
    ),
    Policy(
        word="deduplicationEnabled",
        place=OneKey(TopicPolicies.is_deduplication_enabled),
        read=values.boolean,
        default=lambda broker: broker.config.brokerDeduplicationEnabled,
        inherits=OneKey(NamespacePolicies.is_deduplication_enabled),
    ),
    Policy(
        word="deduplicationSnapshotInterval",
        place=OneKey(TopicPolicies.deduplication_snapshot_seconds),
        read=values.not_negative_or_null,
    ),
    Policy(
        word="publishRate",
        place=OneKey(TopicPolicies.publish_rate),
        read=publish_rate,
        unset=NO_CONTENT,
    ),
    Policy(
        word="dispatchRate",
        place=OneKey(TopicPolicies.dispatch_rate),
        read=dispatch_rate,
        default=_dispatch_rate_of_broker,
        inherits=OneKey(NamespacePolicies.topic_dispatch_rates),
        is_per_cluster=True,
    ),
    Policy(
        word="subscriptionDispatchRate",
        place=OneKey(TopicPolicies.subscription_dispatch_rate),
        read=dispatch_rate,
        default=_subscription_rate_of_broker,
        inherits=OneKey(NamespacePolicies.subscription_dispatch_rates),
        is_per_cluster=True,
    ),
    Policy(
        word="replicatorDispatchRate",
        place=OneKey(TopicPolicies.replicator_dispatch_rate),
        read=dispatch_rate,
        default=lambda _: _rate(),
        inherits=OneKey(NamespacePolicies.replicator_dispatch_rates),
        is_per_cluster=True,
    ),
    Policy(
        word="subscribeRate",
        place=OneKey(TopicPolicies.subscribe_rate),
        read=subscribe_rate,
        default=_subscribe_rate_of_broker,
        inherits=OneKey(NamespacePolicies.subscribe_rates),
        is_per_cluster=True,
    ),
    Policy(
        word="maxProducers",
        place=OneKey(TopicPolicies.max_producers),
        read=values.not_negative,
        default=lambda broker: broker.config.maxProducersPerTopic,
        inherits=OneKey(NamespacePolicies.max_producers_per_topic),
    ),
    Policy(
        word="maxConsumers",
        place=OneKey(TopicPolicies.max_consumers),
        read=values.not_negative,
        default=lambda broker: broker.config.maxConsumersPerTopic,
        inherits=OneKey(NamespacePolicies.max_consumers_per_topic),
    ),
    Policy(
        word="maxConsumersPerSubscription",
        place=OneKey(TopicPolicies.max_consumers_per_subscription),
        read=values.not_negative,
        unset=NO_CONTENT,
    ),
    Policy(
        word="maxSubscriptionsPerTopic",
        place=OneKey(TopicPolicies.max_subscriptions),
        read=values.not_negative,
        unset=NO_CONTENT,
    ),
    Policy(
        word="maxUnackedMessagesOnConsumer",
        place=OneKey(TopicPolicies.max_unacked_messages_per_consumer),
        read=values.not_negative_or_null,
        default=lambda broker: broker.config.maxUnackedMessagesPerConsumer,
        inherits=OneKey(NamespacePolicies.max_unacked_messages_per_consumer),
    ),
    Policy(
        word="maxUnackedMessagesOnSubscription",
        place=OneKey(TopicPolicies.max_unacked_messages_per_subscription),
        read=values.not_negative_or_null,
        default=lambda broker: broker.config.maxUnackedMessagesPerSubscription,
        inherits=OneKey(NamespacePolicies.max_unacked_messages_per_subscription),
    ),
    Policy(
        word="delayedDelivery",
        place=DelayedDelivery(),
        read=values.delayed_delivery,
        default=_delayed_delivery_of_broker,
        inherits=OneKey(NamespacePolicies.delayed_delivery),
    ),
    Policy(
        word="inactiveTopicPolicies",
        place=OneKey(TopicPolicies.inactive_topics),
        read=values.inactive_topics,
        default=_inactive_topics_of_broker,
        inherits=OneKey(NamespacePolicies.inactive_topics),
    ),
    Policy(
        word="compactionThreshold",
        place=OneKey(TopicPolicies.compaction_threshold_bytes),
        read=values.not_negative_long,
        default=lambda broker: broker.config.brokerServiceCompactionThresholdInBytes,
        inherits=OneKey(NamespacePolicies.compaction_threshold_bytes),
    ),
    Policy(
        word="subscriptionTypesEnabled",
        place=OneKey(TopicPolicies.subscription_types),
        read=values.subscription_types,
        unset=NO_CONTENT,
        deleted=[],
    ),
    Policy(
        word="schemaCompatibilityStrategy",
        place=OneKey(TopicPolicies.schema_compatibility_strategy),
        read=values.schema_compatibility,
        default=lambda broker: broker.config.schemaCompatibilityStrategy.value,
        inherits=OneKey(NamespacePolicies.schema_compatibility_strategy),
        pick=first_defined,
        set_method="PUT",
    ),
    Policy(
        word="schemaValidationEnforced",
        place=OneKey(TopicPolicies.is_schema_validation_enforced),
        read=values.boolean,
        default=lambda broker: broker.config.isSchemaValidationEnforced,
        inherits=OneKey(NamespacePolicies.is_schema_validation_enforced),
        pick=any_true,
        unset=json_response(False),
        can_be_deleted=False,
    ),
    Policy(
        word="autoSubscriptionCreation",
        place=OneKey(TopicPolicies.is_auto_subscription_creation_allowed),
        read=values.auto_subscription_creation,
        default=lambda broker: {
            "allowAutoSubscriptionCreation": broker.config.allowAutoSubscriptionCreation
        },
        inherits=OneKey(NamespacePolicies.is_auto_subscription_creation_allowed),
    ),
    Policy(
        word="entryFilters",
        place=OneKey(TopicPolicies.entry_filter_names),
        read=values.filter_names,
        default=lambda broker: {"entryFilterNames": ",".join(broker.config.entryFilterNames)},
        inherits=OneKey(NamespacePolicies.entry_filter_names),
    ),
    Policy(
        word="offloadPolicies",
        place=OneKey(TopicPolicies.offload_policies),
        read=offload_policies,
        default=lambda _: None,
        inherits=OneKey(NamespacePolicies.offload_policies),
    ),
    Policy(
        word="shadowTopics",
        place=OneKey(TopicPolicies.shadow_topics),
        read=shadow_topics,
        set_method="PUT",
    ),
    Policy(
        word="replication",
        place=OneKey(TopicPolicies.replication_clusters),
        read=clusters,
        default=lambda broker: [broker.config.clusterName],
        inherits=OneKey(NamespacePolicies.replication_clusters),
    ),
    Policy(
        word="dispatcherPauseOnAckStatePersistent",
        place=OneKey(TopicPolicies.is_paused_on_unsaved_acks),
        read=values.true,
        default=lambda _: False,
        inherits=OneKey(NamespacePolicies.is_paused_on_unsaved_acks),
        unset=json_response(False),
    ),
)

QUOTAS: Final = OneKey(TopicPolicies.backlog_quotas)

SUBSCRIPTION_RATE: Final = next(
    each for each in POLICIES if each.word == "subscriptionDispatchRate"
)
"""What applies to a subscription without a rate of its own."""
