"""`ReceivedBatch`: a batch handed out as a whole, whose `Message`s are made only on demand (pure).

A caller that makes columns of messages needs to know where payloads lie and which metadata all
messages share, rather than an object for each. A `ReceivedBatch` says that; as a sequence it
makes the messages when somebody asks for them. `batch_of` finds out where the payloads lie:

    all messages have the same sizes    a few comparisons of a byte in all of them
    sizes and sequence ids alone        read byte by byte
    others                              metadata parsed, once where its bytes repeat

and leaves incomplete batches to `entry_decoder.messages_of`: messages that were compacted out,
null values, and damaged batches.

Source: SingleMessageMetadata in PulsarApi.proto; `wire.batch` for the layout.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, overload

from pulsar_py.client.messages.message import Message, OwnMetadata, ReceivedEntry
from pulsar_py.common.errors import UNREADABLE
from pulsar_py.common.varint import after_varint
from pulsar_py.proto.PulsarApi_pb2 import SingleMessageMetadata

__all__ = ["BARE_METADATA", "MIN_WHOLE_BATCH", "ReceivedBatch", "batch_of"]

MIN_WHOLE_BATCH: Final = 32
"""Batches of at least so many messages are handed out whole; smaller ones are cheaper as
messages."""

_SIZE: Final = Struct(">I")
_BARE: Final = Struct(">IBBBBB")
"""The head of a message: the size of its metadata, a tag, up to three bytes of a varint, and the
next byte. If the batch's last message is shorter than this, `_bare` gives up."""
_MAX_HEADER_BYTES: Final = 64
"""Metadata of at most so many bytes is compared byte by byte with the other messages'."""
_MAX_KEPT_COUNT: Final = 4096
"""Offsets are cached for batches of at most so many messages."""
_MORE: Final = 0x80
"""The bit that is set in all bytes of a varint but its last one."""
_HIGH_BYTES: Final = bytes(range(_MORE, 256))
_PAYLOAD_SIZE_TAG: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER << 3
_SEQUENCE_ID_TAG: Final = SingleMessageMetadata.SEQUENCE_ID_FIELD_NUMBER << 3

BARE_METADATA: Final = SingleMessageMetadata(payload_size=0)
"""What a message without metadata of its own has; don't change it."""
_BARE_FIELDS: Final = {
    SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER,
    SingleMessageMetadata.SEQUENCE_ID_FIELD_NUMBER,
}

_parse_single = SingleMessageMetadata.FromString


class Layout(NamedTuple):
    """Offsets and metadata of the messages of a batch."""

    bounds: array[int]
    """The offset of the first message, of its payload, of the second message, and so on; the last
    is the end of the batch. Other batches may share the object: don't change it."""
    own: Sequence[OwnMetadata]
    """The messages' own metadata; a single one if all are equal except for sequence ids."""


class ReceivedBatch(Sequence[Message]):
    """The messages of one entry, none of them left out or null."""

    __slots__ = ("_messages", "body", "bounds", "entry", "own")

    def __init__(self, entry: ReceivedEntry, body: bytes | memoryview, layout: Layout) -> None:
        self.entry = entry
        # Decrypted and decompressed; see `Layout` for the next two.
        self.body = body
        self.bounds, self.own = layout
        # The messages, once one of them was asked for.
        self._messages: list[Message] | None = None

    def __len__(self) -> int:
        return self.entry.batch_size

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self.messages()[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages())

    @property
    def last(self) -> Message:
        """The last message, with its id alone: no payload or metadata."""
        return Message(self.entry, self.entry.batch_size - 1, b"", b"")

    @property
    def is_bare(self) -> bool:
        """Whether no message has more of its own than a size and a sequence id."""
        if len(self.own) > 1:
            return False
        own = self.own[0]
        return isinstance(own, SingleMessageMetadata) and all(
            field.number in _BARE_FIELDS for field, _ in own.ListFields()
        )

    def size(self) -> int:
        """Bytes of all messages, with their own metadata."""
        return self.bounds[-1] - self.bounds[0]

    def payloads(self) -> list[bytes]:
        """The payload of each message."""
        body = bytes(self.body)  # slices of bytes cost less than those of a memoryview
        bounds = zip(self.bounds[1::2], self.bounds[2::2], strict=True)
        return [body[start:end] for start, end in bounds]

    def messages(self) -> list[Message]:
        """All messages, made now if they were not before."""
        if self._messages is None:
            body, entry = self.body, self.entry
            heads = zip(self.bounds[:-1:2], self.bounds[1::2], strict=True)
            self._messages = [
                Message(entry, index, bytes(body[start + 4 : end]), data)
                for index, ((start, end), data) in enumerate(
                    zip(heads, self.payloads(), strict=True)
                )
            ]
        return self._messages


def batch_of(entry: ReceivedEntry, body: bytes | memoryview, start: int) -> ReceivedBatch | None:
    """The batch as a whole; None if its messages have to be decoded one by one.

    Args:
        entry: The entry of the batch.
        body: Holds the batch from `start` on, decrypted and decompressed.
        start: The offset at which the batch begins.
    """
    # Hot path: batch read in `make bench-spark`.
    count = entry.batch_size
    if count < MIN_WHOLE_BATCH or entry.metadata.compacted_batch_indexes:
        return None
    for lay_out in (_same_sized, _bare, _parsed):
        with suppress(*UNREADABLE, IndexError, OverflowError, struct.error):
            layout = lay_out(body, start, count)
            if layout is not None and layout.bounds[-1] <= len(body):
                return ReceivedBatch(entry, body, layout)
    return None


def _same_sized(body: bytes | memoryview, start: int, count: int) -> Layout | None:
    """The layout of messages with equal sizes and equal metadata but for sequence ids, or None."""
    step, rest = divmod(len(body) - start, count)
    header_size = 4 + _SIZE.unpack_from(body, start)[0]
    if rest or header_size > min(step, _MAX_HEADER_BYTES):
        return None
    head = bytes(body[start : start + header_size])
    single = _parse_single(head[4:])
    if header_size + single.payload_size != step or not _is_whole(single):
        return None
    differing_from = _sequence_id_at(head)
    shape = _kept_shape if count <= _MAX_KEPT_COUNT else _shape
    # Side by side, so that their columns are read from the processor's cache.
    heads = b"".join(shape(header_size, step - header_size, count).unpack_from(body, start))
    for offset, byte in enumerate(head):
        column = heads[offset::header_size]
        if column == head[offset : offset + 1] * count:
            continue
        # Sequence ids may differ, but their varints must have the same length.
        is_alike = column.isascii() if byte < _MORE else not column.translate(None, _HIGH_BYTES)
        if offset < differing_from or not is_alike:
            return None
    end = len(body)
    even_bounds = _kept_even_bounds if count <= _MAX_KEPT_COUNT else _even_bounds
    return Layout(even_bounds(start, end, step, header_size), (single,))


def _shape(header_size: int, payload_size: int, count: int) -> Struct:
    """Unpacks the heads of messages, which payloads follow."""
    return Struct(f"{header_size}s{payload_size}x" * count)


_kept_shape = lru_cache(maxsize=8)(_shape)
"""A shape takes 32 bytes a message, and half the time of slices of the body, byte by byte."""


def _even_bounds(start: int, end: int, step: int, header_size: int) -> array[int]:
    """The `Layout.bounds` of messages that are `step` bytes apart."""
    bounds = array("i", bytes(4 * (2 * (end - start) // step + 1)))
    bounds[:-1:2] = array("i", range(start, end, step))
    bounds[1::2] = array("i", range(start + header_size, end + 1, step))
    bounds[-1] = end
    return bounds


_kept_even_bounds = lru_cache(maxsize=64)(_even_bounds)
"""Consecutive batches often have the same offsets: 0.1 us a message less."""


def _sequence_id_at(head: bytes) -> int:
    """The offset of the sequence id in metadata that has only it and the payload's size.

    The end of `head` if there is no sequence id. `head` is a message's metadata and its size.
    """
    end = len(head)
    at = after_varint(head, 5) if head[4] == _PAYLOAD_SIZE_TAG else end
    if at < end and head[at] == _SEQUENCE_ID_TAG and after_varint(head, at + 1) == end:
        return at + 1
    return end


def _is_whole(single: SingleMessageMetadata) -> bool:
    return not single.compacted_out and not single.null_value and single.payload_size >= 0


def _bare(body: bytes | memoryview, start: int, count: int) -> Layout | None:
    """The layout of messages that have only a payload size, up to 2 MB, and a sequence id."""
    bounds: list[int] = []
    add = bounds.append
    unpack = _BARE.unpack_from
    position = start
    for _ in range(count):
        size, tag, low, middle, high, behind = unpack(body, position)
        if tag != _PAYLOAD_SIZE_TAG:
            return None
        if low < _MORE:
            payload_size, following, at = low, middle, position + 6
        elif middle < _MORE:
            payload_size, following, at = low - _MORE + (middle << 7), high, position + 7
        elif high < _MORE:
            payload_size = low - _MORE + (middle - _MORE << 7) + (high << 14)
            following, at = behind, position + 8
        else:
            return None
        add(position)
        split = position + 4 + size
        add(split)
        if at != split:
            if following != _SEQUENCE_ID_TAG:
                return None
            at += 1
            while body[at] >= _MORE:
                at += 1
            if at + 1 != split:
                return None
        position = split + payload_size
    add(position)
    return Layout(array("i", bounds), (BARE_METADATA,))


def _parsed(body: bytes | memoryview, start: int, count: int) -> Layout | None:
    """The layout of messages with any metadata, which is parsed; None if one is null or damaged."""
    bounds: list[int] = []
    own: list[SingleMessageMetadata] = []
    known: dict[bytes, SingleMessageMetadata] = {}
    unpack = _SIZE.unpack_from
    position = start
    for _ in range(count):
        split = position + 4 + unpack(body, position)[0]
        head = bytes(body[position + 4 : split])
        single = known.get(head)
        if single is None:
            single = known[head] = _parse_single(head)
            if not _is_whole(single):
                return None
        own.append(single)
        bounds += (position, split)
        position = split + single.payload_size
    bounds.append(position)
    return Layout(array("i", bounds), own)
