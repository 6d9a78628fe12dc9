from __future__ import annotations

from pulsar_py.common.policies import InactiveTopicDeleteMode, InactiveTopicPolicy
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.stats import LedgerStats
from pulsar_py.server.upkeep.expiry import (
    TopicUse,
    expired_ledgers_end,
    is_message_expired,
    is_subscription_expired,
    is_topic_active,
    is_topic_inactive_for_long,
)

NO_SUBSCRIPTIONS = InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS
CAUGHT_UP = InactiveTopicDeleteMode.DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP


def ledger(ledger_id: int, entries: int, closed_millis: int) -> LedgerStats:
    return LedgerStats(ledger_id, entries, entries * 10, closed_millis)


def test_ledgers_closed_before_the_ttl_are_expired_as_a_whole() -> None:
    ledgers = [ledger(1, 5, 1000), ledger(2, 0, 2000), ledger(3, 7, 50_000), ledger(4, 2, 0)]
    end = expired_ledgers_end(ledgers, ttl_seconds=10, now_millis=20_000)
    assert end == Position(1, 4)
    assert expired_ledgers_end(ledgers, ttl_seconds=10, now_millis=70_000) == Position(3, 6)
    assert expired_ledgers_end(ledgers, ttl_seconds=1000, now_millis=70_000) is None


def test_a_message_is_expired_after_its_ttl() -> None:
    assert is_message_expired(0, ttl_seconds=1, now_millis=1001)
    assert not is_message_expired(0, ttl_seconds=1, now_millis=1000)
    assert not is_message_expired(0, ttl_seconds=0, now_millis=10**12)


def expired(**changes: object) -> bool:
    facts = {
        "name": "sub",
        "consumers_count": 0,
        "is_replicated": False,
        "last_active_millis": 0,
        "expiration_minutes": 1,
        "now_millis": 60_001,
    }
    return is_subscription_expired(**{**facts, **changes})  # type: ignore[arg-type]


def test_a_subscription_expires_when_nobody_used_it() -> None:
    assert expired()
    assert not expired(now_millis=60_000)
    assert not expired(consumers_count=1)
    assert not expired(is_replicated=True)
    assert not expired(name="__compaction")
    assert not expired(expiration_minutes=0)


def use(clients: int = 0, subscriptions: int = 0, *, backlog: bool = False) -> TopicUse:
    return TopicUse(clients_count=clients, subscriptions_count=subscriptions, has_backlog=backlog)


def test_what_keeps_a_topic_depends_on_the_mode() -> None:
    assert is_topic_active(use(clients=1), NO_SUBSCRIPTIONS)
    assert is_topic_active(use(subscriptions=1), NO_SUBSCRIPTIONS)
    assert not is_topic_active(use(subscriptions=1), CAUGHT_UP)
    assert is_topic_active(use(subscriptions=1, backlog=True), CAUGHT_UP)
    assert not is_topic_active(use(), NO_SUBSCRIPTIONS)


def inactive(idle: float, retention: float, *, enabled: bool = True) -> bool:
    policy = InactiveTopicPolicy(NO_SUBSCRIPTIONS, 60, enabled)
    return is_topic_inactive_for_long(idle_seconds=idle, policy=policy, retention_seconds=retention)


def test_a_topic_is_deleted_after_its_time_but_not_within_retention() -> None:
    assert inactive(61, 0)
    assert not inactive(60, 0)
    assert not inactive(61, 100)
    assert inactive(100, 100)
    assert not inactive(10**9, -1)
    assert not inactive(10**9, 0, enabled=False)
