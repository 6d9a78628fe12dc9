"""Resolves a topic's settings: its policy, else the namespace's, else the broker's setting (pure).

The broker's settings are the `TopicSettings` of a topic without any policy; policies of namespace
and topic replace its fields. As a rule a policy replaces another as a whole: for example, the
topic's retention replaces both limits of the namespace's. The exceptions:

    encryption, schema validation    required as soon as one level requires it
    backlog quotas                   replaced type by type
    delayed delivery                 the topic's replaces the namespace's field by field

Source: HierarchyTopicPolicies in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from pulsar_py.common.policies import (
    AutoTopicCreation,
    BookieAffinity,
    DelayedDeliveryPolicy,
    PersistencePolicies,
    RetentionPolicy,
    SchemaCompatibilityStrategy,
)
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.config import MEBIBYTE, ManagedLedgerConfig
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies, TopicPolicies
from pulsar_py.metadata.policies_format import DISPATCH_RATE
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.schema_registry import SchemaPolicies

T = TypeVar("T")

_NO_NAMESPACE = NamespacePolicies()
_NO_TOPIC = TopicPolicies()

DEFAULT_PERSIST_INTERVAL_SECONDS: Final = 1.0
MAX_PERSIST_INTERVAL_SECONDS: Final = 3600.0
"""The longest interval between two writes of a cursor, however low a policy's rate: a crash loses
the acknowledgements of at most this time."""

SUBSCRIPTION_TYPES = {each.wire_name: each for each in SubscriptionType}
"""Subscription types by the names that policies and settings use."""


def effective_settings(
    broker: TopicSettings,
    namespace: NamespacePolicies | None,
    topic: TopicPolicies | None,
    local: LocalPolicies | None = None,
) -> TopicSettings:
    """The effective settings of a topic; `local` is what this cluster alone has of its namespace.

    Raises:
        MetadataError: A policy can't be read.
    """
    affinity = local.bookie_affinity if local is not None else None
    if namespace is None and topic is None and affinity is None:
        return broker
    ns = namespace or _NO_NAMESPACE
    own = topic or _NO_TOPIC
    return replace(
        broker,
        max_producers=_first(own.max_producers, ns.max_producers_per_topic, broker.max_producers),
        max_subscriptions=_first(
            own.max_subscriptions, ns.max_subscriptions_per_topic, broker.max_subscriptions
        ),
        max_message_bytes=_first(own.max_message_bytes, broker.max_message_bytes),
        max_delay_millis=_max_delay_millis(own, ns, broker),
        allows_subscription_creation=_first(
            own.is_auto_subscription_creation_allowed,
            ns.is_auto_subscription_creation_allowed,
            broker.allows_subscription_creation,
        ),
        is_encryption_required=bool(ns.is_encryption_required) or broker.is_encryption_required,
        message_ttl_seconds=_first(
            own.message_ttl_seconds, ns.message_ttl_seconds, broker.message_ttl_seconds
        ),
        subscription_expiration_minutes=_first(
            own.subscription_expiration_minutes,
            ns.subscription_expiration_minutes,
            broker.subscription_expiration_minutes,
        ),
        backlog_quotas={
            **broker.backlog_quotas,
            **(ns.backlog_quotas or {}),
            **(own.backlog_quotas or {}),
        },
        is_deduplication_enabled=_first(
            own.is_deduplication_enabled,
            ns.is_deduplication_enabled,
            broker.is_deduplication_enabled,
        ),
        deduplication_snapshot_seconds=_first(
            own.deduplication_snapshot_seconds,
            ns.deduplication_snapshot_seconds,
            broker.deduplication_snapshot_seconds,
        ),
        compaction_threshold_bytes=_first(
            own.compaction_threshold_bytes,
            ns.compaction_threshold_bytes,
            broker.compaction_threshold_bytes,
        ),
        publish_rate=_optional(
            own.publish_rate, _of_cluster(ns.publish_rates, broker), broker.publish_rate
        ),
        subscribe_rate=_optional(
            own.subscribe_rate, _of_cluster(ns.subscribe_rates, broker), broker.subscribe_rate
        ),
        resource_group=ns.resource_group or "",
        inactive=_first(own.inactive_topics, ns.inactive_topics, broker.inactive),
        schema=_schema(broker.schema, ns, own),
        dispatch=_with_rates(_dispatch(broker.dispatch, ns, own), broker, ns, own),
        managed_ledger=_managed_ledger(broker.managed_ledger, ns, own, affinity),
    )


def effective_auto_creation(
    broker: AutoTopicCreation, namespace: NamespacePolicies | None
) -> AutoTopicCreation:
    """Whether missing topics of a namespace are created, and as what."""
    if namespace is None:
        return broker
    if namespace.is_deleted:
        return replace(broker, is_allowed=False)
    return _first(namespace.auto_topic_creation, broker)


def _first(*values: T | None) -> T:
    """The first value that is not None; the last one, the broker's, never is."""
    for value in values:
        if value is not None:
            return value
    raise AssertionError("the broker's setting is always there")


def _optional(*values: T | None) -> T | None:
    """The first value that is not None, None if all are."""
    return next((value for value in values if value is not None), None)


def _of_cluster(rates: Mapping[str, T] | None, broker: TopicSettings) -> T | None:
    """The rate of the own cluster among those of all."""
    return None if rates is None else rates.get(broker.managed_ledger.cluster)


def _max_delay_millis(own: TopicPolicies, ns: NamespacePolicies, broker: TopicSettings) -> int:
    inherited = ns.delayed_delivery.max_delay_millis if ns.delayed_delivery else None
    return _first(own.delayed_delivery_max_delay_millis, inherited, broker.max_delay_millis)


def _schema(broker: SchemaPolicies, ns: NamespacePolicies, own: TopicPolicies) -> SchemaPolicies:
    strategies = (own.schema_compatibility_strategy, ns.schema_compatibility_strategy)
    undefined = SchemaCompatibilityStrategy.UNDEFINED
    defined = [each for each in strategies if each not in (None, undefined)]
    return SchemaPolicies(
        strategy=_first(*defined, broker.strategy),
        is_auto_update_allowed=_first(
            ns.is_schema_auto_update_allowed, broker.is_auto_update_allowed
        ),
        is_validation_enforced=bool(
            own.is_schema_validation_enforced
            or ns.is_schema_validation_enforced
            or broker.is_validation_enforced
        ),
    )


def _dispatch(
    broker: DispatchSettings, ns: NamespacePolicies, own: TopicPolicies
) -> DispatchSettings:
    delayed = ns.delayed_delivery or DelayedDeliveryPolicy(
        is_active=broker.is_delayed_delivery_enabled,
        tick_millis=broker.delayed_delivery_tick_millis,
    )
    types = own.subscription_types or ns.subscription_types
    enabled = broker.enabled_subscription_types
    if types:
        enabled = frozenset(
            SUBSCRIPTION_TYPES[name] for name in types if name in SUBSCRIPTION_TYPES
        )
    return replace(
        broker,
        max_consumers_per_topic=_first(
            own.max_consumers, ns.max_consumers_per_topic, broker.max_consumers_per_topic
        ),
        max_consumers_per_subscription=_first(
            own.max_consumers_per_subscription,
            ns.max_consumers_per_subscription,
            broker.max_consumers_per_subscription,
        ),
        max_unacked_messages_per_consumer=_first(
            own.max_unacked_messages_per_consumer,
            ns.max_unacked_messages_per_consumer,
            broker.max_unacked_messages_per_consumer,
        ),
        max_unacked_messages_per_subscription=_first(
            own.max_unacked_messages_per_subscription,
            ns.max_unacked_messages_per_subscription,
            broker.max_unacked_messages_per_subscription,
        ),
        enabled_subscription_types=enabled,
        is_delayed_delivery_enabled=_first(own.is_delayed_delivery_enabled, delayed.is_active),
        delayed_delivery_tick_millis=_first(own.delayed_delivery_tick_millis, delayed.tick_millis),
        entry_filters_of_policy=_filter_names(ns, own),
    )


def _filter_names(ns: NamespacePolicies, own: TopicPolicies) -> tuple[str, ...]:
    for policy in (own.entry_filter_names, ns.entry_filter_names):
        names = split_names((policy or {}).get("entryFilterNames"))
        if names:
            return names
    return ()


def split_names(text: str | None) -> tuple[str, ...]:
    """The names in a policy's text, which are separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _with_rates(
    dispatch: DispatchSettings, broker: TopicSettings, ns: NamespacePolicies, own: TopicPolicies
) -> DispatchSettings:
    rates = {
        name: DISPATCH_RATE.decode(policies["dispatchRate"])
        for name, policies in (own.subscription_policies or {}).items()
        if policies.get("dispatchRate") is not None
    }
    return replace(
        dispatch,
        topic_rate=_optional(
            own.dispatch_rate,
            _of_cluster(ns.topic_dispatch_rates, broker),
            dispatch.topic_rate,
        ),
        subscription_rate=_optional(
            own.subscription_dispatch_rate,
            _of_cluster(ns.subscription_dispatch_rates, broker),
            dispatch.subscription_rate,
        ),
        rates_of_subscriptions=rates,
    )


def _managed_ledger(
    broker: ManagedLedgerConfig,
    ns: NamespacePolicies,
    own: TopicPolicies,
    affinity: BookieAffinity | None,
) -> ManagedLedgerConfig:
    changes: dict[str, Any] = {}  # Any: fields of ManagedLedgerConfig
    retention = own.retention or ns.retention
    if retention is not None:
        changes["retention_seconds"] = retention_seconds(retention)
        changes["retention_size_bytes"] = retention_size_bytes(retention)
    persistence = own.persistence or ns.persistence
    if persistence is not None:
        changes["ledger_options"] = _ledger_options(broker.ledger_options, persistence)
        if persistence.max_mark_deletes_per_second >= 0:
            changes["cursor_persist_interval_seconds"] = cursor_persist_interval_seconds(
                persistence.max_mark_deletes_per_second
            )
    if affinity is not None and affinity.primary:
        options = changes.get("ledger_options", broker.ledger_options)
        bound = labels.bookie_affinity(affinity.primary, affinity.secondary)
        changes["ledger_options"] = replace(
            options, custom_metadata={**options.custom_metadata, **bound}
        )
    return replace(broker, **changes) if changes else broker


def retention_seconds(policy: RetentionPolicy) -> float:
    """Seconds for which acknowledged data is kept; -1 for ever."""
    return policy.retention_minutes * 60.0 if policy.retention_minutes >= 0 else -1.0


def retention_size_bytes(policy: RetentionPolicy) -> int:
    """Bytes of acknowledged data that are kept, -1 without limit."""
    return policy.retention_megabytes * MEBIBYTE if policy.retention_megabytes >= 0 else -1


def cursor_persist_interval_seconds(writes_per_second: float) -> float:
    """The least seconds between two writes of a cursor; 1 without a rate."""
    if writes_per_second <= 0:
        return DEFAULT_PERSIST_INTERVAL_SECONDS
    return min(1 / writes_per_second, MAX_PERSIST_INTERVAL_SECONDS)


def _ledger_options(options: LedgerOptions, persistence: PersistencePolicies) -> LedgerOptions:
    return replace(
        options,
        ensemble_size=persistence.ensemble_size,
        write_quorum_size=persistence.write_quorum_size,
        ack_quorum_size=persistence.ack_quorum_size,
    )
