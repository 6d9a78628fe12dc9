"""Whole batches have the messages that come one by one, and say what is the same for all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.messages.message import Message, ReceivedEntry
from pulsar_py.client.receiving.entry_decoder import messages_of
from pulsar_py.client.receiving.received_batch import MIN_WHOLE_BATCH, ReceivedBatch, batch_of
from pulsar_py.common.ack_set import full_bits
from pulsar_py.proto.PulsarApi_pb2 import KeyValue, SingleMessageMetadata
from pulsar_py.wire.batch import join_batch
from tests.unit.client.entries import TOPIC, metadata

COUNT = MIN_WHOLE_BATCH
START = 11
"""What stands before a batch that was not compressed."""


def body_of(payloads: Sequence[bytes], singles: Sequence[SingleMessageMetadata]) -> bytes:
    return b"#" * START + join_batch(zip(singles, payloads, strict=True))


def entry_of(count: int, **fields: object) -> ReceivedEntry:
    meta = metadata(num_messages_in_batch=count, **fields)
    return ReceivedEntry(
        (3, 4), TOPIC, meta, batch_size=count, unacked_bits=full_bits(count), partition_index=2
    )


def whole(body: bytes | memoryview, count: int = COUNT, **fields: object) -> ReceivedBatch | None:
    return batch_of(entry_of(count, **fields), body, START)


def one_by_one(body: bytes, count: int = COUNT) -> list[Message]:
    messages = messages_of(entry_of(count), body, START, full_bits(count))
    assert isinstance(messages, list), messages
    return messages


def described(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [
        (each.batch_index, each.message_id(), each.data(), each.own_metadata) for each in messages
    ]


def numbered(count: int = COUNT, first: int = 0) -> list[SingleMessageMetadata]:
    return [SingleMessageMetadata(sequence_id=first + index) for index in range(count)]


def assert_alike(body: bytes, count: int = COUNT) -> ReceivedBatch:
    batch = whole(body, count)
    assert batch is not None
    assert described(batch) == described(one_by_one(body, count))
    assert batch.payloads() == [each.data() for each in batch]
    assert len(batch) == count
    assert batch.last.message_id() == batch[-1].message_id()
    assert batch.size() == len(body) - START
    return batch


@pytest.mark.parametrize("first", [0, 100, 1 << 20])
@pytest.mark.parametrize("size", [0, 5, 127, 128, 70_000])
def test_messages_of_the_same_sizes_share_their_metadata(size: int, first: int) -> None:
    body = body_of([b"%d" % (index % 10) * size for index in range(COUNT)], numbered(first=first))
    batch = assert_alike(body)
    assert len(batch.own) == 1


def test_messages_of_any_sizes_share_theirs_if_they_have_none_of_their_own() -> None:
    body = body_of([b"x" * index * 999 for index in range(COUNT)], numbered(first=120))
    assert len(assert_alike(body).own) == 1


def test_messages_without_sequence_ids() -> None:
    singles = [SingleMessageMetadata() for _ in range(COUNT)]
    assert len(assert_alike(body_of([b"x"] * COUNT, singles)).own) == 1
    assert len(assert_alike(body_of([b"x"] * (COUNT - 1) + [b"yyy"], singles)).own) == 1
    assert_alike(body_of([b"xx"] * (COUNT - 1) + [b""], singles))


def test_keys_and_properties_are_each_messages_own() -> None:
    for keys in ([b"a", b"b"] * (COUNT // 2), [b"x" * index for index in range(COUNT)]):
        singles = [
            SingleMessageMetadata(
                partition_key=key.decode(), properties=[KeyValue(key="k", value="v")], sequence_id=1
            )
            for key in keys
        ]
        batch = assert_alike(body_of([b"payload"] * COUNT, singles))
        assert [each.partition_key.encode() for each in batch.own] == keys


def test_the_same_key_for_all_is_read_once() -> None:
    singles = [SingleMessageMetadata(partition_key="k") for _ in range(COUNT)]
    assert len(assert_alike(body_of([b"x"] * COUNT, singles)).own) == 1


def test_memory_that_is_lent_will_do() -> None:
    body = body_of([b"%d" % index for index in range(COUNT)], numbered())
    lent = whole(memoryview(body))
    assert lent is not None
    assert described(lent) == described(one_by_one(body))


def test_messages_can_be_taken_from_it_as_from_a_list() -> None:
    batch = assert_alike(body_of([b"%d" % index for index in range(COUNT)], numbered()))
    assert batch[3].data() == b"3"
    assert [each.data() for each in batch[1:3]] == [b"1", b"2"]


def test_what_is_no_whole_batch_is_left_to_others() -> None:
    payloads = [b"x"] * COUNT
    body = body_of(payloads, numbered())
    assert whole(body_of(payloads[1:], numbered(COUNT - 1)), COUNT - 1) is None
    assert whole(body, compacted_batch_indexes=range(COUNT)) is None
    for odd in (SingleMessageMetadata(null_value=True), SingleMessageMetadata(compacted_out=True)):
        assert whole(body_of(payloads, [*numbered(COUNT - 1), odd])) is None
        assert whole(body_of(payloads, [odd] * COUNT)) is None


@given(st.data())
def test_damage_is_never_more_than_no_batch(data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from([[5] * COUNT, list(range(COUNT))]))
    body = bytearray(body_of([b"x" * size for size in sizes], numbered()))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(START, len(body) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(body[: data.draw(st.integers(START, len(body)))])
    batch = whole(damaged)
    if batch is not None:
        assert described(batch) == described(one_by_one(damaged))
