"""Messages as a consumer would hand them out, made by hand."""

from __future__ import annotations

from pulsar_py.client.messages.message import Message, ReceivedEntry
from pulsar_py.client.receiving.received_batch import ReceivedBatch, batch_of
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)

OWN_OF_BYTES = b"\x12\x01\xff" + b"\x0a\x06\x0a\x01k\x12\x01\xff"
"""Of a batch's message: a key and a property that are no UTF-8."""

TOPIC = "persistent://public/default/t-partition-3"


def plain(data: bytes, **fields: object) -> Message:
    """A message that came alone; `fields` are those of its metadata."""
    metadata = MessageMetadata(producer_name="p", sequence_id=7, publish_time=1000)
    for name, value in fields.items():
        if name == "properties":
            metadata.properties.extend(KeyValue(key=k, value=v) for k, v in value.items())
        else:
            setattr(metadata, name, value)
    return Message.of(data, key=(4, 5), topic=TOPIC, metadata=metadata)


def of_bytes(wire: bytes) -> MessageMetadata:
    """Metadata with more fields, as they stand on the wire."""
    metadata = MessageMetadata(producer_name="p", sequence_id=7, publish_time=1000)
    metadata.MergeFromString(wire)
    return metadata


def batch(payloads: list[bytes], **fields: object) -> list[Message]:
    """A batch at 6:9 whose broker counts messages; `fields` are those of each single metadata."""
    metadata = MessageMetadata(
        producer_name="p", sequence_id=20, publish_time=2000, num_messages_in_batch=len(payloads)
    )
    entry = ReceivedEntry(
        (6, 9),
        TOPIC,
        metadata,
        partition_index=3,
        batch_size=len(payloads),
        broker_metadata=BrokerEntryMetadata(broker_timestamp=2500, index=99),
    )
    singles = [SingleMessageMetadata(payload_size=len(each), **fields) for each in payloads]
    return [
        Message(entry, index, single, data)
        for index, (single, data) in enumerate(zip(singles, payloads, strict=True))
    ]


def received_batch(
    payloads: list[bytes], singles: list[SingleMessageMetadata] | None = None, **fields: object
) -> ReceivedBatch:
    """A batch at 6:9 that came as a whole; `fields` are those of its metadata."""
    metadata = MessageMetadata(
        producer_name="p",
        sequence_id=20,
        publish_time=2000,
        num_messages_in_batch=len(payloads),
        **fields,
    )
    parts = []
    for index, payload in enumerate(payloads):
        single = singles[index] if singles else SingleMessageMetadata(sequence_id=index)
        single.payload_size = len(payload)
        head = single.SerializeToString()
        parts.append(len(head).to_bytes(4, "big") + head + payload)
    entry = ReceivedEntry(
        (6, 9),
        TOPIC,
        metadata,
        partition_index=3,
        batch_size=len(payloads),
        broker_metadata=BrokerEntryMetadata(broker_timestamp=2500, index=999),
    )
    batch = batch_of(entry, b"".join(parts), 0)
    assert batch is not None, "too small, or has null values"
    return batch
