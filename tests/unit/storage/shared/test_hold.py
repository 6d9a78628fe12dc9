"""Files and ledgers stay while somebody holds them."""

from __future__ import annotations

import asyncio

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.storage.shared.hold import CopyHold


async def disk_with(*paths: str) -> MemoryDisk:
    disk = MemoryDisk()
    for path in paths:
        await disk.replace(path, b"x")
    return disk


async def test_a_file_goes_at_once_or_when_the_last_holder_has_ended() -> None:
    disk = await disk_with("a", "b")
    hold = CopyHold(disk)
    await hold.remove("a")
    assert await disk.list_directory("") == ["b"]
    async with hold.of_files():
        async with hold.of_files():
            await hold.remove("b")
        assert (await disk.list_directory(""), hold.kept_count) == (["b"], 1)
    assert (await disk.list_directory(""), hold.kept_count) == ([], 0)


async def test_changes_of_ledgers_wait_for_the_end() -> None:
    hold = CopyHold(MemoryDisk())
    await hold.until_ledgers_may_change()
    async with hold.of_ledgers():
        waiting = asyncio.ensure_future(hold.until_ledgers_may_change())  # noqa: TID251 - watched here
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
