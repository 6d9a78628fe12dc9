from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from pulsar_py.common.position import LATEST
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from tests.dispatch_parts import (
    FakeConnection,
    TimedConnection,
    Topic,
    ack,
    message,
    messages_of,
    received,
    redeliver,
    settle,
)

SHARED = SubscriptionType.SHARED


async def test_exactly_as_many_messages_as_permits(topic: Topic) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(permits=2)
    await settle()
    assert received(consumer) == [0, 1]
    consumer.flow(3)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 4]
    assert consumer.permits.available == 0
    assert consumer.permits.unacked_messages == 5


async def test_a_waiting_consumer_gets_each_message(topic: Topic) -> None:
    consumer = await topic.consume(permits=10)
    for count in range(1, 4):
        await topic.publish_many(1)
        await settle()
        assert received(consumer) == list(range(count))


async def test_messages_published_one_by_one_go_round(topic: Topic) -> None:
    connection = FakeConnection()
    for consumer_id in (1, 2, 3):
        await topic.consume(consumer_id, permits=100, connection=connection)
    for _ in range(7):
        await topic.publish_many(1)
        await settle()
    assert [each.consumer_id for each in connection.messages] == [1, 2, 3, 1, 2, 3, 1]


async def test_priorities_as_published(topic: Topic) -> None:
    connection = FakeConnection()
    for consumer_id, priority, permits in [(1, 0, 2), (2, 0, 1), (3, 0, 1), (4, 1, 2), (5, 1, 1)]:
        await topic.consume(
            consumer_id, permits=permits, connection=connection, priority_level=priority
        )
    for _ in range(8):
        await topic.publish_many(1)
        await settle()
    assert [each.consumer_id for each in connection.messages] == [1, 2, 3, 1, 4, 5, 4]


async def test_a_backlog_goes_out_in_small_batches(topic: Topic) -> None:
    topic.set(max_round_robin_batch_entries=3)
    await topic.publish_many(9)
    connection = FakeConnection()
    first = await topic.consume(1, connection=connection)
    second = await topic.consume(2, connection=connection)
    topic.set(max_read_batch_entries=100)
    first.permits.add(100)
    second.flow(100)
    await settle()
    assert received(first) == [0, 1, 2, 6, 7, 8]
    assert received(second) == [3, 4, 5]
    assert connection.writes_count == 3


async def test_a_closed_consumers_entries_go_to_the_other_first(topic: Topic) -> None:
    await topic.publish_many(4)
    first = await topic.consume(1, permits=3)
    await settle()
    second = await topic.consume(2)
    ack(first, 1)
    first.close()
    second.flow(10)
    await settle()
    assert received(second) == [0, 2, 3]
    assert {each.redelivery_count for each in messages_of(second)} == {0}


async def test_redelivery_counts_grow_with_each_request(topic: Topic) -> None:
    await topic.publish_many(2)
    consumer = await topic.consume(permits=100)
    await settle()
    for _ in range(3):
        redeliver(consumer, 0)
        await settle()
    redeliver(consumer)
    await settle()
    sent = [(each.entry_id, each.redelivery_count) for each in messages_of(consumer)]
    assert sent == [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 1)]
    ack(consumer, 1)
    redeliver(consumer, 1)
    await settle()
    assert len(messages_of(consumer)) == len(sent)


async def test_entries_of_another_consumer_are_not_redelivered(topic: Topic) -> None:
    await topic.publish_many(2)
    first = await topic.consume(1, permits=2)
    await settle()
    second = await topic.consume(2, permits=10)
    redeliver(second, 0)
    await settle()
    assert received(second) == []
    redeliver(first, 0)
    await settle()
    assert received(second) == [0]


async def test_redelivered_entries_need_permits_and_precede_new_ones(topic: Topic) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(permits=3)
    await settle()
    redeliver(consumer, 2, 1)
    await settle()
    assert received(consumer) == [0, 1, 2]
    consumer.flow(10)
    await settle()
    assert received(consumer) == [0, 1, 2, 1, 2, 3, 4]


async def test_counts_outlive_a_consumer_while_another_is_there(topic: Topic) -> None:
    await topic.publish_many(1)
    first = await topic.consume(1)
    second = await topic.consume(2)
    first.flow(1)
    await settle()
    redeliver(first, 0)
    second.flow(5)
    await settle()
    second.close()
    first.flow(5)
    await settle()
    assert [each.redelivery_count for each in messages_of(second)] == [1]
    assert [each.redelivery_count for each in messages_of(first)] == [0, 1]


async def test_all_that_left_unacknowledged_comes_again_uncounted(topic: Topic) -> None:
    await topic.publish_many(6)
    a = await topic.consume(1, permits=3)
    b = await topic.consume(2, permits=3)
    await settle()
    redeliver(a, 0)
    ack(b, 3)
    a.close()
    b.close()
    c = await topic.consume(3, permits=10)
    await settle()
    assert received(c) == [0, 1, 2, 4, 5]
    assert {each.redelivery_count for each in messages_of(c)} == {0}


async def test_part_of_a_batch_comes_again(topic: Topic) -> None:
    await topic.publish(message(batch=4))
    consumer = await topic.consume(permits=100)
    await settle()
    assert (consumer.permits.available, consumer.permits.unacked_messages) == (96, 4)
    ack(consumer, 0, ack_set=[10])
    assert consumer.permits.unacked_messages == 2
    redeliver(consumer, 0)
    await settle()
    assert (consumer.permits.available, consumer.permits.unacked_messages) == (94, 2)
    assert messages_of(consumer)[-1].ack_set == (10,)
    assert messages_of(consumer)[-1].redelivery_count == 1
    ack(consumer, 0, ack_set=[7])
    redeliver(consumer)
    await settle()
    assert messages_of(consumer)[-1].ack_set == (2,)
    assert messages_of(consumer)[-1].redelivery_count == 1
    ack(consumer, 0, ack_set=[13])
    redeliver(consumer)
    await settle()
    assert len(messages_of(consumer)) == 3
    assert consumer.permits.unacked_messages == 0


async def test_a_batch_may_overshoot_the_permits_by_less_than_itself(topic: Topic) -> None:
    await topic.publish(*[message(batch=10) for _ in range(5)])
    consumer = await topic.consume(permits=15)
    await settle()
    assert received(consumer) == [0, 1]
    assert consumer.permits.available == -5
    consumer.flow(6)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_a_consumer_at_its_limit_gets_nothing_until_half_is_acknowledged(
    topic: Topic,
) -> None:
    topic.set(max_unacked_messages_per_consumer=4)
    await topic.publish_many(10)
    consumer = await topic.consume(permits=100)
    await settle()
    assert received(consumer) == [0, 1, 2, 3]
    ack(consumer, 0)
    await settle()
    assert received(consumer) == [0, 1, 2, 3]
    ack(consumer, 1)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 4, 5]


async def test_readers_have_no_limit(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_consumer=4)
    await topic.publish_many(10)
    consumer = await topic.consume(permits=100, is_durable=False)
    await settle()
    assert len(received(consumer)) == 10


async def test_a_subscription_at_its_limit_reads_nothing_new(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_subscription=4)
    await topic.publish_many(10)
    consumer = await topic.consume(permits=100)
    await settle()
    assert received(consumer) == [0, 1, 2, 3]
    redeliver(consumer, 0)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 0]
    ack(consumer, 0, 1, 2)
    await settle()
    assert received(consumer)[5:] == [4, 5, 6]


async def test_the_entry_that_reaches_a_limit_is_the_last(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_subscription=7)
    await topic.publish(*(message(batch=3) for _ in range(10)))
    consumer = await topic.consume(permits=100)
    await settle()
    assert received(consumer) == [0, 1, 2]
    ack(consumer, 0, 1, 2)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 4, 5]


async def test_what_is_read_at_once_does_not_pass_the_limit_of_the_broker(topic: Topic) -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=10, blocked_share=0.3)
    cursor = (await topic.subscription()).cursor
    subscription = PersistentSubscription(
        topic, "sub", topic.ledger, cursor, clock=topic.clock, broker_unacked_limit=limit
    )
    topic.subscriptions["sub"] = subscription
    await topic.publish_many(50)
    consumer = await topic.consume(permits=100)
    await settle()
    assert received(consumer) == list(range(10))
    ack(consumer, *range(7))
    await settle()
    assert limit.unacked_messages == 10
    assert received(consumer) == list(range(17))


async def test_an_unwritable_consumer_is_passed_over(topic: Topic) -> None:
    slow = FakeConnection(is_writable=False)
    first = await topic.consume(1, permits=10, connection=slow)
    second = await topic.consume(2, permits=2)
    await topic.publish_many(4)
    await settle()
    assert received(first) == []
    assert received(second) == [0, 1]
    for _ in range(5):
        await topic.publish_many(1)
    await settle()
    assert slow.waiting_count == 1
    slow.become_writable()
    await settle()
    assert received(first) == [2, 3, 4, 5, 6, 7, 8]


async def test_acknowledging_what_another_consumer_holds(topic: Topic) -> None:
    await topic.publish_many(2)
    first = await topic.consume(1, permits=2)
    second = await topic.consume(2)
    await settle()
    ack(second, 0, ledger_id=messages_of(first)[0].ledger_id)
    assert first.permits.unacked_messages == 1
    first.close()
    second.flow(5)
    await settle()
    assert received(second) == [1]


async def test_ids_before_a_future_one_are_acknowledged_those_after_it_are_not(
    topic: Topic,
) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(permits=10)
    await settle()
    ack(consumer, 0, 100, 1)
    assert consumer.permits.unacked_messages == 2
    consumer.close()
    again = await topic.consume(2, permits=10)
    await settle()
    assert received(again) == [1, 2]


async def test_cumulative_acknowledgements_are_ignored(topic: Topic) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(permits=10)
    await settle()
    ack(consumer, 2, cumulative=True)
    consumer.close()
    again = await topic.consume(2, permits=10)
    await settle()
    assert received(again) == [0, 1, 2]


async def test_delayed_messages_come_later_in_order_of_their_times(topic: Topic) -> None:
    now = topic.clock.wall_time_millis()
    await topic.publish(
        message(deliver_at_time=now + 6000), message(deliver_at_time=now + 3000), message()
    )
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [2]
    assert consumer.subscription.stats().delayed_entries == 2
    await asyncio.sleep(2.999)
    assert received(consumer) == [2]
    await asyncio.sleep(1)
    assert received(consumer) == [2, 1]
    await asyncio.sleep(2)
    assert received(consumer) == [2, 1]
    await asyncio.sleep(1)
    assert received(consumer) == [2, 1, 0]
    assert {each.redelivery_count for each in messages_of(consumer)} == {0}


DELAYS_MILLIS = [1, 300, 999, 1000, 1001, 1660, 2340, 3000, 3001]


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("tick_millis", [1, 100, 1000])
async def test_no_message_is_early_or_a_tick_late_while_others_move(
    topic: Topic, kind: SubscriptionType, tick_millis: int
) -> None:
    """Others are published, refused and acknowledged all the time, and a consumer comes and goes."""
    topic.set(delayed_delivery_tick_millis=tick_millis)
    connection = TimedConnection(clock=topic.clock)
    steady = await topic.consume(1, kind, permits=1000, connection=connection, consumer_name="c1")
    deliver_at: dict[int, int] = {}
    for step in range(60):
        now = topic.clock.wall_time_millis()
        delay = DELAYS_MILLIS[step // 2 % len(DELAYS_MILLIS)] if step % 2 else 0
        [position] = await topic.publish(
            message(partition_key=f"k{step % 8}", deliver_at_time=now + delay if delay else 0)
        )
        deliver_at[position.entry_id] = now + delay
        if step % 10 == 5:
            passing = await topic.consume(
                2, kind, permits=3, connection=connection, consumer_name="c2"
            )
        if step % 10 == 8:
            passing.close()
        await asyncio.sleep(0.037)
        held = sorted(entry_id for _, entry_id in steady.pending_acks)
        redeliver(steady, *held[::2])
        ack(steady, *held[1::4])
    await asyncio.sleep(5)
    late = {each: time - deliver_at[each] for each, time in connection.arrivals().items()}
    assert late.keys() == deliver_at.keys()
    assert all(0 <= each < tick_millis for each in late.values()), late


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
async def test_a_message_keeps_its_time_when_all_consumers_left_and_one_returned(
    topic: Topic, kind: SubscriptionType
) -> None:
    due = topic.clock.wall_time_millis() + 3000
    await topic.publish(message(deliver_at_time=due), message())
    first = await topic.consume(1, kind, permits=10)
    await asyncio.sleep(1)
    first.close()
    await asyncio.sleep(0.5)
    connection = TimedConnection(clock=topic.clock)
    again = await topic.consume(2, kind, permits=10, connection=connection)
    await settle()
    redeliver(again)
    await asyncio.sleep(3)
    assert (received(first), received(again)) == ([1], [1, 1, 0])
    assert due <= connection.arrivals()[0] < due + 1000


async def test_a_delayed_message_that_is_refused_comes_at_once_again(topic: Topic) -> None:
    await topic.publish(message(deliver_at_time=topic.clock.wall_time_millis() + 3000))
    consumer = await topic.consume(permits=10)
    await asyncio.sleep(4)
    redeliver(consumer, 0)
    await settle()
    assert [each.redelivery_count for each in messages_of(consumer)] == [0, 1]


async def test_a_new_tick_is_obeyed_by_the_dispatcher_in_use(topic: Topic) -> None:
    topic.set(delayed_delivery_tick_millis=60_000)
    connection = TimedConnection(clock=topic.clock)
    consumer = await topic.consume(permits=10, connection=connection)
    topic.set(delayed_delivery_tick_millis=1)
    (await topic.subscription()).on_settings_changed()
    due = topic.clock.wall_time_millis() + 1234
    await topic.publish(message(deliver_at_time=due))
    await asyncio.sleep(1.234)
    await settle()
    assert received(consumer) == [0]
    assert connection.arrivals() == {0: due}


async def test_a_due_message_waits_for_permits_without_spinning(topic: Topic) -> None:
    now = topic.clock.wall_time_millis()
    await topic.publish(message(deliver_at_time=now + 3000), message())
    consumer = await topic.consume(permits=2)
    await settle()
    consumer.permits.take(1)
    await asyncio.sleep(60)
    assert received(consumer) == [1]
    consumer.flow(1)
    await settle()
    assert received(consumer) == [1, 0]


async def test_delayed_messages_come_at_once_when_it_is_off(topic: Topic) -> None:
    topic.set(is_delayed_delivery_enabled=False)
    await topic.publish(message(deliver_at_time=topic.clock.wall_time_millis() + 60_000))
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [0]


async def test_chunks_of_a_message_stay_together(topic: Topic) -> None:
    connection = FakeConnection()
    for consumer_id in (1, 2):
        await topic.consume(consumer_id, permits=100, connection=connection)
    for chunk_id in range(3):
        for uuid in ("p-0", "p-1"):
            await topic.publish(
                message(uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=3, total_chunk_msg_size=9)
            )
            await settle()
    assert [each.consumer_id for each in connection.messages] == [1, 2, 1, 2, 1, 2]


async def test_a_chunk_waits_for_its_consumer_while_others_go_on(topic: Topic) -> None:
    def chunk(chunk_id: int) -> bytes:
        return message(uuid="u", chunk_id=chunk_id, num_chunks_from_msg=2, total_chunk_msg_size=9)

    first = await topic.consume(1, permits=1)
    await topic.publish(chunk(0))
    await settle()
    second = await topic.consume(2, permits=10)
    await topic.publish(chunk(1), message(), message())
    await settle()
    assert received(first) == [0]
    assert received(second) == [2, 3]
    first.flow(1)
    await settle()
    assert received(first) == [0, 1]


async def test_markers_and_unreadable_entries_are_acknowledged(topic: Topic) -> None:
    await topic.publish(message(marker_type=10), b"\x00\x00\x00\x02\xff\xff", message())
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [2]
    assert consumer.subscription.stats().backlog_entries == 1
    assert consumer.permits.available == 9


async def test_nothing_beyond_the_max_read_position_is_sent(topic: Topic) -> None:
    positions = await topic.publish_many(3)
    topic.max_position = positions[0]
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [0]
    topic.max_position = LATEST
    subscription = await topic.subscription()
    subscription.on_max_read_position_moved()
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_closing_gives_the_unacknowledged_back_to_the_broker_and_to_nobody_else(
    topic: Topic,
) -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.5)
    cursor = (await topic.subscription()).cursor
    subscription = PersistentSubscription(
        topic, "sub", topic.ledger, cursor, clock=topic.clock, broker_unacked_limit=limit
    )
    topic.subscriptions["sub"] = subscription
    await topic.publish_many(10)
    consumers = [await topic.consume(number, permits=5) for number in (1, 2)]
    await settle()
    assert limit.unacked_messages == 10
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, MultipleConsumersDispatcher)
    dispatcher.close()
    assert limit.unacked_messages == dispatcher.unacked_messages == len(dispatcher.redelivery) == 0
    assert [(len(each.pending_acks), each.permits.unacked_messages) for each in consumers] == [
        (0, 0),
        (0, 0),
    ]
    dispatcher.close()
    assert limit.unacked_messages == 0


@contextmanager
def lines_run() -> Iterator[list[int]]:
    """A list that gets the number of lines of the package that were run, again and again in loops."""
    counted: list[int] = []
    lines_count = 0

    def on_event(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines_count
        if "/pulsar_py/" not in frame.f_code.co_filename:
            return None
        lines_count += event == "line"
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        yield counted
    finally:
        sys.settrace(before)
        counted.append(lines_count)


async def work_among(topic: Topic, consumers_count: int) -> tuple[int, int, int]:
    """Lines that a join, an acknowledged entry and a leaving cost among so many."""
    subscription = f"{consumers_count} consumers"
    connection = FakeConnection()
    consumers = [
        await topic.consume(number, permits=1, connection=connection, subscription=subscription)
        for number in range(consumers_count)
    ]
    await settle()
    assert all(each.permits.available == 0 for each in consumers)
    with lines_run() as joining:
        joined = await topic.consume(consumers_count, subscription=subscription)
    with lines_run() as serving:
        for place in range(0, 100, 2):
            ack(consumers[place], place)
            consumers[place].flow(1)
            await settle(3)
    assert len(connection.messages) == consumers_count + 50
    with lines_run() as leaving:
        joined.subscription.remove_consumer(joined)
    return joining[0], serving[0], leaving[0]


async def test_what_an_entry_costs_does_not_grow_with_the_consumers(topic: Topic) -> None:
    await topic.publish_many(1_050)
    few, many = await work_among(topic, 100), await work_among(topic, 1_000)
    for little, much in zip(few, many, strict=True):
        assert much <= little * 1.1 + 20
