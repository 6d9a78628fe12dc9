from __future__ import annotations

import random
from array import array

import pytest
from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.storage.journal import journal_reader
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES, FileHeader, lost_headers
from pulsar_py.storage.journal.journal_files import journal_path
from pulsar_py.storage.journal.journal_format import Section, encode_block
from pulsar_py.storage.journal.journal_reader import find_files, has_block_after, read_blocks
from pulsar_py.storage.journal.recovery import ReplayFile
from pulsar_py.testing.disk import SimulatedDisk

LIFE = FileHeader(1, 1, 0, generation=5)


def journal_bytes(
    file_id: int, sizes: list[int], reserve: int = 500, life: FileHeader = LIFE
) -> tuple[bytes, list[int]]:
    """A file with a block of each size, and where they end."""
    life = replace(life, file_id=file_id)
    data = life.encode()
    ends = []
    for entry_id, size in enumerate(sizes):
        section = Section(1, entry_id, [b"z" * size], array("I", [size]), size)
        buffers, _ = encode_block(life, len(data), [section], [])
        data += b"".join(buffers)
        ends.append(len(data))
    return data + bytes(reserve), ends


async def disk_with(file_id: int, data: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    await disk.make_directory("journal")
    await disk.replace(journal_path(file_id), data)
    return disk


async def ends_read(disk: Disk, replay: ReplayFile) -> list[int]:
    file = await disk.open_read(journal_path(replay.file_id))
    return [end async for _, end in read_blocks(file, replay)]


def replay(start: int = FILE_HEADER_BYTES, end: int | None = None) -> ReplayFile:
    return ReplayFile(1, journal_path(1), start, end, LIFE)


async def test_blocks_are_read_to_the_reserved_space() -> None:
    data, ends = journal_bytes(1, [10, 0, 5000, 10])

    assert await ends_read(await disk_with(1, data), replay()) == ends


async def test_reading_begins_and_ends_where_told() -> None:
    data, ends = journal_bytes(1, [10, 20, 30])

    assert await ends_read(await disk_with(1, data), replay(ends[0], ends[1])) == [ends[1]]
    assert await ends_read(await disk_with(1, data), replay(ends[2])) == []


async def test_every_torn_end_stops_before_it() -> None:
    data, ends = journal_bytes(1, [10, 200], 0)
    for cut in range(ends[0], ends[1]):
        disk = await disk_with(1, data[:cut] + bytes(100))
        assert await ends_read(disk, replay()) == ends[:1]
        assert not await has_block_after(await disk.open_read(journal_path(1)), LIFE, ends[0])


async def test_blocks_larger_than_a_piece(monkeypatch) -> None:
    monkeypatch.setattr(journal_reader, "PIECE_BYTES", 256)
    data, ends = journal_bytes(1, [10, 1000, 3, 700, 1])
    disk = await disk_with(1, data)

    assert await ends_read(disk, replay()) == ends
    file = await disk.open_read(journal_path(1))
    assert await has_block_after(file, LIFE, ends[0])
    assert await has_block_after(file, LIFE, ends[3] - 1)
    assert not await has_block_after(file, LIFE, ends[3])


async def test_an_image_of_a_block_inside_an_entry_is_none() -> None:
    data, ends = journal_bytes(1, [10])
    image = data[FILE_HEADER_BYTES : ends[0]]
    disk = await disk_with(1, data[: ends[0]] + b"torn" + image + bytes(50))

    assert not await has_block_after(await disk.open_read(journal_path(1)), LIFE, ends[0])


async def test_files_are_found_with_their_headers() -> None:
    data, _ = journal_bytes(2, [10])
    disk = await disk_with(2, data)
    await disk.replace(journal_path(1), b"old")
    await disk.replace(journal_path(3), bytes(100))
    await disk.replace(
        journal_path(4), bytes(FILE_HEADER_BYTES) + journal_bytes(4, [5])[0][FILE_HEADER_BYTES:]
    )
    await disk.replace("journal/spare-0000000009", data)

    found = await find_files(disk, (2, 0))

    assert [(file.file_id, file.header is not None, file.lost_header) for file in found] == [
        (1, False, None),
        (2, True, None),
        (3, False, None),
        (4, False, lost_headers(4)[0]),
    ]


async def test_a_file_created_ahead_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "LOST_HEADER_REACH_BYTES", 4096)
    disk, read = await disk_with(1, bytes(1_000_000)), []
    disk.shorten = lambda path, length: read.append(length) or length  # type: ignore[func-returns-value]

    (found,) = await find_files(disk, (1, 0))

    assert found.lost_header is None
    assert sum(read) < 10_000


@pytest.mark.parametrize("given", [0, 50, 120])
async def test_a_short_read_is_no_torn_end(given: int) -> None:
    data, _ = journal_bytes(1, [10, 200, 10], 0)
    disk = SimulatedDisk(random.Random(1))
    await disk.make_directory("journal")
    await disk.replace(journal_path(1), data)
    disk.shorten = lambda path, length: given

    with pytest.raises(StorageError, match="bytes read"):
        await ends_read(disk, replay())
    with pytest.raises(StorageError, match="bytes read"):
        await has_block_after(await disk.open_read(journal_path(1)), LIFE, 0)


async def test_a_file_shorter_than_the_next_one_says_ends_there() -> None:
    data, ends = journal_bytes(1, [10, 200], 0)

    assert await ends_read(await disk_with(1, data[:-1]), replay(end=ends[1])) == ends[:1]


async def test_blocks_of_an_earlier_life_are_none_of_this() -> None:
    """They parse, their checksums match, and they stand where the next ones would begin."""
    life = FileHeader(1, generation=5, block_bytes=512, is_used_again=True)
    former = replace(life, generation=4)
    old, old_ends = journal_bytes(1, [100] * 9, 0, former)
    new, ends = journal_bytes(1, [100] * 4, 0, life)
    disk = await disk_with(1, new + old[len(new) :])
    file = await disk.open_read(journal_path(1))
    of_life = ReplayFile(1, journal_path(1), FILE_HEADER_BYTES, None, life)

    assert [end async for _, end in read_blocks(file, of_life)] == ends
    assert not await has_block_after(file, life, ends[-1])
    assert await has_block_after(file, former, ends[-1])
    assert old_ends[:4] == ends


async def test_what_no_lost_block_could_reach_is_not_read() -> None:
    disk = SimulatedDisk(random.Random(1))
    life = FileHeader(1, generation=5, block_bytes=512, largest_block_bytes=4096)
    data, ends = journal_bytes(1, [100] * 3, 1_000_000, life)
    await disk.make_directory("journal")
    await disk.replace(journal_path(1), data)
    file, read = await disk.open_read(journal_path(1)), []
    disk.shorten = lambda path, length: read.append(length) or length  # type: ignore[func-returns-value]

    assert not await has_block_after(file, life, ends[-1])
    assert 4096 <= sum(read) < 5000
    assert await has_block_after(file, life, ends[0])
