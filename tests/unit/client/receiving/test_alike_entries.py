"""`AlikeEntries`: only what parsing would read the same way is alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.receiving.alike_entries import AlikeEntries
from pulsar_py.client.receiving.entry_decoder import ParsedEntry, parse
from pulsar_py.common.hashing import crc32c
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata, KeyValue, MessageMetadata
from pulsar_py.wire.payload import (
    CHECKSUM_AND_SIZE,
    CHECKSUM_BLOCK_SIZE,
    CHECKSUM_MAGIC_NUMBER,
    add_broker_entry_metadata,
    encode_entry,
)
from tests.unit.client.entries import TOPIC, command, metadata, single

NOW = 1_790_000_000_000
FIRST = single(sequence_id=300, publish_time=NOW)


def parsed(data: bytes) -> ParsedEntry:
    found = parse(command(), data, (1, 0), TOPIC)
    assert isinstance(found, ParsedEntry), found
    return found


def learned(data: bytes = FIRST) -> AlikeEntries:
    alike = AlikeEntries()
    assert not alike.has(data)
    alike.learn(data, parsed(data).payload_start)
    return alike


@pytest.mark.parametrize(
    "data",
    [
        FIRST,
        single(sequence_id=301, publish_time=NOW + 1),
        single(b"", sequence_id=128, publish_time=NOW + 10**9),
        single(b"another payload, longer", sequence_id=16_383, publish_time=NOW - 10**9),
        memoryview(single(b"in reused memory", sequence_id=400, publish_time=NOW)),
    ],
)
def test_other_ids_and_payloads_are_alike(data: bytes | memoryview) -> None:
    alike = learned()
    assert alike.has(data)
    assert bytes(data[alike.payload_start :]) == parsed(bytes(data)).payload
    assert MessageMetadata.FromString(alike.metadata_of(data)) == parsed(bytes(data)).metadata


@pytest.mark.parametrize(
    "data",
    [
        single(sequence_id=127, publish_time=NOW),
        single(sequence_id=16_384, publish_time=NOW),
        single(sequence_id=300, publish_time=1000),
        single(producer_name="q", sequence_id=300, publish_time=NOW),
        single(producer_name="pq", sequence_id=30, publish_time=NOW),
        single(sequence_id=300, publish_time=NOW, partition_key="k"),
        single(sequence_id=300, publish_time=NOW, properties=[KeyValue(key="k", value="v")]),
        encode_entry(
            metadata(sequence_id=300, publish_time=NOW), b"without a checksum", has_checksum=False
        ),
        add_broker_entry_metadata(FIRST, BrokerEntryMetadata(index=1)),
        FIRST[:-1],
        FIRST[:20],
        FIRST[:2],
        b"",
    ],
)
def test_nothing_else_is(data: bytes) -> None:
    assert not learned().has(data)


def test_other_fields_have_to_be_the_same() -> None:
    fields = {"sequence_id": 300, "publish_time": NOW, "uncompressed_size": 5}
    alike = learned(single(**fields, partition_key="k"))
    assert alike.has(single(b"other", **fields, partition_key="k"))
    assert not alike.has(single(b"other", **fields, partition_key="l"))
    assert not alike.has(single(b"longer", **{**fields, "uncompressed_size": 6}, partition_key="k"))


@pytest.mark.parametrize("data", [b"", b"\x0e\x01", bytes(10), FIRST])
def test_before_the_first_entry_nothing_is_alike(data: bytes) -> None:
    assert not AlikeEntries().has(data)


@pytest.mark.parametrize("fields", [{}, {"sequence_id": 1, "producer_name": ""}])
def test_a_short_entry_without_a_checksum_is_not_learned(fields: dict[str, Any]) -> None:
    serialized = MessageMetadata(publish_time=5, **fields).SerializePartialToString()
    data = len(serialized).to_bytes(4, "big") + serialized
    assert not learned(data).has(data)


def test_a_wrong_checksum_is_left_to_the_parser() -> None:
    broken = bytearray(FIRST)
    broken[-1] ^= 1
    assert not learned().has(bytes(broken))


def with_right_checksum(data: bytes) -> bytes:
    covered = data[CHECKSUM_BLOCK_SIZE:]
    size = int.from_bytes(covered[:4], "big")
    return CHECKSUM_AND_SIZE.pack(CHECKSUM_MAGIC_NUMBER, crc32c(covered), size) + covered[4:]


def test_whichever_byte_is_changed_what_is_alike_is_read_as_the_parser_does() -> None:
    alike = learned()
    alike_count = 0
    for place in range(CHECKSUM_BLOCK_SIZE, alike.payload_start):
        for byte in range(256):
            data = with_right_checksum(FIRST[:place] + bytes((byte,)) + FIRST[place + 1 :])
            if not alike.has(data):
                continue
            alike_count += 1
            found = parsed(data)
            assert found.is_plain
            assert found.payload_start == alike.payload_start
            assert MessageMetadata.FromString(alike.metadata_of(data)) == found.metadata
    # Two bytes of the sequence id and six of the time, of which seven bits each are free.
    assert alike_count > 8 * 127


PLAIN = st.builds(
    MessageMetadata,
    producer_name=st.sampled_from(["", "p", "standalone-0-1", "x" * 127, "y" * 128]),
    sequence_id=st.integers(0, 2**64 - 1) | st.integers(0, 500),
    publish_time=st.integers(0, 2**64 - 1) | st.integers(NOW, NOW + 1000),
    partition_key=st.sampled_from([None, "", "k"]),
    event_time=st.sampled_from([None, 0, NOW]),
)


@given(st.lists(st.tuples(PLAIN, st.binary(max_size=20)), min_size=2, max_size=20))
def test_entries_of_any_producers_are_read_as_the_parser_does(
    entries: list[tuple[MessageMetadata, bytes]],
) -> None:
    alike = AlikeEntries()
    for fields, payload in entries:
        data = encode_entry(fields, payload)
        whole = parsed(data)
        if alike.has(data):
            assert MessageMetadata.FromString(alike.metadata_of(data)) == whole.metadata
            assert data[alike.payload_start :] == payload
        else:
            alike.learn(data, whole.payload_start)


def test_entries_that_are_never_alike_are_learned_ever_less_often() -> None:
    alike = AlikeEntries()
    entries = [single(producer_name=f"p{number:03}", publish_time=NOW) for number in range(101)]
    for data in entries[1:]:
        alike.learn(data, parsed(data).payload_start)
    assert [number for number, data in enumerate(entries) if alike.has(data)] == [64]


def test_a_hit_makes_the_next_miss_be_learned() -> None:
    alike = learned()
    others = [single(producer_name=f"q{number}", publish_time=NOW) for number in range(3)]
    for data in others:  # misses 2, 3, 4
        alike.learn(data, parsed(data).payload_start)
    assert alike.has(others[2])
    alike.learn(FIRST, parsed(FIRST).payload_start)
    assert alike.has(FIRST)
