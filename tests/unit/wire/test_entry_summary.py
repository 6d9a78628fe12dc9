"""What a dispatcher knows of an entry."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.hashing import sticky_slot
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    EncryptionKeys,
    KeyValue,
    MessageMetadata,
)
from pulsar_py.wire import entry_summary, payload
from pulsar_py.wire.entry_summary import FullSummary, PlainShape, PlainSummary, summarize_entry

TABLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "recordings" / "vectors.json").read_text()
)["tables"]
BROKER = BrokerEntryMetadata(broker_timestamp=1_700_000_000_123, index=41)


def metadata(**fields: Any) -> MessageMetadata:
    return MessageMetadata(
        producer_name="p", sequence_id=5, publish_time=1_700_000_000_000, **fields
    )


PLAIN = payload.encode_entry(metadata(), b"hello")


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
def test_unreadable_metadata_has_a_summary(data: bytes) -> None:
    summary = summarize_entry(data)

    assert not summary.is_readable
    assert not summary.is_plain
    assert summary.messages_count == 1
    assert not summary.is_marker
    assert entry_summary.sticky_key(summary) == entry_summary.NONE_KEY


def test_unreadable_broker_metadata_leaves_the_entry_readable() -> None:
    summary = summarize_entry(b"\x0e\x02\x00\x00\x00\x02\xff\xff" + PLAIN)

    assert summary.broker_timestamp_millis == 0
    assert summary.is_readable


@pytest.mark.parametrize("name", ["", "p", "n" * 127, "n" * 128, "ü"])
@pytest.mark.parametrize("sequence_id", [0, 127, 128, 2**64 - 1])
def test_a_plain_entry_has_the_same_summary_as_if_it_were_parsed(
    name: str, sequence_id: int
) -> None:
    data = payload.encode_entry(
        MessageMetadata(producer_name=name, sequence_id=sequence_id, publish_time=2**40), b"hello"
    )

    short, full = summarize_entry(data), entry_summary.summarize_parsed(data)

    assert isinstance(short, PlainSummary) == (len(name) < 128)
    for field in FullSummary.__slots__:
        assert getattr(short, field) == getattr(full, field), field


@pytest.mark.parametrize(
    "fields",
    [
        {"properties": [KeyValue(key="a", value="b")]},
        {"partition_key": "k"},
        {"num_messages_in_batch": 1},
        {"marker_type": 21},
        {"deliver_at_time": 1},
        {"uuid": "u"},
    ],
)
def test_an_entry_with_anything_more_is_parsed(fields: dict[str, Any]) -> None:
    data = payload.encode_entry(metadata(**fields), b"")

    assert isinstance(summarize_entry(data), FullSummary)


names = st.text(st.sampled_from("ab"), max_size=130)
numbers = st.sampled_from([0, 1, 127, 128, 2**14, 2**40, 2**41 + 7, 2**64 - 1])


@given(
    st.lists(
        st.builds(
            lambda name, sequence_id, time, key, body: payload.encode_entry(
                MessageMetadata(
                    producer_name=name,
                    sequence_id=sequence_id,
                    publish_time=time,
                    partition_key=key,
                ),
                body,
            ),
            names,
            numbers,
            numbers,
            st.sampled_from([None, None, "k"]),
            st.binary(max_size=3),
        ),
        max_size=8,
    ),
    st.integers(0, 40),
)
def test_a_shape_takes_exactly_the_plain_entries(entries: list[bytes], cut: int) -> None:
    shape = PlainShape()
    for data in [each for entry in entries for each in (entry, entry[:cut], entry[1:], entry)]:
        assert shape.is_plain(data) == isinstance(summarize_entry(data), PlainSummary)


@pytest.mark.parametrize("packs", [False, True])
def test_many_are_plain_if_each_is(packs: bool) -> None:  # noqa: FBT001
    other = payload.encode_entry(
        MessageMetadata(producer_name="other", sequence_id=1, publish_time=2), b"hello"
    )
    batch = payload.encode_entry(
        MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, num_messages_in_batch=3),
        b"hello",
    )
    shape = PlainShape()
    runs = [[], [PLAIN], [PLAIN] * 40, [PLAIN, other] * 3, [other] * 2, [PLAIN, b""], [b"", b""]]
    runs += [[*[PLAIN] * place, batch, *[PLAIN] * 3] for place in range(4)]
    runs += [
        [PLAIN, PLAIN[:9], PLAIN + bytes(shape.end)],
        [PLAIN] * 300,
        *([PLAIN] * n for n in range(20)),
    ]
    for run in runs * 2:
        entries = PackedEntries.of(b"".join(run), 0, array("I", map(len, run))) if packs else run
        expected = all(isinstance(summarize_entry(entry), PlainSummary) for entry in run)
        assert shape.are_plain(entries) == expected


def test_a_flipped_bit_of_headers_is_told_by_the_shape_as_by_parsing() -> None:
    shape = PlainShape()
    assert shape.is_plain(PLAIN)
    for at in range(shape.end):
        for bit in range(8):
            data = bytearray(PLAIN)
            data[at] ^= 1 << bit
            learnt = PlainShape()
            learnt.is_plain(PLAIN)
            expected = isinstance(summarize_entry(bytes(data)), PlainSummary)
            assert learnt.is_plain(bytes(data)) == expected


def test_producers_that_take_turns_do_not_have_their_shapes_learnt_each_time() -> None:
    shape = PlainShape()
    one, two = (
        payload.encode_entry(
            MessageMetadata(producer_name=name, sequence_id=1, publish_time=2), b"hello"
        )
        for name in ("p", "other")
    )
    patterns = set()
    for _ in range(10):
        assert shape.is_plain(one)
        assert shape.is_plain(two)
        patterns.add(shape.pattern)
    assert len(patterns) == 1


def test_metadata_longer_than_the_entry_is_not_plain() -> None:
    headers = len(PLAIN) - len(b"hello")

    assert not summarize_entry(PLAIN[: headers - 1]).is_readable


def test_the_summary_of_a_plain_entry() -> None:
    summary = summarize_entry(PLAIN)

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


@pytest.mark.parametrize("padding", [0, payload.PARSED_WHOLE_BYTES])
def test_the_summary_of_an_entry_that_has_everything(padding: int) -> None:
    """Also where its metadata is so large that its lists are not parsed."""
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
            properties=[KeyValue(key="a", value="b" * padding)],
        ),
        b"x" * 10,
    )
    summary = summarize_entry(payload.add_broker_entry_metadata(data, BROKER))

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

    assert summarize_entry(data).messages_count == 1


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
    summary = summarize_entry(payload.encode_entry(metadata(**fields), b""))

    assert entry_summary.sticky_key(summary) == key


def test_a_base64_key_falls_into_the_recorded_slot() -> None:
    row = TABLES["sticky_base64"]
    key = entry_summary.decode_partition_key(row["partition_key"], is_base64=True)

    assert key.decode() == row["hashed_bytes"]
    assert sticky_slot(key) == row["sticky_slot_65536"]


def test_a_key_that_is_no_text_is_its_bytes() -> None:
    assert entry_summary.decode_partition_key(b"\xff", is_base64=False) == b"\xff"
    assert entry_summary.decode_partition_key(b"\xff", is_base64=True) == b"\xff"
