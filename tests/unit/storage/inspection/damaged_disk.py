"""Disks with something in each kind of file, and ways to break them."""

from __future__ import annotations

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from tests.unit.storage.support import Ids, start, write

LEDGERS, ENTRIES = 3, 100
"""So many that the first journal file is gone after the checkpoint."""
LAST = ENTRIES - 1
LARGE = 300


async def filled_disk() -> MemoryDisk:
    """Ledgers 1 to 3 in the logs, number 4 in the journal alone."""
    return await _filled_disk(100)


async def disk_of_large_entries() -> MemoryDisk:
    """The same of entries of `LARGE` bytes, which are written once.

    Those of ledger 4 are in an entry log that only the journal refers to.
    """
    return await _filled_disk(LARGE, once_group_bytes=1, once_section_bytes=1, once_entry_bytes=200)


async def _filled_disk(entry_bytes: int, **settings: object) -> MemoryDisk:
    disk, ids = MemoryDisk(), Ids()
    bookie = await start(disk, ids, **settings)
    for _ in range(LEDGERS):
        writer, _ = await write(bookie, ENTRIES, entry_bytes)
        await writer.close()
    await bookie.flush()
    await bookie.storage.roll_log()
    await write(bookie, ENTRIES, entry_bytes)
    image = copy(disk)  # as a kill leaves it, save that no file of the journal is reserved
    for path in await image.list_directory("journal"):
        if not any(await image.read_whole(f"journal/{path}")):
            await image.remove(f"journal/{path}")
    await bookie.close()
    return image


def copy(disk: MemoryDisk) -> MemoryDisk:
    """The files as they are now, unlocked."""
    image = MemoryDisk()
    image._directories = set(disk._directories)
    for path, content in disk._files.items():
        target = type(content)(0)
        target.data = bytearray(content.data)
        target.end = content.end
        image._files[path] = target
    return image


async def flip(disk: Disk, path: str, offset: int) -> None:
    data = bytearray(await disk.read_whole(path))
    data[offset] ^= 0x10
    await disk.replace(path, bytes(data))


async def cut(disk: Disk, path: str, length: int) -> None:
    await disk.replace(path, (await disk.read_whole(path))[:length])


async def newest(disk: Disk, directory: str) -> str:
    return f"{directory}/{(await ids_in(disk, directory))[-1]}"


async def oldest(disk: Disk, directory: str) -> str:
    return f"{directory}/{(await ids_in(disk, directory))[0]}"


async def ids_in(disk: Disk, directory: str) -> list[str]:
    """Names of the files in use, without spares of the journal."""
    return [name for name in await disk.list_directory(directory) if name.isdigit()]
