"""Messages on their way out: checked, read, put into metadata."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest

from pulsar_py.client.producing.message_builder import (
    OutgoingMessage,
    fill_metadata,
    fill_single_metadata,
)
from pulsar_py.common.errors import InvalidConfigurationError, InvalidMessageError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata


def full() -> OutgoingMessage:
    message = OutgoingMessage(
        "value",
        {"a": "1"},
        "k1",
        "ok",
        77,
        ["c1"],
        event_timestamp=1_700_000_000_000,
        deliver_at=1_893_456_000_000,
    )
    message.payload = b"world"
    return message


def test_metadata_of_an_entry_has_everything() -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    fill_metadata(metadata, full())
    assert [(each.key, each.value) for each in metadata.properties] == [("a", "1")]
    assert metadata.partition_key == "k1"
    assert not metadata.HasField("partition_key_b64_encoded")
    assert metadata.ordering_key == b"ok"
    assert list(metadata.replicate_to) == ["c1"]
    assert metadata.event_time == 1_700_000_000_000
    assert metadata.deliver_at_time == 1_893_456_000_000
    assert not metadata.HasField("null_value")


def test_metadata_within_a_batch_has_what_is_the_messages_own() -> None:
    metadata = SingleMessageMetadata(payload_size=5)
    fill_single_metadata(metadata, full())
    assert metadata.partition_key == "k1"
    assert metadata.ordering_key == b"ok"
    assert metadata.event_time == 1_700_000_000_000
    assert [(each.key, each.value) for each in metadata.properties] == [("a", "1")]


def test_a_key_of_bytes_goes_as_base64() -> None:
    message = OutgoingMessage(b"", partition_key=b"\xff\x00")
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    fill_metadata(metadata, message)
    assert base64.b64decode(metadata.partition_key) == b"\xff\x00"
    assert metadata.partition_key_b64_encoded
    assert message.key_bytes() == b"\xff\x00"


def test_none_is_a_null_value() -> None:
    metadata = SingleMessageMetadata(payload_size=0)
    fill_single_metadata(metadata, OutgoingMessage(None))
    assert metadata.null_value


def test_a_message_that_stays_at_home_says_so() -> None:
    message = OutgoingMessage(b"", replication_clusters=["c"], disable_replication=True)
    assert message.replicate_to == ("__local__",)


def test_a_delay_counts_from_now() -> None:
    message = OutgoingMessage(b"", deliver_after=timedelta(seconds=2), now_millis=1000)
    assert message.deliver_at_time == 3000
    with pytest.raises(InvalidConfigurationError):
        OutgoingMessage(b"", deliver_at=1, deliver_after=timedelta(1))


def test_accessors_are_those_of_a_message() -> None:
    message = full()
    assert message.value() == "value"
    assert message.data() == b"world"
    assert message.properties() == {"a": "1"}
    assert message.has_key()
    assert message.partition_key() == "k1"
    assert message.ordering_key() == b"ok"
    assert message.event_timestamp() == 1_700_000_000_000
    empty = OutgoingMessage(b"")
    assert (empty.partition_key(), empty.key_bytes(), empty.ordering_key()) == ("", None, None)
    assert empty.event_timestamp() == 0
    assert not empty.has_key()


def test_batches_go_by_the_ordering_key_first() -> None:
    assert full().batching_key() == b"ok"
    assert OutgoingMessage(b"", partition_key="k").batching_key() == b"k"
    assert OutgoingMessage(b"").batching_key() == b""


@pytest.mark.parametrize(
    "options",
    [
        {"partition_key": "k"},
        {"properties": {"a": "b"}},
        {"ordering_key": "o"},
        {"sequence_id": 0},
        {"event_timestamp": 0},
        {"deliver_at": 0},
        {"replication_clusters": ["c"]},
    ],
)
def test_only_a_payload_is_plain(options: dict[str, Any]) -> None:
    assert OutgoingMessage(b"x").is_plain
    assert not OutgoingMessage(b"x", **options).is_plain
    assert not OutgoingMessage(None).is_plain


def test_what_it_needs_beside_its_payload_is_counted() -> None:
    assert OutgoingMessage(b"x").extra_bytes == 0
    assert full().extra_bytes > len("a1k1ok")


@pytest.mark.parametrize(
    "options",
    [
        {"properties": {"a": 1}},
        {"properties": {1: "a"}},
        {"partition_key": 5},
        {"ordering_key": 5},
        {"sequence_id": -1},
        {"sequence_id": 2**63},
        {"sequence_id": True},
        {"event_timestamp": 1.5},
        {"deliver_at": -1},
        {"replication_clusters": [5]},
        {"properties": {"a": "\ud800"}},
        {"properties": {"\ud800": "a"}},
        {"partition_key": "\ud800"},
        {"ordering_key": "\ud800"},
        {"replication_clusters": ["\ud800"]},
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessageError):
        OutgoingMessage(b"", **options)


def test_properties_are_those_at_the_time_of_sending() -> None:
    properties = {"a": "1"}
    message = OutgoingMessage(b"", properties)
    properties["a"] = "2"
    assert message.properties() == {"a": "1"}


def test_an_interceptor_adds_and_replaces_properties() -> None:
    message = OutgoingMessage(b"", {"a": "1"})
    message.set_property("b", "2")
    message.set_property("a", "3")
    assert message.properties() == {"a": "3", "b": "2"}
    bare = OutgoingMessage(b"")
    bare.set_property("a", "1")
    assert bare.properties() == {"a": "1"}
    assert not bare.is_plain
    for name, value in (("a", 1), (1, "a"), ("a", "\ud800")):
        with pytest.raises(InvalidMessageError):
            bare.set_property(name, value)
    assert bare.properties() == {"a": "1"}
