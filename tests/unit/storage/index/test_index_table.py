from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.disks.disk import ReadFile
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.index.index_format import Item, record_key, run_key
from pulsar_py.storage.index.index_table import IndexTable, IndexTableWriter, PageCache, table_path

ITEMS = [
    (run_key(ledger, entry), b"%d/%d" % (ledger, entry))
    for ledger in range(50)
    for entry in range(100)
]


async def table(
    cache: PageCache | None = None, disk: MemoryDisk | None = None
) -> tuple[MemoryDisk, IndexTable]:
    disk = disk or MemoryDisk()
    await disk.make_directory("index")
    writer = await IndexTableWriter.create(disk, 3)
    for start in range(0, len(ITEMS), 777):
        await writer.add(ITEMS[start : start + 777])
    await writer.finish()
    return disk, await IndexTable.open(disk, 3, cache or PageCache(100_000))


async def test_every_key_is_found_and_scanned() -> None:
    _, opened = await table()

    assert opened.keys_count == len(ITEMS)
    for key, value in ITEMS[::37]:
        found = await opened.floor(key + b"beyond")
        assert found is not None
        assert found[0].value(found[1]) == value
    assert await opened.floor(record_key(0)) is None
    scanned = [item async for items in opened.scan(b"") for item in items]
    assert scanned == ITEMS
    tail = [item async for items in opened.scan(ITEMS[4321][0]) for item in items]
    assert tail == ITEMS[4321:]


async def test_pages_in_memory_are_bounded() -> None:
    cache = PageCache(20_000)
    _, opened = await table(cache)

    pages = [page async for page in opened.pages_from(b"")]

    assert sum(page.count for page in pages) == len(ITEMS)
    assert 10_000 < cache.size_bytes <= 20_000


async def test_a_table_knows_which_ledgers_it_has() -> None:
    _, opened = await table()

    assert [ledger_id for ledger_id in range(60) if opened.may_have(ledger_id)] == list(range(50))


async def test_a_table_without_a_set_of_ledgers_may_have_any() -> None:
    disk, _ = await table()
    data = await disk.read_whole(table_path(3))
    await disk.replace(table_path(3), data[:-4] + bytes(4))

    opened = await IndexTable.open(disk, 3, PageCache(0))

    assert opened.may_have(999)
    assert await opened.floor(ITEMS[0][0]) is not None


class CountingDisk(MemoryDisk):
    """Counts reads of files, each of which takes a turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.reads_count = 0

    async def open_read(self, path: str) -> ReadFile:
        return CountingFile(self, await super().open_read(path))


class CountingFile(ReadFile):
    def __init__(self, disk: CountingDisk, file: ReadFile) -> None:
        self.path = file.path
        self._disk = disk
        self._file = file

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    async def read_at(self, offset: int, length: int) -> bytes:
        self._disk.reads_count += 1
        await asyncio.sleep(0)
        return await self._file.read_at(offset, length)

    async def close(self) -> None:
        await self._file.close()


async def test_many_who_miss_a_page_read_it_once() -> None:
    disk = CountingDisk()
    await table(disk=disk)
    opened = await IndexTable.open(disk, 3, PageCache(100_000))
    before = disk.reads_count

    found = await asyncio.gather(*(opened.floor(ITEMS[0][0]) for _ in range(20)))

    assert disk.reads_count == before + 1
    assert all(each is not None and each[1] == 0 for each in found)


async def scan_all(disk: MemoryDisk) -> list[Item]:
    opened = await IndexTable.open(disk, 3, PageCache(0))
    return [item async for items in opened.scan(b"") for item in items]


async def test_damage_is_named() -> None:
    disk, _ = await table()
    data = await disk.read_whole(table_path(3))
    set_bytes = int.from_bytes(data[-4:], "big")
    for at, message in (
        (5000, "offset"),
        (len(data) - 70 - set_bytes, "sparse"),
        (len(data) - 70, "set of ledgers"),
        (len(data) - 30, "footer"),
    ):
        await disk.replace(table_path(3), data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CorruptDataError, match=f"index/0000000003.*{message}"):
            await scan_all(disk)
    await disk.remove(table_path(3))
    with pytest.raises(CorruptDataError, match="missing"):
        await IndexTable.open(disk, 3, PageCache(0))


async def test_an_empty_table_has_nothing() -> None:
    disk = MemoryDisk()
    await disk.make_directory("index")
    writer = await IndexTableWriter.create(disk, 1)
    await writer.add([])
    await writer.finish()
    opened = await IndexTable.open(disk, 1, PageCache(0))

    assert await opened.floor(record_key(5)) is None
    assert [items async for items in opened.scan(b"")] == []


async def test_an_abandoned_table_is_removed() -> None:
    disk = MemoryDisk()
    await disk.make_directory("index")
    writer = await IndexTableWriter.create(disk, 1)
    await writer.abandon()

    assert await disk.list_directory("index") == []


async def test_keys_that_descend_are_never_written() -> None:
    disk = MemoryDisk()
    await disk.make_directory("index")
    writer = await IndexTableWriter.create(disk, 3)
    await writer.add(ITEMS[100:400])
    with pytest.raises(AssertionError, match="keys descend"):
        await writer.add(ITEMS[:100])
