"""One table of the index: written once, then read a page at a time (edge).

Pages are kept in a `PageCache` that all tables share; the sparse index and the set of ledgers stay
in memory. The index owns its tables; one that a merge has replaced is closed when its last read has
ended.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from pyroaring import BitMap64

from pulsar_py.common.disks.disk import AppendFile, Disk, ReadFile, read_fully
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.hashing import crc32c
from pulsar_py.storage.index.index_format import (
    FOOTER_BYTES,
    SPARSE_BYTES,
    Footer,
    Item,
    Page,
    SparseIndex,
    cut_pages,
    decode_ledger_set,
    encode_ledger_set,
    encode_page,
    ledger_of,
    sparse_entry,
)

DIRECTORY = "index"
READ_PAGES_COUNT = 8
"""Pages read at once by a scan: small enough to merge a portion of each table within 5 ms."""

READING_LOCKS_COUNT = 16
"""Locks for reading the pages of a table; two pages that share one are read one after the other."""


def table_path(table_id: int) -> str:
    """Path of a table."""
    return f"{DIRECTORY}/{table_id:010}"


class PageCache:
    """The most recently used pages of all tables, bounded in bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._pages: OrderedDict[tuple[int, int], Page] = OrderedDict()
        self.size_bytes = 0

    def find(self, table_id: int, page_number: int) -> Page | None:
        """The page; None if it is not cached."""
        page = self._pages.get((table_id, page_number))
        if page is not None:
            self._pages.move_to_end((table_id, page_number))
        return page

    def put(self, table_id: int, page_number: int, page: Page) -> None:
        """Keep a page; beyond the limit the least recently used ones are dropped."""
        if (table_id, page_number) in self._pages:
            return
        self._pages[(table_id, page_number)] = page
        self.size_bytes += page.size_bytes
        while self.size_bytes > self._limit_bytes:
            _, old = self._pages.popitem(last=False)
            self.size_bytes -= old.size_bytes


class IndexTable:
    """A table open for reading."""

    def __init__(
        self,
        file: ReadFile,
        footer: Footer,
        sparse: bytes,
        ledger_ids: BitMap64 | None,
        cache: PageCache,
    ) -> None:
        self.table_id = footer.table_id
        self.keys_count = footer.keys_count
        self._file = file
        self._sparse = SparseIndex(sparse, footer.sparse_offset)
        # Ledgers that it has keys of; None if that is unknown.
        self._ledger_ids = ledger_ids
        self._cache = cache
        # Held while a page is read, so that concurrent look-ups of the same page read it once.
        self._reading = [asyncio.Lock() for _ in range(READING_LOCKS_COUNT)]
        # Reads under way; a retired table closes its file when there are none.
        self._users_count = 0
        self._is_retired = False

    @classmethod
    async def open(cls, disk: Disk, table_id: int, cache: PageCache) -> IndexTable:
        """Open a table and load its sparse index.

        Raises:
            CorruptDataError: It is missing or damaged.
        """
        path = table_path(table_id)
        try:
            file = await disk.open_read(path)
        except FileNotFoundError:
            raise CorruptDataError(f"{path}: the manifest names it, and it is missing") from None
        size = file.size_bytes
        footer = Footer.decode(
            await read_fully(file, max(size - FOOTER_BYTES, 0), FOOTER_BYTES), path
        )
        sparse = await read_fully(file, footer.sparse_offset, SPARSE_BYTES * footer.pages_count)
        if footer.table_id != table_id or crc32c(sparse) != footer.sparse_checksum:
            raise CorruptDataError(
                f"{path}: offset {footer.sparse_offset}: the sparse index does not match"
            )
        ledger_ids = None
        if footer.ledger_set_bytes:
            at = footer.ledger_set_offset
            data = await read_fully(file, at, footer.ledger_set_bytes)
            ledger_ids = decode_ledger_set(data, path, at)
        return cls(file, footer, sparse, ledger_ids, cache)

    def may_have(self, ledger_id: int) -> bool:
        """Whether the table may have keys of a ledger, answered from memory."""
        return self._ledger_ids is None or ledger_id in self._ledger_ids

    async def floor(self, key: bytes) -> tuple[Page, int] | None:
        """Page and index of the last key that is not above `key`; None if there is none."""
        number = self._sparse.page_for(key)
        if number < 0:
            return None
        page = await self._page(number)
        index = page.floor(key)
        assert index >= 0, f"{self._file.path}: page {number} begins behind its sparse index"
        return page, index

    async def scan(self, first_key: bytes) -> AsyncGenerator[list[Item], None]:
        """All items from `first_key` on, in portions of many pages."""
        number = max(self._sparse.page_for(first_key), 0)
        self._users_count += 1
        try:
            while number < self._sparse.pages_count:
                last = min(number + READ_PAGES_COUNT, self._sparse.pages_count) - 1
                items: list[Item] = []
                for page in await self._pages(number, last):
                    items += page.items()
                yield [item for item in items if item[0] >= first_key]
                number = last + 1
        finally:
            await self._release()

    async def pages_from(self, key: bytes) -> AsyncGenerator[Page, None]:
        """Pages from the one that may hold `key`, one by one through the cache."""
        number = max(self._sparse.page_for(key), 0)
        while number < self._sparse.pages_count:
            yield await self._page(number)
            number += 1

    async def retire(self) -> None:
        """Close the file as soon as no read is under way."""
        self._is_retired = True
        if not self._users_count:
            await self._file.close()

    async def _page(self, number: int) -> Page:
        page = self._cache.find(self.table_id, number)
        if page is not None:
            return page
        self._users_count += 1
        try:
            async with self._reading[number % READING_LOCKS_COUNT]:
                page = self._cache.find(self.table_id, number)
                if page is None:
                    page = (await self._pages(number, number))[0]
                    self._cache.put(self.table_id, number, page)
        finally:
            await self._release()
        return page

    async def _pages(self, first: int, last: int) -> list[Page]:
        start, _ = self._sparse.extent(first)
        offset, length = self._sparse.extent(last)
        data = await read_fully(self._file, start, offset + length - start)
        pages = []
        for number in range(first, last + 1):
            offset, length = self._sparse.extent(number)
            at = offset - start
            pages.append(Page(data[at : at + length], self._file.path, offset))
        return pages

    async def _release(self) -> None:
        self._users_count -= 1
        if self._is_retired and not self._users_count:
            await self._file.close()


class IndexTableWriter:
    """Writes a table from sorted items; durable in name and content only after `finish`."""

    def __init__(self, disk: Disk, table_id: int, file: AppendFile) -> None:
        self._disk = disk
        self._table_id = table_id
        self._file = file
        self._sparse: list[bytes] = []
        self._keys_count = 0
        self._ledger_ids = BitMap64()
        self._held: list[Item] = []
        # The last key that was written; all later ones have to be above it.
        self._last_key = b""

    @classmethod
    async def create(cls, disk: Disk, table_id: int) -> IndexTableWriter:
        """Begin a table."""
        return cls(disk, table_id, await disk.create(table_path(table_id)))

    async def add(self, items: Sequence[Item]) -> None:
        """Add items in order; their keys have to be above all keys added before."""
        self._ledger_ids.update(ledger_of(key) for key, _ in items)
        portions = list(cut_pages([*self._held, *items]))
        self._held = list(portions.pop()) if portions else []
        await self._write(portions)

    async def finish(self) -> None:
        """Write the rest, then sync the file, then its name."""
        await self._write([self._held] if self._held else [])
        sparse = b"".join(self._sparse)
        self._ledger_ids.run_optimize()
        ledger_set = encode_ledger_set(self._ledger_ids)
        footer = Footer(
            table_id=self._table_id,
            sparse_offset=self._file.size_bytes,
            pages_count=len(self._sparse),
            keys_count=self._keys_count,
            sparse_checksum=crc32c(sparse),
            ledger_set_bytes=len(ledger_set),
        )
        await self._file.append([sparse, ledger_set, footer.encode()])
        await self._file.sync()
        await self._file.close()
        await self._disk.sync_directory(DIRECTORY)

    async def abandon(self) -> None:
        """Remove the file after an error; no manifest names it."""
        with suppress(StorageError):
            await self._file.close()
            await self._disk.remove(self._file.path)

    async def _write(self, portions: Sequence[Sequence[Item]]) -> None:
        offset = self._file.size_bytes
        pages = []
        for items in portions:
            first_key, last_key = items[0][0], items[-1][0]
            assert self._last_key < first_key <= last_key, f"{self._file.path}: keys descend"
            self._last_key = last_key
            page = encode_page(items, offset)
            self._sparse.append(sparse_entry(first_key, offset))
            self._keys_count += len(items)
            offset += len(page)
            pages.append(page)
        if pages:
            await self._file.append(pages)
