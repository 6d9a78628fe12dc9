from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.memory_disk import MemoryDisk
from pulsar_py.storage.index_format import Item, record_key, run_key
from pulsar_py.storage.index_table import IndexTable, IndexTableWriter, PageCache, table_path

ITEMS = [
    (run_key(ledger, entry), b"%d/%d" % (ledger, entry))
    for ledger in range(50)
    for entry in range(100)
]


async def table(cache: PageCache | None = None) -> tuple[MemoryDisk, IndexTable]:
    disk = MemoryDisk()
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


async def scan_all(disk: MemoryDisk) -> list[Item]:
    opened = await IndexTable.open(disk, 3, PageCache(0))
    return [item async for items in opened.scan(b"") for item in items]


async def test_damage_is_named() -> None:
    disk, _ = await table()
    data = await disk.read_whole(table_path(3))
    for at, message in ((5000, "offset"), (len(data) - 70, "sparse"), (len(data) - 30, "footer")):
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
