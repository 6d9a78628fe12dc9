"""Walks the files of a storage and continues behind damaged places (edge).

The engine itself stops at the first place that it can't read. Here such a place is a `Gap`, and
reading goes on at the next piece whose own checksum matches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pyroaring import BitMap64

from pulsar_py.common.disks.disk import ReadFile
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.hashing import crc32c
from pulsar_py.storage.entry_logs.entry_log_format import (
    LOG_HEADER_BYTES,
    RUN_HEADER_BYTES,
    RUN_MAGIC,
    Run,
    decode_run,
)
from pulsar_py.storage.index.index_format import (
    FOOTER_BYTES,
    KEY_BYTES,
    SPARSE_BYTES,
    Footer,
    Page,
    SparseIndex,
    decode_ledger_set,
    ledger_of,
)
from pulsar_py.storage.journal.file_header import FileHeader
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    Block,
    block_length,
    block_magic,
    decode_block,
    from_big_endian,
)

PIECE_BYTES = 4 * 1024 * 1024
_PAGE_HEADER_BYTES = 16
_COUNT_AT = 24
"""Offset of the count of entries in a run's header."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Damaged bytes; `end` is the offset of the next whole piece, None if none follows."""

    offset: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """A whole piece, and its place."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class FoundRun(Found):
    """A run of an entry log."""

    run: Run


@dataclass(frozen=True, slots=True)
class FoundBlock(Found):
    """A block of the journal."""

    block: Block


F = TypeVar("F", bound=Found)


class Window:
    """Reads a file in large pieces, mostly forwards."""

    def __init__(self, file: ReadFile) -> None:
        self._file = file
        self.size_bytes = file.size_bytes
        self._start = 0
        self._data = b""

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes at an offset; fewer only at the end of the file."""
        at = offset - self._start
        if at < 0 or at + length > len(self._data):
            self._data = await self._file.read_at(offset, max(PIECE_BYTES, length))
            self._start, at = offset, 0
        return self._data[at : at + length]

    async def find(self, magic: bytes, offset: int, end: int) -> int:
        """Offset of the next `magic`, -1 if there is none before `end`."""
        while offset < end:
            data = await self.read(offset, min(PIECE_BYTES, end - offset))
            at = data.find(magic)
            if at >= 0:
                return offset + at
            if len(data) < len(magic):
                return -1
            offset += len(data) - len(magic) + 1
        return -1


async def walk_runs(file: ReadFile) -> AsyncIterator[FoundRun | Gap]:
    """All runs of an entry log, and the gaps between them."""
    window = Window(file)

    async def at(offset: int) -> FoundRun | None:
        return await _run_at(window, offset)

    async for found in _walk(window, RUN_MAGIC, LOG_HEADER_BYTES, window.size_bytes, at):
        yield found


async def walk_blocks(
    file: ReadFile, life: FileHeader, start: int, end: int | None
) -> AsyncIterator[FoundBlock | Gap]:
    """All blocks of a journal file's life between two offsets, and the gaps between them.

    A block's length is that with the zeros behind it.
    """
    window = Window(file)

    async def at(offset: int) -> FoundBlock | None:
        return await _block_at(window, life, offset)

    end = window.size_bytes if end is None else min(end, window.size_bytes)
    async for found in _walk(window, block_magic(life), start, end, at):
        yield found


async def _walk(
    window: Window,
    magic: bytes,
    offset: int,
    end: int,
    at: Callable[[int], Awaitable[F | None]],
) -> AsyncIterator[F | Gap]:
    while offset < end:
        found = await at(offset)
        if found is None:
            following = await _next(window, magic, offset + 1, end, at)
            yield Gap(offset, following)
            if following is None:
                return
            offset = following
        else:
            yield found
            offset += found.length


async def _next(
    window: Window,
    magic: bytes,
    offset: int,
    end: int,
    at: Callable[[int], Awaitable[F | None]],
) -> int | None:
    while (offset := await window.find(magic, offset, end)) >= 0:
        if await at(offset) is not None:
            return offset
        offset += 1
    return None


async def _run_at(window: Window, offset: int) -> FoundRun | None:
    head = await window.read(offset, RUN_HEADER_BYTES)
    if len(head) < RUN_HEADER_BYTES or head[:4] != RUN_MAGIC:
        return None
    lengths_bytes = 4 * int.from_bytes(head[_COUNT_AT : _COUNT_AT + 4], "big")
    if lengths_bytes > window.size_bytes - offset:
        return None
    described = await window.read(offset, RUN_HEADER_BYTES + lengths_bytes)
    entries_bytes = sum(from_big_endian(described[RUN_HEADER_BYTES:]))
    length = RUN_HEADER_BYTES + lengths_bytes + entries_bytes
    if length > window.size_bytes - offset:
        return None
    try:
        run = decode_run(await window.read(offset, length), "", offset)
    except CorruptDataError:
        return None
    return FoundRun(offset, length, run)


async def _block_at(window: Window, life: FileHeader, offset: int) -> FoundBlock | None:
    head = await window.read(offset, BLOCK_HEADER_BYTES)
    length = block_length(head, 0, life, offset)
    if length is None or length > window.size_bytes - offset:
        return None
    try:
        block = decode_block(await window.read(offset, length))
    except CorruptDataError:
        return None
    return (
        None if block is None else FoundBlock(offset, life.after(offset + length) - offset, block)
    )


async def may_be_torn(file: ReadFile, life: FileHeader, offset: int) -> bool:
    """Whether a write that was never confirmed has left anything behind the last block.

    In a file that is used again an earlier life's bytes stand there: only a block's header tells.
    """
    data = await file.read_at(offset, 1 << 16)
    if life.is_used_again:
        return block_length(data, 0, life, offset) is not None
    return any(data)


async def walk_pages(
    file: ReadFile, table_id: int, on_error: Callable[[CorruptDataError], None]
) -> AsyncIterator[tuple[int, Page]]:
    """The whole pages of an index table with their offsets; `on_error` is called for damage.

    Raises:
        FormatVersionError: The table is of another version.
    """
    window = Window(file)
    named: BitMap64 | None = None
    try:
        footer, sparse = await _sparse_index(window, table_id, file.path)
        named = await _ledger_set(window, footer, file.path)
    except CorruptDataError as error:
        if type(error) is not CorruptDataError:
            raise
        on_error(error)
        extents = _extents_by_pages(window)
    else:
        extents = _extents_by_sparse(sparse)
    found = BitMap64()
    async for offset, length in extents:
        try:
            page = Page(await window.read(offset, length), file.path, offset)
        except CorruptDataError as error:
            on_error(error)
        else:
            found.update(ledger_of(key) for key, _ in page.items())
            yield offset, page
    if named is not None and not found <= named:
        on_error(
            CorruptDataError(
                f"{file.path}: offset {footer.ledger_set_offset}: "
                f"the set of ledgers lacks ledger {(found - named).min()}"
            )
        )


async def _sparse_index(window: Window, table_id: int, path: str) -> tuple[Footer, SparseIndex]:
    end = window.size_bytes - FOOTER_BYTES
    footer = Footer.decode(await window.read(max(end, 0), FOOTER_BYTES), path)
    sparse = await window.read(footer.sparse_offset, SPARSE_BYTES * footer.pages_count)
    if footer.table_id != table_id or crc32c(sparse) != footer.sparse_checksum:
        raise CorruptDataError(
            f"{path}: offset {footer.sparse_offset}: the sparse index does not match"
        )
    return footer, SparseIndex(sparse, footer.sparse_offset)


async def _ledger_set(window: Window, footer: Footer, path: str) -> BitMap64 | None:
    if not footer.ledger_set_bytes:
        return None
    at = footer.ledger_set_offset
    return decode_ledger_set(await window.read(at, footer.ledger_set_bytes), path, at)


async def _extents_by_sparse(sparse: SparseIndex) -> AsyncIterator[tuple[int, int]]:
    for number in range(sparse.pages_count):
        yield sparse.extent(number)


async def _extents_by_pages(window: Window) -> AsyncIterator[tuple[int, int]]:
    """Offsets and sizes computed from the pages' own counts, up to the first damaged page."""
    offset = 0
    while True:
        head = await window.read(offset, _PAGE_HEADER_BYTES)
        count = int.from_bytes(head[4:8], "big")
        values_at = _PAGE_HEADER_BYTES + (KEY_BYTES + 4) * count
        if not count or values_at > window.size_bytes - offset:
            return
        last_end = (await window.read(offset, values_at))[-4:]
        length = values_at + int.from_bytes(last_end, "big")
        if length > window.size_bytes - offset:
            return
        data = await window.read(offset, length)
        if crc32c(data[4:]) != int.from_bytes(data[:4], "big"):
            return
        yield offset, length
        offset += length
