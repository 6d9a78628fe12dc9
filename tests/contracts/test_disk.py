"""One suite for every Disk."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile, Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import DirectoryLockedError, StorageError
from pulsar_py.testing.disk import SimulatedDisk


@pytest.fixture(params=["local", "memory", "simulated"])
async def disk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Disk]:
    disks = {
        "local": lambda: LocalDisk(tmp_path / "a" / "b"),
        "memory": MemoryDisk,
        "simulated": lambda: SimulatedDisk(random.Random(1)),
    }
    made: Disk = disks[request.param]()
    await made.lock()
    yield made
    await made.close()


async def append_and_sync(file: AppendFile, buffers: list[Buffer]) -> BaseException | None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    file.append_and_sync(buffers, done.set_result)
    assert not done.done(), "reports later, never from inside the call"
    return await done


async def test_what_was_appended_is_read_back(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"one", bytearray(b"two"), memoryview(b"three")])
    await file.append([b"four"])
    await file.sync()

    assert file.size_bytes == 15
    assert await disk.read_whole("f") == b"onetwothreefour"
    await file.close()


async def test_append_and_sync_reports_once_on_the_loop(disk: Disk) -> None:
    file = await disk.create("f")

    assert await append_and_sync(file, [b"a" * 10, b"b" * 10]) is None
    assert await append_and_sync(file, [b"c"]) is None

    assert await disk.read_whole("f") == b"a" * 10 + b"b" * 10 + b"c"
    await file.close()


async def test_more_buffers_than_one_call_takes(disk: Disk) -> None:
    file = await disk.create("f")
    buffers: list[Buffer] = [bytes([i % 256]) * (i % 7) for i in range(5000)]

    assert await append_and_sync(file, buffers) is None

    assert await disk.read_whole("f") == b"".join(buffers)
    await file.close()


async def test_reserved_space_reads_as_zeros(disk: Disk) -> None:
    file = await disk.create("f", reserve_bytes=100)
    await file.append([b"xyz"])

    assert file.size_bytes == 3
    assert await disk.read_whole("f") == b"xyz" + bytes(97)
    await file.close()


async def test_a_file_that_is_written_again_keeps_what_is_not_overwritten(disk: Disk) -> None:
    file = await disk.create("f")
    assert await append_and_sync(file, [b"0123456789"]) is None
    await file.close()

    again = await disk.open_again("f")
    assert again.size_bytes == 0
    assert await append_and_sync(again, [b"ab"]) is None
    await again.append([b"c"])

    assert again.size_bytes == 3
    assert await disk.read_whole("f") == b"abc3456789"
    with pytest.raises(FileNotFoundError):
        await disk.open_again("missing")
    await again.close()


async def test_a_file_that_is_written_past_the_cache_has_what_was_synced(disk: Disk) -> None:
    chance = random.Random(5)
    file = await disk.create("f", reserve_bytes=50_000, is_direct=True)
    expected = b""
    for size in (1, 4095, 4096, 10, 0, 9000, 512, 4096 * 3 - 522, 100):
        buffers: list[Buffer] = [chance.randbytes(size // 3), chance.randbytes(size - size // 3)]
        expected += b"".join(buffers)
        if size % 3:
            await file.append(buffers)
        else:
            assert await append_and_sync(file, buffers) is None
            assert (await disk.read_whole("f"))[: len(expected)] == expected
    await file.sync()
    assert file.size_bytes == len(expected)
    assert await disk.read_whole("f") == expected + bytes(50_000 - len(expected))
    await file.close()

    again = await disk.open_again("f", is_direct=True)
    assert await append_and_sync(again, [b"x" * 5000]) is None
    assert await disk.read_whole("f") == b"x" * 5000 + expected[5000:] + bytes(
        50_000 - len(expected)
    )
    await again.close()


async def test_a_renamed_file_has_one_name_and_replaces_another(disk: Disk) -> None:
    await disk.replace("a", b"a")
    await disk.replace("b", b"b")

    await disk.rename("a", "b")

    assert await disk.read_whole("b") == b"a"
    with pytest.raises(FileNotFoundError):
        await disk.read_whole("a")
    with pytest.raises(FileNotFoundError):
        await disk.rename("a", "b")


async def test_no_random_number_comes_twice(disk: Disk) -> None:
    assert len({disk.random_number() for _ in range(100)}) == 100


async def test_the_next_data_is_never_behind_a_byte_that_was_written(disk: Disk) -> None:
    file = await disk.create("f", reserve_bytes=1_000_000)
    assert await append_and_sync(file, [b"a" * 10]) is None
    reader = await disk.open_read("f")

    for offset in range(12):
        found = await reader.next_data(offset)
        if offset < 10:
            assert found is not None
            assert found[0] == offset
            assert found[1] >= 10
        else:
            assert found is None or offset <= found[0] < found[1]
    assert await reader.next_data(1_000_000) is None
    for each in (reader, file):
        await each.close()


async def test_create_refuses_what_exists_and_where_no_directory_is(disk: Disk) -> None:
    await (await disk.create("f")).close()

    with pytest.raises(StorageError):
        await disk.create("f")
    with pytest.raises((StorageError, FileNotFoundError)):
        await disk.create("nowhere/f")


async def test_reads_at_an_offset_and_past_the_end(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"0123456789"])
    reader = await disk.open_read("f")

    assert await reader.read_at(3, 4) == b"3456"
    assert await reader.read_at(8, 10) == b"89"
    assert await reader.read_at(20, 5) == b""
    assert reader.size_bytes == 10
    await reader.close()
    await file.close()


async def test_what_is_read_into_memory_is_what_is_read(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"0123456789"])
    reader = await disk.open_read("f")

    for offset, length in ((0, 10), (3, 4), (8, 10), (20, 5), (2, 0)):
        memory = memoryview(bytearray(b"-" * length))
        expected = await reader.read_at(offset, length)
        assert await reader.read_into(offset, memory) == len(expected)
        assert memory == expected.ljust(length, b"-")
    await reader.close()
    await file.close()


async def test_several_places_are_read_at_once(disk: Disk) -> None:
    await disk.replace("f", b"0123456789")
    reader = await disk.open_read("f")
    assert await reader.read_several([(0, 2), (7, 1), (8, 9), (20, 1)]) == [b"01", b"7", b"89", b""]
    assert await reader.read_several([]) == []
    await reader.close()


async def test_an_open_reader_outlives_the_name(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"still here"])
    reader = await disk.open_read("f")

    await disk.remove("f")

    assert await reader.read_at(0, 10) == b"still here"
    with pytest.raises(FileNotFoundError):
        await disk.open_read("f")
    with pytest.raises(FileNotFoundError):
        await disk.read_whole("f")
    await disk.remove("f")
    await reader.close()
    await file.close()


async def test_a_lent_file_is_one_of_the_system_or_there_is_none(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"lent"])
    lent = await disk.lend("f")
    if isinstance(disk, LocalDisk):
        assert lent is not None
        await disk.remove("f")
        await file.append([b" for good"])
        assert os.pread(lent.fileno(), 100, 0) == b"lent for good"
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(lent.fileno(), b"mine")
        assert not os.get_inheritable(lent.fileno())
        lent.close()
        with pytest.raises(FileNotFoundError):
            await disk.lend("f")
    else:
        assert lent is None
    await file.close()


async def test_replace_puts_a_whole_file_in_place(disk: Disk) -> None:
    await disk.replace("f", b"old")
    await disk.replace("f", b"the new one")

    assert await disk.read_whole("f") == b"the new one"
    assert [name for name in await disk.list_directory("") if name != "LOCK"] == ["f"]


async def test_truncate_cuts(disk: Disk) -> None:
    await disk.replace("f", b"0123456789")

    await disk.truncate("f", 4)

    assert await disk.read_whole("f") == b"0123"


async def test_directories_list_their_own_files_sorted(disk: Disk) -> None:
    await disk.make_directory("d/e")
    await disk.make_directory("d")
    for path in ("d/2", "d/1", "d/e/3"):
        await (await disk.create(path)).close()
    await disk.sync_directory("d")

    assert await disk.list_directory("d") == ["1", "2"]
    assert await disk.list_directory("d/e") == ["3"]
    assert await disk.list_directory("missing") == []


async def test_a_taken_tree_is_refused_until_closed(disk: Disk, tmp_path: Path) -> None:
    other = LocalDisk(tmp_path / "a" / "b") if isinstance(disk, LocalDisk) else disk

    with pytest.raises(DirectoryLockedError):
        await other.lock()
    await disk.close()
    await other.lock()
    await other.close()
    await disk.lock()


async def test_there_is_room(disk: Disk) -> None:
    assert await disk.free_bytes() > 0


async def test_a_file_is_synced_by_its_path(disk: Disk) -> None:
    file = await disk.create("f")
    await file.append([b"x" * 5000])
    await file.close()

    await disk.sync_file("f")

    assert await disk.read_whole("f") == b"x" * 5000
    with pytest.raises(FileNotFoundError):
        await disk.sync_file("missing")
