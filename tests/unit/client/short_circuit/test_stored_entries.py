"""Entries as they are stored, and what a consumer makes of the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.incoming_queue import IncomingQueue
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.client.short_circuit.stored_entries import stored_messages
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    EncryptionKeys,
    SingleMessageMetadata,
)
from pulsar_py.wire.payload import add_broker_entry_metadata
from tests.unit.client.entries import batch, chunk, command, single

KEY = (7, 4)
NAME = TopicName.parse("persistent://public/default/t-partition-3")
MANY = [b"%d" % index for index in range(100)]

PLAIN = {
    "single": single(b"hello"),
    "empty": single(b""),
    "null": single(b"", null_value=True, partition_key="k"),
    "large": single(bytes(9000), ordering_key=b"o"),
    "compressed": single(b"x" * 5000, compression=1),
    "batch of a few": batch([b"a", b"", b"ccc"]),
    "batch of many": batch(MANY),
    "compressed batch": batch(MANY, compression=3),
    "batch with a null": batch(
        [b"", b"1"], singles=[SingleMessageMetadata(null_value=True), SingleMessageMetadata()]
    ),
    "batch of which some were compacted out": batch(
        [b"", b"1"], singles=[SingleMessageMetadata(compacted_out=True), SingleMessageMetadata()]
    ),
    "batch of which some are gone": batch(
        [b"1"], num_messages_in_batch=3, compacted_batch_indexes=[1]
    ),
    "for later": single(b"x", deliver_at_time=1 << 50),
}
FOR_THE_BROKER = {
    "marker": single(b"", marker_type=1),
    "marker of the first type": single(b"", marker_type=0),
    "of a transaction": single(b"x", txnid_most_bits=0, txnid_least_bits=1),
    "chunk": chunk(0, b"x", count=2, total=2),
    "only chunk": chunk(0, b"x", count=1, total=1),
    "encrypted": single(b"x", encryption_keys=[EncryptionKeys(key="k", value=b"v")]),
    "with metadata of the broker": add_broker_entry_metadata(
        single(b"x"), BrokerEntryMetadata(index=1)
    ),
    "without a checksum": single(b"x")[6:],
    "damaged": single(b"abc")[:-1] + b"d",
    "cut": single(b"abc")[:-1],
    "nothing": b"",
    "of two bytes": b"\x0e\x01",
    "wrong count": batch([b"a"] * 5, num_messages_in_batch=6),
    "wrong size": single(b"x", compression=2, uncompressed_size=999_000_000),
}


def consumed(data: bytes) -> Sequence[Message]:
    """What a consumer without a schema hands out."""
    tracker = Mock()
    tracker.still_waiting.side_effect = lambda _, bits: bits
    queue = IncomingQueue(
        str(NAME), tracker, Mock(), partition_index=NAME.partition_index, keeps_batches=True
    )
    queue.push(command(KEY), data)
    queue.fill(0)
    return queue.batches[0] if queue.batches else [*queue.ready]


def told(messages: Sequence[Message]) -> list[object]:
    return [
        (
            each.message_id().serialize(),
            each.message_id(),
            each.entry.topic,
            each.entry.metadata.SerializeToString(),
            each.entry.batch_size,
            each.batch_index,
            each.own_metadata.SerializeToString(),
            each.data(),
            each.has_null_value(),
            each.redelivery_count(),
        )
        for each in messages
    ]


@pytest.mark.parametrize("name", PLAIN)
def test_messages_are_those_that_a_consumer_gets(name: str) -> None:
    messages = stored_messages(memoryview(PLAIN[name]), KEY, NAME)
    assert messages is not None
    expected = consumed(PLAIN[name])
    assert type(messages) is type(expected)
    assert told(messages) == told(expected)
    assert len(messages) > 0


def test_a_large_batch_comes_whole_and_uncopied() -> None:
    memory = bytearray(PLAIN["batch of many"])
    messages = stored_messages(memoryview(memory), KEY, NAME)
    assert isinstance(messages, ReceivedBatch)
    assert isinstance(messages.body, memoryview)
    assert messages.body.obj is memory
    assert messages.payloads() == MANY


def test_other_messages_are_copies() -> None:
    memory = bytearray(PLAIN["single"])
    messages = stored_messages(memoryview(memory), KEY, NAME)
    memory[:] = bytes(len(memory))
    assert messages is not None
    assert [each.data() for each in messages] == [b"hello"]


@pytest.mark.parametrize("name", FOR_THE_BROKER)
def test_others_have_to_come_from_the_broker(name: str) -> None:
    assert stored_messages(memoryview(FOR_THE_BROKER[name]), KEY, NAME) is None
    assert stored_messages(FOR_THE_BROKER[name], KEY, NAME) is None
