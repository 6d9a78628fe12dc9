"""Lanes: order where it is promised, concurrency elsewhere, and a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.enums import ConsumerType
from pulsar_py.client.listener_lanes import ListenerLanes, lane_of
from pulsar_py.client.message import Message
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

TOPIC = "persistent://public/default/t"


def message(**fields: object) -> Message:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=0)
    for name, value in fields.items():
        setattr(metadata, name, value)
    return Message.of(b"", topic=TOPIC, metadata=metadata)


@pytest.mark.parametrize(
    ("consumer_type", "fields", "lane"),
    [
        (ConsumerType.Shared, {"partition_key": "k"}, None),
        (ConsumerType.KeyShared, {}, None),
        (ConsumerType.KeyShared, {"partition_key": "k"}, (TOPIC, b"k")),
        (ConsumerType.KeyShared, {"partition_key": "k", "ordering_key": b"o"}, (TOPIC, b"o")),
        (ConsumerType.Exclusive, {}, TOPIC),
        (ConsumerType.Failover, {"partition_key": "k"}, (TOPIC, b"k")),
    ],
)
def test_lanes_are_what_must_keep_its_order(
    consumer_type: ConsumerType, fields: dict[str, object], lane: object
) -> None:
    assert lane_of(message(**fields), consumer_type) == lane


def test_one_lane_runs_one_at_a_time() -> None:
    lanes: ListenerLanes[int] = ListenerLanes(4)
    for number in range(3):
        lanes.offer("a", number)
    lanes.offer("b", 9)
    assert lanes.take() == ("a", 0)
    assert lanes.take() == ("b", 9)
    assert lanes.take() is None
    lanes.done("a")
    assert lanes.take() == ("a", 1)


def test_messages_without_lane_run_beside_all_up_to_the_limit() -> None:
    lanes: ListenerLanes[int] = ListenerLanes(2)
    for number in range(3):
        lanes.offer(None, number)
    assert lanes.take() == (None, 0)
    assert lanes.take() == (None, 1)
    assert lanes.take() is None, "two run"
    lanes.done(None)
    assert lanes.take() == (None, 2)


def test_the_number_in_hand_is_bounded() -> None:
    lanes: ListenerLanes[int] = ListenerLanes(2)
    for number in range(4):
        assert lanes.has_room
        lanes.offer("a", number)
    assert not lanes.has_room
    assert lanes.take() == ("a", 0)
    assert not lanes.has_room, "what runs is in hand, too"
    lanes.done("a")
    assert lanes.has_room
    assert lanes.in_hand_count == 3


@given(
    lanes_of=st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=40),
    concurrency=st.integers(1, 4),
    picks=st.lists(st.integers(0, 3), min_size=200, max_size=200),
)
def test_every_lane_keeps_its_order_whatever_ends_first(
    lanes_of: list[str | None], concurrency: int, picks: list[int]
) -> None:
    lanes: ListenerLanes[int] = ListenerLanes(concurrency)
    waiting = list(enumerate(lanes_of))
    running: list[tuple[object, int]] = []
    ended: list[tuple[object, int]] = []
    for pick in picks:
        while waiting and lanes.has_room:
            number, lane = waiting.pop(0)
            lanes.offer(lane, number)
        while (item := lanes.take()) is not None:
            running.append(item)
        assert len(running) <= concurrency
        named = [lane for lane, _ in running if lane is not None]
        assert len(named) == len(set(named)), "two of one lane run"
        if running:
            item = running.pop(pick % len(running))
            ended.append(item)
            lanes.done(item[0])
    assert sorted(number for _, number in ended) == list(range(len(lanes_of)))
    for lane in "abc":
        numbers = [number for each, number in ended if each == lane]
        assert numbers == sorted(numbers)
