"""Reading of a compacted ledger: where a position is, bounds, an empty one, one that is gone."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError, LedgerNotFoundError
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.unit.server.compaction.stored import compacted_ledger, new_writer, texts

HORIZON = Position(4, 9)
POSITIONS = [(1, 0), (1, 7), (3, 2), (4, 0), (4, 9)]


async def five() -> CompactedLedger:
    return await compacted_ledger(SimulatedLedgerStore(), POSITIONS, HORIZON)


@pytest.mark.parametrize(
    ("position", "index"),
    [
        (EARLIEST, 0),
        ((1, 0), 0),
        ((1, 1), 1),
        ((1, 8), 2),  # the next one is in another ledger
        ((2, 5), 2),
        ((4, -1), 3),
        ((4, 9), 4),
        ((4, 10), 5),
        (LATEST, 5),
    ],
)
async def test_a_position_is_found_where_the_next_record_is(
    position: tuple[int, int], index: int
) -> None:
    assert await (await five()).index_of(Position(*position)) == index


async def test_reads_end_at_counts_bytes_and_the_last_record() -> None:
    compacted = await five()
    assert texts(await compacted.read(1, 2, 1_000_000)) == ["1:7", "3:2"]
    assert texts(await compacted.read(3, 9, 1_000_000)) == ["4:0", "4:9"]
    assert texts(await compacted.read(0, 9, 1)) == ["1:0"]
    assert texts(await compacted.read(5, 9, 1_000_000)) == []
    (entry,) = await compacted.read(4, 1, 1)
    assert entry.position == Position(4, 9)


async def test_nothing_was_kept() -> None:
    compacted = await compacted_ledger(SimulatedLedgerStore(), [], HORIZON)
    assert await compacted.last_record() is None
    assert await compacted.index_of(EARLIEST) == 0
    assert texts(await compacted.read(0, 1, 1)) == []


async def test_the_last_record_is_that_of_the_highest_position() -> None:
    last = await (await five()).last_record()
    assert last == (Position(4, 9), b"4:9")


async def test_a_ledger_that_is_gone_is_said_and_a_closed_one_opens_again() -> None:
    store = SimulatedLedgerStore()
    compacted = await compacted_ledger(store, POSITIONS, HORIZON)
    await compacted.read(0, 1, 1)
    await compacted.close()
    assert texts(await compacted.read(0, 1, 1)) == ["1:0"]
    await compacted.close()
    await compacted.close()
    await store.delete(compacted.ledger_id)
    with pytest.raises(LedgerNotFoundError):
        await compacted.read(0, 1, 1)


async def test_a_damaged_record_is_not_a_message() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    await writer.append(b"\0\0\0\x09short")
    await writer.close()
    compacted = CompactedLedger(store, writer.ledger_id, HORIZON)
    with pytest.raises(CorruptDataError):
        await compacted.read(0, 1, 1)
    with pytest.raises(CorruptDataError):
        await compacted.index_of(EARLIEST)
