"""Reads journal files in large pieces (edge); `recovery` decides which of their blocks count."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pulsar_py.common.disks.disk import Disk, ReadFile, read_fully
from pulsar_py.storage.journal.journal import DIRECTORY, Mark, journal_path
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    BLOCK_MAGIC,
    FILE_HEADER_BYTES,
    Block,
    block_length,
    decode_block,
    decode_file_header,
)
from pulsar_py.storage.journal.recovery import FoundFile, ReplayFile

PIECE_BYTES = 4 * 1024 * 1024


async def find_files(disk: Disk, mark: Mark) -> list[FoundFile]:
    """All journal files; those before the mark are listed without being read."""
    found = []
    for name in await disk.list_directory(DIRECTORY):
        if not name.isdigit():
            continue
        file_id, path = int(name), journal_path(int(name))
        header, has_blocks = None, False
        if file_id >= mark[0]:
            file = await disk.open_read(path)
            try:
                header = decode_file_header(await read_fully(file, 0, FILE_HEADER_BYTES), path)
                if header is None:
                    has_blocks = await has_block_after(file, file_id, 0)
            finally:
                await file.close()
        found.append(FoundFile(file_id, path, header, has_blocks))
    return found


async def read_blocks(file: ReadFile, replay: ReplayFile) -> AsyncIterator[tuple[Block, int]]:
    """Whole blocks in order, each with the offset after it; ends before the first damaged one."""
    size = file.size_bytes if replay.end is None else replay.end
    offset, data, at = replay.start, b"", 0
    while offset < size:
        length = block_length(data, at, replay.file_id, offset)
        needed = BLOCK_HEADER_BYTES if length is None else length
        if len(data) - at < needed:
            if offset + needed > size:
                return
            data, at = await read_fully(file, offset, max(PIECE_BYTES, needed)), 0
            if len(data) < needed:
                return
            continue
        if length is None:
            return
        block = decode_block(data[at : at + length])
        if block is None:
            return
        at += length
        offset += length
        yield block, offset


async def has_block_after(file: ReadFile, file_id: int, start: int) -> bool:
    """Whether a whole block of this file begins anywhere after `start`.

    The rest of the file is searched, but for space that was reserved and never written.
    """
    offset = start
    while (extent := await file.next_data(offset)) is not None:
        offset, end = extent
        while offset < end:
            data = await read_fully(file, offset, min(PIECE_BYTES, end - offset))
            at = data.find(BLOCK_MAGIC)
            while at >= 0:
                if offset + at > start and await _is_block(file, file_id, offset + at):
                    return True
                at = data.find(BLOCK_MAGIC, at + 1)
            is_last = offset + len(data) >= end
            offset += len(data) if is_last else len(data) - len(BLOCK_MAGIC) + 1
    return False


async def _is_block(file: ReadFile, file_id: int, offset: int) -> bool:
    head = await read_fully(file, offset, BLOCK_HEADER_BYTES)
    length = block_length(head, 0, file_id, offset)
    if length is None or offset + length > file.size_bytes:
        return False
    return decode_block(await read_fully(file, offset, length)) is not None
