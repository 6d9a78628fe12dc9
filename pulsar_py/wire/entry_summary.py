"""`EntrySummary`: the parts of an entry's metadata that dispatch needs, parsed once (pure).

Plain entries, which most unbatched messages are, are recognised by the shape of their metadata and
not parsed at all; every other entry's metadata is parsed, large metadata without its
lists (`payload.parse_fields`).

Source: MessageMetadata in PulsarApi.proto; Commands.resolveStickyKey in Pulsar.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import UNREADABLE, PayloadError
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.proto.PulsarPyEntry_pb2 import EntryFields
from pulsar_py.wire.payload import (
    CHECKSUM_AND_SIZE,
    CHECKSUM_BLOCK_SIZE,
    CHECKSUM_MAGIC_NUMBER,
    MAGIC_BROKER_ENTRY_METADATA,
    PARSED_WHOLE_BYTES,
    metadata_bounds,
    parse_broker_entry_metadata,
    parse_fields,
)

_unpack_headers = CHECKSUM_AND_SIZE.unpack_from
_HEADERS_SIZE = CHECKSUM_AND_SIZE.size

NONE_KEY: Final = b"NONE_KEY"
"""The sticky key of an entry without any key."""

NO_MARKER: Final = -1


class EntrySummary:
    """The parts of an entry's metadata that dispatch needs; kept beside it, never changed.

    An entry whose metadata can't be read has `is_readable` False and counts as one message: it was
    stored and receipted, and is never delivered.
    """

    __slots__ = ()

    is_plain: bool
    """Whether it is one whole, readable message of a user, without delay or transaction, so that no
    filter has to look at it."""
    is_readable: bool
    messages_count: int
    """At least 1."""
    is_batch: bool
    """Whether the payload has the layout of a batch, be it of one message."""
    producer_name: str
    sequence_id: int
    highest_sequence_id: int
    """That of a batch's last message if the producer sent it, else equal to `sequence_id`."""
    publish_time_millis: int
    broker_timestamp_millis: int
    """0 where the broker stored none."""
    deliver_at_time_millis: int
    """0 where delivery is not delayed."""
    marker_type: int
    """A `MarkerType`, or -1 where the entry is a message of a user."""
    partition_key: str | None
    is_partition_key_base64: bool
    ordering_key: bytes | None
    uuid: str | None
    """The id of a chunked message, equal in all its chunks; without it the next three are 0."""
    chunk_id: int
    chunks_count: int
    total_chunk_bytes: int
    txn_id: tuple[int, int] | None
    """Most and least significant bits."""
    replicated_from: str | None
    has_encryption_keys: bool
    is_null_value: bool
    compression: int
    uncompressed_size: int
    """0 where the producer did not set it."""
    payload_size: int

    @property
    def is_marker(self) -> bool:
        """Whether the entry is a marker, which a broker wrote; markers are never delivered."""
        return self.marker_type >= 0

    @property
    def is_chunk(self) -> bool:
        """Whether the entry is a part of a message."""
        return self.uuid is not None

    @property
    def is_last_chunk(self) -> bool:
        """Whether the entry completes a message: it is whole, or the last of its chunks."""
        return self.uuid is None or self.chunk_id == self.chunks_count - 1

    @property
    def timestamp_millis(self) -> int:
        """The time for seek and expiry: the broker's clock if stored, else the client's."""
        return self.broker_timestamp_millis or self.publish_time_millis


class FullSummary(EntrySummary):
    """The summary of any entry; all fields are read when it is made."""

    __slots__ = (
        "broker_timestamp_millis",
        "chunk_id",
        "chunks_count",
        "compression",
        "deliver_at_time_millis",
        "has_encryption_keys",
        "highest_sequence_id",
        "is_batch",
        "is_null_value",
        "is_partition_key_base64",
        "is_plain",
        "is_readable",
        "marker_type",
        "messages_count",
        "ordering_key",
        "partition_key",
        "payload_size",
        "producer_name",
        "publish_time_millis",
        "replicated_from",
        "sequence_id",
        "total_chunk_bytes",
        "txn_id",
        "uncompressed_size",
        "uuid",
    )


class PlainSummary(EntrySummary):
    """The summary of an entry whose metadata has the three required fields and nothing else.

    Most unbatched messages are such entries. It costs one object and no parsing: the fields that
    dispatch reads are equal in all plain entries, and the others are parsed on first use.
    """

    __slots__ = ("_data",)

    is_plain = True
    is_readable = True
    messages_count = 1
    is_batch = False
    broker_timestamp_millis = 0
    deliver_at_time_millis = 0
    marker_type = NO_MARKER
    partition_key = None
    is_partition_key_base64 = False
    ordering_key = None
    uuid = None
    chunk_id = chunks_count = total_chunk_bytes = 0
    txn_id = None
    replicated_from = None
    has_encryption_keys = False
    is_null_value = False
    compression = 0
    uncompressed_size = 0

    def __init__(self, data: EntryBytes) -> None:
        """`data` is the stored entry, without broker entry metadata in front."""
        self._data = data

    @property
    def producer_name(self) -> str:  # type: ignore[override]  # Read when asked.
        """The name of the producer."""
        return parse_fields(self._data).producer_name

    @property
    def sequence_id(self) -> int:  # type: ignore[override]  # Read when asked.
        """The producer's sequence id."""
        return parse_fields(self._data).sequence_id

    @property
    def highest_sequence_id(self) -> int:  # type: ignore[override]  # Read when asked.
        """Equal to `sequence_id`, since the entry is one message."""
        return self.sequence_id

    @property
    def publish_time_millis(self) -> int:  # type: ignore[override]  # Read when asked.
        """The publish time, milliseconds since 1970 by the producer's clock."""
        return parse_fields(self._data).publish_time

    @property
    def payload_size(self) -> int:  # type: ignore[override]  # Read when asked.
        """The bytes after the metadata."""
        return len(self._data) - metadata_bounds(self._data)[1]


class PlainMark:
    """Stands for the summary of a plain entry; has the fields that are equal in all of them.

    It saves an object for each entry where a reader needs nothing else.
    """

    __slots__ = ()

    is_plain = True
    messages_count = 1


PLAIN: Final = PlainMark()


# Where producer_name's length stands in an entry with a checksum, and what precedes it: its tag.
_NAME_LENGTH_AT = CHECKSUM_BLOCK_SIZE + 5
_NAME_TAG = 0x0A
_ONE_BYTE_VARINT_END = 0x80
_CHECKSUM_AT = 2
_SIZE_AT = CHECKSUM_BLOCK_SIZE

_TOGETHER_COUNT = 100
"""How many headers one comparison takes; each shape keeps two numbers of that many headers, some
kilobytes."""

_NEW_SHAPE_EVERY = 32
"""Plain entries of other shapes after which one becomes the new shape: where producers alternate,
changing the shape with each entry would cost more than it saves."""

# sequence_id and publish_time, and nothing behind them.
_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_is_plain_tail = re.compile(rb"\x10" + _VARINT + rb"\x18" + _VARINT).fullmatch


def summarize_entry(data: EntryBytes) -> EntrySummary:
    """The summary of a stored entry; of an unreadable one `is_readable` is False."""
    # Hot path: summarize_entry in benchmarks/micro.
    return PlainSummary(data) if plain_headers_end(data) else summarize_parsed(data)


def plain_headers_end(data: EntryBytes) -> int:
    """The offset after the metadata of a plain entry; 0 if the entry is not plain."""
    try:
        magic, _, size = _unpack_headers(data)
        if (
            magic == CHECKSUM_MAGIC_NUMBER
            and data[_NAME_LENGTH_AT - 1] == _NAME_TAG
            and (length := data[_NAME_LENGTH_AT]) < _ONE_BYTE_VARINT_END
            and (end := _HEADERS_SIZE + int(size)) <= len(data)
            and _is_plain_tail(data, _NAME_LENGTH_AT + 1 + length, end)
        ):
            return end
    except (struct.error, IndexError):
        pass
    return 0


class PlainShape:
    """The headers that plain entries of one producer share, as one comparison of large numbers.

    They differ only in checksum, sequence id and publish time, and of the latter two the varints
    must have the same lengths, which their highest bits say. Entries of another shape are examined
    one by one, and every `_NEW_SHAPE_EVERY`th plain one of them becomes the new shape.

    Invariant: a `data` with `int.from_bytes(data[:end]) & mask == pattern` is a plain entry.
    """

    __slots__ = ("_others_count", "_repeated", "end", "mask", "pattern")

    def __init__(self) -> None:
        self.end = 0
        self.mask = 0
        self.pattern = 1  # nothing has this shape
        self._others_count = 0  # plain entries of other shapes
        # Mask and pattern of `_TOGETHER_COUNT` headers, one after the other.
        self._repeated = (0, 1)

    def is_plain(self, data: EntryBytes) -> bool:
        """Whether it is a plain entry, of this shape or another."""
        if int.from_bytes(data[: self.end], "big") & self.mask == self.pattern:
            return True
        end = plain_headers_end(data)
        if end:
            self.meet(data, end)
        return end > 0

    def meet(self, data: EntryBytes, end: int) -> None:
        """Take note of a plain entry of another shape, whose headers end at `end`."""
        if self._others_count % _NEW_SHAPE_EVERY == 0:
            self._learn(bytes(data[:end]))
        self._others_count += 1

    def are_plain(self, entries: Sequence[EntryBytes]) -> bool:
        """Whether all of them are plain entries, of this shape or others."""
        # Hot path: catch-up in `make bench`. One comparison for many; measured: 0.15 -> 0.05 µs.
        end = self.end
        if end and len(entries) > 1:
            if isinstance(entries, PackedEntries):
                heads: Sequence[EntryBytes] = entries.heads(end)
            else:
                heads = [data[:end] for data in entries]
            places = range(0, len(heads), _TOGETHER_COUNT)
            if all(self._have_shape(heads[place : place + _TOGETHER_COUNT]) for place in places):
                return True
        return all(map(self.is_plain, entries))

    def _have_shape(self, heads: Sequence[EntryBytes]) -> bool:
        joined, count = b"".join(heads), len(heads)
        if len(joined) != count * self.end:
            return False
        mask, pattern = self._repeated
        if count != _TOGETHER_COUNT:
            others = 8 * self.end * (_TOGETHER_COUNT - count)
            mask, pattern = mask >> others, pattern >> others
        return int.from_bytes(joined, "big") & mask == pattern

    def _learn(self, headers: bytes) -> None:
        mask, tail_at = bytearray(headers), _NAME_LENGTH_AT + 1 + headers[_NAME_LENGTH_AT]
        mask[:tail_at] = b"\xff" * tail_at
        mask[_CHECKSUM_AT:_SIZE_AT] = bytes(_SIZE_AT - _CHECKSUM_AT)
        is_tag = True
        for at in range(tail_at, len(headers)):
            mask[at] = 0xFF if is_tag else 0x80
            is_tag = not is_tag and headers[at] < _ONE_BYTE_VARINT_END
        self.end = len(headers)
        self.mask = int.from_bytes(mask, "big")
        self.pattern = int.from_bytes(headers, "big") & self.mask
        self._repeated = (
            int.from_bytes(bytes(mask) * _TOGETHER_COUNT, "big"),
            int.from_bytes(self.pattern.to_bytes(self.end, "big") * _TOGETHER_COUNT, "big"),
        )


def summarize_parsed(data: EntryBytes) -> FullSummary:
    """The summary of any entry, by parsing its metadata; never raises."""
    summary = FullSummary()
    metadata: MessageMetadata | EntryFields
    try:
        start, end = metadata_bounds(data)
        kind = MessageMetadata if end - start <= PARSED_WHOLE_BYTES else EntryFields
        metadata = kind.FromString(bytes(data[start:end]))
        is_readable = metadata.IsInitialized()
    except (*UNREADABLE, PayloadError):
        metadata = EntryFields()
        is_readable = False
        end = len(data)
    has = metadata.HasField
    summary.is_readable = is_readable
    summary.is_batch = has("num_messages_in_batch")
    summary.messages_count = max(metadata.num_messages_in_batch, 1)
    summary.producer_name = metadata.producer_name
    summary.sequence_id = sequence_id = metadata.sequence_id
    summary.highest_sequence_id = metadata.highest_sequence_id or sequence_id
    summary.publish_time_millis = metadata.publish_time
    summary.broker_timestamp_millis = (
        _broker_timestamp(data) if data[:2] == MAGIC_BROKER_ENTRY_METADATA else 0
    )
    summary.deliver_at_time_millis = metadata.deliver_at_time
    summary.marker_type = metadata.marker_type if has("marker_type") else NO_MARKER
    if has("partition_key"):
        summary.partition_key = metadata.partition_key
        summary.is_partition_key_base64 = metadata.partition_key_b64_encoded
    else:
        summary.partition_key = None
        summary.is_partition_key_base64 = False
    summary.ordering_key = metadata.ordering_key if has("ordering_key") else None
    summary.uuid = uuid = metadata.uuid or None
    if uuid is not None:
        summary.chunk_id = metadata.chunk_id
        summary.chunks_count = metadata.num_chunks_from_msg
        summary.total_chunk_bytes = metadata.total_chunk_msg_size
    else:
        summary.chunk_id = summary.chunks_count = summary.total_chunk_bytes = 0
    summary.txn_id = (
        (metadata.txnid_most_bits, metadata.txnid_least_bits) if has("txnid_most_bits") else None
    )
    summary.replicated_from = metadata.replicated_from or None
    summary.has_encryption_keys = bool(metadata.encryption_keys)
    summary.is_null_value = metadata.null_value
    summary.compression = metadata.compression
    summary.uncompressed_size = metadata.uncompressed_size
    summary.payload_size = len(data) - end
    summary.is_plain = is_readable and not (
        summary.is_batch
        or summary.deliver_at_time_millis
        or summary.marker_type >= 0
        or summary.txn_id is not None
        or uuid is not None
    )
    return summary


def _broker_timestamp(data: EntryBytes) -> int:
    try:
        metadata = parse_broker_entry_metadata(data)
    except PayloadError:
        return 0
    return metadata.broker_timestamp if metadata is not None else 0


def sticky_key(summary: EntrySummary) -> bytes:
    """The key by which Key_Shared chooses a consumer; of a batch, that of its first message.

    Source: Commands.resolveStickyKey.
    """
    if summary.ordering_key is not None:
        return summary.ordering_key
    if summary.partition_key is not None:
        return decode_partition_key(
            summary.partition_key, is_base64=summary.is_partition_key_base64
        )
    if summary.is_readable:
        return f"{summary.producer_name}-{summary.sequence_id}".encode()
    return NONE_KEY


def decode_partition_key(key: str | bytes, *, is_base64: bool) -> bytes:
    """A key's bytes; the text itself if it is flagged as Base64 but can't be decoded.

    A key that is not UTF-8 comes as bytes: upb does not refuse it.
    """
    if is_base64:
        try:
            return b64decode(key, validate=True)
        except ValueError:
            pass
    return key if isinstance(key, bytes) else key.encode()
