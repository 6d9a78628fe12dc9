"""Decides when messages, subscriptions and topics have expired (pure).

Callers pass in the time, counts and ages, and carry out the decision.

Source: PersistentMessageExpiryMonitor, PersistentTopic.checkGC and .checkInactiveSubscriptions.
"""

from __future__ import annotations

from msgspec import Struct

from pulsar_py.common.policies import InactiveTopicDeleteMode, InactiveTopicPolicy
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import COMPACTION_CURSOR
from pulsar_py.managed_ledger.log.stats import LedgerStats

CAUGHT_UP_BACKLOG = 1000
"""With consumers connected and a backlog below this, expiry reads the oldest message first."""


def expired_ledgers_end(
    ledgers: list[LedgerStats], *, ttl_seconds: int, now_millis: int
) -> Position | None:
    """The last entry of the ledgers that were closed longer than the TTL ago; None without one.

    It uses the ledgers' metadata alone, so that producers' clocks don't matter.
    """
    end = None
    for ledger in ledgers:
        if ledger.closed_millis <= 0 or now_millis - ledger.closed_millis <= ttl_seconds * 1000:
            break
        if ledger.entries_count:
            end = Position(ledger.ledger_id, ledger.entries_count - 1)
    return end


def is_message_expired(published_millis: int, *, ttl_seconds: int, now_millis: int) -> bool:
    """Whether a message is older than the TTL (in seconds, 0 never)."""
    return ttl_seconds > 0 and published_millis + ttl_seconds * 1000 < now_millis


def is_subscription_expired(
    *,
    name: str,
    consumers_count: int,
    is_replicated: bool,
    last_active_millis: int,
    expiration_minutes: int,
    now_millis: int,
) -> bool:
    """Whether a subscription was unused for so long that it has to be deleted."""
    if expiration_minutes <= 0 or consumers_count or is_replicated or name == COMPACTION_CURSOR:
        return False
    return now_millis - last_active_millis > expiration_minutes * 60_000


class TopicUse(Struct, frozen=True, kw_only=True):
    """The facts that decide whether a topic is in use."""

    clients_count: int
    subscriptions_count: int
    has_backlog: bool


def is_topic_active(use: TopicUse, mode: InactiveTopicDeleteMode) -> bool:
    """Whether clients, subscriptions or a backlog keep the topic from deletion as inactive."""
    if use.clients_count:
        return True
    if mode is InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS:
        return use.subscriptions_count > 0
    return use.has_backlog


def is_topic_inactive_for_long(
    *, idle_seconds: float, policy: InactiveTopicPolicy, retention_seconds: float
) -> bool:
    """Whether a topic was inactive for as long as policy and retention (-1: for ever) demand."""
    if not policy.is_deletion_enabled or retention_seconds < 0:
        return False
    return idle_seconds > policy.max_inactive_seconds and idle_seconds >= retention_seconds
