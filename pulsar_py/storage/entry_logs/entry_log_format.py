"""Bytes of an entry log: a file header, then runs of neighbouring entries of one ledger.

All numbers are big-endian. `entries/<id>` begins with 32 bytes:

    8s   magic b"PLSRELOG"      u32  version, 1
    u32  CRC32C of the 16 bytes that follow
    u64  the log's id           u64  zero

A run:

    u32  magic 0x52554E31 "RUN1"
    u32  CRC32C of everything that follows in the run
    u64  ledger id              u64  id of the first entry
    u32  count of entries n     u32  zero
    n times u32 length of an entry
    the entries' bytes

A run of ledger 0, which no ledger has, is padding: one entry of zeros, so that what follows begins
at a multiple of the device's block. A run is read by its location in the index; compaction and
tools read from the start of the log. So bytes that a crash left at the end are never read, and need
no mark. A run whose checksum fails is damage.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.storage.journal.journal_format import (
    JOIN_BELOW_BYTES,
    LENGTH_BYTES,
    big_endian,
    from_big_endian,
)
from pulsar_py.storage.shared.lent import Lent
from pulsar_py.storage.shared.location import Location

LOG_MAGIC = b"PLSRELOG"
VERSION = 1
_LOG_START = struct.Struct(">8sII")
_LOG_REST = struct.Struct(">QQ")
LOG_HEADER_BYTES = _LOG_START.size + _LOG_REST.size

PADDING_LEDGER_ID: Final = 0
"""The ledger of runs that are padding."""

RUN_MAGIC = b"RUN1"
_RUN_START = struct.Struct(">4sI")
_RUN_REST = struct.Struct(">QQII")
RUN_HEADER_BYTES = _RUN_START.size + _RUN_REST.size

MEASURED_ENTRIES_COUNT: Final = 4096
"""Entries that are measured together when runs are cut: 0.4 ms."""


class Run(Struct, frozen=True):
    """A run that was read and checked."""

    ledger_id: int
    first_entry_id: int
    entries: Sequence[EntryBytes]


class RunHeader(Struct, frozen=True):
    """The header before a run's entries; unchecked until the run is decoded."""

    ledger_id: int
    first_entry_id: int
    count: int


def encode_log_header(log_id: int) -> bytes:
    """First bytes of a log."""
    rest = _LOG_REST.pack(log_id, 0)
    return _LOG_START.pack(LOG_MAGIC, VERSION, crc32c(rest)) + rest


def check_log_header(data: bytes, log_id: int, path: str) -> None:
    """Refuse bytes that are not the header of the log `log_id`.

    Raises:
        CorruptDataError: They are not; for another version it is a `FormatVersionError`.
    """
    if len(data) < LOG_HEADER_BYTES or data[:8] != LOG_MAGIC:
        raise CorruptDataError(f"{path}: offset 0: not an entry log")
    check_log_version(data, path)
    _, _, checksum = _LOG_START.unpack_from(data)
    rest = data[_LOG_START.size : LOG_HEADER_BYTES]
    if crc32c(rest) != checksum or _LOG_REST.unpack(rest)[0] != log_id:
        raise CorruptDataError(f"{path}: offset 0: the header is damaged or of another log")


def check_log_version(data: bytes, path: str) -> None:
    """Refuse a log of another version; bytes that are not a log's header pass.

    Raises:
        FormatVersionError: It is of another version.
    """
    if len(data) >= LOG_HEADER_BYTES and data[:8] == LOG_MAGIC:
        _, version, _ = _LOG_START.unpack_from(data)
        if version != VERSION:
            raise FormatVersionError(path, "entry log", version, VERSION)


def cut_runs(entries: Sequence[EntryBytes], run_bytes: int) -> Iterator[tuple[int, int]]:
    """Begin and end of runs of at most `run_bytes`, of at least one entry each."""
    # Measured piece by piece, as runs are asked for: all at once would hold up the loop for 6 ms.
    start, count = 0, MEASURED_ENTRIES_COUNT
    while start < len(entries):
        first = start
        sizes = list(accumulate(map(len, entries[first : first + count]), initial=0))
        measured = first + len(sizes) - 1
        while start < measured:
            end = first + bisect_right(sizes, sizes[start - first] + run_bytes) - 1
            if end == measured < len(entries):
                break  # the run may go on behind what was measured
            end = max(end, start + 1)
            yield start, end
            start = end
        count = MEASURED_ENTRIES_COUNT if start > first else 2 * count


def encode_run(
    ledger_id: int,
    first_entry_id: int,
    entries: Sequence[Any],  # Any: bytes and `Lent`, which has pieces
) -> list[Buffer]:
    """Buffers of one run, in order; large entries are among them as they are."""
    lengths = array("I", map(len, entries))
    rest = _RUN_REST.pack(ledger_id, first_entry_id, len(entries), 0) + big_endian(lengths)
    is_joined = sum(lengths) < JOIN_BELOW_BYTES * len(entries)
    buffers = in_pieces(entries)
    body: Sequence[Buffer] = [b"".join(buffers)] if is_joined else buffers
    checksum = crc32c(rest)
    for buffer in body:
        checksum = crc32c(buffer, checksum)
    return [_RUN_START.pack(RUN_MAGIC, checksum) + rest, *body]


def in_pieces(entries: Sequence[Any]) -> Sequence[Buffer]:
    """The buffers of entries in order; a lent entry may be several."""
    if not any(isinstance(entry, Lent) for entry in entries):
        return entries
    return [
        piece
        for entry in entries
        for piece in (entry.pieces if isinstance(entry, Lent) else (entry,))
    ]


def padding(offset: int, block_bytes: int) -> list[Buffer]:
    """A run that ends at a multiple of `block_bytes`, to be written at `offset`; maybe nothing."""
    pad_bytes = -offset % block_bytes
    if not pad_bytes:
        return []
    smallest = head_bytes(1)
    while pad_bytes < smallest:
        pad_bytes += block_bytes
    return encode_run(PADDING_LEDGER_ID, 0, [bytes(pad_bytes - smallest)])


def decode_run(
    data: EntryBytes, path: str, offset: int, *, start: int = 0, length: int | None = None
) -> Run:
    """Read the bytes of one whole run: all of `data`, or `length` of them from `start`.

    Raises:
        CorruptDataError: They are not one; the message names `path` and `offset`.
    """
    # Hot path: benchmarks/micro_storage.py, catch-up
    end = len(data) if length is None else min(start + length, len(data))
    if end - start < RUN_HEADER_BYTES or data[start : start + 4] != RUN_MAGIC:
        raise CorruptDataError(f"{path}: offset {offset}: no run of entries here")
    _, checksum = _RUN_START.unpack_from(data, start)
    if crc32c(memoryview(data)[start + _RUN_START.size : end]) != checksum:
        raise CorruptDataError(f"{path}: offset {offset}: the checksum does not match")
    ledger_id, first_entry_id, count, _ = _RUN_REST.unpack_from(data, start + _RUN_START.size)
    at = start + head_bytes(count)
    entries = _entries(data, at, bytes(data[start + RUN_HEADER_BYTES : at]), count)
    if at + entries.size_bytes != end:
        raise CorruptDataError(f"{path}: offset {offset}: the run's lengths don't add up")
    return Run(ledger_id, first_entry_id, entries)


def _entries(data: EntryBytes, at: int, stored_lengths: bytes, count: int) -> PackedEntries:
    """The entries from `at` on; if all lengths are equal, no list of lengths is made."""
    if count and stored_lengths == stored_lengths[:4] * count:
        return PackedEntries(data, at, count, int.from_bytes(stored_lengths[:4], "big"))
    return PackedEntries.of(data, at, from_big_endian(stored_lengths))


def checked_lengths(
    head: Buffer, path: str, location: Location, ledger_id: int, first_entry_id: int
) -> array[int]:
    """Lengths of the entries of a run, of which only the bytes before the first entry are there.

    That it is the expected run is checked, its checksum is not: that covers the entries, too.

    Raises:
        CorruptDataError: It is another one, or its lengths don't add up.
    """
    place = f"{path}: offset {location.offset}"
    if len(head) < head_bytes(location.count) or head[:4] != RUN_MAGIC:
        raise CorruptDataError(f"{place}: no run of {location.count} entries here")
    found = _RUN_REST.unpack_from(head, _RUN_START.size)[:3]
    expected = (ledger_id, first_entry_id, location.count)
    if found != expected:
        raise CorruptDataError(
            f"{place}: ledger, first entry and count are {found}, the index has {expected}"
        )
    lengths = from_big_endian(bytes(head[RUN_HEADER_BYTES:]))
    if len(head) + sum(lengths) != location.length:
        raise CorruptDataError(f"{place}: the run's lengths don't add up")
    return lengths


def head_bytes(count: int) -> int:
    """Bytes of a run before its first entry."""
    return RUN_HEADER_BYTES + LENGTH_BYTES * count


def run_length(data: Buffer, at: int) -> tuple[RunHeader, int] | None:
    """Header and size of the run at `at`; None if `data` ends before the end of its lengths.

    Raises:
        ValueError: No run begins at `at`.
    """
    if len(data) - at < RUN_HEADER_BYTES:
        return None
    if data[at : at + 4] != RUN_MAGIC:
        raise ValueError(at)
    ledger_id, first_entry_id, count, _ = _RUN_REST.unpack_from(data, at + _RUN_START.size)
    body = at + head_bytes(count)
    if body > len(data):
        return None
    lengths = from_big_endian(bytes(data[at + RUN_HEADER_BYTES : body]))
    return RunHeader(ledger_id, first_entry_id, count), body - at + sum(lengths)
