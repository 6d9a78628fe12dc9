"""ListenerOrder: order where it is promised, concurrency elsewhere, and a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.consuming.listener_order import ListenerOrder, order_key_of
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

TOPIC = "persistent://public/default/t"


def message(**fields: object) -> Message:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=0)
    for name, value in fields.items():
        setattr(metadata, name, value)
    return Message.of(b"", topic=TOPIC, metadata=metadata)


@pytest.mark.parametrize(
    ("consumer_type", "fields", "order_key"),
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
    consumer_type: ConsumerType, fields: dict[str, object], order_key: object
) -> None:
    assert order_key_of(message(**fields), consumer_type) == order_key


def test_one_lane_runs_one_at_a_time() -> None:
    order: ListenerOrder[int] = ListenerOrder(4)
    for number in range(3):
        order.offer("a", number)
    order.offer("b", 9)
    assert order.take() == ("a", 0)
    assert order.take() == ("b", 9)
    assert order.take() is None
    order.done("a")
    assert order.take() == ("a", 1)


def test_messages_without_lane_run_beside_all_up_to_the_limit() -> None:
    order: ListenerOrder[int] = ListenerOrder(2)
    for number in range(3):
        order.offer(None, number)
    assert order.take() == (None, 0)
    assert order.take() == (None, 1)
    assert order.take() is None, "two run"
    order.done(None)
    assert order.take() == (None, 2)


def test_the_number_in_hand_is_bounded() -> None:
    order: ListenerOrder[int] = ListenerOrder(2)
    for number in range(4):
        assert order.has_room
        order.offer("a", number)
    assert not order.has_room
    assert order.take() == ("a", 0)
    assert not order.has_room, "what runs is in hand, too"
    order.done("a")
    assert order.has_room
    assert order.in_hand_count == 3


@given(
    lanes_of=st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=40),
    concurrency=st.integers(1, 4),
    picks=st.lists(st.integers(0, 3), min_size=200, max_size=200),
)
def test_every_lane_keeps_its_order_whatever_ends_first(
    lanes_of: list[str | None], concurrency: int, picks: list[int]
) -> None:
    order: ListenerOrder[int] = ListenerOrder(concurrency)
    waiting = list(enumerate(lanes_of))
    running: list[tuple[object, int]] = []
    ended: list[tuple[object, int]] = []
    for pick in picks:
        while waiting and order.has_room:
            number, order_key = waiting.pop(0)
            order.offer(order_key, number)
        while (item := order.take()) is not None:
            running.append(item)
        assert len(running) <= concurrency
        named = [order_key for order_key, _ in running if order_key is not None]
        assert len(named) == len(set(named)), "two of one key run"
        if running:
            item = running.pop(pick % len(running))
            ended.append(item)
            order.done(item[0])
    assert sorted(number for _, number in ended) == list(range(len(lanes_of)))
    for order_key in "abc":
        numbers = [number for each, number in ended if each == order_key]
        assert numbers == sorted(numbers)
