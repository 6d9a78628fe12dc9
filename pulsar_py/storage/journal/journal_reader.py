"""Reads journal files in large pieces (edge); `recovery` decides which of their blocks count.

A file that is used again is full of what earlier lives wrote. Of it recovery reads the blocks of
this life and, behind their end, as far as one block can reach: if a block was lost that had been
confirmed, the next one begins there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk, ReadFile, read_fully
from pulsar_py.storage.journal.file_header import (
    FILE_HEADER_BYTES,
    FileHeader,
    decode_file_header,
    lost_headers,
)
from pulsar_py.storage.journal.journal import Mark
from pulsar_py.storage.journal.journal_files import DIRECTORY, journal_path
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    Block,
    block_length,
    block_magic,
    decode_block,
)
from pulsar_py.storage.journal.recovery import FoundFile, ReplayFile

PIECE_BYTES = 4 * 1024 * 1024

LOST_HEADER_REACH_BYTES = 24 * 1024 * 1024
"""So far from its beginning a file without a header is searched for blocks.

A block of default settings has up to 19 MB. Beyond is what was created ahead, which
the system may report as data though nobody wrote it: a start read half a gigabyte of it.
"""


async def find_files(disk: Disk, mark: Mark) -> list[FoundFile]:
    """All journal files; those before the mark are listed without being read."""
    found = []
    for name in await disk.list_directory(DIRECTORY):
        if not name.isdigit():
            continue
        file_id, path = int(name), journal_path(int(name))
        header, lost = None, None
        if file_id >= mark[0]:
            file = await disk.open_read(path)
            try:
                header = decode_file_header(await read_fully(file, 0, FILE_HEADER_BYTES), path)
                if header is None:
                    lost = await _lost_header(file, file_id)
            finally:
                await file.close()
        found.append(FoundFile(file_id, path, header, lost))
    return found


async def _lost_header(file: ReadFile, file_id: int) -> FileHeader | None:
    """What the whole blocks of a file without a header can be read with, if it has any."""
    for header in lost_headers(file_id):
        reach = replace(header, largest_block_bytes=LOST_HEADER_REACH_BYTES)
        if await has_block_after(file, reach, 0):
            return header
    return None


async def read_blocks(file: ReadFile, replay: ReplayFile) -> AsyncIterator[tuple[Block, int]]:
    """Whole blocks in order, each with the offset after it; ends before the first damaged one."""
    size = file.size_bytes if replay.end is None else replay.end
    offset, data, at = replay.start, b"", 0
    while offset < size:
        length = block_length(data, at, replay.life, offset)
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
        end = replay.life.after(offset + length)
        at += end - offset
        offset = end
        yield block, offset


async def has_block_after(file: ReadFile, life: FileHeader, start: int) -> bool:
    """Whether a whole block of this life begins anywhere after `start`, the end of the blocks.

    Where a lost block there could reach no farther, it is not looked for, nor in space that was
    reserved and never written.
    """
    limit = file.size_bytes
    if life.largest_block_bytes:
        limit = min(limit, start + life.largest_block_bytes + BLOCK_HEADER_BYTES)
    offset, magic = start, block_magic(life)
    while (extent := await file.next_data(offset)) is not None:
        offset, end = extent[0], min(extent[1], limit)
        if offset >= limit:
            break
        while offset < end:
            data = await read_fully(file, offset, min(PIECE_BYTES, end - offset))
            at = data.find(magic)
            while at >= 0:
                place = offset + at
                if place > start and place == life.after(place):
                    head = data[at : at + BLOCK_HEADER_BYTES]
                    if await _is_block(file, life, place, head):
                        return True
                at = data.find(magic, at + 1)
            is_last = offset + len(data) >= end
            offset += len(data) if is_last else len(data) - len(magic) + 1
    return False


async def _is_block(file: ReadFile, life: FileHeader, offset: int, head: bytes) -> bool:
    if len(head) < BLOCK_HEADER_BYTES:  # the piece ends here
        head = await read_fully(file, offset, BLOCK_HEADER_BYTES)
    length = block_length(head, 0, life, offset)
    if length is None or offset + length > file.size_bytes:
        return False
    return decode_block(await read_fully(file, offset, length)) is not None
