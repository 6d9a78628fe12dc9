"""Decides whether a topic's backlog exceeds its quotas, and how much to evict (pure).

A quota is checked periodically: connected producers go on publishing until the next check. It
limits the slowest durable cursor's backlog, in bytes or by the age of its oldest entry.

Source: BacklogQuotaManager in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pulsar_py.common.errors import (
    ProducerBlockedQuotaExceededError,
    ProducerBlockedQuotaExceededExceptionError,
    ServiceError,
)
from pulsar_py.common.policies import BacklogQuota, BacklogQuotaAction, BacklogQuotaType

EVICTION_TARGET = 0.9
"""The part of its limit to which an eviction reduces the backlog."""

_REFUSALS: Mapping[BacklogQuotaAction, type[ServiceError]] = {
    BacklogQuotaAction.PRODUCER_REQUEST_HOLD: ProducerBlockedQuotaExceededError,
    BacklogQuotaAction.PRODUCER_EXCEPTION: ProducerBlockedQuotaExceededExceptionError,
}


class Backlog(Struct, frozen=True):
    """Backlog of a topic's slowest durable cursor; 0 and None without one."""

    size_bytes: int
    oldest_age_seconds: float | None
    cursor_name: str = ""


class ExceededQuota(Struct, frozen=True):
    """A quota that is exceeded."""

    type: BacklogQuotaType
    quota: BacklogQuota


def exceeded_quotas(
    quotas: Mapping[BacklogQuotaType, BacklogQuota], backlog: Backlog
) -> list[ExceededQuota]:
    """The exceeded quotas, size before age."""
    found = []
    size = quotas.get(BacklogQuotaType.DESTINATION_STORAGE)
    if size is not None and 0 < size.limit_bytes <= backlog.size_bytes:
        found.append(ExceededQuota(BacklogQuotaType.DESTINATION_STORAGE, size))
    age = quotas.get(BacklogQuotaType.MESSAGE_AGE)
    oldest = backlog.oldest_age_seconds
    if age is not None and oldest is not None and 0 < age.limit_seconds < oldest:
        found.append(ExceededQuota(BacklogQuotaType.MESSAGE_AGE, age))
    return found


def refusal(exceeded: ExceededQuota, topic: str) -> ServiceError | None:
    """The error for PRODUCER, None where the policy evicts instead."""
    error = _REFUSALS.get(exceeded.quota.action)
    if error is None:
        return None
    return error(f"Cannot create producer on topic with backlog quota exceeded: {topic}")


def blocks_producers(exceeded: ExceededQuota) -> bool:
    """Whether the periodic check disconnects the producers."""
    return exceeded.quota.action in _REFUSALS


def entries_to_evict(*, backlog_bytes: int, limit_bytes: int, entries_count: int) -> int:
    """Count of the slowest cursor's entries to skip, acknowledged ones included."""
    target = limit_bytes * EVICTION_TARGET
    if backlog_bytes <= target or backlog_bytes <= 0:
        return 0
    return int((backlog_bytes - target) / backlog_bytes * entries_count)
