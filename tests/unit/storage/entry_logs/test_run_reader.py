from __future__ import annotations

import asyncio
from collections.abc import Iterable
from operator import itemgetter

import pytest
from msgspec.structs import replace

from pulsar_py.common.disks.disk import ReadFile
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.ledgers.read_ahead import PIECES_COUNT
from pulsar_py.storage.entry_logs.entry_log import LOG_HEADER_BYTES, EntryLogReaders, EntryLogWriter
from pulsar_py.storage.entry_logs.entry_log_format import encode_run
from pulsar_py.storage.entry_logs.read_cache import ReadCache
from pulsar_py.storage.entry_logs.run_reader import READS_COUNT, RunReader
from pulsar_py.storage.index.index import Index, write_table
from pulsar_py.storage.index.index_format import run_key
from pulsar_py.storage.index.index_table import IndexTable
from pulsar_py.storage.shared.settings import BookieSettings
from tests.unit.storage.support import entry

RUN_ENTRIES, RUNS = 10, 40
SETTINGS = BookieSettings(read_ahead_bytes=3_500, fetch_ahead_bytes=6_500, read_cache_bytes=100_000)


class GatedDisk(MemoryDisk):
    """Reads of entry logs fail or wait while the test wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads: list[tuple[int, int]] = []
        self.error: StorageError | None = None
        self.damaged = b""

    def damage(self, entry_id: int) -> None:
        """Give something else where the log has that entry."""
        self.damaged = entry(entry_id)

    async def open_read(self, path: str) -> ReadFile:
        file = await super().open_read(path)
        return GatedFile(self, file) if path.startswith("entries/") else file


class GatedFile(ReadFile):
    def __init__(self, disk: GatedDisk, file: ReadFile) -> None:
        self.path = file.path
        self._disk = disk
        self._file = file

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    async def read_at(self, offset: int, length: int) -> bytes:
        self._disk.reads.append((offset, length))
        await self._disk.gate.wait()
        if self._disk.error is not None:
            raise self._disk.error
        data = await self._file.read_at(offset, length)
        damaged = self._disk.damaged
        return data.replace(damaged, bytes(len(damaged))) if damaged else data

    async def close(self) -> None:
        await self._file.close()


class Logs:
    """Ledgers of 40 runs of 10 entries each, one log, and a reader of them."""

    def __init__(self, settings: BookieSettings) -> None:
        self.disk = GatedDisk()
        self.settings = settings
        self.cache = ReadCache(settings.read_cache_bytes)
        index = Index(self.disk, 100_000)
        self._index = index
        readers = EntryLogReaders(self.disk, 4)
        self.reader = RunReader(index, readers, self.cache, settings)

    @classmethod
    async def filled(
        cls, ledgers: int = 1, settings: BookieSettings = SETTINGS, *, by_turns: bool = False
    ) -> Logs:
        logs = cls(settings)
        firsts = range(0, RUN_ENTRIES * RUNS, RUN_ENTRIES)
        runs = [(ledger_id, first) for ledger_id in range(1, ledgers + 1) for first in firsts]
        await logs._fill(
            (ledger_id, first, [entry(each) for each in range(first, first + RUN_ENTRIES)])
            for ledger_id, first in (sorted(runs, key=itemgetter(1)) if by_turns else runs)
        )
        return logs

    @classmethod
    async def of_large(cls, size: int, count: int, settings: BookieSettings) -> Logs:
        """A ledger of runs of one large entry each."""
        logs = cls(settings)
        await logs._fill((1, entry_id, [large(entry_id, size)]) for entry_id in range(count))
        return logs

    async def _fill(
        self, runs: Iterable[tuple[int, int, list[bytes]]], *, counts_more: int = 0
    ) -> None:
        """Write runs, by ledger and first entry id, and an index that may count too many."""
        for directory in ("entries", "index"):
            await self.disk.make_directory(directory)
        writer = await EntryLogWriter.create(self.disk, 1)
        items = []
        for ledger_id, first, entries in runs:
            location = writer.add(encode_run(ledger_id, first, entries), len(entries))
            stored = replace(location, count=location.count + counts_more)
            items.append((run_key(ledger_id, first), stored.encode()))
        await writer.sync()
        await writer.close()
        await write_table(self.disk, 1, sorted(items))
        self._index.tables.append(await IndexTable.open(self.disk, 1, self._index.cache))

    async def read(self, entry_id: int, ledger_id: int = 1) -> bool:
        """Read one entry as a handle does; whether it was in memory."""
        found = self.cache.find(ledger_id, entry_id)
        is_cached = found is not None
        if found is None:
            found = await self.reader.load(ledger_id, entry_id, self.settings.read_ahead_bytes)
        entries, place = found
        assert entries[place] == entry(entry_id)
        return is_cached


def large(entry_id: int, size: int) -> bytes:
    return b"%08d" % entry_id * (size // 8)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_miss_loads_its_run_and_the_neighbours_behind_it() -> None:
    logs = await Logs.filled()

    assert not await logs.read(15)
    assert len(logs.disk.reads) == 1
    assert [await logs.read(entry_id) for entry_id in (12, 25)] == [True, True]
    assert logs.cache.find(1, 9) is None


@pytest.mark.parametrize(("read_cache_bytes", "runs"), [(0, 1), (1_500, 1), (4_000, 2)])
async def test_no_more_is_read_than_the_cache_keeps(read_cache_bytes: int, runs: int) -> None:
    whole = await Logs.filled()
    await whole.read(0)
    logs = await Logs.filled(settings=replace(SETTINGS, read_cache_bytes=read_cache_bytes))
    await logs.read(0)

    assert logs.disk.reads[0][1] * 3 == whole.disk.reads[0][1] * runs
    assert logs.cache.size_bytes <= read_cache_bytes
    assert await logs.read(9) == (runs > 1)
    await logs.reader.close()


async def test_whoever_reads_in_order_misses_once() -> None:
    logs = await Logs.filled()
    hits = []
    for entry_id in range(RUN_ENTRIES * RUNS):
        hits.append(await logs.read(entry_id))
        await turns()

    assert hits.count(False) == 1
    ends = [offset + length for offset, length in logs.disk.reads]
    assert [offset for offset, _ in logs.disk.reads] == [LOG_HEADER_BYTES, *ends[:-1]]
    await logs.reader.close()


async def test_nothing_is_fetched_ahead_of_single_reads() -> None:
    logs = await Logs.filled()
    for entry_id in (5, 105, 205):
        await logs.read(entry_id)
        await turns()

    assert len(logs.disk.reads) == 3


async def test_a_reader_that_catches_up_with_a_fetch_waits_for_it() -> None:
    logs = await Logs.filled()
    await logs.read(0)
    logs.disk.gate.clear()
    await logs.read(RUN_ENTRIES * 2)
    await turns()
    reads = len(logs.disk.reads)
    waiting = TaskOwner("test").spawn(logs.reader.load(1, RUN_ENTRIES * 3, 3_500), "load")
    await turns()

    assert not waiting.done()
    logs.disk.gate.set()
    entries, place = await waiting
    assert entries[place] == entry(RUN_ENTRIES * 3)
    await turns()
    offsets = [offset for offset, _ in logs.disk.reads]
    assert reads == 1 + READS_COUNT
    assert len(set(offsets)) == len(offsets)
    await logs.reader.close()


async def test_a_fetch_that_fails_is_nobodys_concern_but_who_needs_it() -> None:
    logs = await Logs.filled()
    await logs.read(0)
    logs.disk.error = StorageError("no")
    await logs.read(RUN_ENTRIES * 2)
    await turns()

    with pytest.raises(StorageError, match="no"):
        await logs.read(RUN_ENTRIES * 3)
    logs.disk.error = None
    assert not await logs.read(RUN_ENTRIES * 3)


async def test_what_nobody_reads_does_not_fill_the_cache() -> None:
    logs = await Logs.filled(ledgers=20)
    for ledger_id in range(1, 21):
        await logs.read(0, ledger_id)
        await logs.read(RUN_ENTRIES * 2, ledger_id)
        await turns()

    limit = SETTINGS.read_cache_bytes / 3
    assert limit / 2 < logs.cache.unread_bytes <= limit
    assert logs.cache.size_bytes <= SETTINGS.read_cache_bytes


async def test_a_reader_that_goes_back_finds_what_follows_in_memory() -> None:
    logs = await Logs.filled()
    for _ in range(2):
        for entry_id in range(0, RUN_ENTRIES * 12, RUN_ENTRIES):
            await logs.read(entry_id)
            await turns()

    offsets = [offset for offset, _ in logs.disk.reads]
    assert len(set(offsets)) == len(offsets)
    await logs.reader.close()


async def test_what_lies_in_pieces_is_fetched_together() -> None:
    """Two ledgers by turns: no run has its neighbour behind it."""
    logs = await Logs.filled(ledgers=2, by_turns=True)
    hits = []
    for entry_id in range(RUN_ENTRIES * RUNS):
        hits.append(await logs.read(entry_id))
        await turns()

    # The second miss tells who reads in order.
    assert [entry_id for entry_id, hit in enumerate(hits) if not hit] == [0, RUN_ENTRIES]
    assert len(logs.disk.reads) == RUNS
    await logs.reader.close()


async def test_nobody_waits_for_pieces_that_are_not_being_read_yet() -> None:
    logs = await Logs.filled(ledgers=2, by_turns=True)
    for entry_id in (0, RUN_ENTRIES):
        await logs.read(entry_id)
    logs.disk.gate.clear()
    await turns()
    begun = len(logs.disk.reads)
    owner = TaskOwner("test")
    last = owner.spawn(logs.reader.load(1, RUN_ENTRIES * 6, 0), "not begun")
    first = owner.spawn(logs.reader.load(1, RUN_ENTRIES * 2, 0), "begun")
    await turns()

    assert begun == 2 + READS_COUNT
    assert len(logs.disk.reads) == begun + 1
    logs.disk.gate.set()
    for loading, entry_id in ((last, 6), (first, 2)):
        entries, place = await loading
        assert entries[place] == entry(RUN_ENTRIES * entry_id)
    await logs.reader.close()
    offsets = [offset for offset, _ in logs.disk.reads]
    assert len(set(offsets)) == len(offsets)


async def test_a_reader_that_comes_before_all_of_a_fetch_is_there_gets_the_next_one_too() -> None:
    logs = await Logs.filled(ledgers=2, by_turns=True)
    hits = []
    for entry_id in range(0, RUN_ENTRIES * RUNS, RUN_ENTRIES):
        hits.append(await logs.read(entry_id))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await logs.reader.close()

    assert hits.count(True) > RUNS / 2
    assert len(logs.disk.reads) == RUNS


async def test_intact_runs_before_a_damaged_one_are_served() -> None:
    logs = await Logs.filled()
    logs.disk.damage(RUN_ENTRIES * 2)

    assert not await logs.read(0)
    assert await logs.read(RUN_ENTRIES)
    with pytest.raises(CorruptDataError, match="checksum"):
        await logs.read(RUN_ENTRIES * 2)
    assert not await logs.read(RUN_ENTRIES * 3)
    await logs.reader.close()


async def test_a_window_is_of_so_many_pieces_at_most() -> None:
    settings = replace(SETTINGS, fetch_ahead_bytes=40_000, read_cache_bytes=400_000)
    logs = await Logs.filled(ledgers=2, settings=settings, by_turns=True)
    for entry_id in (0, RUN_ENTRIES):
        await logs.read(entry_id)
    await turns()

    assert 2 < len(logs.disk.reads) <= 2 + PIECES_COUNT
    await logs.reader.close()


async def test_a_window_moves_on_with_its_reader() -> None:
    """What is on its way is as much before each piece, whatever the reader does."""
    logs = await Logs.filled()
    await logs.read(0)
    ahead = []
    for run in range(2, 20):
        await logs.read(RUN_ENTRIES * run)
        await turns()
        ahead.append(logs.cache.end_of(1, RUN_ENTRIES * run) // RUN_ENTRIES - run - 1)

    assert len(set(ahead)) == 1
    assert ahead[0] * logs.disk.reads[-1][1] > SETTINGS.fetch_ahead_bytes * 3 / 4
    await logs.reader.close()


async def test_what_was_forgotten_before_it_was_wanted_is_fetched_ahead_again() -> None:
    logs = await Logs.filled()
    await logs.read(0)
    await logs.read(RUN_ENTRIES * 2)
    await turns()
    logs.cache.forget_ledger(1)
    hits = []
    for run in range(3, 20):
        hits.append(await logs.read(RUN_ENTRIES * run))
        await turns()

    assert hits.count(False) == 1
    assert logs.cache.unread_bytes <= SETTINGS.fetch_ahead_bytes
    await logs.reader.close()


async def test_readers_of_one_turn_of_the_loop_share_the_room() -> None:
    settings = replace(SETTINGS, read_cache_bytes=150_000)
    logs = await Logs.filled(ledgers=20, settings=settings)
    for ledger_id in range(1, 21):
        await logs.read(0, ledger_id)
    for ledger_id in range(1, 21):
        assert logs.cache.find(ledger_id, RUN_ENTRIES * 2) is not None
    await turns()

    assert 0 < logs.cache.unread_bytes <= settings.read_cache_bytes / 3
    await logs.reader.close()


async def test_two_readers_of_a_ledger_have_little_read_twice() -> None:
    """The second one comes to where the first one began while pieces of that are on their way."""
    settings = replace(SETTINGS, fetch_ahead_bytes=13_000, read_cache_bytes=1_000_000)
    logs = await Logs.filled(settings=settings)
    gap = 10
    for run in range(RUNS - gap):
        for place in (run + gap, run):
            await logs.read(RUN_ENTRIES * place)
            await asyncio.sleep(0)
    await logs.reader.close()

    first_offset, _ = min(logs.disk.reads)
    end = max(offset + length for offset, length in logs.disk.reads)
    read_bytes = sum(length for _, length in logs.disk.reads)
    assert read_bytes < 1.1 * (end - first_offset)


async def test_a_large_window_is_fetched_ahead_too() -> None:
    settings = replace(SETTINGS, fetch_ahead_bytes=64 << 20, read_cache_bytes=256 << 20)
    logs = await Logs.filled(settings=settings)
    hits = []
    for entry_id in range(0, RUN_ENTRIES * RUNS, RUN_ENTRIES):
        hits.append(await logs.read(entry_id))
        await turns()

    assert hits.count(False) == 1
    await logs.reader.close()


async def test_a_reader_that_jumps_takes_its_window_along() -> None:
    logs = await Logs.filled()
    for run in (0, 2, 30, 32):
        await logs.read(RUN_ENTRIES * run)
        await turns()
    hits = [await logs.read(RUN_ENTRIES * run) for run in (33, 34)]

    assert hits == [True, True]
    await logs.reader.close()


async def test_the_end_of_a_ledger_ends_it() -> None:
    logs = await Logs.filled()
    for entry_id in range(RUN_ENTRIES * (RUNS - 3), RUN_ENTRIES * RUNS, RUN_ENTRIES):
        await logs.read(entry_id)
        await turns()

    assert len(logs.disk.reads) == 1
    with pytest.raises(CorruptDataError, match="ledger 1: entry 400 is not in the index"):
        await logs.reader.load(1, RUN_ENTRIES * RUNS, 0)


async def test_closing_waits_for_what_is_under_way_and_begins_nothing() -> None:
    logs = await Logs.filled()
    await logs.read(0)
    logs.disk.gate.clear()
    await logs.read(RUN_ENTRIES * 2)
    await turns()
    closing = TaskOwner("test").spawn(logs.reader.close(), "close")
    await turns()
    assert not closing.done()
    logs.disk.gate.set()
    await closing

    await logs.read(RUN_ENTRIES * 3)
    await turns()
    assert len(logs.disk.reads) == 1 + READS_COUNT


async def test_large_entries_are_lent_and_their_memory_is_used_again() -> None:
    size = LENT_BYTES
    settings = replace(SETTINGS, read_cache_bytes=3 * size, read_ahead_bytes=0)
    logs = await Logs.of_large(size, 6, settings)
    seen: dict[int, int] = {}
    held = None
    for entry_id in range(6):
        entries, place = await logs.reader.load(1, entry_id, 0)
        data = entries[place]
        assert isinstance(data, memoryview)
        assert data == large(entry_id, size)
        seen[id(data.obj)] = entry_id
        if entry_id == 1:
            held = data

    assert held == large(1, size)
    assert len(seen) < 6
    await logs.reader.close()


async def test_a_damaged_large_entry_is_refused() -> None:
    logs = await Logs.of_large(LENT_BYTES, 2, SETTINGS)
    logs.disk.damaged = large(1, LENT_BYTES)[:100]

    with pytest.raises(CorruptDataError, match="checksum"):
        await logs.reader.load(1, 1, 0)
    entries, place = await logs.reader.load(1, 0, 0)
    assert entries[place] == large(0, LENT_BYTES)
    await logs.reader.close()


async def test_a_run_of_another_count_than_the_index_says_is_damage() -> None:
    logs = Logs(SETTINGS)
    await logs._fill([(1, 0, [entry(0), entry(1)])], counts_more=1)

    with pytest.raises(CorruptDataError, match="a run of 2 entries where the index has 3"):
        await logs.read(0)
    await logs.reader.close()
