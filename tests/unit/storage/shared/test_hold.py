"""Files and ledgers stay while somebody holds them."""

from __future__ import annotations

import asyncio

import pytest

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


async def test_changes_of_ledgers_wait_for_the_end_and_those_that_began_are_waited_for() -> None:
    hold = CopyHold(MemoryDisk())
    happened: list[str] = []
    may_end = asyncio.Event()

    async def change(name: str) -> None:
        async with hold.change_of_ledgers():
            happened.append(f"{name} begins")
            await may_end.wait()
            happened.append(f"{name} ends")

    async def copy() -> None:
        async with hold.of_ledgers():
            happened.append("held")
            await asyncio.sleep(0)
            happened.append("let go")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change("a"))
        tasks.create_task(change("b"))
        await asyncio.sleep(0)
        tasks.create_task(copy())
        await asyncio.sleep(0)
        tasks.create_task(change("c"))
        await asyncio.sleep(0)
        assert happened == ["a begins", "b begins"]
        may_end.set()
    assert happened[2:] == ["a ends", "b ends", "held", "let go", "c begins", "c ends"]


async def test_a_holder_that_gives_up_waiting_lets_changes_go_on() -> None:
    hold = CopyHold(MemoryDisk())
    async with hold.change_of_ledgers():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), hold.of_ledgers():
                raise AssertionError("a change is under way")
        async with hold.change_of_ledgers():
            pass
    async with hold.of_ledgers():
        pass
