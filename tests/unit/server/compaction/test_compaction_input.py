"""What a compaction reads: the compacted ledger, then the topic, both times the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pulsar_py.common.errors import StorageError, StoreUnavailableError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.server.compaction.compaction_input import ENTRIES_A_READ, CompactionInput
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.unit.server.compaction.stored import compacted_ledger, texts


class Cursor:
    """A cursor on the entries 5:0 to 5:`count - 1`, three at a time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.is_moved = False
        self.is_stuck = False
        self.read_position = Position(5, 2)

    def rewind(self) -> None:
        self.read_position = Position(5, 0)

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position
    ) -> Sequence[Entry]:
        del max_bytes
        if self.is_stuck:
            await asyncio.get_running_loop().create_future()
        if self.is_moved:
            return []
        first = self.read_position.entry_id
        end = min(first + min(max_entries, 3), self.count, max_position.entry_id + 1)
        self.read_position = Position(5, end)
        return [Entry(5, number, b"5:%d" % number) for number in range(first, end)]


def input_of(
    cursor: Cursor, last: int, compacted: CompactedLedger | None = None
) -> CompactionInput:
    return CompactionInput(compacted, cursor, Position(5, last), read_timeout_seconds=30.0)


async def read(source: CompactionInput) -> list[str]:
    return [text async for entries in source.entries() for text in texts(entries)]


async def test_it_ends_with_the_last_entry_and_begins_anew() -> None:
    source = input_of(Cursor(20), 7)
    expected = [f"5:{number}" for number in range(8)]
    assert await read(source) == expected
    assert await read(source) == expected


async def test_all_that_was_kept_comes_first() -> None:
    positions = [(1, number) for number in range(2 * ENTRIES_A_READ + 1)]
    compacted = await compacted_ledger(SimulatedLedgerStore(), positions, Position(4, 9))
    source = input_of(Cursor(2), 1, compacted)
    expected = [f"1:{number}" for _, number in positions] + ["5:0", "5:1"]
    assert await read(source) == expected
    assert await read(source) == expected


async def test_a_compaction_that_kept_nothing_is_passed_by() -> None:
    compacted = await compacted_ledger(SimulatedLedgerStore(), [], Position(4, 9))
    assert await read(input_of(Cursor(1), 0, compacted)) == ["5:0"]


async def test_a_cursor_that_was_moved_is_an_error_and_no_endless_loop() -> None:
    cursor = Cursor(20)
    cursor.is_moved = True
    with pytest.raises(StorageError, match="moved meanwhile"):
        await read(input_of(cursor, 7))


async def test_a_read_that_does_not_come_back_is_given_up() -> None:
    cursor = Cursor(20)
    cursor.is_stuck = True
    began = asyncio.get_running_loop().time()
    with pytest.raises(StoreUnavailableError, match="for 30 s"):
        await read(input_of(cursor, 7))
    assert asyncio.get_running_loop().time() - began == pytest.approx(30.0)
