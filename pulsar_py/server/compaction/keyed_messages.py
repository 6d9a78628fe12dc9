"""Reads the messages of an entry with their keys, and rewrites batches without dropped ones.

Keys are compared as they are sent, not decoded. A batch is opened, unless it is encrypted: then it
counts as one message with the key of its headers. A batch that can't be opened is kept whole; in
Apache Pulsar it makes every compaction of the topic fail.

A batch of which some messages stay keeps its size, so that indexes do not shift:

    message that stays    byte for byte
    message that goes     00000004 1800 2001: SingleMessageMetadata {payload_size 0, compacted_out}

and `compacted_batch_indexes` lists the indexes that stay. It is compressed as it was.

Source: RawBatchConverter in Pulsar's broker.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, cast

from msgspec import Struct

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import UNREADABLE, PayloadError
from pulsar_py.proto.PulsarApi_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from pulsar_py.proto.PulsarPyEntry_pb2 import EntryFields
from pulsar_py.wire.compression import compress, decompress
from pulsar_py.wire.payload import (
    encode_entry,
    metadata_bounds,
    parse_fields,
    parse_metadata,
    skip_broker_entry_metadata,
)

NO_BATCH_INDEX: Final = -1
MAX_BODY_BYTES: Final = 128 * 1024 * 1024
"""A batch that says it inflates to more is not opened, but kept whole."""

_SIZE: Final = struct.Struct(">I")
_GONE: Final = bytes.fromhex("0000000418002001")


class KeyedMessage(NamedTuple):
    """One message of an entry."""

    batch_index: int
    """-1 where the entry is kept or dropped as a whole."""
    key: bytes | None
    is_tombstone: bool
    """Whether it deletes its key: it has no value."""
    event_time_millis: int
    """0 where the producer set none."""


class ChunkPart(Struct, frozen=True):
    """The place of an entry in a message of several chunks."""

    uuid: str
    chunk_id: int
    chunks_count: int


class KeyedEntry(Struct, frozen=True):
    """The messages of one entry; none where it is a marker, or all were compacted out before.

    Attributes:
        messages: Those that can be kept, in the order of their indexes.
        chunk: The entry's place in a chunked message; None for a whole one.
        is_opaque: It can't be opened, and is kept as it is.
        numbers_count: As `numbers_count` says.
    """

    messages: tuple[KeyedMessage, ...] = ()
    chunk: ChunkPart | None = None
    is_opaque: bool = False
    numbers_count: int = 1


_UNREADABLE: Final = KeyedEntry()


def examine(data: EntryBytes) -> KeyedEntry:
    """The messages of a stored entry, and their keys."""
    keyed = examine_small(data, sys.maxsize)
    assert keyed is not None
    return keyed


def examine_small(data: EntryBytes, max_messages: int) -> KeyedEntry | None:
    """The messages of a stored entry, and their keys; None, at once, for a larger batch."""
    try:
        metadata = parse_fields(data)
    except PayloadError:
        return _UNREADABLE  # it is never delivered
    count = _numbers_count(metadata)
    if count > max_messages + 1:
        return None
    if metadata.HasField("marker_type"):
        return KeyedEntry(numbers_count=count)
    end = metadata_bounds(data)[1]
    if not _is_batch(metadata):
        return _single(metadata, len(data) - end)
    try:
        body = _body(metadata, data[end:])
        messages = tuple(
            KeyedMessage(
                index,
                _key_of(single),
                single.null_value or not single.payload_size,
                single.event_time,
            )
            for index, (single, _, _) in enumerate(_parts(metadata, body))
            if not single.compacted_out
        )
    except PayloadError:
        return KeyedEntry(is_opaque=True, numbers_count=count)
    return KeyedEntry(messages, numbers_count=count)


def numbers_count(data: EntryBytes) -> int:
    """How many numbers an entry has in a compaction: one, and another for each message of a batch.

    It goes by the metadata alone, so that nothing has to be decompressed for it.
    """
    try:
        return _numbers_count(parse_fields(data))
    except PayloadError:
        return _UNREADABLE.numbers_count


def _numbers_count(metadata: MessageMetadata | EntryFields) -> int:
    return 1 + max(metadata.num_messages_in_batch, 0) if _is_batch(metadata) else 1


def _is_batch(metadata: MessageMetadata | EntryFields) -> bool:
    """Whether it is one that could be opened."""
    return metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys


def _single(metadata: MessageMetadata | EntryFields, payload_bytes: int) -> KeyedEntry:
    is_compressed = metadata.compression != CompressionType.NONE
    is_tombstone = (
        not payload_bytes
        or metadata.null_value
        or (is_compressed and not metadata.uncompressed_size)
    )
    chunk = None
    if metadata.num_chunks_from_msg > 1 and metadata.uuid:
        chunk = ChunkPart(metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg)
    message = KeyedMessage(NO_BATCH_INDEX, _key_of(metadata), is_tombstone, metadata.event_time)
    return KeyedEntry((message,), chunk)


def _key_of(metadata: MessageMetadata | EntryFields | SingleMessageMetadata) -> bytes | None:
    if not metadata.HasField("partition_key") or metadata.null_partition_key:
        return None
    key: str | bytes = metadata.partition_key  # upb gives bytes where it is not UTF-8
    return key.encode() if isinstance(key, str) else key


def _body(metadata: MessageMetadata | EntryFields, payload: EntryBytes) -> bytes:
    """The body of a batch.

    Raises:
        PayloadError: It can't be decompressed, or can't hold that many messages.
    """
    size = metadata.uncompressed_size
    if size > MAX_BODY_BYTES:
        raise PayloadError(f"a batch of {size} bytes, {MAX_BODY_BYTES} are opened at most")
    codec = cast("CompressionType.ValueType", metadata.compression)
    body = bytes(decompress(codec, payload, size))
    count = metadata.num_messages_in_batch
    if count > len(body) // _SIZE.size:
        raise PayloadError(f"{count} messages do not fit {len(body)} bytes")
    return body


def _parts(
    metadata: MessageMetadata | EntryFields, body: bytes
) -> Iterator[tuple[SingleMessageMetadata, int, int]]:
    """Of each message of a batch its metadata, and where it begins and ends in the body.

    They are not kept: of tens of thousands they would take many times the batch.

    Raises:
        PayloadError: There are not that many.
    """
    body_bytes = len(body)
    at = 0
    # Hot path: benchmarks/storage_compaction.py. No call of ours for each message.
    parse, size_at, size_bytes = SingleMessageMetadata.FromString, _SIZE.unpack_from, _SIZE.size
    for index in range(metadata.num_messages_in_batch):
        start = at + size_bytes
        if start > body_bytes:
            raise PayloadError(f"the batch ends before message {index}")
        split = start + size_at(body, at)[0]
        if split > body_bytes:
            raise PayloadError(f"the batch ends in message {index}")
        try:
            single = parse(body[start:split])
        except UNREADABLE as error:
            raise PayloadError(f"message {index}: {error}") from error
        end = split + single.payload_size
        if not single.IsInitialized() or not split <= end <= body_bytes:
            raise PayloadError(f"message {index} does not fit the batch of {body_bytes} bytes")
        yield single, at, end
        at = end


def rebatch(data: EntryBytes, kept: AbstractSet[int]) -> tuple[bytes, int]:
    """A batch with the messages of these indexes alone, and how many had to be opened for it.

    Broker entry metadata stays in front.

    Raises:
        PayloadError: It can't be opened.
    """
    start = skip_broker_entry_metadata(data)
    metadata = parse_metadata(data)
    payload = data[metadata_bounds(data)[1] :]
    del metadata.compacted_batch_indexes[:]
    if len(kept) == metadata.num_messages_in_batch:  # all stay, so none had gone before
        metadata.compacted_batch_indexes.extend(range(len(kept)))
        if metadata.compression == CompressionType.NONE:
            metadata.uncompressed_size = len(payload)
        return _with_broker_entry_metadata(data, start, encode_entry(metadata, payload)), 0
    body = _body(metadata, payload)
    left: list[bytes] = []
    for index, (single, at, end) in enumerate(_parts(metadata, body)):
        if index in kept and not single.compacted_out:
            metadata.compacted_batch_indexes.append(index)
            left.append(body[at:end])
        else:
            left.append(_GONE)
    body = b"".join(left)
    metadata.uncompressed_size = len(body)
    entry = encode_entry(metadata, compress(metadata.compression, body))
    return _with_broker_entry_metadata(data, start, entry), len(left)


def _with_broker_entry_metadata(data: EntryBytes, end: int, entry: bytes) -> bytes:
    """`entry` behind what stands before `end` in `data`."""
    return bytes(data[:end]) + entry if end else entry
