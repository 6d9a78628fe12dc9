"""Where entries lie in entry logs: what a reader of the files finds there, and when it is nothing."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from pulsar_py.common.disks.disk import Disk, LentFile
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.places import PlaceLimits, Places
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.support import Listener, entry, start, write

MANY = PlaceLimits(
    size_bytes=10_000_000, entries_count=100_000, runs_count=1000, new_logs_count=100
)


class Reader:
    """Somebody who is lent files, and reads them."""

    def __init__(self, bookie: Bookie) -> None:
        self._bookie = bookie
        self.logs: dict[int, LentFile] = {}

    async def read(
        self, ledger_id: int, first: int, last: int, limits: PlaceLimits = MANY
    ) -> list[bytes]:
        places = await self.find(ledger_id, first, last, limits)
        self.logs |= places.new_logs
        return list(self.entries(places))

    async def find(
        self, ledger_id: int, first: int, last: int, limits: PlaceLimits = MANY
    ) -> Places:
        return await self._bookie.places(ledger_id, first, last, limits=limits, held_logs=self.logs)

    def entries(self, places: Places) -> Iterator[bytes]:
        for log_id, offset, lengths in places.runs:
            at = offset
            for length in lengths:
                yield os.pread(self.logs[log_id].fileno(), length, at)
                at += length


def entries(first: int, last: int, size: int = 100) -> list[bytes]:
    return [entry(entry_id, size) for entry_id in range(first, last + 1)]


async def flushed(disk: Disk, *, is_volatile: bool = False) -> tuple[Bookie, int]:
    """An engine with the 100 entries of one ledger in two logs, 10 in a run."""
    bookie = await start(disk, is_volatile=is_volatile, entry_log_bytes=6_000)
    writer, _ = await write(bookie, 100)
    await bookie.flush()
    return bookie, writer.ledger_id


async def test_a_reader_of_the_files_finds_all_entries(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    reader = Reader(bookie)
    assert await reader.read(ledger_id, 0, 99) == entries(0, 99)
    assert len(reader.logs) == 2
    await bookie.close()


@pytest.mark.parametrize(("first", "last"), [(0, 0), (3, 5), (7, 8), (13, 77), (99, 99)])
async def test_from_the_middle_of_a_run_to_that_of_another(
    tmp_path: Path, first: int, last: int
) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    assert await Reader(bookie).read(ledger_id, first, last) == entries(first, last)
    await bookie.close()


async def test_a_log_is_lent_once(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    reader = Reader(bookie)
    await reader.read(ledger_id, 0, 5)
    places = await reader.find(ledger_id, 0, 99)
    assert places.runs[0].log_id in reader.logs
    assert places.new_logs.keys() == {run.log_id for run in places.runs} - reader.logs.keys()
    assert len(places.new_logs) == 1
    await bookie.close()


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (MANY._replace(size_bytes=1), 1),
        (MANY._replace(size_bytes=199), 1),
        (MANY._replace(size_bytes=200), 2),
        (MANY._replace(size_bytes=1100), 11),
        (MANY._replace(size_bytes=2050), 20),
        (MANY._replace(entries_count=1), 1),
        (MANY._replace(entries_count=13), 13),
        (MANY._replace(runs_count=2), 19),
        (MANY._replace(new_logs_count=0), 0),
    ],
)
async def test_limits(tmp_path: Path, limits: PlaceLimits, count: int) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    assert await Reader(bookie).read(ledger_id, 1, 99, limits) == entries(1, 99)[:count]
    await bookie.close()


async def test_the_last_log_has_to_wait_where_there_are_many(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    reader = Reader(bookie)
    found = await reader.read(ledger_id, 0, 99, MANY._replace(new_logs_count=1))
    assert 0 < len(found) < 100
    assert found == entries(0, len(found) - 1)
    assert await reader.read(ledger_id, len(found), 99) == entries(len(found), 99)
    await bookie.close()


async def test_nothing_is_said_of_what_no_log_has(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    listener = Listener()
    writer = await bookie.create(listener, LedgerOptions())
    for number in range(20):
        writer.append(entry(number))
        if number == 9:
            await listener.until(9)
            await bookie.flush()
    await listener.until(19)
    reader = Reader(bookie)

    assert await reader.read(writer.ledger_id, 0, 19) == entries(0, 9)
    assert await reader.read(writer.ledger_id, 10, 19) == []  # in the write cache
    assert await reader.read(writer.ledger_id, 20, 99) == []  # behind the last confirmed one
    assert await reader.read(ledger_id, 98, 2**63 - 1) == entries(98, 99)
    assert await reader.read(ledger_id + 1000, 0, 99) == []
    await bookie.delete(ledger_id)
    assert await reader.read(ledger_id, 0, 99) == []
    await bookie.flush()
    assert await reader.read(ledger_id, 0, 99) == []
    await bookie.close()
    with pytest.raises(StorageError, match="closed"):
        await reader.read(ledger_id, 0, 99)


async def test_entries_that_are_written_once_are_found_after_a_flush(tmp_path: Path) -> None:
    bookie = await start(
        LocalDisk(tmp_path),
        once_group_bytes=1_000,
        once_section_bytes=400,
        once_entry_bytes=300,
        journal_group_bytes=20_000,
    )
    writer, _ = await write(bookie, 30, 400)
    reader = Reader(bookie)
    assert list((tmp_path / "entries").iterdir())
    assert await reader.read(writer.ledger_id, 0, 29) == []
    await bookie.flush()
    assert await reader.read(writer.ledger_id, 0, 29) == entries(0, 29, 400)
    await bookie.close()


@pytest.mark.parametrize("make", [MemoryDisk, lambda: SimulatedDisk(random.Random(1))])
async def test_a_disk_without_files_of_the_system_lends_none(make: type[MemoryDisk]) -> None:
    bookie, ledger_id = await flushed(make())
    assert await Reader(bookie).read(ledger_id, 0, 99) == []
    await bookie.close()


async def test_an_engine_in_memory_has_no_places() -> None:
    bookie, ledger_id = await flushed(MemoryDisk(), is_volatile=True)
    assert await Reader(bookie).read(ledger_id, 0, 99) == []
    await bookie.close()


class CompactingDisk(LocalDisk):
    """Before the first log is lent, or after that, all logs that may be are compacted."""

    bookie: Bookie | None = None
    times = 1
    is_lent_before = False

    async def lend(self, path: str) -> LentFile:
        lent = await super().lend(path) if self.is_lent_before else None
        if self.bookie is not None and self.times:
            self.times -= 1
            assert await self.bookie.collect_garbage(threshold=1.1)
        return lent or await super().lend(path)


@pytest.mark.parametrize("is_lent_before", [False, True])
@pytest.mark.parametrize(("times", "is_found"), [(1, True), (2, True), (3, False)])
async def test_a_log_that_is_compacted_meanwhile_is_looked_up_again(
    tmp_path: Path, times: int, *, is_found: bool, is_lent_before: bool
) -> None:
    disk = CompactingDisk(tmp_path)
    bookie, ledger_id = await flushed(disk)
    disk.bookie, disk.times, disk.is_lent_before = bookie, times, is_lent_before
    reader = Reader(bookie)
    assert await reader.read(ledger_id, 0, 99) == (entries(0, 99) if is_found else [])
    assert len(reader.logs) == (2 if is_found else 0)
    await bookie.close()


async def test_what_was_lent_stays_when_it_is_compacted_and_its_ledger_deleted(
    tmp_path: Path,
) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    reader = Reader(bookie)
    places = await reader.find(ledger_id, 0, 99)
    reader.logs |= places.new_logs
    await bookie.collect_garbage(threshold=1.1)
    await bookie.delete(ledger_id)
    await bookie.flush()
    await bookie.collect_garbage(threshold=1.1)
    assert not any((tmp_path / log_path(log_id)).exists() for log_id in reader.logs)
    assert list(reader.entries(places)) == entries(0, 99)
    await bookie.close()


async def test_a_damaged_run_has_no_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    log = min((tmp_path / "entries").iterdir())
    data = log.read_bytes()
    second = data.index(b"RUN1", data.index(b"RUN1") + 1)
    log.write_bytes(data[: second + 8] + bytes(8) + data[second + 16 :])
    reader = Reader(bookie)
    assert await reader.read(ledger_id, 0, 99) == entries(0, 9)
    assert await reader.read(ledger_id, 10, 99) == []
    assert "entry log damaged, not lent" in caplog.text
    await bookie.close()


def descriptors() -> Collection[str]:
    return os.listdir("/proc/self/fd")  # noqa: PTH208 - names alone


async def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(LocalDisk(tmp_path))
    await Reader(bookie).read(ledger_id, 0, 99)  # what the engine itself keeps open is open now
    before = len(descriptors())
    places = await Reader(bookie).find(ledger_id, 0, 99)
    assert len(descriptors()) == before + 2
    places.close()
    places.close()
    assert len(descriptors()) == before
    await Reader(bookie).find(ledger_id, 0, 99)  # dropped
    async with asyncio.timeout(10):
        while len(descriptors()) > before:  # noqa: ASYNC110 - the thread lets go last
            await asyncio.sleep(0.001)
    await bookie.close()


class FailingDisk(LocalDisk):
    """Lends one file."""

    is_failing = False

    async def lend(self, path: str) -> LentFile:
        if self.is_failing:
            raise StorageError("no more files")
        self.is_failing = True
        return await super().lend(path)


async def test_a_failure_closes_what_was_lent(tmp_path: Path) -> None:
    bookie, ledger_id = await flushed(FailingDisk(tmp_path))
    reader = Reader(bookie)
    before = len(descriptors())
    with pytest.raises(StorageError, match="no more files") as raised:
        await reader.read(ledger_id, 0, 99)
    assert len(descriptors()) == before + 1  # the engine's own, of the first log
    del raised
    await bookie.close()


@pytest.mark.parametrize("seed", range(4))
async def test_what_was_lent_never_changes(tmp_path: Path, seed: int) -> None:
    """Journal files are used again, logs compacted and removed, ledgers deleted meanwhile."""
    chance = random.Random(seed)
    bookie = await start(
        LocalDisk(tmp_path),
        once_group_bytes=2_000,
        once_section_bytes=400,
        once_entry_bytes=300,
        journal_group_bytes=20_000,
        journal_spare_files_count=2,
    )
    reader = Reader(bookie)
    lent: list[tuple[Places, list[bytes]]] = []
    living: dict[int, list[bytes]] = {}
    for _ in range(60):
        action = chance.random()
        if action < 0.4:
            size = chance.choice([8, 100, 400])
            count = chance.randrange(1, 60)
            writer, _ = await write(bookie, count, size)
            living[writer.ledger_id] = entries(0, count - 1, size)
        elif action < 0.5 and living:
            ledger_id = chance.choice(list(living))
            del living[ledger_id]
            await bookie.delete(ledger_id)
        elif action < 0.6:
            await bookie.collect_garbage(threshold=1.1)
        elif action < 0.7:
            await bookie.flush()
        elif living:
            ledger_id = chance.choice(list(living))
            wanted = living[ledger_id]
            first = chance.randrange(len(wanted))
            places = await reader.find(ledger_id, first, len(wanted) + 3)
            reader.logs |= places.new_logs
            found = list(reader.entries(places))
            assert found == wanted[first : first + len(found)]
            lent.append((places, found))
    await bookie.close()
    assert sum(len(found) for _, found in lent) > 100
    removed = [log_id for log_id in reader.logs if not (tmp_path / log_path(log_id)).exists()]
    assert removed
    for places, found in lent:
        assert list(reader.entries(places)) == found
