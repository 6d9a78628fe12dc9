from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import DiskFullError


async def test_contents_outlive_close() -> None:
    disk = MemoryDisk()
    await disk.lock()
    await disk.replace("f", b"data")
    await disk.close()
    await disk.lock()

    assert await disk.read_whole("f") == b"data"


async def test_the_capacity_counts_reservations_once() -> None:
    disk = MemoryDisk(capacity_bytes=100)
    file = await disk.create("f", reserve_bytes=60)
    await file.append([b"x" * 50])

    assert await disk.free_bytes() == 40
    with pytest.raises(DiskFullError):
        await disk.create("g", reserve_bytes=50)
    with pytest.raises(DiskFullError):
        await file.append([b"x" * 51])
    await file.append([b"x" * 50])
    assert await disk.free_bytes() == 0


async def test_a_full_disk_reports_to_the_journal() -> None:
    disk = MemoryDisk(capacity_bytes=10)
    file = await disk.create("f")
    reports: list[BaseException | None] = []
    file.append_and_sync([b"x" * 11], reports.append)
    await disk.list_directory("")
    assert not reports
    await asyncio.sleep(0)
    assert [type(report) for report in reports] == [DiskFullError]
