from __future__ import annotations

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.storage.index.index import Index, merge_tables, write_table
from pulsar_py.storage.index.index_format import Item, record_key, run_key
from pulsar_py.storage.index.index_table import IndexTable
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.location import Location


class Tables:
    """An index whose tables come from plain lists."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.index = Index(self.disk, 100_000)
        self.next_id = 1

    async def add(self, *items: Item) -> None:
        await self.disk.make_directory("index")
        await write_table(self.disk, self.next_id, sorted(items))
        self.index.tables.insert(
            0, await IndexTable.open(self.disk, self.next_id, self.index.cache)
        )
        self.next_id += 1

    async def merge(self, start: int, stop: int) -> None:
        old = self.index.tables[start:stop]
        await merge_tables(self.disk, self.next_id, old, is_complete=stop == len(self.index.tables))
        self.index.tables[start:stop] = [
            await IndexTable.open(self.disk, self.next_id, self.index.cache)
        ]
        self.next_id += 1


def run(ledger_id: int, first: int, count: int, log_id: int = 1, offset: int = 0) -> Item:
    return run_key(ledger_id, first), Location(log_id, offset, 100, count).encode()


def record(ledger_id: int, last: int = -1) -> Item:
    return record_key(ledger_id), LedgerRecord(last_entry_id=last).encode()


def tombstone(ledger_id: int) -> Item:
    return record_key(ledger_id), TOMBSTONE.encode()


async def test_the_newest_record_wins() -> None:
    tables = Tables()
    await tables.add(record(1, 5), record(2, 7))
    await tables.add(record(1, 9))

    first, second = await tables.index.record(1), await tables.index.record(2)
    assert first is not None
    assert second is not None
    assert (first.last_entry_id, second.last_entry_id) == (9, 7)
    assert await tables.index.record(3) is None


async def test_a_run_is_found_by_any_of_its_entries_in_any_table() -> None:
    tables = Tables()
    await tables.add(record(1), run(1, 0, 10), run(1, 10, 5, offset=100))
    await tables.add(record(1), run(1, 15, 5, log_id=2))

    for entry_id, first in ((0, 0), (9, 0), (10, 10), (14, 10), (15, 15), (19, 15)):
        assert (await tables.index.find_runs(1, entry_id, 0))[0][0] == first
    assert await tables.index.find_runs(1, 20, 0) == []
    assert await tables.index.find_runs(2, 0, 0) == []


async def test_neighbours_come_along_while_they_follow_and_fit() -> None:
    tables = Tables()
    await tables.add(
        run(1, 0, 10),
        run(1, 10, 10, offset=100),
        run(1, 20, 10, offset=200),
        run(1, 30, 10, offset=999),
    )

    async def firsts(ahead_bytes: int) -> list[int]:
        return [first for first, _ in await tables.index.find_runs(1, 5, ahead_bytes)]

    assert await firsts(0) == [0]
    assert await firsts(250) == [0, 10]
    assert await firsts(10_000) == [0, 10, 20]


async def test_runs_of_a_ledger_are_complete_and_the_newest_place_wins() -> None:
    tables = Tables()
    await tables.add(*(run(ledger, first, 1) for ledger in (1, 2, 3) for first in range(300)))
    await tables.add(run(2, 7, 1, log_id=5), run(2, 300, 1, log_id=6))

    runs = await tables.index.ledger_runs(2)

    assert sorted(runs) == list(range(301))
    assert (runs[7].log_id, runs[8].log_id, runs[300].log_id) == (5, 1, 6)
    assert await tables.index.ledger_runs(9) == {}


async def test_ledgers_are_listed_without_the_deleted_ones() -> None:
    tables = Tables()
    await tables.add(*(record(ledger) for ledger in range(500)), run(3, 0, 1))
    await tables.add(tombstone(4), record(1000))

    assert list(await tables.index.ledger_ids()) == [*(n for n in range(500) if n != 4), 1000]


async def test_a_merge_keeps_what_counts() -> None:
    tables = Tables()
    await tables.add(record(1, 1), run(1, 0, 1), record(2, 1), run(2, 0, 1))
    await tables.add(tombstone(2), run(1, 0, 1, log_id=9))
    await tables.add(record(1, 7), run(1, 1, 1))

    await tables.merge(0, 2)
    assert (await tables.index.record(2)) == TOMBSTONE
    await tables.merge(0, 2)

    assert await tables.index.record(2) is None
    assert await tables.index.ledger_runs(2) == {}
    runs = await tables.index.ledger_runs(1)
    assert {first: place.log_id for first, place in runs.items()} == {0: 9, 1: 1}
    found = await tables.index.record(1)
    assert found is not None
    assert found.last_entry_id == 7


async def test_big_tables_merge_portion_by_portion() -> None:
    tables = Tables()
    await tables.add(*(run(ledger, 0, 1) for ledger in range(0, 9000, 2)))
    await tables.add(*(run(ledger, 0, 1, log_id=2) for ledger in range(0, 9000, 3)))

    await tables.merge(0, 2)

    scanned = [key async for items in tables.index.tables[0].scan(b"") for key, _ in items]
    wanted = sorted({*range(0, 9000, 2), *range(0, 9000, 3)})
    assert scanned == [run_key(ledger, 0) for ledger in wanted]
    assert (await tables.index.find_runs(6, 0, 0))[0][1].log_id == 2
