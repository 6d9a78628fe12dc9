"""Encodes messages and batches as SEND frames (pure).

A plain message or batch without compression and encryption is encoded in one step (`encode_plain`,
`encode_batch`; plain messages that go out together by `encode_plain_run`, without protobuf).
Everything else is a `Draft` first, metadata and body apart, which is compressed, encrypted and cut
into chunks before `frame` makes the frame; so its body can be compressed in a thread.

    plain      SIZES | BaseCommand | 0x0e01 crc | size MessageMetadata | payload
    batch      ... | (size SingleMessageMetadata payload) * n

A batch of one message goes out in plain layout, as Pulsar's Java client does it.

Source: Commands and BatchMessageContainerImpl in Pulsar; `wire.framing` and `wire.payload` for the
layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from pulsar_py.client.producing.batch_container import Batch
from pulsar_py.client.producing.message_builder import (
    OutgoingMessage,
    fill_key,
    fill_metadata,
    fill_single_metadata,
)
from pulsar_py.client.producing.pending_messages import Buffers
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.varint import rising_varints, varint, varints_in_row
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsar_py.wire.client_commands import SendEncoder
from pulsar_py.wire.payload import CHECKSUM_AND_SIZE, CHECKSUM_MAGIC_NUMBER

__all__ = ["Draft", "EntryEncoder"]

_SIZE: Final = Struct(">I")
_CHECKSUM: Final = Struct(">HI")
_pack_size = _SIZE.pack
_pack_checksum = _CHECKSUM.pack
_SEQUENCE_ID_TAG: Final = b"\x10"  # field 2 of MessageMetadata, a number of variable length
_PUBLISH_TIME_TAG: Final = b"\x18"  # field 3, likewise
_PAYLOAD_SIZE_TAG: Final = b"\x18"  # field 3 of SingleMessageMetadata, likewise
_SINGLE_ID_TAG: Final = b"\x40"  # field 8, likewise
_CHEAP_TO_COPY: Final = 16 * 1024  # shorter payloads are joined with their headers


_ONLY_BYTES: Final = frozenset((bytes,))


def _plain_parts(payloads: Sequence[bytes], first_sequence_id: int) -> list[bytes]:
    """What a batch consists of: a message's head, its sequence id, and its payload, in turns.

    Without protobuf, which costs 0.3 us a message more: the metadata of messages differ in two
    numbers. Where all have the same sizes they share one head, which costs 0.2 us less.
    """
    # Hot path: produce in `make bench-client`.
    count = len(payloads)
    ids = varints_in_row(first_sequence_id, count)
    size, id_size = len(payloads[0]), len(ids[0])
    if list(map(len, payloads)).count(size) == count and len(ids[-1]) == id_size:
        parts = [_head_before_id(size, id_size)] * (3 * count)
    else:
        sizes = list(zip(map(len, payloads), map(len, ids), strict=True))
        heads = {each: _head_before_id(*each) for each in dict.fromkeys(sizes)}
        parts = [b""] * (3 * count)
        parts[::3] = map(heads.__getitem__, sizes)
    parts[1::3] = ids
    parts[2::3] = payloads
    return parts


def _head_before_id(payload_bytes: int, id_bytes: int) -> bytes:
    """A message in a batch, up to its sequence id, which takes `id_bytes`."""
    before_id = _PAYLOAD_SIZE_TAG + varint(payload_bytes) + _SINGLE_ID_TAG
    return _pack_size(len(before_id) + id_bytes) + before_id


class Draft:
    """An entry before it is compressed and encrypted."""

    __slots__ = ("body", "highest_sequence_id", "messages_count", "metadata", "sequence_id")

    def __init__(
        self,
        metadata: MessageMetadata,
        body: bytes,
        sequence_id: int,
        highest_sequence_id: int,
        messages_count: int,
    ) -> None:
        self.metadata = metadata
        self.body = body
        self.sequence_id = sequence_id
        self.highest_sequence_id = highest_sequence_id
        # Messages in the batch; 0: it is one message.
        self.messages_count = messages_count


class EntryEncoder:
    """Encodes one producer's entries.

    Invariant: between two calls the reused protobuf messages hold only the fields that all entries
    have in common.
    """

    __slots__ = (
        "_after_time",
        "_before_id",
        "_head",
        "_send",
        "_single",
        "_sizes",
        "_start",
        "producer_name",
        "schema_version",
    )

    def __init__(self, producer_id: int) -> None:
        self._send = SendEncoder(producer_id)
        self._single = SingleMessageMetadata()
        # What a plain message's metadata has before its sequence id, and after its publish time.
        self._before_id = self._after_time = b""
        # The last one's frame up to its sequence ids, that of the command and that of the metadata,
        # and the sizes of payload, id and publish time that both are for.
        self._start = self._head = b""
        self._sizes = (-1, -1, -1)
        self.producer_name = ""
        self.schema_version: bytes | None = None

    def registered(self, producer_name: str, schema_version: bytes | None) -> None:
        """Use these names from now on; `schema_version` goes into messages that bring no schema."""
        self.producer_name = producer_name
        self.schema_version = schema_version or None
        self._sizes = (-1, -1, -1)
        before = MessageMetadata(producer_name=producer_name).SerializePartialToString()
        self._before_id = before + _SEQUENCE_ID_TAG
        whole = self._metadata(self.schema_version).SerializePartialToString()
        self._after_time = whole[len(before) :]

    def _metadata(self, schema_version: bytes | None) -> MessageMetadata:
        metadata = MessageMetadata(producer_name=self.producer_name)
        if schema_version is not None:
            metadata.schema_version = schema_version
        return metadata

    def encode_plain(self, payload: bytes, sequence_id: int, publish_time: int) -> Buffers:
        """The frame of a message that has nothing but a payload."""
        # Hot path: latency in `make bench-client`. Without protobuf, which takes 12 us of a message
        # that comes alone, with caches that something else has used meanwhile.
        number, time = rising_varints(sequence_id, publish_time)
        sizes = (len(payload), len(number), len(time))
        if sizes != self._sizes:
            self._begin_plain(sizes)
        head = self._head + number + _PUBLISH_TIME_TAG + time + self._after_time
        if sizes[0] <= _CHEAP_TO_COPY:
            entry = head + payload
            checksum = _pack_checksum(CHECKSUM_MAGIC_NUMBER, crc32c(entry))
            return (self._start + number + checksum + entry,)
        checksum = _pack_checksum(CHECKSUM_MAGIC_NUMBER, crc32c(payload, crc32c(head)))
        return (self._start + number + checksum + head, payload)

    def _begin_plain(self, sizes: tuple[int, int, int]) -> None:
        """Set `_start` and `_head` for a payload, a sequence id and a time of so many bytes."""
        payload_size, id_size, time_size = sizes
        size = len(self._before_id) + id_size + 1 + time_size + len(self._after_time)
        head = _pack_size(size) + self._before_id
        start = self._send.plain_start(id_size, 10 + size + payload_size)
        # Together: Ctrl-C may end each call above, in a thread that writes by itself.
        self._sizes, self._head, self._start = sizes, head, start

    def encode_plain_run(
        self, payloads: Sequence[bytes], first_sequence_id: int, publish_time: int
    ) -> list[Buffers]:
        """The frames of messages that have nothing but a payload, and sequence ids in a row.

        Each is what `encode_plain` makes of it.
        """
        # Hot path: produce unbatched in `make bench-client`.
        time = varint(publish_time)
        after_id = _PUBLISH_TIME_TAG + time + self._after_time
        frames: list[Buffers] = []
        append = frames.append
        ids = varints_in_row(first_sequence_id, len(payloads))
        for payload, sequence_id in zip(payloads, ids, strict=True):
            sizes = (len(payload), len(sequence_id), len(time))
            if sizes != self._sizes:
                self._begin_plain(sizes)
            start, head = self._start, self._head
            if len(payload) <= _CHEAP_TO_COPY:
                entry = head + sequence_id + after_id + payload
                checksum = _pack_checksum(CHECKSUM_MAGIC_NUMBER, crc32c(entry))
                append((start + sequence_id + checksum + entry,))
            else:
                entry = head + sequence_id + after_id
                checksum = _pack_checksum(CHECKSUM_MAGIC_NUMBER, crc32c(payload, crc32c(entry)))
                append((start + sequence_id + checksum + entry, payload))
        return frames

    def encode_batch(self, batch: Batch, first_sequence_id: int, publish_time: int) -> Buffers:
        """The frame of an uncompressed batch of messages without sequence ids of their own."""
        # Hot path: produce in `make bench-client`.
        messages = batch.messages
        count = len(messages)
        metadata = self._batch_metadata(batch, first_sequence_id, count, publish_time)
        highest = first_sequence_id + count - 1
        metadata.highest_sequence_id = highest
        serialized = metadata.SerializeToString()
        head = _pack_size(len(serialized)) + serialized
        if set(map(type, messages)) == _ONLY_BYTES:
            parts = _plain_parts(messages, first_sequence_id)  # type: ignore[arg-type]  # bytes
        else:
            parts = []
            self._add_messages(parts, messages, range(first_sequence_id, highest + 1))
        entry = b"".join((head, *parts))
        command = self._send.encode(
            first_sequence_id,
            6 + len(entry),
            highest_sequence_id=highest,
            messages_count=count,
        )
        return (command + _pack_checksum(CHECKSUM_MAGIC_NUMBER, crc32c(entry)), entry)

    def _add_messages(
        self,
        parts: list[bytes],
        messages: Sequence[bytes | OutgoingMessage],
        sequence_ids: Sequence[int],
    ) -> None:
        """Size, metadata and payload of each message, appended to `parts`."""
        # Hot path: produce in `make bench-client`.
        single = self._single
        serialize = single.SerializeToString
        append = parts.append
        pack_size = _pack_size
        for message, sequence_id in zip(messages, sequence_ids, strict=True):
            if type(message) is bytes:
                single.payload_size = len(message)
                single.sequence_id = sequence_id
                serialized = serialize()
                append(pack_size(len(serialized)) + serialized)
                append(message)
            else:
                self._add_message(parts, message, sequence_id)

    def _add_message(
        self, parts: list[bytes], message: OutgoingMessage | bytes, sequence_id: int
    ) -> None:
        assert isinstance(message, OutgoingMessage), f"{message!r} has a shorter way"
        single = SingleMessageMetadata(payload_size=len(message.payload), sequence_id=sequence_id)
        fill_single_metadata(single, message)
        serialized = single.SerializeToString()
        parts.append(_pack_size(len(serialized)) + serialized)
        parts.append(message.payload)

    def _batch_metadata(
        self, batch: Batch, sequence_id: int, count: int, publish_time: int
    ) -> MessageMetadata:
        traits = batch.traits
        metadata = self._metadata(traits.schema_version or self.schema_version)
        metadata.sequence_id = sequence_id
        metadata.publish_time = publish_time
        metadata.num_messages_in_batch = count
        if traits.replicate_to:
            metadata.replicate_to.extend(traits.replicate_to)
        first = batch.messages[0]
        if not isinstance(first, bytes):
            fill_key(metadata, first)
        return metadata

    def draft(self, message: OutgoingMessage, sequence_id: int, publish_time: int) -> Draft:
        """The draft of a message that goes out alone."""
        metadata = self._metadata(self.schema_version)
        metadata.sequence_id = sequence_id
        metadata.publish_time = publish_time
        fill_metadata(metadata, message)
        return Draft(metadata, message.payload, sequence_id, sequence_id, 0)

    def draft_batch(self, batch: Batch, sequence_ids: Sequence[int], publish_time: int) -> Draft:
        """The draft of a batch of several messages."""
        count = len(batch.messages)
        lowest, highest = min(sequence_ids), max(sequence_ids)
        metadata = self._batch_metadata(batch, lowest, count, publish_time)
        metadata.highest_sequence_id = highest
        parts: list[bytes] = []
        self._add_messages(parts, batch.messages, sequence_ids)
        return Draft(metadata, b"".join(parts), lowest, highest, count)

    def frame(
        self, draft: Draft, metadata: MessageMetadata, payload: bytes, *, is_chunk: bool = False
    ) -> Buffers:
        """The frame of a draft, or of one chunk of it; `payload` is compressed and encrypted."""
        serialized = metadata.SerializeToString()
        size = len(serialized)
        checksum = crc32c(payload, crc32c(serialized, crc32c(_pack_size(size))))
        command = self._send.encode(
            draft.sequence_id,
            10 + size + len(payload),
            highest_sequence_id=draft.highest_sequence_id if draft.messages_count else None,
            messages_count=draft.messages_count or 1,
            is_chunk=is_chunk,
        )
        head = CHECKSUM_AND_SIZE.pack(CHECKSUM_MAGIC_NUMBER, checksum, size)
        return (command + head + serialized, payload)
