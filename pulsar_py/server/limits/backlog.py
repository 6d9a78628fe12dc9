"""Measures a topic's backlog for its quotas (edge: it may have to read one entry).

Source: PersistentTopic.isSizeBacklogExceeded, checkTimeBacklogExceeded in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from pulsar_py.common.errors import ManagedLedgerError, StorageError
from pulsar_py.common.loops.work import Turns
from pulsar_py.managed_ledger.cursors.format import COMPACTION_CURSOR
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.server.limits.backlog_quota import Backlog
from pulsar_py.server.limits.message_checks import published_millis
from pulsar_py.server.policies.topic_settings import TopicSettings

Ledger = ManagedLedger[Any]  # Any: appending is not done here

_READ_UNITS: Final = 20


async def measure_backlog(ledger: Ledger, settings: TopicSettings, now_millis: int) -> Backlog:
    """The backlog of the slowest durable cursor, and its age as far as that is known.

    The compaction's cursor does not count: it may be behind, and no producer has to wait for it.
    """
    slowest = ledger.slowest_durable_cursor(without=COMPACTION_CURSOR)
    if slowest is None or not slowest.backlog_count():
        return Backlog(0, None)
    age = await _oldest_age_seconds(
        ledger, slowest, now_millis, is_precise=settings.is_age_quota_precise
    )
    return Backlog(ledger.backlog_size_bytes(without=COMPACTION_CURSOR), age, slowest.name)


async def oldest_publish_times(
    ledger: Ledger, cursors: Mapping[str, ManagedCursor], turns: Turns
) -> dict[str, int]:
    """By name, when the oldest entry of each cursor's backlog was published; none without one."""
    found: dict[str, int] = {}
    for name, cursor in cursors.items():
        await turns.take(_READ_UNITS)
        if cursor.backlog_count():
            oldest = ledger.next_valid_position(cursor.mark_delete_position)
            with suppress(StorageError, ManagedLedgerError):  # it was trimmed meanwhile
                found[name] = published_millis(await ledger.read_entry(oldest))
    return found


async def _oldest_age_seconds(
    ledger: Ledger, cursor: ManagedCursor, now_millis: int, *, is_precise: bool
) -> float | None:
    """Age of a cursor's oldest unacknowledged entry; coarse: since its ledger was closed."""
    oldest = ledger.next_valid_position(cursor.mark_delete_position)
    if is_precise:
        try:
            entry = await ledger.read_entry(oldest)
        except (StorageError, ManagedLedgerError):
            return None
        return (now_millis - published_millis(entry)) / 1000
    for each in ledger.ledgers_info():
        if each.ledger_id == oldest.ledger_id and each.closed_millis > 0:
            return (now_millis - each.closed_millis) / 1000
    return None
