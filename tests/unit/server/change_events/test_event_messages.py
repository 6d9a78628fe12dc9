"""Messages of `__change_events`, against those that Apache Pulsar wrote."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from pulsar_py.server.change_events.event_messages import (
    MAX_BODY_BYTES,
    EventMessage,
    event_entry,
    messages_of,
)
from pulsar_py.server.policies.policy_events import decode_event
from pulsar_py.wire.batch import join_batch
from pulsar_py.wire.compression import compress
from pulsar_py.wire.payload import encode_entry, split_entry

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "recordings" / "change_events.json").read_text()
)
HEAD: dict[str, Any] = {"producer_name": "p", "sequence_id": 1, "publish_time": 7}


@pytest.mark.parametrize("message", RECORDED["messages"])
def test_recorded_messages_are_written_and_read_the_same(message: dict[str, Any]) -> None:
    metadata = MessageMetadata.FromString(bytes.fromhex(message["metadata_hex"]))
    payload = bytes.fromhex(message["payload_hex"])
    event = decode_event(message["partition_key"], payload)
    assert event is not None
    entry = event_entry(
        event,
        "vec",
        producer_name=metadata.producer_name,
        sequence_id=metadata.sequence_id,
        schema_version=metadata.schema_version,
        now_millis=metadata.publish_time,
    )
    parts = split_entry(entry)
    assert parts.metadata == metadata
    assert parts.payload == payload
    assert messages_of(entry) == [EventMessage(event.key, payload, bytes(8), metadata.publish_time)]


def test_batches_are_opened() -> None:
    singles = [
        (SingleMessageMetadata(partition_key="a", payload_size=1), b"1"),
        (SingleMessageMetadata(partition_key="b", payload_size=1, null_value=True), b"2"),
        (SingleMessageMetadata(payload_size=1), b"3"),
        (SingleMessageMetadata(partition_key="d", payload_size=0, compacted_out=True), b""),
    ]
    body = join_batch(singles)
    metadata = MessageMetadata(
        **HEAD,
        num_messages_in_batch=4,
        compression=CompressionType.ZLIB,
        uncompressed_size=len(body),
        schema_version=b"v",
    )
    entry = encode_entry(metadata, compress(CompressionType.ZLIB, body))
    assert messages_of(entry) == [
        EventMessage("a", b"1", b"v", 7),
        EventMessage("b", b"", b"v", 7),
    ]


def test_keys_of_every_kind() -> None:
    def keyed(**fields: Any) -> list[str]:
        entry = encode_entry(MessageMetadata(**HEAD, **fields), b"")
        return [message.key for message in messages_of(entry)]

    encoded = base64.b64encode(b"a").decode()
    assert keyed(partition_key=encoded, partition_key_b64_encoded=True) == ["a"]
    assert keyed(partition_key="?", partition_key_b64_encoded=True) == []
    assert keyed(partition_key="a", null_partition_key=True) == []
    assert keyed(partition_key="a", marker_type=10) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 0},
        {"compression": CompressionType.ZLIB, "uncompressed_size": MAX_BODY_BYTES + 1},
        {"compression": CompressionType.LZ4, "uncompressed_size": 3},
        {"num_messages_in_batch": 2},
    ],
)
def test_what_can_not_be_opened(fields: dict[str, Any]) -> None:
    entry = encode_entry(MessageMetadata(**HEAD, partition_key="a", **fields), b"xyz")
    with pytest.raises(PayloadError):
        messages_of(entry)


def test_encrypted_messages_are_refused() -> None:
    metadata = MessageMetadata(**HEAD, partition_key="a")
    metadata.encryption_keys.add(key="k", value=b"v")
    with pytest.raises(PayloadError, match="encrypted"):
        messages_of(encode_entry(metadata, b""))
