from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.common.disks.disk import ReadFile
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.common.errors import FormatVersionError, StorageError
from pulsar_py.storage.entry_logs.entry_log import (
    EntryLogReaders,
    EntryLogWriter,
    check_log_versions,
    log_path,
)
from pulsar_py.storage.entry_logs.entry_log_format import LOG_HEADER_BYTES, decode_run, encode_run
from pulsar_py.testing.disk import SimulatedDisk


async def disk_with_log(log_id: int = 1) -> SimulatedDisk:
    disk = SimulatedDisk(random.Random(1))
    await disk.make_directory("entries")
    writer = await EntryLogWriter.create(disk, log_id)
    writer.add(encode_run(7, 0, [b"abc", b"d"]), 2)
    await writer.sync()
    await writer.close()
    return disk


async def test_runs_stand_where_their_locations_say() -> None:
    disk = MemoryDisk()
    await disk.make_directory("entries")
    writer = await EntryLogWriter.create(disk, 4)
    first = writer.add(encode_run(1, 0, [b"a" * 10]), 1)
    await writer.write()
    second = writer.add(encode_run(2, 5, [b"b", b"c"]), 2)
    await writer.sync()
    await writer.close()

    readers = EntryLogReaders(disk, 2)
    data = await readers.read(4, second.offset, second.length)
    assert (first.log_id, first.offset, second.count) == (4, LOG_HEADER_BYTES, 2)
    assert [*decode_run(data, "p", second.offset).entries] == [b"b", b"c"]
    assert writer.end == second.offset + second.length == len(await disk.read_whole(log_path(4)))
    await readers.close()


async def test_a_reader_at_work_outlives_the_log() -> None:
    disk = await disk_with_log()
    readers = EntryLogReaders(disk, 2)
    await readers.read(1, 0, 8)
    reading = asyncio.gather(readers.read(1, 0, 8), readers.read(1, 8, 8))
    await asyncio.sleep(0)

    await disk.remove(log_path(1))
    await readers.forget(1)

    assert (await reading)[0] == b"PLSRELOG"
    with pytest.raises(FileNotFoundError):
        await readers.read(1, 0, 8)


async def test_only_so_many_logs_stay_open() -> None:
    disk = await disk_with_log()
    for log_id in (2, 3):
        await (await EntryLogWriter.create(disk, log_id)).sync()
    readers = EntryLogReaders(disk, 2)
    for log_id in (1, 2, 3):
        await readers.read(log_id, 0, 4)
    await disk.remove(log_path(1))
    await disk.remove(log_path(2))

    with pytest.raises(FileNotFoundError):
        await readers.read(1, 0, 4)
    assert await readers.read(2, 0, 4) == b"PLSR"
    assert readers.read_bytes == 16
    await readers.close()


class SlowFile(ReadFile):
    """Closing takes a while, and what is closed can't be read."""

    def __init__(self, inner: ReadFile) -> None:
        self.path = inner.path
        self._inner = inner
        self._is_open = True

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    async def read_at(self, offset: int, length: int) -> bytes:
        await asyncio.sleep(0)
        assert self._is_open, f"{self.path} is closed"
        return await self._inner.read_at(offset, length)

    async def close(self) -> None:
        assert self._is_open, f"{self.path} is closed twice"
        self._is_open = False
        for _ in range(5):
            await asyncio.sleep(0)


class SlowDisk(MemoryDisk):
    async def open_read(self, path: str) -> ReadFile:
        return SlowFile(await super().open_read(path))


async def test_many_reads_at_once_of_more_logs_than_stay_open() -> None:
    disk = SlowDisk()
    await disk.make_directory("entries")
    for log_id in range(12):
        await (await EntryLogWriter.create(disk, log_id)).sync()
    readers = EntryLogReaders(disk, 2)
    for _ in range(3):
        found = await asyncio.gather(*(readers.read(log_id % 12, 0, 8) for log_id in range(24)))
        assert set(found) == {b"PLSRELOG"}
    await readers.close()


async def test_a_log_of_another_version_is_refused_and_one_without_a_header_left() -> None:
    disk = await disk_with_log(1)
    await check_log_versions(disk, [1, 2])
    data = bytearray(await disk.read_whole(log_path(1)))
    await disk.replace(log_path(1), b"?" * len(data))
    await check_log_versions(disk, [1])
    data[11] = 2
    await disk.replace(log_path(1), data)
    with pytest.raises(FormatVersionError, match=r"entries/0000000001: entry log .*version 2"):
        await check_log_versions(disk, [1])


async def test_a_short_read_is_no_damage() -> None:
    disk = await disk_with_log()
    disk.shorten = lambda path, length: length - 1

    with pytest.raises(StorageError, match="entries/0000000001: offset 8: 9 of 10 bytes read"):
        await EntryLogReaders(disk, 2).read(1, 8, 10)


async def test_a_short_read_into_memory_is_none_either() -> None:
    disk = await disk_with_log()
    disk.shorten = lambda path, length: length - 1

    with pytest.raises(StorageError, match="entries/0000000001: offset 8: 9 of 10 bytes read"):
        await EntryLogReaders(disk, 2).read_lent(1, 8, 10, ReusedMemory(0))


async def test_what_was_read_into_memory_can_not_be_changed() -> None:
    disk = await disk_with_log()
    readers = EntryLogReaders(disk, 2)
    size = (await disk.open_read("entries/0000000001")).size_bytes
    for offset, length in ((0, size), (5, 3), (0, 1 << 62), (size + 1, 10)):
        data = await readers.read_lent(1, offset, length, ReusedMemory(0))
        assert data == await readers.read(1, offset, length)
        assert data.readonly


async def test_places_that_were_given_are_where_the_runs_are_written() -> None:
    disk = MemoryDisk()
    await disk.make_directory("entries")
    writer = await EntryLogWriter.create(disk, 4)
    writer.add(encode_run(1, 0, [b"a" * 10]), 1)
    writer.end += 1  # as if a run had been dropped
    with pytest.raises(AssertionError, match="entry log 4"):
        await writer.write()
