"""Policies of topics at each level: broker, namespace, topic for all clusters, topic for this one.

`ROWS` has a line for each policy: a value at each level, all of them different, and how a running
topic shows which one it is served by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pulsar_py.common.policies import DispatchRate
from pulsar_py.managed_ledger.log.config import MEBIBYTE
from pulsar_py.server.policies.topic_settings import TopicSettings

TOPIC: Final = "/admin/v2/persistent/public/default/levels"
NAMESPACE: Final = "/admin/v2/namespaces/public/default"

LEVELS: Final = ("broker", "namespace", "global", "local")

Call = tuple[str, str, Any]
"""Method, path and body of a call; without a body `...`."""

Json = Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One policy.

    Attributes:
        word: Its last word in the path of a topic.
        values: At the levels of `LEVELS`, as JSON.
        served: What a running topic is served by, as JSON; None if the policy has no effect here.
        config: Settings that give the broker its value.
        namespace_word: Its last word in the path of a namespace; empty if it has none.
        method: That sets a topic's.
        namespace_method: That sets a namespace's.
        is_in_query: Whether the topic's value is a parameter.
        has_applied: Whether `applied=true` is asked for.
        can_be_deleted: Whether a topic's policy is removed with DELETE.
        applied: What applies while the levels up to each are set; by default the last one's value.
    """

    word: str
    values: tuple[Json, Json, Json, Json]
    served: Callable[[TopicSettings], Json] | None
    config: dict[str, Any] = field(default_factory=dict)
    namespace_word: str = ""
    method: str = "POST"
    namespace_method: str = "POST"
    is_in_query: bool = False
    has_applied: bool = True
    can_be_deleted: bool = True
    applied: tuple[Json, ...] = ()

    def expected(self, level: int) -> Json:
        """What applies while this level and all below it are set."""
        return self.applied[level] if self.applied else self.values[level]

    def set_at(self, level: int) -> Call:
        """The call that sets the value of a level."""
        value = self.values[level]
        if LEVELS[level] == "namespace":
            return self.namespace_method, f"{NAMESPACE}/{self.namespace_word}", value
        path = f"{TOPIC}/{self.word}?isGlobal={str(LEVELS[level] == 'global').lower()}"
        if self.is_in_query:
            return self.method, f"{path}&{self.word}={value}", ...
        return self.method, path, value

    def remove_at(self, level: int) -> Call:
        """The call that removes the value of a level."""
        if LEVELS[level] == "namespace":
            word = self.namespace_word
            return "DELETE", f"{NAMESPACE}/{word}", ...
        is_global = str(LEVELS[level] == "global").lower()
        return "DELETE", f"{TOPIC}/{self.word}?isGlobal={is_global}", ...

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels above the broker that it has."""
        return (1, 2, 3) if self.namespace_word else (2, 3)


def _dispatch_rate(messages: int) -> Json:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": messages * 1000,
        "relativeToPublishRate": messages % 2 == 1,
        "ratePeriodInSecond": 1,
    }


def _dispatch_rates() -> tuple[Json, Json, Json, Json]:
    return _dispatch_rate(10), _dispatch_rate(21), _dispatch_rate(30), _dispatch_rate(41)


def _dispatch_json(rate: DispatchRate | None) -> Json:
    if rate is None:
        return None
    return {
        "dispatchThrottlingRateInMsg": rate.messages_count,
        "dispatchThrottlingRateInByte": rate.bytes_count,
        "relativeToPublishRate": rate.is_relative_to_publish_rate,
        "ratePeriodInSecond": rate.period_seconds,
    }


def _publish_json(settings: TopicSettings) -> Json:
    rate = settings.publish_rate
    if rate is None:
        return None
    return {
        "publishThrottlingRateInMsg": rate.messages_per_second,
        "publishThrottlingRateInByte": rate.bytes_per_second,
    }


def _subscribe_json(settings: TopicSettings) -> Json:
    rate = settings.subscribe_rate
    if rate is None:
        return None
    return {
        "subscribeThrottlingRatePerConsumer": rate.subscribes_per_consumer,
        "ratePeriodInSecond": rate.period_seconds,
    }


def _retention_json(settings: TopicSettings) -> Json:
    ledger = settings.managed_ledger
    return {
        "retentionTimeInMinutes": ledger.retention_seconds // 60,
        "retentionSizeInMB": ledger.retention_size_bytes // MEBIBYTE,
    }


def _persistence_json(settings: TopicSettings) -> Json:
    options = settings.managed_ledger.ledger_options
    interval = settings.managed_ledger.cursor_persist_interval_seconds
    return {
        "bookkeeperEnsemble": options.ensemble_size,
        "bookkeeperWriteQuorum": options.write_quorum_size,
        "bookkeeperAckQuorum": options.ack_quorum_size,
        "managedLedgerMaxMarkDeleteRate": 1 / interval,
    }


def _delayed_json(settings: TopicSettings) -> Json:
    return {
        "tickTime": settings.dispatch.delayed_delivery_tick_millis,
        "active": settings.dispatch.is_delayed_delivery_enabled,
        "maxDeliveryDelayInMillis": settings.max_delay_millis,
    }


def _inactive_json(settings: TopicSettings) -> Json:
    return {
        "inactiveTopicDeleteMode": settings.inactive.delete_mode.value,
        "maxInactiveDurationSeconds": settings.inactive.max_inactive_seconds,
        "deleteWhileInactive": settings.inactive.is_deletion_enabled,
    }


def _filters_json(settings: TopicSettings) -> Json:
    dispatch = settings.dispatch
    names = dispatch.entry_filters_of_policy or dispatch.entry_filter_names
    return {"entryFilterNames": ",".join(names)}


def _persistence(ensemble: int, quorum: int) -> Json:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": quorum,
        "bookkeeperAckQuorum": quorum,
        "managedLedgerMaxMarkDeleteRate": 1.0 / (1 << quorum),
    }


def _retention(number: int) -> Json:
    return {"retentionTimeInMinutes": number, "retentionSizeInMB": number + 1}


def _inactive(mode: str, seconds: int, *, deletes: bool) -> Json:
    return {
        "inactiveTopicDeleteMode": mode,
        "maxInactiveDurationSeconds": seconds,
        "deleteWhileInactive": deletes,
    }


def _delayed(tick: int, *, is_active: bool) -> Json:
    return {"tickTime": tick, "active": is_active, "maxDeliveryDelayInMillis": tick * 10}


def _types(*names: str) -> tuple[str, ...]:
    return names


def _type_names(settings: TopicSettings) -> Json:
    return sorted(each.wire_name for each in settings.dispatch.enabled_subscription_types)


_HOOKS = "tests.hook_classes."

ROWS: Final = (
    Row(
        word="retention",
        namespace_word="retention",
        config={"defaultRetentionTimeInMinutes": 1, "defaultRetentionSizeInMB": 2},
        values=(_retention(1), _retention(3), _retention(5), _retention(7)),
        served=_retention_json,
    ),
    Row(
        word="persistence",
        namespace_word="persistence",
        config={
            "managedLedgerDefaultEnsembleSize": 1,
            "managedLedgerDefaultWriteQuorum": 1,
            "managedLedgerDefaultAckQuorum": 1,
            "managedLedgerDefaultMarkDeleteRateLimit": 0.5,
        },
        values=(_persistence(1, 1), _persistence(3, 2), _persistence(4, 3), _persistence(5, 4)),
        served=_persistence_json,
    ),
    Row(
        word="messageTTL",
        namespace_word="messageTTL",
        config={"ttlDurationDefaultInSeconds": 100},
        values=(100, 101, 102, 103),
        is_in_query=True,
        served=lambda settings: settings.message_ttl_seconds,
    ),
    Row(
        word="subscriptionExpirationTime",
        namespace_word="subscriptionExpirationTime",
        config={"subscriptionExpirationTimeMinutes": 100},
        values=(100, 101, 102, 103),
        is_in_query=True,
        served=lambda settings: settings.subscription_expiration_minutes,
    ),
    Row(
        word="deduplicationEnabled",
        namespace_word="deduplication",
        values=(False, True, False, True),
        served=lambda settings: settings.is_deduplication_enabled,
    ),
    Row(
        word="deduplicationSnapshotInterval",
        namespace_word="deduplicationSnapshotInterval",
        config={"brokerDeduplicationSnapshotIntervalSeconds": 100},
        values=(100, 101, 102, 103),
        has_applied=False,
        served=lambda settings: settings.deduplication_snapshot_seconds,
    ),
    Row(
        word="maxMessageSize",
        values=(0, None, 102, 103),
        has_applied=False,
        served=lambda settings: settings.max_message_bytes,
    ),
    Row(
        word="publishRate",
        namespace_word="publishRate",
        config={"maxPublishRatePerTopicInMessages": 1, "maxPublishRatePerTopicInBytes": 2},
        values=(
            {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": 2},
            {"publishThrottlingRateInMsg": 3, "publishThrottlingRateInByte": 4},
            {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 6},
            {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": 8},
        ),
        has_applied=False,
        served=_publish_json,
    ),
    Row(
        word="dispatchRate",
        namespace_word="dispatchRate",
        config={
            "dispatchThrottlingRatePerTopicInMsg": 10,
            "dispatchThrottlingRatePerTopicInByte": 10_000,
        },
        values=_dispatch_rates(),
        served=lambda settings: _dispatch_json(settings.dispatch.topic_rate),
    ),
    Row(
        word="subscriptionDispatchRate",
        namespace_word="subscriptionDispatchRate",
        config={
            "dispatchThrottlingRatePerSubscriptionInMsg": 10,
            "dispatchThrottlingRatePerSubscriptionInByte": 10_000,
        },
        values=_dispatch_rates(),
        served=lambda settings: _dispatch_json(settings.dispatch.subscription_rate),
    ),
    Row(
        word="replicatorDispatchRate",
        namespace_word="replicatorDispatchRate",
        values=(
            {**_dispatch_rate(0), "relativeToPublishRate": False},
            *_dispatch_rates()[1:],
        ),
        served=None,
    ),
    Row(
        word="subscribeRate",
        namespace_word="subscribeRate",
        config={
            "subscribeThrottlingRatePerConsumer": 1,
            "subscribeRatePeriodPerConsumerInSecond": 2,
        },
        values=(
            {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 2},
            {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 4},
            {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 6},
            {"subscribeThrottlingRatePerConsumer": 7, "ratePeriodInSecond": 8},
        ),
        served=_subscribe_json,
    ),
    Row(
        word="maxProducers",
        namespace_word="maxProducersPerTopic",
        config={"maxProducersPerTopic": 100},
        values=(100, 101, 102, 103),
        served=lambda settings: settings.max_producers,
    ),
    Row(
        word="maxConsumers",
        namespace_word="maxConsumersPerTopic",
        config={"maxConsumersPerTopic": 100},
        values=(100, 101, 102, 103),
        served=lambda settings: settings.dispatch.max_consumers_per_topic,
    ),
    Row(
        word="maxConsumersPerSubscription",
        namespace_word="maxConsumersPerSubscription",
        config={"maxConsumersPerSubscription": 100},
        values=(100, 101, 102, 103),
        has_applied=False,
        served=lambda settings: settings.dispatch.max_consumers_per_subscription,
    ),
    Row(
        word="maxSubscriptionsPerTopic",
        namespace_word="maxSubscriptionsPerTopic",
        config={"maxSubscriptionsPerTopic": 100},
        values=(100, 101, 102, 103),
        has_applied=False,
        served=lambda settings: settings.max_subscriptions,
    ),
    Row(
        word="maxUnackedMessagesOnConsumer",
        namespace_word="maxUnackedMessagesPerConsumer",
        config={"maxUnackedMessagesPerConsumer": 100},
        values=(100, 101, 102, 103),
        served=lambda settings: settings.dispatch.max_unacked_messages_per_consumer,
    ),
    Row(
        word="maxUnackedMessagesOnSubscription",
        namespace_word="maxUnackedMessagesPerSubscription",
        config={"maxUnackedMessagesPerSubscription": 100},
        values=(100, 101, 102, 103),
        served=lambda settings: settings.dispatch.max_unacked_messages_per_subscription,
    ),
    Row(
        word="delayedDelivery",
        namespace_word="delayedDelivery",
        config={"delayedDeliveryTickTimeMillis": 100, "delayedDeliveryMaxDelayInMillis": 1000},
        values=(
            _delayed(100, is_active=True),
            _delayed(200, is_active=False),
            _delayed(300, is_active=True),
            _delayed(400, is_active=False),
        ),
        served=_delayed_json,
    ),
    Row(
        word="inactiveTopicPolicies",
        namespace_word="inactiveTopicPolicies",
        config={"brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": 100},
        values=(
            _inactive("delete_when_no_subscriptions", 100, deletes=True),
            _inactive("delete_when_subscriptions_caught_up", 101, deletes=True),
            _inactive("delete_when_no_subscriptions", 102, deletes=False),
            _inactive("delete_when_subscriptions_caught_up", 103, deletes=False),
        ),
        served=_inactive_json,
    ),
    Row(
        word="compactionThreshold",
        namespace_word="compactionThreshold",
        namespace_method="PUT",
        config={"brokerServiceCompactionThresholdInBytes": 10_000_000},
        values=(10_000_000, 10_000_001, 10_000_002, 10_000_003),
        served=lambda settings: settings.compaction_threshold_bytes,
    ),
    Row(
        word="subscriptionTypesEnabled",
        namespace_word="subscriptionTypesEnabled",
        values=(
            ["Exclusive", "Failover", "Key_Shared", "Shared"],
            ["Exclusive"],
            ["Failover"],
            ["Shared"],
        ),
        has_applied=False,
        served=_type_names,
    ),
    Row(
        word="schemaCompatibilityStrategy",
        namespace_word="schemaCompatibilityStrategy",
        method="PUT",
        namespace_method="PUT",
        values=("FULL", "BACKWARD", "FORWARD", "ALWAYS_COMPATIBLE"),
        served=lambda settings: settings.schema.strategy.value,
    ),
    Row(
        word="schemaValidationEnforced",
        namespace_word="schemaValidationEnforced",
        values=(False, False, True, False),
        can_be_deleted=False,
        applied=(False, False, True, False),
        served=lambda settings: settings.schema.is_validation_enforced,
    ),
    Row(
        word="autoSubscriptionCreation",
        namespace_word="autoSubscriptionCreation",
        values=tuple(  # type: ignore[arg-type] # four of them
            {"allowAutoSubscriptionCreation": value} for value in (True, False, True, False)
        ),
        served=lambda settings: {
            "allowAutoSubscriptionCreation": settings.allows_subscription_creation
        },
    ),
    Row(
        word="entryFilters",
        namespace_word="entryFilters",
        config={
            "entryFilterNames": f"{_HOOKS}OddPasses,{_HOOKS}ByPayload,{_HOOKS}NothingPasses",
            "allowOverrideEntryFilters": True,
        },
        values=(
            {"entryFilterNames": f"{_HOOKS}OddPasses,{_HOOKS}ByPayload,{_HOOKS}NothingPasses"},
            {"entryFilterNames": f"{_HOOKS}OddPasses"},
            {"entryFilterNames": f"{_HOOKS}ByPayload"},
            {"entryFilterNames": f"{_HOOKS}NothingPasses"},
        ),
        served=_filters_json,
    ),
    Row(
        word="offloadPolicies",
        namespace_word="offloadPolicies",
        values=(
            None,
            {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 1},
            {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 2},
            {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 3},
        ),
        served=None,
    ),
    Row(
        word="replication",
        namespace_word="replication",
        values=(
            ["standalone"],
            ["east", "standalone"],
            ["standalone", "west"],
            ["east", "standalone", "west"],
        ),
        served=None,
    ),
    Row(
        word="dispatcherPauseOnAckStatePersistent",
        namespace_word="dispatcherPauseOnAckStatePersistent",
        values=(False, True, True, True),
        served=None,
    ),
)

CONFIG: Final[dict[str, Any]] = {name: value for row in ROWS for name, value in row.config.items()}
"""The settings of a broker whose values all rows have."""
