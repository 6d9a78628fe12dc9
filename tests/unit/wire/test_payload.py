"""Headers of entries, and their summaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    KeyValue,
    MessageMetadata,
)
from pulsar_py.proto.PulsarPyEntry_pb2 import EntryFields
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


def test_a_wrong_checksum_anywhere_in_a_run_is_found() -> None:
    wrong = PLAIN[:-1] + b"!"
    large = payload.encode_entry(metadata(), bytes(20_000))
    good = [PLAIN, UNCHECKED, WITH_BROKER, large, b"", b"x"]
    assert payload.has_no_wrong_checksum(good)
    for bad in (
        wrong,
        PLAIN[:4],
        large[:-1] + b"!",
        payload.add_broker_entry_metadata(wrong, BROKER),
    ):
        assert not payload.has_no_wrong_checksum([*good, bad])
        assert not payload.has_no_wrong_checksum([bad, *good])


def test_a_wrong_byte_in_a_run_of_entries_with_checksums_is_found() -> None:
    others = [payload.encode_entry(metadata(), b"%d" % number) for number in range(20)]
    assert payload.has_no_wrong_checksum([*others, PLAIN])
    for place in range(2, len(PLAIN)):
        bad = PLAIN[:place] + bytes((PLAIN[place] ^ 0x10,)) + PLAIN[place + 1 :]
        assert not payload.has_no_wrong_checksum([*others, bad, PLAIN])


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
def test_unreadable_metadata_is_an_error(data: bytes) -> None:
    with pytest.raises(PayloadError):
        payload.parse_metadata(data)


def test_fields_of_large_metadata_are_read_without_its_lists() -> None:
    """Building a million of properties takes a third of a second, in which nobody is served."""
    everything = {"partition_key": "k", "uuid": "p-5", "deliver_at_time": 7, "marker_type": 3}
    pairs = [KeyValue(key=f"{number}", value="x" * 50) for number in range(100)]
    small = payload.parse_fields(payload.encode_entry(metadata(**everything), b""))
    large = payload.parse_fields(
        payload.encode_entry(metadata(**everything, properties=pairs), b"")
    )

    assert isinstance(small, MessageMetadata)
    assert isinstance(large, EntryFields)
    shared = {each.name for each in EntryFields.DESCRIPTOR.fields} - {"encryption_keys"}
    assert {name: getattr(large, name) for name in shared} == {
        name: getattr(small, name) for name in shared
    }


@pytest.mark.parametrize("padding", [0, payload.PARSED_WHOLE_BYTES])
def test_fields_that_can_not_be_read_are_an_error(padding: int) -> None:
    properties = KeyValue(key="k", value="x" * padding)
    whole = MessageMetadata(producer_name="p", properties=[properties])  # two fields are missing
    data = whole.SerializePartialToString()
    for broken in (data, data + b"\xff"):
        with pytest.raises(PayloadError):
            payload.parse_fields(len(broken).to_bytes(4, "big") + broken)


def test_unreadable_broker_metadata_is_an_error() -> None:
    data = b"\x0e\x02\x00\x00\x00\x02\xff\xff" + PLAIN
    with pytest.raises(PayloadError, match="broker entry metadata"):
        payload.parse_broker_entry_metadata(data)
