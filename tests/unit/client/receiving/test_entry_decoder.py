from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.messages.message import Message, ReceivedEntry
from pulsar_py.client.receiving.entry_decoder import (
    ParsedEntry,
    Problem,
    check_batch_size,
    inflate,
    messages_of,
    parse,
)
from pulsar_py.common.ack_set import full_bits
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    CommandAck,
    CompressionType,
    SingleMessageMetadata,
)
from pulsar_py.wire.payload import add_broker_entry_metadata
from tests.unit.client.entries import TOPIC, batch, command, metadata, single

KEY = (3, 4)


def parsed(data: bytes | memoryview) -> ParsedEntry:
    found = parse(command(KEY), data, KEY, TOPIC)
    assert isinstance(found, ParsedEntry), found
    return found


def problem_of(data: bytes) -> Problem:
    found = parse(command(KEY), data, KEY, TOPIC)
    assert isinstance(found, Problem)
    assert found.text.startswith(f"{TOPIC}: entry 3:4: ")
    return found


def split(data: bytes, wanted: int | None = None) -> list[Message] | Problem:
    whole = parsed(data)
    entry = ReceivedEntry(KEY, TOPIC, whole.metadata, batch_size=whole.messages_count)
    bits = full_bits(whole.messages_count) if wanted is None else wanted
    return messages_of(entry, whole.data, whole.payload_start, bits)


def test_a_plain_entry() -> None:
    found = parsed(single(b"hello"))
    assert found.is_plain
    assert not found.is_batch
    assert found.payload == b"hello"
    assert found.messages_count == 1


def test_broker_entry_metadata_are_read() -> None:
    data = add_broker_entry_metadata(single(), BrokerEntryMetadata(index=5))
    found = parsed(data)
    assert found.broker_metadata is not None
    assert found.broker_metadata.index == 5
    assert found.payload == b"hello"


def test_what_is_damaged_is_a_problem() -> None:
    damaged = bytearray(single())
    damaged[-1] ^= 1
    assert problem_of(bytes(damaged)).validation_error == CommandAck.ChecksumMismatch
    for data in (b"", b"\0\0\0\x09ab", b"\0\0\0\x02\xff\xff", b"\0\0\0\0"):
        assert problem_of(data).validation_error == CommandAck.BatchDeSerializeError


@given(st.binary(max_size=60))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    found = parse(command(KEY), data, KEY, TOPIC)
    if isinstance(found, ParsedEntry) and found.is_batch and not check_batch_size(found, 9, TOPIC):
        split(data)


def test_a_batch_is_split() -> None:
    messages = split(batch([b"a", b"bb", b""]))
    assert isinstance(messages, list)
    assert [each.data() for each in messages] == [b"a", b"bb", b""]
    assert [each.sequence_id() for each in messages] == [0, 1, 2]
    assert messages[0].entry.unacked_bits == 0b111


def test_only_what_is_wanted() -> None:
    messages = split(batch([b"a", b"b", b"c"]), wanted=0b101)
    assert isinstance(messages, list)
    assert [each.batch_index for each in messages] == [0, 2]
    assert messages[0].entry.unacked_bits == 0b101


def test_what_was_compacted_out_is_left_out() -> None:
    singles = [SingleMessageMetadata(sequence_id=i, compacted_out=i == 1) for i in range(3)]
    messages = split(batch([b"a", b"", b"c"], singles=singles))
    assert isinstance(messages, list)
    assert [each.data() for each in messages] == [b"a", b"c"]
    assert messages[0].entry.unacked_bits == 0b101


@pytest.mark.parametrize("indexes", [[2_000_000_000], [3], [1, 1], [2, 0], [-1]])
def test_indexes_that_a_compacted_batch_can_not_have_are_refused(indexes: list[int]) -> None:
    data = batch([b""] * len(indexes), num_messages_in_batch=3, compacted_batch_indexes=indexes)
    whole = parsed(data)
    assert check_batch_size(whole, len(whole.payload), TOPIC) is not None


def test_a_compacted_batch_lists_its_indexes() -> None:
    data = batch([b"b", b"e"], num_messages_in_batch=6, compacted_batch_indexes=[1, 4])
    messages = split(data)
    assert isinstance(messages, list)
    assert [(each.batch_index, each.data()) for each in messages] == [(1, b"b"), (4, b"e")]
    assert messages[0].entry.unacked_bits == 0b010010


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=300),
            st.sampled_from(["plain", "key", "out", "bare", "time"]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_messages_alike_and_unlike_are_split_alike(parts: list[tuple[bytes, str]]) -> None:
    kinds = {
        "plain": {"sequence_id": 3},
        "key": {"sequence_id": 3, "partition_key": "k"},
        "out": {"sequence_id": 3, "compacted_out": True},
        "bare": {},
        "time": {"event_time": 9},
    }
    singles = [SingleMessageMetadata(**kinds[kind]) for _, kind in parts]
    messages = split(batch([payload for payload, _ in parts], singles=singles))
    assert isinstance(messages, list)
    expected = [
        (index, payload, kind == "key", 9 if kind == "time" else 0)
        for index, (payload, kind) in enumerate(parts)
        if kind != "out"
    ]
    found = [
        (each.batch_index, each.data(), each.has_key(), each.event_timestamp()) for each in messages
    ]
    assert found == expected


def test_sizes_that_change_to_and_fro_are_read_each_time() -> None:
    """Also when looking out for alike messages was given up between them."""
    payloads = [b"x" * size for size in (1, 2, 3, 4, 5, 4, 5, 4, 3, 4)]
    singles = [SingleMessageMetadata(sequence_id=3) for _ in payloads]
    messages = split(batch(payloads, singles=singles))
    assert isinstance(messages, list)
    assert [each.data() for each in messages] == payloads


@pytest.mark.parametrize("wanted", [0b1111, 0b0101, 0b1000, 0])
@pytest.mark.parametrize("form", [bytes, memoryview])
def test_messages_of_one_size_are_split_at_once(wanted: int, form: type) -> None:
    payloads = [b"0123", b"4567", b"89ab", b"cdef"]
    singles = [SingleMessageMetadata(sequence_id=5 + i, event_time=9) for i in range(4)]
    data = batch(payloads, singles=singles)
    whole = parsed(form(data))
    entry = ReceivedEntry(KEY, TOPIC, whole.metadata, batch_size=4)

    messages = messages_of(entry, whole.data, whole.payload_start, wanted)

    assert isinstance(messages, list)
    expected = [i for i in range(4) if wanted >> i & 1]
    assert [each.batch_index for each in messages] == expected
    assert [each.data() for each in messages] == [payloads[i] for i in expected]
    assert [each.sequence_id() for each in messages] == [5 + i for i in expected]
    assert all(isinstance(each.data(), bytes) for each in messages)
    assert entry.unacked_bits == wanted


def test_sizes_that_only_seem_to_be_the_same_are_read_one_by_one() -> None:
    """The sum is that of four messages like the first."""
    payloads = [b"12", b"1", b"123", b"12"]
    singles = [SingleMessageMetadata(sequence_id=3) for _ in payloads]
    messages = split(batch(payloads, singles=singles))
    assert isinstance(messages, list)
    assert [each.data() for each in messages] == payloads


def test_a_negative_size_is_refused() -> None:
    first = SingleMessageMetadata(payload_size=-7, sequence_id=3).SerializeToString()
    body = len(first).to_bytes(4, "big") + first
    entry = ReceivedEntry(KEY, TOPIC, metadata(), batch_size=1)
    assert isinstance(messages_of(entry, body, 0, 1), Problem)
    entry = ReceivedEntry(KEY, TOPIC, metadata(), batch_size=2)
    assert isinstance(messages_of(entry, body[:14], 0, 1), Problem)


@pytest.mark.parametrize("cut", [1, 3, 20])
def test_a_batch_that_is_cut_is_refused(cut: int) -> None:
    whole = parsed(batch([b"a" * 9, b"b" * 9]))
    entry = ReceivedEntry(KEY, TOPIC, whole.metadata, batch_size=2)
    problem = messages_of(entry, whole.data[:-cut], whole.payload_start, 0b11)
    assert isinstance(problem, Problem)
    assert problem.validation_error == CommandAck.BatchDeSerializeError
    assert problem.messages_count == 2


def test_a_count_that_no_batch_of_that_size_holds() -> None:
    for count in (2**31 - 1, 0, -5):
        whole = parsed(batch([b"a"], num_messages_in_batch=count))
        problem = check_batch_size(whole, len(whole.payload), TOPIC)
        assert problem is not None
        assert f"{count} messages do not fit" in problem.text
    huge = parsed(batch([b"a"], num_messages_in_batch=2**31 - 1, compacted_batch_indexes=[5]))
    assert check_batch_size(huge, len(huge.payload), TOPIC) is not None
    assert check_batch_size(parsed(batch([b"a"])), 9, TOPIC) is None


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_payloads_are_inflated(number: CompressionType.ValueType) -> None:
    whole = parsed(single(b"x" * 1000, compression=number))
    assert inflate(whole, whole.payload, TOPIC, 1000) == b"x" * 1000


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("claimed", [10, 999, 1001])
def test_a_lying_size_names_topic_and_values(
    number: CompressionType.ValueType, claimed: int
) -> None:
    whole = parsed(single(b"x" * 1000, compression=number, uncompressed_size=claimed))
    problem = inflate(whole, whole.payload, TOPIC, 100_000)
    assert isinstance(problem, Problem)
    assert problem.validation_error == CommandAck.DecompressionError
    assert TOPIC in problem.text


def test_a_size_above_the_limit_is_not_inflated() -> None:
    whole = parsed(single(b"x" * 1000, compression=2))
    problem = inflate(whole, whole.payload, TOPIC, 999)
    assert isinstance(problem, Problem)
    assert problem.validation_error == CommandAck.UncompressedSizeCorruption
    assert "1000 bytes uncompressed, the limit is 999" in problem.text
    assert inflate(whole, whole.payload, TOPIC, None) == b"x" * 1000


def test_metadata_without_a_required_field() -> None:
    meta = metadata()
    meta.ClearField("publish_time")
    header = meta.SerializePartialToString()
    problem = problem_of(len(header).to_bytes(4, "big") + header)
    assert "required" in problem.text


def test_a_compacted_batch_may_hold_the_others_without_payload() -> None:
    singles = [SingleMessageMetadata(sequence_id=i, compacted_out=i != 1) for i in range(3)]
    data = batch([b"", b"b", b""], singles=singles, compacted_batch_indexes=[1])
    messages = split(data)
    assert isinstance(messages, list)
    assert [(each.batch_index, each.data()) for each in messages] == [(1, b"b")]
    assert messages[0].entry.unacked_bits == 0b010
