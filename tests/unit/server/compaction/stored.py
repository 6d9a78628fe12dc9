"""Compacted ledgers on a simulated store, for the tests of what reads and writes them."""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.server.compaction.compacted_writer import CompactedWriter
from pulsar_py.server.compaction.record_format import encode_record
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore


async def new_writer(store: SimulatedLedgerStore, clock: Clock | None = None) -> CompactedWriter:
    writer = CompactedWriter(store, clock or VirtualClock())
    await writer.create(LedgerOptions(), cluster="here", topic="topic", compacted_to=b"to")
    return writer


async def compacted_ledger(
    store: SimulatedLedgerStore, positions: Iterable[tuple[int, int]], horizon: Position
) -> CompactedLedger:
    """A ledger of messages that are the text of their positions."""
    writer = await new_writer(store)
    for each in positions:
        position = Position(*each)
        await writer.append(encode_record(position, -1, str(position).encode()))
    await writer.close()
    return CompactedLedger(store, writer.ledger_id, horizon)


def texts(entries: Iterable[Entry]) -> list[str]:
    return [bytes(entry.data).decode() for entry in entries]
