"""Offsets as users write them, and as a checkpoint holds them."""

from __future__ import annotations

import json

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.common.position import Position
from pulsar_py.spark.shared.offsets import Edge, StreamOffset, UserOffsets, UserPosition

TOPIC = "persistent://public/default/t"
PARTITION = TOPIC + "-partition-0"


def test_edges_hold_for_every_topic() -> None:
    offsets = UserOffsets.parse(" Earliest ", "startingOffsets")
    assert offsets.place_of(PARTITION, TOPIC) is Edge.EARLIEST


def test_a_partition_s_own_place_goes_before_its_topic_s() -> None:
    text = json.dumps({TOPIC: "latest", PARTITION: "7:3"})
    offsets = UserOffsets.parse(text, "startingOffsets")
    assert offsets.place_of(PARTITION, TOPIC) == UserPosition(Position(7, 3))
    assert offsets.place_of(TOPIC + "-partition-1", TOPIC) is Edge.LATEST
    assert offsets.place_of("other", "other") is None


def test_a_position_is_inclusive_at_both_ends() -> None:
    place = UserOffsets.parse('{"t": "7:3:2"}', "endingOffsets").places["t"]
    assert isinstance(place, UserPosition)
    assert (place.start, place.end, place.batch_index) == (Position(7, 3), Position(7, 4), 2)


@pytest.mark.parametrize(
    ("message_id", "place"),
    [
        (MessageId(200, 300, batch_index=5), UserPosition(Position(200, 300), 5)),
        (EARLIEST_MESSAGE_ID, Edge.EARLIEST),
        (LATEST_MESSAGE_ID, Edge.LATEST),
    ],
)
def test_signed_bytes_of_the_jvm_connector_are_read(message_id: MessageId, place: object) -> None:
    signed = [byte - 256 if byte > 127 else byte for byte in message_id.serialize()]
    offsets = UserOffsets.parse(json.dumps({"t": signed}), "startingOffsets")
    assert offsets.places["t"] == place


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("soon", r"startingOffsets: 'soon' is neither"),
        ("[1]", r"startingOffsets: '\[1\]' is neither"),
        ('{"t": "1"}', "startingOffsets: t: '1' is not ledger:entry"),
        ('{"t": "1:-2"}', "startingOffsets: t: '1:-2' is not ledger:entry"),
        ('{"t": [300]}', r"startingOffsets: t: \[300\] is neither"),
        ('{"t": [1, 2]}', "startingOffsets: t: 0102 is not a serialized message id"),
        ('{"t": 5}', "startingOffsets: t: 5 is neither"),
    ],
)
def test_what_is_no_offset_names_option_and_topic(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        UserOffsets.parse(text, "startingOffsets")


def test_a_checkpoint_s_text_does_not_depend_on_the_order_of_topics() -> None:
    one = StreamOffset({"b": Position(1, 2), "a": Position(3, 4)})
    other = StreamOffset({"a": Position(3, 4), "b": Position(1, 2)})
    assert str(one) == str(other) == '{"a": "3:4", "b": "1:2", "~v": "1"}'
    assert StreamOffset.from_json(json.loads(str(one))) == one


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"a": "1:2"}, "version None, and this pulsar_py reads '1'"),
        ({"a": "1:2", "~v": "2"}, "version '2', and this pulsar_py reads '1'"),
        ({"a": "12", "~v": "1"}, "checkpoint: a: '12' is not a position"),
        ({"a": "1:2:3", "~v": "1"}, "checkpoint: a: '1:2:3' is not a position"),
        ({"a": "-5:-7", "~v": "1"}, "checkpoint: a: '-5:-7' is not a position"),
        ({"a": f"{2**63}:0", "~v": "1"}, "checkpoint: a: .* is not a position"),
        ({"a": None, "~v": "1"}, "checkpoint: a: None is not a position"),
        ([], "not an offset of this source"),
        (5, "checkpoint: 5 is not an offset of this source"),
    ],
)
def test_a_foreign_checkpoint_is_refused(stored: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        StreamOffset.from_json(stored)
