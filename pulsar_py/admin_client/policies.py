"""The policies of namespaces and topics, one line each (declarations).

    admin.call(NAMESPACE.retention.set(namespace_place("t/n"), RetentionPolicies(...)))
    admin.call(TOPIC.retention.get(topic_place("my-topic"), applied=True))

A policy that is not set is None, and so is the answer of `get`.

Source: Namespaces and TopicPolicies in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pulsar_py.admin_client.call import (
    NO_BODY,
    Call,
    Json,
    JsonRecord,
    Query,
    call,
    namespace_path,
    nothing,
    seg,
    topic_path,
)
from pulsar_py.admin_client.records import (
    AutoSubscriptionCreationOverride,
    AutoTopicCreationOverride,
    BacklogQuota,
    BookieAffinityGroup,
    DelayedDeliveryPolicies,
    DispatchRate,
    EntryFilterNames,
    InactiveTopicPolicies,
    PersistencePolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)

V = TypeVar("V")
R = TypeVar("R", bound=JsonRecord)


def namespace_place(namespace: str) -> str:
    """Where the policies of a namespace are."""
    return f"namespaces/{namespace_path(namespace)}"


def topic_place(topic: str, subscription: str | None = None) -> str:
    """Where the policies of a topic are, or those of one of its subscriptions."""
    return topic_path(topic) + (f"/{seg(subscription)}" if subscription else "")


@dataclass(frozen=True, slots=True)
class PolicyCalls(Generic[V]):
    """One policy: its path below a place, and how its value is read."""

    path: str
    parse: Callable[[Json], V]
    set_method: str = "POST"
    set_path: str | None = None
    """Where it is set and removed, if not where it is read."""
    remove_path: str | None = None
    """Where it is removed, if not where it is set."""
    query_name: str | None = None
    """The parameter that carries the value, instead of the body."""

    def get(self, place: str, **query: Query) -> Call[V | None]:
        """The value; `applied=True` is what holds, from wherever; `isGlobal`: of all clusters."""
        parse = self.parse

        def answer(reply: Any) -> V | None:  # Any: Reply
            value = reply.json()
            return None if value is None else parse(value)

        return call("GET", f"{place}/{self.path}", answer, query=query)

    def set(self, place: str, value: V | object, **query: Query) -> Call[None]:
        """Set the value."""
        path = f"{place}/{self.set_path or self.path}"
        if self.query_name is None:
            return call(self.set_method, path, nothing, value, query=query)
        given = {**query, self.query_name: str(value)}
        return call(self.set_method, path, nothing, NO_BODY, query=given)

    def remove(self, place: str, **query: Query) -> Call[None]:
        """Remove the value, so that the value of the next level up applies."""
        path = self.remove_path or self.set_path or self.path
        return call("DELETE", f"{place}/{path}", nothing, query=query)


def _of(path: str, kind: type[R], set_method: str = "POST") -> PolicyCalls[R]:
    return PolicyCalls(path, kind.of, set_method)


def _number(path: str, set_method: str = "POST") -> PolicyCalls[int]:
    return PolicyCalls(path, int, set_method)


def _flag(path: str) -> PolicyCalls[bool]:
    return PolicyCalls(path, bool)


def _text(path: str, set_method: str = "POST") -> PolicyCalls[str]:
    return PolicyCalls(path, str, set_method)


def _names(path: str) -> PolicyCalls[Sequence[str]]:
    return PolicyCalls(path, list)


def _quotas(json: Json) -> dict[str, BacklogQuota]:
    return {kind: BacklogQuota.of(each) for kind, each in json.items()}


class _Common:
    """Policies that namespaces and topics have by the same path."""

    auto_subscription_creation: Final = _of(
        "autoSubscriptionCreation", AutoSubscriptionCreationOverride
    )
    backlog_quotas: Final = PolicyCalls("backlogQuotaMap", _quotas, set_path="backlogQuota")
    """By kind; `set` takes one `BacklogQuota`, and `backlogQuotaType` in the query."""
    deduplication_snapshot_interval: Final = _number("deduplicationSnapshotInterval")
    delayed_delivery: Final = _of("delayedDelivery", DelayedDeliveryPolicies)
    dispatch_rate: Final = _of("dispatchRate", DispatchRate)
    dispatcher_pause_on_ack_state: Final = _flag("dispatcherPauseOnAckStatePersistent")
    """`set` without a body switches it on: its value is `NO_BODY`."""
    entry_filters: Final = _of("entryFilters", EntryFilterNames)
    inactive_topic_policies: Final = _of("inactiveTopicPolicies", InactiveTopicPolicies)
    max_consumers_per_subscription: Final = _number("maxConsumersPerSubscription")
    max_subscriptions_per_topic: Final = _number("maxSubscriptionsPerTopic")
    persistence: Final = _of("persistence", PersistencePolicies)
    publish_rate: Final = _of("publishRate", PublishRate)
    replication: Final = _names("replication")
    replicator_dispatch_rate: Final = _of("replicatorDispatchRate", DispatchRate)
    retention: Final = _of("retention", RetentionPolicies)
    schema_compatibility_strategy: Final = _text("schemaCompatibilityStrategy", "PUT")
    schema_validation_enforced: Final = _flag("schemaValidationEnforced")
    subscribe_rate: Final = _of("subscribeRate", SubscribeRate)
    subscription_dispatch_rate: Final = _of("subscriptionDispatchRate", DispatchRate)
    subscription_types_enabled: Final = _names("subscriptionTypesEnabled")


class NamespacePolicyCalls(_Common):
    """The policies of a namespace."""

    allowed_clusters: Final = _names("allowedClusters")
    anti_affinity_group: Final = _text("antiAffinity")
    auto_topic_creation: Final = _of("autoTopicCreation", AutoTopicCreationOverride)
    bookie_affinity_group: Final = _of("persistence/bookieAffinity", BookieAffinityGroup)
    compaction_threshold: Final = _number("compactionThreshold", "PUT")
    deduplication: Final = _flag("deduplication")
    encryption_required: Final = _flag("encryptionRequired")
    is_allow_auto_update_schema: Final = _flag("isAllowAutoUpdateSchema")
    max_consumers_per_topic: Final = _number("maxConsumersPerTopic")
    max_producers_per_topic: Final = _number("maxProducersPerTopic")
    max_topics_per_namespace: Final = _number("maxTopicsPerNamespace")
    max_unacked_per_consumer: Final = _number("maxUnackedMessagesPerConsumer")
    max_unacked_per_subscription: Final = _number("maxUnackedMessagesPerSubscription")
    message_ttl: Final = _number("messageTTL")
    offload_deletion_lag_millis: Final = _number("offloadDeletionLagMs", "PUT")
    offload_policies: Final[PolicyCalls[Json]] = PolicyCalls(
        "offloadPolicies", lambda json: json, remove_path="removeOffloadPolicies"
    )
    offload_threshold: Final = _number("offloadThreshold", "PUT")
    offload_threshold_seconds: Final = _number("offloadThresholdInSeconds", "PUT")
    resource_group: Final = _text("resourcegroup")
    """Set by `namespaces.set_resource_group`."""
    schema_auto_update_strategy: Final = _text("schemaAutoUpdateCompatibilityStrategy", "PUT")
    subscription_auth_mode: Final = _text("subscriptionAuthMode")
    subscription_expiration_minutes: Final = _number("subscriptionExpirationTime")


class TopicPolicyCalls(_Common):
    """The policies of a topic; those of a subscription are `dispatch_rate` at its place."""

    compaction_threshold: Final = _number("compactionThreshold")
    deduplication: Final = _flag("deduplicationEnabled")
    max_consumers: Final = _number("maxConsumers")
    max_message_size: Final = _number("maxMessageSize")
    max_producers: Final = _number("maxProducers")
    max_unacked_on_consumer: Final = _number("maxUnackedMessagesOnConsumer")
    max_unacked_on_subscription: Final = _number("maxUnackedMessagesOnSubscription")
    message_ttl: Final = PolicyCalls("messageTTL", int, query_name="messageTTL")
    offload_policies: Final[PolicyCalls[Json]] = PolicyCalls("offloadPolicies", lambda json: json)


NAMESPACE: Final = NamespacePolicyCalls()
TOPIC: Final = TopicPolicyCalls()


def remove_all(topic: str) -> Call[None]:
    """Remove all policies of a topic."""
    path = f"{topic_path(topic)}/policies"
    return call("DELETE", path, nothing, destroys=f"all policies of {topic}")
