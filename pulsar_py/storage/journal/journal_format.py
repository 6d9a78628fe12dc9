"""Bytes of the journal's blocks, each one group of entries and records.

A file begins with a `file_header.FileHeader`; blocks follow. All numbers are big-endian. A block is
one write and one sync. The first one stands right behind the file's header, in the same sector, so
that both are stored or neither; each other one at a multiple of the header's block bytes, and zeros
fill up what is before it:

    u32  magic 0x4A424C32 "JBL2"
    u32  CRC32C of everything that follows in the block
    u64  generation of the file's life
    u64  the file's id
    u64  offset of this block in the file
    u32  count of sections       u32  count of records
    u32  bytes of sections and records together
    u64  bytes of entries
    sections: u64 ledger id, u64 first entry id, i64 last add confirmed when it was written,
              u32 count n, n times u32 length of an entry;
              where the highest bit of the count is set, the entries are in entry logs, not here:
              u32 count of runs, and for each 20 bytes, its `Location`
    records:  u64 ledger id, u32 length, a `LedgerRecord`
    entries:  the bytes of all sections' entries, in order

A block that refers to runs is written when they are durable, so their loss is damage, never a torn
write. Files of version 2 have no such sections. In a file of version 1 the magic is "JBLK", there
is no generation, and no padding.

Generation, file id and offset tell a block of this life from what an earlier one left, and from an
image of one inside an entry. A *torn* block is one that is not whole, with no whole block of this
life after it: its write was never confirmed, since the next write waits for its sync. A block that
is not whole with a whole one after it was confirmed once, and is damage.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.storage.journal.file_header import FORMER_VERSION, FileHeader
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.location import LOCATION_BYTES, Location

_BLOCK_START = struct.Struct(">4sI")
_BLOCK_REST = struct.Struct(">QQQIIIQ")
_FORMER_REST = struct.Struct(">QQIIIQ")
BLOCK_HEADER_BYTES = _BLOCK_START.size + _BLOCK_REST.size
_FORMER_HEADER_BYTES = _BLOCK_START.size + _FORMER_REST.size
_SECTION = struct.Struct(">QQqI")
_RECORD = struct.Struct(">QI")
_RUNS_COUNT = struct.Struct(">I")

_IN_LOGS = 1 << 31
"""The bit of a section's count that says that its entries are in entry logs."""

BLOCK_MAGIC = b"JBL2"
_FORMER_MAGIC = b"JBLK"
_ZEROS = bytes(1 << 16)

SECTION_BYTES = _SECTION.size
"""Bytes of a section beside its entries and their lengths."""

LENGTH_BYTES = 4
"""Bytes of an entry's length."""

JOIN_BELOW_BYTES = 2048
"""Entries smaller than this on average are joined (one copy) before they are summed and written;
measured: 0.07 against 0.18 µs for 1 KB, while larger ones cost more to copy than to sum singly."""


class Section:
    """Entries of one ledger in one group; made once a group and ledger."""

    __slots__ = (
        "entries",
        "first_entry_id",
        "last_entry_id",
        "ledger_id",
        "lengths",
        "lent",
        "runs",
        "size_bytes",
    )

    def __init__(
        self,
        ledger_id: int,
        first_entry_id: int,
        entries: list[Any],  # Any: bytes, and `Lent` at the places of `lent`
        lengths: array[int],
        size_bytes: int,
        *,
        lent: Sequence[int] = (),
        runs: Sequence[Location] = (),
    ) -> None:
        self.ledger_id = ledger_id
        self.first_entry_id = first_entry_id
        self.last_entry_id = first_entry_id + len(lengths) - 1
        self.entries = entries
        self.lengths = lengths
        self.size_bytes = size_bytes
        # The indexes of the lent entries.
        self.lent = lent
        # Where the entries are, if that is in entry logs; read from a block, there are no entries.
        self.runs = runs

    def placed_runs(self) -> Iterator[tuple[int, Location]]:
        """The runs that are in entry logs, each with the id of its first entry."""
        entry_id = self.first_entry_id
        for location in self.runs:
            yield entry_id, location
            entry_id += location.count


def encode_block(
    life: FileHeader,
    offset: int,
    sections: Sequence[Section],
    records: Sequence[tuple[int, bytes]],
) -> tuple[list[Buffer], int]:
    """Buffers of one block in order, the zeros behind it included, and their bytes in all.

    Records come as they are stored.
    """
    # Hot path: benchmarks/micro_storage.py, append
    described: list[bytes] = []
    body: list[Buffer] = []
    body_bytes = 0
    for section in sections:
        entries, runs, first_entry_id = section.entries, section.runs, section.first_entry_id
        count = len(entries)
        assert count == len(section.lengths) > 0, f"ledger {section.ledger_id}"
        described += (
            _SECTION.pack(
                section.ledger_id,
                first_entry_id,
                first_entry_id - 1,
                count | _IN_LOGS if runs else count,
            ),
            big_endian(section.lengths),
        )
        if runs:
            described.append(_RUNS_COUNT.pack(len(runs)))
            described += (location.encode() for location in runs)
            continue
        body_bytes += section.size_bytes
        if section.lent:
            body += lent_buffers(section)
        elif count > 1 and section.size_bytes < JOIN_BELOW_BYTES * count:
            body.append(b"".join(entries))
        else:
            body += entries
    for ledger_id, data in records:
        described += _RECORD.pack(ledger_id, len(data)), data
    description = b"".join(described)
    rest = _BLOCK_REST.pack(
        life.generation,
        life.file_id,
        offset,
        len(sections),
        len(records),
        len(description),
        body_bytes,
    )
    rest += description
    checksum = crc32c(rest)
    for buffer in body:
        checksum = crc32c(buffer, checksum)
    head = _BLOCK_START.pack(BLOCK_MAGIC, checksum) + rest
    end = offset + len(head) + body_bytes
    next_offset = life.after(end)
    return [head, *body, _ZEROS[: next_offset - end]], next_offset - offset


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


def block_magic(life: FileHeader) -> bytes:
    """What each block of a file begins with."""
    return _FORMER_MAGIC if life.version == FORMER_VERSION else BLOCK_MAGIC


def block_length(data: Buffer, at: int, life: FileHeader, offset: int) -> int | None:
    """Bytes of the block whose header is at `at` in `data`, and at `offset` in the file.

    None if there is no header of this life and offset. The length is unchecked until
    `decode_block`, and is that without the zeros behind.
    """
    if len(data) - at < BLOCK_HEADER_BYTES or data[at : at + 4] != block_magic(life):
        return None
    at += _BLOCK_START.size
    if life.version != FORMER_VERSION:
        generation, *found, _, _, description, body = _BLOCK_REST.unpack_from(data, at)
        header_bytes = BLOCK_HEADER_BYTES
    else:
        *found, _, _, description, body = _FORMER_REST.unpack_from(data, at)
        generation, header_bytes = life.generation, _FORMER_HEADER_BYTES
    if found != [life.file_id, offset] or life.generation not in (generation, None):
        return None
    return header_bytes + int(description) + int(body)


class Block(Struct, frozen=True):
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
    is_former = block[:4] == _FORMER_MAGIC
    numbers = _FORMER_REST if is_former else _BLOCK_REST
    at = _BLOCK_START.size + numbers.size
    *_, section_count, record_count, description_bytes, _ = numbers.unpack_from(
        block, _BLOCK_START.size
    )
    body = end = at + description_bytes
    sections = []
    for _ in range(section_count):
        ledger_id, first_entry_id, _, count = _SECTION.unpack_from(block, at)
        at += _SECTION.size
        is_in_logs, count = bool(count & _IN_LOGS), count & ~_IN_LOGS
        lengths = from_big_endian(block[at : at + 4 * count])
        at += 4 * count
        size_bytes = sum(lengths)
        if is_in_logs:
            runs, at = _decode_runs(block, at)
            sections.append(Section(ledger_id, first_entry_id, [], lengths, size_bytes, runs=runs))
            continue
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
    if at != end or body != len(block):
        raise CorruptDataError(f"journal block of {len(block)} bytes: content ends at {body}")
    return Block(tuple(sections), tuple(records))


def _decode_runs(block: bytes, at: int) -> tuple[list[Location], int]:
    """The places of a section's runs, and the offset behind them."""
    (count,) = _RUNS_COUNT.unpack_from(block, at)
    at += _RUNS_COUNT.size
    end = at + LOCATION_BYTES * count
    places = range(at, end, LOCATION_BYTES)
    return [Location.decode(block[each : each + LOCATION_BYTES]) for each in places], end


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
