"""Headers of entries, and their summaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import PayloadError
from pulsar_py.common.hashing import sticky_slot
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    EncryptionKeys,
    KeyValue,
    MessageMetadata,
)
from pulsar_py.wire import payload
from pulsar_py.wire.payload import ChecksumStatus

TABLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "recordings" / "vectors.json").read_text()
)["tables"]
BROKER = BrokerEntryMetadata(broker_timestamp=1_700_000_000_123, index=41)


def metadata(**fields: Any) -> MessageMetadata:
    return MessageMetadata(
        producer_name="p", sequence_id=5, publish_time=1_700_000_000_000, **fields
    )


PLAIN = payload.encode_entry(metadata(), b"hello")
UNCHECKED = payload.encode_entry(metadata(), b"hello", has_checksum=False)
WITH_BROKER = payload.add_broker_entry_metadata(PLAIN, BROKER)


@pytest.mark.parametrize("data", [PLAIN, WITH_BROKER])
def test_a_right_checksum_is_valid(data: bytes) -> None:
    assert payload.verify_checksum(data) is ChecksumStatus.VALID


@pytest.mark.parametrize("data", [UNCHECKED, b"", b"\x0e", b"\x0e\x02\x00\x00\x00\x00"])
def test_a_missing_checksum_is_absent(data: bytes) -> None:
    assert payload.verify_checksum(data) is ChecksumStatus.ABSENT


@pytest.mark.parametrize("index", range(2, len(PLAIN)))
def test_any_changed_byte_makes_the_checksum_wrong(index: int) -> None:
    data = bytearray(PLAIN)
    data[index] ^= 1

    assert payload.verify_checksum(bytes(data)) is ChecksumStatus.WRONG


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_cut_checksum_is_wrong(length: int) -> None:
    assert payload.verify_checksum(PLAIN[:length]) is ChecksumStatus.WRONG


def test_an_entry_is_taken_apart() -> None:
    parts = payload.split_entry(WITH_BROKER)

    assert parts.broker_entry_metadata == BROKER
    assert parts.checksum == int.from_bytes(PLAIN[2:6], "big")
    assert parts.metadata == metadata()
    assert parts.payload == b"hello"


def test_an_entry_without_blocks_is_taken_apart() -> None:
    assert payload.split_entry(UNCHECKED) == (None, None, metadata(), b"hello")


def test_blocks_come_off() -> None:
    assert payload.strip_broker_entry_metadata(WITH_BROKER) == PLAIN
    assert payload.strip_broker_entry_metadata(PLAIN) is PLAIN
    assert payload.strip_checksum(PLAIN) == UNCHECKED
    assert payload.strip_checksum(WITH_BROKER) == UNCHECKED
    assert payload.strip_checksum(UNCHECKED) == UNCHECKED
    assert payload.parse_broker_entry_metadata(WITH_BROKER) == BROKER
    assert payload.parse_broker_entry_metadata(PLAIN) is None


@pytest.mark.parametrize("data", [PLAIN, UNCHECKED, WITH_BROKER])
def test_metadata_is_read_behind_any_headers(data: bytes) -> None:
    assert payload.parse_metadata(data) == metadata()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x0e\x01",
        b"\x0e\x01\x00\x00\x00\x00",
        PLAIN[:12],
        PLAIN[:20],
        b"\x00\x00\x00\x10short",
        b"\x00\x00\x00\x02\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x0e\x02\xff\xff\xff\xff",
    ],
    ids=bytes.hex,
)
def test_unreadable_metadata_is_an_error_and_a_summary(data: bytes) -> None:
    with pytest.raises(PayloadError):
        payload.parse_metadata(data)

    summary = payload.summarize_entry(data)
    assert not summary.is_readable
    assert summary.messages_count == 1
    assert not summary.is_marker
    assert payload.sticky_key(summary) == payload.NONE_KEY


def test_unreadable_broker_metadata_is_an_error() -> None:
    data = b"\x0e\x02\x00\x00\x00\x02\xff\xff" + PLAIN
    with pytest.raises(PayloadError, match="broker entry metadata"):
        payload.parse_broker_entry_metadata(data)
    assert payload.summarize_entry(data).broker_timestamp_millis == 0
    assert payload.summarize_entry(data).is_readable


def test_the_summary_of_a_plain_entry() -> None:
    summary = payload.summarize_entry(PLAIN)

    assert summary.is_readable
    assert summary.messages_count == 1
    assert not summary.is_batch
    assert summary.producer_name == "p"
    assert (summary.sequence_id, summary.highest_sequence_id) == (5, 5)
    assert summary.publish_time_millis == summary.timestamp_millis == 1_700_000_000_000
    assert summary.deliver_at_time_millis == 0
    assert not summary.is_marker
    assert not summary.is_chunk
    assert summary.is_last_chunk
    assert summary.txn_id is None
    assert summary.replicated_from is None
    assert not summary.has_encryption_keys
    assert summary.payload_size == 5


def test_the_summary_of_an_entry_that_has_everything() -> None:
    data = payload.encode_entry(
        metadata(
            num_messages_in_batch=1,
            highest_sequence_id=9,
            deliver_at_time=99,
            marker_type=21,
            partition_key="k",
            ordering_key=b"o",
            uuid="p-5",
            chunk_id=1,
            num_chunks_from_msg=3,
            total_chunk_msg_size=300,
            txnid_most_bits=3,
            txnid_least_bits=12,
            replicated_from="other",
            encryption_keys=[EncryptionKeys(key="k", value=b"v")],
            null_value=True,
            compression=3,
            uncompressed_size=77,
            properties=[KeyValue(key="a", value="b")],
        ),
        b"x" * 10,
    )
    summary = payload.summarize_entry(payload.add_broker_entry_metadata(data, BROKER))

    assert summary.is_batch
    assert summary.messages_count == 1
    assert summary.highest_sequence_id == 9
    assert summary.deliver_at_time_millis == 99
    assert summary.marker_type == 21
    assert summary.is_marker
    assert summary.partition_key == "k"
    assert summary.ordering_key == b"o"
    assert (summary.uuid, summary.chunk_id, summary.chunks_count) == ("p-5", 1, 3)
    assert summary.total_chunk_bytes == 300
    assert summary.is_chunk
    assert not summary.is_last_chunk
    assert summary.txn_id == (3, 12)
    assert summary.replicated_from == "other"
    assert summary.has_encryption_keys
    assert summary.is_null_value
    assert (summary.compression, summary.uncompressed_size) == (3, 77)
    assert summary.timestamp_millis == 1_700_000_000_123
    assert summary.payload_size == 10


@pytest.mark.parametrize("count", [-3, 0])
def test_an_impossible_number_of_messages_counts_as_one(count: int) -> None:
    data = payload.encode_entry(metadata(num_messages_in_batch=count), b"")

    assert payload.summarize_entry(data).messages_count == 1


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"ordering_key": b"o", "partition_key": "k"}, b"o"),
        ({"ordering_key": b"", "partition_key": "k"}, b""),
        ({"partition_key": "clé"}, "clé".encode()),
        ({"partition_key": "aGVsbG8=", "partition_key_b64_encoded": True}, b"hello"),
        ({"partition_key": "no base64!", "partition_key_b64_encoded": True}, b"no base64!"),
        ({}, b"p-5"),
    ],
)
def test_the_sticky_key_is_the_first_that_applies(fields: dict[str, Any], key: bytes) -> None:
    summary = payload.summarize_entry(payload.encode_entry(metadata(**fields), b""))

    assert payload.sticky_key(summary) == key


def test_a_base64_key_falls_into_the_recorded_slot() -> None:
    row = TABLES["sticky_base64"]
    key = payload.decode_partition_key(row["partition_key"], is_base64=True)

    assert key.decode() == row["hashed_bytes"]
    assert sticky_slot(key) == row["sticky_slot_65536"]
