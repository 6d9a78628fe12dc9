from __future__ import annotations

import pytest

from pulsar_py.client.messages.message import Message, ReceivedEntry
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)
from tests.unit.client.entries import TOPIC, entry, message, metadata


def plain(**fields: object) -> Message:
    return Message(ReceivedEntry((1, 2), TOPIC, metadata(**fields)), -1, None, b"data")


def batched(single: SingleMessageMetadata | bytes, index: int = 1) -> Message:
    return Message(entry((1, 2), batch_size=3), index, single, b"data")


def test_a_plain_message_reads_the_entry_s_metadata() -> None:
    found = plain(
        properties=[KeyValue(key="a", value="1")],
        partition_key="k",
        ordering_key=b"o",
        event_time=5,
        deliver_at_time=6,
        schema_version=b"\0\0\0\0\0\0\0\3",
        replicated_from="east",
    )
    assert found.properties() == {"a": "1"}
    assert found.has_property("a")
    assert not found.has_property("b")
    assert (found.key(), found.partition_key(), found.key_bytes()) == ("k", "k", b"k")
    assert (found.ordering_key(), found.ordering_key_bytes()) == ("o", b"o")
    assert (found.event_timestamp(), found.deliver_at_timestamp()) == (5, 6)
    assert (found.publish_timestamp(), found.sequence_id(), found.producer_name()) == (1000, 7, "p")
    assert (found.schema_version(), found.int_schema_version()) == (b"\0\0\0\0\0\0\0\3", 3)
    assert (found.is_replicated(), found.replicated_from()) == (True, "east")
    assert (found.data(), found.value(), found.size()) == (b"data", b"data", 4)
    assert found.topic_name() == TOPIC
    assert "1:2:-1" in repr(found)


def test_what_is_not_there() -> None:
    found = plain()
    assert (found.key(), found.partition_key(), found.key_bytes()) == (None, "", None)
    assert (found.has_key(), found.has_ordering_key(), found.ordering_key()) == (False, False, "")
    assert (found.schema_version(), found.int_schema_version()) == (None, None)
    assert found.replicated_from() is None
    assert found.encryption_context() is None
    assert (found.has_index(), found.index()) == (False, None)
    assert (found.has_broker_publish_time(), found.broker_publish_time()) == (False, None)
    assert (found.event_timestamp(), found.redelivery_count()) == (0, 0)


def test_keys_of_bytes_and_null_keys() -> None:
    found = plain(partition_key="AP8=", partition_key_b64_encoded=True)
    assert found.has_base64_encoded_key()
    assert found.key_bytes() == b"\0\xff"
    assert plain(null_partition_key=True, partition_key="x").key() is None


def test_texts_that_are_no_utf_8_can_be_read() -> None:
    wire = b"\x32\x01\xff" + b"\x22\x06\x0a\x01k\x12\x01\xfe" + b"\x2a\x01\xff" + b"\x0a\x01\xff"
    fields = MessageMetadata(sequence_id=1, publish_time=2)
    fields.MergeFromString(wire)
    odd = Message.of(b"", metadata=fields)
    assert odd.key_bytes() == b"\xff"
    assert odd.key() == odd.partition_key() == "\ufffd"
    assert odd.properties() == {"k": "\ufffd"}
    assert odd.has_property("k")
    assert odd.producer_name() == odd.replicated_from() == "\ufffd"


@pytest.mark.parametrize("wire", [b"\x32\x01A", b"\x32\x01\xff"])
def test_a_key_that_is_said_to_be_base64_and_is_not_is_taken_as_it_is(wire: bytes) -> None:
    fields = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)
    fields.MergeFromString(wire)
    fields.partition_key_b64_encoded = True
    assert Message.of(b"", metadata=fields).key_bytes() == wire[2:]


def test_a_null_value_has_no_value() -> None:
    found = plain(null_value=True)
    assert found.has_null_value()
    assert found.value() is None


def test_a_message_of_a_batch_reads_its_own_metadata() -> None:
    single = SingleMessageMetadata(payload_size=4, partition_key="k", event_time=9, sequence_id=50)
    for each in (single, single.SerializeToString()):
        found = batched(each)
        assert (found.key(), found.event_timestamp(), found.sequence_id()) == ("k", 9, 50)
        assert found.publish_timestamp() == 1000
        assert found.message_id() == MessageId(1, 2, batch_index=1, batch_size=3)
    assert batched(SingleMessageMetadata(payload_size=4)).sequence_id() == 8


def test_ids_know_their_entry_and_are_like_others() -> None:
    found = message(key=(3, 4)).message_id()
    assert found == MessageId(3, 4)
    assert hash(found) == hash(MessageId(3, 4))
    assert found.topic_name == TOPIC
    assert MessageId.parse(found.serialize()) == found
    chunked = entry((1, 9), chunk_ids=((1, 5), (1, 9))).message_id(-1)
    assert chunked.first_chunk == MessageId(1, 5)


def test_the_index_counts_within_a_batch() -> None:
    broker = BrokerEntryMetadata(index=100, broker_timestamp=77)
    whole = ReceivedEntry((1, 2), TOPIC, metadata(), batch_size=3, broker_metadata=broker)
    assert Message(whole, 0, SingleMessageMetadata(payload_size=0), b"").index() == 98
    assert Message(whole, 2, SingleMessageMetadata(payload_size=0), b"").index() == 100
    single = ReceivedEntry((1, 2), TOPIC, metadata(), broker_metadata=broker)
    assert Message(single, -1, None, b"").index() == 100
    assert Message(single, -1, None, b"").broker_publish_time() == 77


def test_values_are_decoded_with_version_and_key() -> None:
    class Decoder:
        def decode(self, *arguments: object) -> object:
            return arguments

    whole = ReceivedEntry(
        (1, 2), TOPIC, metadata(partition_key="k", schema_version=b"v"), decoder=Decoder()
    )
    assert Message(whole, -1, None, b"x").value() == (b"x", b"v", b"k")


def test_messages_for_tests() -> None:
    found = Message.of(b"x", key=(2, 3), topic="t-partition-4")
    assert found.topic_name() == "persistent://public/default/t-partition-4"
    assert found.message_id() == MessageId(2, 3, partition_index=4)
