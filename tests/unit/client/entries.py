"""Entries and messages as brokers send them, for tests of what consumers do with them."""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.client.messages.message import EntryKey, Message, ReceivedEntry
from pulsar_py.common.ack_set import full_bits
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandMessage,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsar_py.wire.batch import join_batch
from pulsar_py.wire.compression import compress
from pulsar_py.wire.payload import encode_entry

TOPIC = "persistent://public/default/t"


def metadata(**fields: object) -> MessageMetadata:
    values = {"producer_name": "p", "sequence_id": 7, "publish_time": 1000, **fields}
    return MessageMetadata(**values)


def entry(key: EntryKey = (1, 0), *, batch_size: int = 0, **options: object) -> ReceivedEntry:
    """An entry of whose messages nothing is acknowledged."""
    bits = full_bits(batch_size or 1)
    return ReceivedEntry(
        key, TOPIC, metadata(), batch_size=batch_size, unacked_bits=bits, **options
    )


def message(data: bytes = b"x", key: EntryKey = (1, 0)) -> Message:
    return Message(entry(key), -1, None, data)


def command(key: EntryKey = (1, 0), **fields: object) -> CommandMessage:
    found = CommandMessage(consumer_id=0, **fields)
    found.message_id.ledgerId, found.message_id.entryId = key
    return found


def single(payload: bytes = b"hello", **fields: object) -> bytes:
    """A plain entry, compressed if the fields say so."""
    meta = metadata(**fields)
    if meta.compression:
        if not meta.HasField("uncompressed_size"):
            meta.uncompressed_size = len(payload)
        payload = compress(meta.compression, payload)
    return encode_entry(meta, payload)


def batch(
    payloads: Sequence[bytes],
    *,
    singles: Sequence[SingleMessageMetadata] | None = None,
    **fields: object,
) -> bytes:
    parts = singles or [SingleMessageMetadata(sequence_id=i) for i in range(len(payloads))]
    body = join_batch(zip(parts, payloads, strict=True))
    meta = metadata(**{"num_messages_in_batch": len(payloads), **fields})
    if meta.compression:
        if not meta.HasField("uncompressed_size"):
            meta.uncompressed_size = len(body)
        body = compress(meta.compression, body)
    return encode_entry(meta, body)


def chunk(
    chunk_id: int, payload: bytes, *, count: int, total: int, uuid: str = "p-7", **fields: object
) -> bytes:
    return single(
        payload,
        uuid=uuid,
        chunk_id=chunk_id,
        num_chunks_from_msg=count,
        total_chunk_msg_size=total,
        **fields,
    )
