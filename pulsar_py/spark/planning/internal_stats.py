"""Reads the internal statistics of a topic as its `TopicLayout` (pure).

The statistics list all ledgers. The open one stands last and has neither entries nor bytes; these
come from `currentLedgerEntries` and `currentLedgerSize`. Readable entries end at
`lastConfirmedEntry`.

Source: ManagedLedgerInternalStats in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.pieces import LedgerExtent, TopicLayout


def layout_of(topic: str, stats: Mapping[str, Any]) -> TopicLayout:  # Any: JSON
    """The layout of a topic partition.

    Raises:
        RemoteProtocolError: The statistics lack a field, or contradict themselves.
    """
    try:
        ledgers = [
            LedgerExtent(int(each["ledgerId"]), int(each["entries"]), int(each["size"]))
            for each in stats["ledgers"]
        ]
        last = Position.parse(stats["lastConfirmedEntry"])
        current = int(stats["currentLedgerEntries"]), int(stats["currentLedgerSize"])
    except (KeyError, TypeError, ValueError) as error:
        raise RemoteProtocolError(f"{topic}: internal statistics: {error!r}") from error
    ids = [each.ledger_id for each in ledgers]
    if ids != sorted(set(ids)):
        raise RemoteProtocolError(f"{topic}: internal statistics: ledgers out of order: {ids}")
    if ledgers and not ledgers[-1].entries_count:
        ledgers[-1] = LedgerExtent(ledgers[-1].ledger_id, *current)
    return TopicLayout(topic, [_readable(each, last) for each in ledgers])


def _readable(ledger: LedgerExtent, last: Position) -> LedgerExtent:
    """The ledger up to the last confirmed entry."""
    if ledger.ledger_id < last.ledger_id:
        return ledger
    count = last.entry_id + 1 if ledger.ledger_id == last.ledger_id else 0
    if count >= ledger.entries_count:
        return ledger
    return LedgerExtent(ledger.ledger_id, count, round(count * ledger.bytes_per_entry))
