"""Reads the states of cursors as a broker would recover them, to compare both sides (edge)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.cursors.format import (
    COMPACTED_LEDGER_PROPERTY,
    COMPACTION_CURSOR,
    CursorSnapshot,
)
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.migration.renumbering import Renumbering


class ComparedState(Struct, frozen=True):
    """What a cursor has acknowledged, as plain values."""

    mark_delete_position: Position
    ranges: list[tuple[int, int, int]]
    """Entries acknowledged as a whole: ledger, first, last."""
    batches: list[tuple[Position, int]]
    """Of those acknowledged in part, what still waits."""
    properties: dict[str, int]


async def cursor_states(
    records: Mapping[str, bytes], store: LedgerStore, clock: Clock, settings: LedgerOptions
) -> dict[str, CursorSnapshot]:
    """The state of each cursor by the path of its record.

    Raises:
        StorageError, MetadataError: One can't be read.
    """
    config = ManagedLedgerConfig(ledger_options=settings)
    metadata = MemoryMetadataStore(clock)  # what is stored stays as it is
    states = {}
    for path, value in records.items():
        await metadata.put(path, value)
        cursor = CursorStore(
            path,
            metadata,
            store,
            clock,
            prove_ownership=_is_not_asked,
            confirm_newest=_is_not_asked,
        )
        states[path] = await cursor.recover(config)
    await metadata.close()
    return states


async def _is_not_asked() -> None:
    """Nothing is changed, so there is no ownership to prove."""


def compared(
    path: str, state: CursorSnapshot, renumbering: Renumbering | None = None
) -> ComparedState:
    """The state of the cursor at a path as plain values, with other ids of ledgers if need be."""
    is_compaction = path.endswith(f"/{COMPACTION_CURSOR}")
    new_id = (renumbering or Renumbering()).ledger_id

    def position(of: Position) -> Position:
        return Position(new_id(of.ledger_id), of.entry_id)

    return ComparedState(
        position(state.mark_delete_position),
        [
            (new_id(ledger_id), first, last)
            for ledger_id, first, last in state.individual_deleted_messages.ranges()
        ],
        [(position(key), bits) for key, bits in state.batch_deleted_indexes.items()],
        {
            name: new_id(value) if is_compaction and name == COMPACTED_LEDGER_PROPERTY else value
            for name, value in state.properties.items()
        },
    )
