"""Reads and writes entries: the part of SEND and MESSAGE behind the command (pure).

    [0x0e02  u16   broker entry metadata: put in front by the broker, never by a client
     size    u32
     BrokerEntryMetadata]
    [0x0e01  u16   checksum: in practice always there
     crc     u32   CRC32C of everything after this field]
    size     u32
    MessageMetadata
    payload        the rest: plain, compressed, encrypted or a batch, as the metadata says

All big endian; both blocks in brackets are recognised by their magic. A size that could pass for a
magic would mean metadata of 234 MB, which no frame can hold. Nothing here looks into the payload
(see `batch` and `compression`). Functions on the broker's way read only the headers, so their cost
does not grow with the message.

Source: Commands in Pulsar; PIP-70 for the broker entry metadata.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from enum import Enum
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import UNREADABLE, PayloadError
from pulsar_py.common.hashing import crc32c
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata
from pulsar_py.proto.PulsarPyEntry_pb2 import EntryFields

MAGIC_CHECKSUM: Final = b"\x0e\x01"
MAGIC_BROKER_ENTRY_METADATA: Final = b"\x0e\x02"
CHECKSUM_BLOCK_SIZE: Final = 6

_CHECKSUM = Struct(">HI")
_unpack_checksum = _CHECKSUM.unpack_from
CHECKSUM_AND_SIZE = Struct(">HII")
_unpack_checksum_and_size = CHECKSUM_AND_SIZE.unpack_from
CHECKSUM_MAGIC_NUMBER = 0x0E01
_BROKER_BLOCK = Struct(">HI")
_BROKER_MAGIC_NUMBER = 0x0E02
_SIZE = Struct(">I")


class ChecksumStatus(Enum):
    """The result of verifying a checksum."""

    VALID = "valid"
    ABSENT = "absent"
    WRONG = "wrong"


_VALID = ChecksumStatus.VALID
_WRONG = ChecksumStatus.WRONG
_CHEAP_TO_COPY = 8192
_COVERED = itemgetter(slice(CHECKSUM_BLOCK_SIZE, None))
_CHECKSUM_OF = itemgetter(slice(CHECKSUM_BLOCK_SIZE))
_EMPTY_BLOCK = MAGIC_CHECKSUM + bytes(CHECKSUM_BLOCK_SIZE - len(MAGIC_CHECKSUM))

PARSED_WHOLE_BYTES: Final = 4096
"""The largest metadata that is parsed with its lists, which may have half as many elements."""


class EntryParts(NamedTuple):
    """An entry taken apart."""

    broker_entry_metadata: BrokerEntryMetadata | None
    checksum: int | None
    metadata: MessageMetadata
    payload: bytes


def verify_checksum(headers_and_payload: EntryBytes) -> ChecksumStatus:
    """Compare the checksum with what it covers; a broker entry metadata block may precede it."""
    # Hot path: verify_checksum in benchmarks/micro.
    data = headers_and_payload
    try:
        magic, expected = _unpack_checksum(data)
        if magic == _BROKER_MAGIC_NUMBER:
            data = data[skip_broker_entry_metadata(data) :]
            magic, expected = _unpack_checksum(data)
    except struct.error:
        return _WRONG if data[:2] == MAGIC_CHECKSUM else ChecksumStatus.ABSENT
    if magic != CHECKSUM_MAGIC_NUMBER:
        return ChecksumStatus.ABSENT
    # To copy a little is cheaper than to make two memoryviews.
    covered = data[6:] if len(data) < _CHEAP_TO_COPY else memoryview(data)[6:]
    return _VALID if crc32c(covered) == expected else _WRONG


def has_no_wrong_checksum(entries: Sequence[bytes]) -> bool:
    """Whether `verify_checksum` finds none of the entries wrong."""
    # Hot path: publish-1k, once a run of SENDs. Where all have a checksum block hardly any bytecode
    # runs for the single one.
    lengths = list(map(len, entries))
    if min(lengths, default=0) >= CHECKSUM_BLOCK_SIZE:
        is_copied = max(lengths) < _CHEAP_TO_COPY
        blocks = entries if is_copied else [memoryview(data) for data in entries]
        sums = array("I", map(crc32c, map(_COVERED, blocks)))
        if b"".join(map(_CHECKSUM_OF, entries)) == _checksum_blocks(sums):
            return True
    return all(verify_checksum(data) is not _WRONG for data in entries)


def _checksum_blocks(sums: array[int]) -> bytearray:
    """The checksum blocks of entries with these sums, one behind the other."""
    if sys.byteorder == "little":
        sums.byteswap()
    packed = sums.tobytes()
    blocks = bytearray(_EMPTY_BLOCK * len(sums))
    for place in range(4):
        blocks[len(MAGIC_CHECKSUM) + place :: CHECKSUM_BLOCK_SIZE] = packed[place::4]
    return blocks


def skip_broker_entry_metadata(data: EntryBytes) -> int:
    """The offset after a broker entry metadata block; 0 where there is none."""
    if data[:2] != MAGIC_BROKER_ENTRY_METADATA or len(data) < CHECKSUM_BLOCK_SIZE:
        return 0
    _, size = _BROKER_BLOCK.unpack_from(data)
    return int(min(CHECKSUM_BLOCK_SIZE + size, len(data)))


def skip_checksum(data: EntryBytes, start: int = 0) -> int:
    """The offset of the metadata's size: after a checksum block at `start`, else `start`."""
    return start + CHECKSUM_BLOCK_SIZE if data[start : start + 2] == MAGIC_CHECKSUM else start


def strip_broker_entry_metadata(data: EntryBytes) -> EntryBytes:
    """The entry as the producer sent it; the same object where there is no such block."""
    start = skip_broker_entry_metadata(data)
    return data[start:] if start else data


def strip_checksum(data: EntryBytes) -> EntryBytes:
    """The entry without broker metadata and checksum, for clients below version 11."""
    start = skip_broker_entry_metadata(data)
    return data[skip_checksum(data, start) :]


def add_broker_entry_metadata(data: bytes, metadata: BrokerEntryMetadata) -> bytes:
    """The entry with the broker's own metadata in front."""
    block = metadata.SerializeToString()
    return b"".join((_BROKER_BLOCK.pack(_BROKER_MAGIC_NUMBER, len(block)), block, data))


def parse_broker_entry_metadata(data: EntryBytes) -> BrokerEntryMetadata | None:
    """The broker's metadata of an entry, None if it has none.

    Raises:
        PayloadError: The block is there and can't be read.
    """
    start = skip_broker_entry_metadata(data)
    if not start:
        return None
    try:
        return BrokerEntryMetadata.FromString(bytes(data[CHECKSUM_BLOCK_SIZE:start]))
    except UNREADABLE as error:
        raise PayloadError(f"unreadable broker entry metadata: {error}") from error


def metadata_bounds(data: EntryBytes) -> tuple[int, int]:
    """Offsets of the start and end of the serialized MessageMetadata.

    Raises:
        PayloadError: The entry is too short for what its headers say.
    """
    try:
        magic, _, size = _unpack_checksum_and_size(data)
        if magic == CHECKSUM_MAGIC_NUMBER:  # as nearly every entry begins
            start = CHECKSUM_AND_SIZE.size
        else:
            start, size = _find_metadata(data)
    except struct.error:
        start, size = _find_metadata(data)
    end = start + size
    if end > len(data):
        raise PayloadError(
            f"metadata of {size} bytes at {start} does not fit an entry of {len(data)} bytes"
        )
    return start, end


def _find_metadata(data: EntryBytes) -> tuple[int, int]:
    """Offset and length of the metadata, behind the optional blocks."""
    start = skip_checksum(data, skip_broker_entry_metadata(data))
    if start + 4 > len(data):
        raise PayloadError(f"entry of {len(data)} bytes ends in its headers")
    (size,) = _SIZE.unpack_from(data, start)
    return start + 4, size


def parse_metadata(data: EntryBytes) -> MessageMetadata:
    """The metadata of an entry, or of what follows the command in a frame.

    Raises:
        PayloadError: It is cut, can't be parsed, or lacks a required field.
    """
    start, end = metadata_bounds(data)
    return _metadata_of(bytes(data[start:end]))


def parse_fields(data: EntryBytes) -> MessageMetadata | EntryFields:
    """The metadata of an entry, from which the broker reads all but the lists.

    Lists of large metadata are skipped, and not checked either: one of a million empty properties
    fits a message, and takes a third of a second to parse.

    Raises:
        PayloadError: It is cut, can't be parsed, or lacks a required field.
    """
    start, end = metadata_bounds(data)
    kind = MessageMetadata if end - start <= PARSED_WHOLE_BYTES else EntryFields
    try:
        fields = kind.FromString(bytes(data[start:end]))
    except UNREADABLE as error:
        raise PayloadError(f"unreadable message metadata: {error}") from error
    if not fields.IsInitialized():
        raise PayloadError("message metadata lacks a required field")
    return fields


def split_entry(data: bytes) -> EntryParts:
    """Take an entry apart; the payload is copied.

    Raises:
        PayloadError: Its headers are cut or can't be parsed.
    """
    broker_entry_metadata = parse_broker_entry_metadata(data)
    checksum_start = skip_broker_entry_metadata(data)
    start, end = metadata_bounds(data)
    checksum = None
    if start - checksum_start > 4:  # noqa: PLR2004 - more than the size alone
        _, checksum = _CHECKSUM.unpack_from(data, checksum_start)
    return EntryParts(broker_entry_metadata, checksum, _metadata_of(data[start:end]), data[end:])


def _metadata_of(data: bytes) -> MessageMetadata:
    try:
        metadata = MessageMetadata.FromString(data)
    except UNREADABLE as error:
        raise PayloadError(f"unreadable message metadata: {error}") from error
    if not metadata.IsInitialized():
        raise PayloadError(f"message metadata lacks a required field: {metadata}")
    return metadata


def encode_entry(
    metadata: MessageMetadata, payload: bytes | memoryview, *, has_checksum: bool = True
) -> bytes:
    """Headers and payload as a producer sends them, and as they are stored."""
    serialized = metadata.SerializeToString()
    size = len(serialized)
    if not has_checksum:
        return b"".join((_SIZE.pack(size), serialized, payload))
    checksum = crc32c(payload, crc32c(serialized, crc32c(_SIZE.pack(size))))
    head = CHECKSUM_AND_SIZE.pack(CHECKSUM_MAGIC_NUMBER, checksum, size)
    return b"".join((head, serialized, payload))
