"""Files of a backup, read in parts."""

from __future__ import annotations

import pytest

from pulsar_py.common.disks import copied_file
from pulsar_py.common.disks.copied_file import CopiedFile, of_bytes, of_disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError


async def parts_of(file: CopiedFile) -> list[bytes]:
    return [part async for part in file.parts()]


async def test_a_file_is_read_in_parts_up_to_the_size_that_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_file, "PART_BYTES", 4)
    disk = MemoryDisk()
    writer = await disk.create("a")
    await writer.append([b"0123456789"])
    await writer.sync()
    file = await of_disk(disk, "a", "dir/a")
    await writer.append([b"more"])
    await writer.sync()
    assert (file.path, file.size_bytes) == ("dir/a", 10)
    assert await parts_of(file) == [b"0123", b"4567", b"89"]
    assert await parts_of(of_bytes("b", b"xyz")) == [b"xyz"]


async def test_a_file_that_has_become_shorter_is_an_error() -> None:
    disk = MemoryDisk()
    await disk.replace("a", b"0123456789")
    file = await of_disk(disk, "a", "a")
    await disk.replace("a", b"0")
    with pytest.raises(StorageError, match="shorter"):
        await parts_of(file)
