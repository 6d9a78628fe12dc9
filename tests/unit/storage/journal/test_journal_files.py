"""JournalFiles: files become spares, spares become files, and what is of no use goes."""

from __future__ import annotations

import logging
import random

import pytest
from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.storage.journal.file_header import decode_file_header
from pulsar_py.storage.journal.journal_files import JournalFiles, journal_path, spare_path
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.support import SMALL

SETTINGS = replace(
    SMALL, journal_file_bytes=1000, journal_spare_files_count=2, journal_block_bytes=1024
)


async def files_on(disk: Disk) -> JournalFiles:
    await disk.make_directory("journal")
    return JournalFiles(disk, SETTINGS)


async def written(files: JournalFiles, file_id: int) -> None:
    """Begin a file, fill it, and give it back."""
    new = await files.create(file_id, largest_block_bytes=100)
    await new.file.append([b"%04d" % file_id * 300])
    await new.file.close()
    files.on_written(file_id)
    await files.retire(file_id)


async def test_a_written_file_is_used_again_under_a_new_id_and_generation() -> None:
    disk = MemoryDisk()
    files = await files_on(disk)
    await written(files, 1)
    assert await disk.list_directory("journal") == ["spare-0000000001"]

    new = await files.create(7, largest_block_bytes=100)

    assert await disk.list_directory("journal") == ["0000000007"]
    data = await disk.read_whole(journal_path(7))
    assert decode_file_header(data, "j") == new.header
    assert data[64:] == (b"0001" * 300)[64:]
    assert (new.header.is_begun, new.header.is_used_again) == (False, True)
    assert (new.header.file_id, new.header.largest_block_bytes) == (7, 100)
    assert new.header.block_bytes == SETTINGS.journal_block_bytes == 1024
    assert new.file.size_bytes == 0
    await new.file.append([b"first"])
    assert (await disk.read_whole(journal_path(7)))[:5] == b"first"
    assert (await files.create(8, largest_block_bytes=1)).header.generation != new.header.generation


async def test_small_groups_share_the_blocks_of_a_file_that_was_never_written() -> None:
    files = await files_on(MemoryDisk())

    new = await files.create(1, largest_block_bytes=100)

    assert (new.header.block_bytes, new.header.is_used_again) == (512, False)


async def test_a_file_that_was_used_again_is_a_spare_again_though_it_was_not_filled() -> None:
    disk = MemoryDisk()
    files = await files_on(disk)
    await written(files, 1)
    await (await files.create(2, largest_block_bytes=100)).file.close()

    await files.retire(2)

    assert await disk.list_directory("journal") == ["spare-0000000002"]


async def test_a_file_that_was_not_filled_is_removed() -> None:
    disk = MemoryDisk()
    files = await files_on(disk)
    await files.create(1, largest_block_bytes=100)
    await files.retire(1)
    await files.create(2, largest_block_bytes=100)
    files.on_written(2)
    files.on_failed(2)
    await files.retire(2)

    assert await disk.list_directory("journal") == []


async def test_there_are_no_more_spares_than_the_setting_says() -> None:
    disk = MemoryDisk()
    files = await files_on(disk)
    for file_id in (1, 2, 3):
        await files.create(file_id, largest_block_bytes=100)
        files.on_written(file_id)
    for file_id in (1, 2, 3):
        await files.retire(file_id)

    assert await disk.list_directory("journal") == ["spare-0000000001", "spare-0000000002"]
    assert files.spares_count == 2
    await files.give_up_spares()
    assert await disk.list_directory("journal") == []


async def test_a_start_takes_up_spares_of_the_right_size_and_removes_others() -> None:
    disk = MemoryDisk()
    await files_on(disk)
    for file_id, size in enumerate((999, 1000, 5_000_000, 1200, 1000)):
        await disk.replace(spare_path(file_id), bytes(size))

    files = JournalFiles(disk, SETTINGS)
    await files.find_spares()

    assert await disk.list_directory("journal") == ["spare-0000000001", "spare-0000000003"]
    assert files.spares_count == 2


@pytest.mark.parametrize("step", ["append", "sync", "rename"])
async def test_a_spare_that_fails_is_given_up_and_another_file_begun(
    step: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = SimulatedDisk(random.Random(1))
    files = await files_on(disk)
    await written(files, 1)
    disk.fault = lambda kind, path: StorageError("Input/output error") if kind == step else None

    new = await files.create(2, largest_block_bytes=100)

    assert not new.header.is_used_again
    assert await disk.list_directory("journal") == ["0000000002"]
    assert not any(await disk.read_whole(journal_path(2)))
    disk.fault = None
    await files.retire(2)
    assert await disk.list_directory("journal") == []


async def test_a_fresh_directory_has_no_file_written_for_it() -> None:
    disk = SimulatedDisk(random.Random(1))
    files = await files_on(disk)
    appended = []
    disk.fault = lambda kind, path: appended.append(path) if kind == "append" else None

    await files.find_spares()
    new = await files.create(1, largest_block_bytes=100)

    assert appended == []
    assert not new.header.is_used_again
