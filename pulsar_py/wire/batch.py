"""Splits and joins batches: several messages in the payload of one entry (pure).

    for each message, back to back:
        size      u32  big endian, of what follows
        SingleMessageMetadata
        payload   payload_size bytes, as its metadata says

The metadata of the entry has `num_messages_in_batch`, also where that is 1; without it the payload
is one plain message. This is the layout before compression and encryption. A compacted batch lists
the indexes of the messages that stayed; the others are there without a payload, as `compacted_out`
(so Apache Pulsar 4.2 writes it), or not at all.

Source: Commands.serializeSingleMessageInBatchWithPayload and BatchMessageContainer in Pulsar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import UNREADABLE, PayloadError
from pulsar_py.proto.PulsarApi_pb2 import SingleMessageMetadata

_SIZE = Struct(">I")


class BatchedMessage(NamedTuple):
    """One message of a batch."""

    batch_index: int
    """Its index when the batch was sent."""
    metadata: SingleMessageMetadata
    payload: bytes


def split_batch(
    body: bytes, messages_count: int, compacted_batch_indexes: Sequence[int] = ()
) -> list[BatchedMessage]:
    """The messages of a batch's body, decompressed; those that were compacted away are left out.

    Raises:
        PayloadError: The body does not hold that many messages.
    """
    return list(each_in_batch(body, messages_count, compacted_batch_indexes))


def each_in_batch(
    body: bytes, messages_count: int, compacted_batch_indexes: Sequence[int] = ()
) -> Iterator[BatchedMessage]:
    """As `split_batch`, one by one: who works on many messages lets others have a turn."""
    position = 0
    indexes = batch_indexes(body, 0, messages_count, compacted_batch_indexes)
    for index, batch_index in enumerate(indexes):
        position, metadata, payload = _read_message(body, position, index)
        if not metadata.compacted_out:
            yield BatchedMessage(batch_index, metadata, payload)


def batch_indexes(
    body: EntryBytes, start: int, messages_count: int, compacted_batch_indexes: Sequence[int]
) -> Sequence[int]:
    """The batch index of each message that the body holds from `start` on, in order."""
    kept_count = len(compacted_batch_indexes)
    if not kept_count or kept_count == messages_count:
        return range(messages_count)
    position = start
    for number in range(messages_count):
        if position + _SIZE.size > len(body):
            return compacted_batch_indexes if number == kept_count else range(messages_count)
        split = position + _SIZE.size + _SIZE.unpack_from(body, position)[0]
        try:
            single = SingleMessageMetadata.FromString(bytes(body[position + _SIZE.size : split]))
        except UNREADABLE:
            break  # who reads the messages says what is wrong
        position = split + max(single.payload_size, 0)
    return range(messages_count)


def _read_message(body: bytes, start: int, index: int) -> tuple[int, SingleMessageMetadata, bytes]:
    if start + 4 > len(body):
        raise PayloadError(f"batch of {len(body)} bytes ends before message {index}")
    (size,) = _SIZE.unpack_from(body, start)
    split = start + 4 + size
    try:
        metadata = SingleMessageMetadata.FromString(body[start + 4 : split])
    except UNREADABLE as error:
        raise PayloadError(f"message {index} of a batch: {error}") from error
    end = split + metadata.payload_size
    if split > len(body) or not metadata.IsInitialized() or not split <= end <= len(body):
        raise PayloadError(
            f"message {index} of a batch: its payload of {metadata.payload_size} bytes at {split} "
            f"does not fit the batch's {len(body)} bytes"
        )
    return end, metadata, body[split:end]


def join_batch(messages: Iterable[tuple[SingleMessageMetadata, bytes]]) -> bytes:
    """A batch's body; `payload_size` is set in each metadata."""
    parts: list[bytes] = []
    for metadata, payload in messages:
        metadata.payload_size = len(payload)
        serialized = metadata.SerializeToString()
        parts += (_SIZE.pack(len(serialized)), serialized, payload)
    return b"".join(parts)
