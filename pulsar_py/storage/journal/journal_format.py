"""Bytes of the journal: a file header, then blocks, each one group of entries and records.

All numbers are big-endian. A file `journal/<id>` is reserved ahead, so it ends in zeros. It begins
with 40 bytes, written together with the first block (so that one sector holds both headers):

    8s   magic b"PLSRJRNL"
    u32  version, 1
    u32  CRC32C of the 24 bytes that follow
    u64  this file's id; ids grow
    u64  id of the file before it: files between the two hold nothing that was confirmed
    u64  end of that file: blocks beyond were never confirmed. 0 if there is no file before,
         or only files that the checkpoint replaces

A block is one write and one sync:

    u32  magic 0x4A424C4B "JBLK"
    u32  CRC32C of everything that follows in the block
    u64  the file's id
    u64  offset of this block in the file
    u32  count of sections       u32  count of records
    u32  bytes of sections and records together
    u64  bytes of entries
    sections: u64 ledger id, u64 first entry id, i64 last add confirmed when it was written,
              u32 count n, n times u32 length of an entry
    records:  u64 ledger id, u32 length, a `LedgerRecord`
    entries:  the bytes of all sections' entries, in order

File id and offset tell a block of this file from a copy of one inside an entry. A *torn* block is
one whose checksum fails, with no whole block after it: its write was never confirmed, since the
next write waits for its sync. A block whose checksum fails with a whole one after it was confirmed
once, and is damage.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.storage.shared.ledger_record import LedgerRecord

FILE_MAGIC = b"PLSRJRNL"
VERSION = 1
_FILE_START = struct.Struct(">8sII")
_FILE_REST = struct.Struct(">QQQ")
FILE_HEADER_BYTES = _FILE_START.size + _FILE_REST.size

BLOCK_MAGIC = b"JBLK"
_BLOCK_START = struct.Struct(">4sI")
_BLOCK_REST = struct.Struct(">QQIIIQ")
BLOCK_HEADER_BYTES = _BLOCK_START.size + _BLOCK_REST.size
_SECTION = struct.Struct(">QQqI")
_RECORD = struct.Struct(">QI")

JOIN_BELOW_BYTES = 2048
"""Entries smaller than this on average are joined (one copy) before they are summed and written;
measured: 0.07 against 0.18 µs for 1 KB, while larger ones cost more to copy than to sum singly."""


@dataclass(frozen=True, slots=True)
class FileHeader:
    """First bytes of a journal file."""

    file_id: int
    previous_id: int
    previous_end: int

    def encode(self) -> bytes:
        """The stored form."""
        rest = _FILE_REST.pack(self.file_id, self.previous_id, self.previous_end)
        return _FILE_START.pack(FILE_MAGIC, VERSION, crc32c(rest)) + rest


def decode_file_header(data: bytes, path: str) -> FileHeader | None:
    """The header at the start of `data`; None if there is none (a torn or unused file).

    Raises:
        FormatVersionError: It is of another version.
    """
    if len(data) < FILE_HEADER_BYTES:
        return None
    magic, version, checksum = _FILE_START.unpack_from(data)
    if magic != FILE_MAGIC or checksum != crc32c(data[_FILE_START.size : FILE_HEADER_BYTES]):
        return None
    if version != VERSION:
        raise FormatVersionError(path, "journal", version, VERSION)
    return FileHeader(*_FILE_REST.unpack_from(data, _FILE_START.size))


class Section:
    """Entries of one ledger in one group; made once a group and ledger."""

    __slots__ = ("entries", "first_entry_id", "ledger_id", "lengths", "lent", "size_bytes")

    def __init__(
        self,
        ledger_id: int,
        first_entry_id: int,
        entries: list[Any],  # Any: bytes, and `Lent` at the places of `lent`
        lengths: array[int],
        size_bytes: int,
        *,
        lent: Sequence[int] = (),
    ) -> None:
        self.ledger_id = ledger_id
        self.first_entry_id = first_entry_id
        self.entries = entries
        self.lengths = lengths
        self.size_bytes = size_bytes
        # The indexes of the lent entries.
        self.lent = lent

    @property
    def last_entry_id(self) -> int:
        """Id of the last entry."""
        return self.first_entry_id + len(self.entries) - 1


def encode_block(
    file_id: int,
    offset: int,
    sections: Sequence[Section],
    records: Sequence[tuple[int, LedgerRecord]],
) -> tuple[list[Buffer], int]:
    """Buffers of one block in order, and their bytes in all."""
    # Hot path: benchmarks/micro_storage.py, append
    described: list[bytes] = []
    body: list[Buffer] = []
    body_bytes = 0
    for section in sections:
        entries = section.entries
        assert len(entries) == len(section.lengths) > 0, f"ledger {section.ledger_id}"
        described.append(
            _SECTION.pack(
                section.ledger_id,
                section.first_entry_id,
                section.first_entry_id - 1,
                len(entries),
            )
        )
        described.append(big_endian(section.lengths))
        body_bytes += section.size_bytes
        if section.lent:
            body += lent_buffers(section)
        elif section.size_bytes < JOIN_BELOW_BYTES * len(entries):
            body.append(b"".join(entries))
        else:
            body += entries
    for ledger_id, record in records:
        data = record.encode()
        described += _RECORD.pack(ledger_id, len(data)), data
    description = b"".join(described)
    rest = _BLOCK_REST.pack(
        file_id, offset, len(sections), len(records), len(description), body_bytes
    )
    checksum = crc32c(description, crc32c(rest))
    for buffer in body:
        checksum = crc32c(buffer, checksum)
    head = _BLOCK_START.pack(BLOCK_MAGIC, checksum) + rest + description
    return [head, *body], len(head) + body_bytes


def lent_buffers(section: Section) -> list[Buffer]:
    """The buffers of a section's entries in order; a lent entry may be several pieces."""
    buffers: list[Buffer] = []
    start = 0
    for place in section.lent:
        buffers += section.entries[start:place]
        buffers += section.entries[place].pieces
        start = place + 1
    buffers += section.entries[start:]
    return buffers


def block_length(data: Buffer, at: int, file_id: int, offset: int) -> int | None:
    """Bytes of the block whose header is at `at` in `data`, and at `offset` in the file.

    None if there is no header of this file and offset. The length is unchecked until
    `decode_block`.
    """
    if len(data) - at < BLOCK_HEADER_BYTES or data[at : at + 4] != BLOCK_MAGIC:
        return None
    found_id, found_offset, _, _, description, body = _BLOCK_REST.unpack_from(
        data, at + _BLOCK_START.size
    )
    if found_id != file_id or found_offset != offset:
        return None
    return BLOCK_HEADER_BYTES + int(description) + int(body)


@dataclass(frozen=True, slots=True)
class Block:
    """A block that was read and checked."""

    sections: tuple[Section, ...]
    records: tuple[tuple[int, LedgerRecord], ...]


def decode_block(block: bytes) -> Block | None:
    """Decode one block, as long as `block_length` said; None if the checksum fails.

    Raises:
        CorruptDataError: The checksum matches but the lengths inside contradict one another.
    """
    (checksum,) = struct.unpack_from(">I", block, 4)
    if crc32c(memoryview(block)[_BLOCK_START.size :]) != checksum:
        return None
    _, _, section_count, record_count, description_bytes, _ = _BLOCK_REST.unpack_from(
        block, _BLOCK_START.size
    )
    at = BLOCK_HEADER_BYTES
    body = at + description_bytes
    sections = []
    for _ in range(section_count):
        ledger_id, first_entry_id, _, count = _SECTION.unpack_from(block, at)
        at += _SECTION.size
        lengths = from_big_endian(block[at : at + 4 * count])
        at += 4 * count
        size_bytes = sum(lengths)
        is_whole = body + size_bytes <= len(block)  # else refused below
        packed = PackedEntries.of(block, body, lengths) if is_whole else ()
        # Copied: the memory limits don't count the whole block, which views would keep alive.
        entries = [bytes(each) for each in packed]
        body += size_bytes
        sections.append(Section(ledger_id, first_entry_id, entries, lengths, size_bytes))
    records = []
    for _ in range(record_count):
        ledger_id, size = _RECORD.unpack_from(block, at)
        at += _RECORD.size
        records.append((ledger_id, LedgerRecord.decode(block[at : at + size])))
        at += size
    if at != BLOCK_HEADER_BYTES + description_bytes or body != len(block):
        raise CorruptDataError(f"journal block of {len(block)} bytes: content ends at {body}")
    return Block(tuple(sections), tuple(records))


def big_endian(lengths: array[int]) -> bytes:
    """Lengths as stored, four bytes each."""
    if sys.byteorder == "little":
        lengths = lengths[:]
        lengths.byteswap()
    return lengths.tobytes()


def from_big_endian(data: bytes) -> array[int]:
    """Lengths from their stored form."""
    lengths = array("I", data)
    if sys.byteorder == "little":
        lengths.byteswap()
    return lengths
