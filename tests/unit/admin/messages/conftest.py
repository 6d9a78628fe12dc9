"""The broker in memory of the other resources, and messages in its topics."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import CompressionType, KeyValue, MessageMetadata
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.compression import compress
from pulsar_py.wire.payload import encode_entry
from tests.unit.admin.resources.conftest import Admin, admin

__all__ = ["admin"]

T = "/admin/v2/persistent/public/default/a"


def metadata_of(number: int = 0, **fields: object) -> MessageMetadata:
    return MessageMetadata(
        producer_name="p",
        sequence_id=number,
        publish_time=1_700_000_000_000 + number,
        **fields,  # type: ignore[arg-type] # fields of the message
    )


def entry_of(number: int, payload: bytes, **fields: object) -> bytes:
    """An entry of one message, compressed if `compression` is among the fields."""
    metadata = metadata_of(number, **fields)
    if metadata.compression != CompressionType.NONE:
        metadata.uncompressed_size = len(payload)
        payload = compress(metadata.compression, payload)
    return encode_entry(metadata, payload)


def property_of(name: str, value: str) -> KeyValue:
    return KeyValue(key=name, value=value)


async def topic_with(admin: Admin, *entries: bytes, name: str = "a") -> PersistentTopic:
    """A topic with a subscription `s` and these entries."""
    path = T.removesuffix("a") + name
    await admin.call("PUT", f"{path}/subscription/s", "earliest")
    topic = await admin.service.topics.get_or_load(
        TopicName.parse(f"persistent://public/default/{name}"), create_if_missing=False
    )
    assert isinstance(topic, PersistentTopic)
    for entry in entries:
        await topic.ledger.append_and_wait(entry)
    return topic


def messages(count: int) -> list[bytes]:
    return [entry_of(number, f"m{number}".encode()) for number in range(count)]
