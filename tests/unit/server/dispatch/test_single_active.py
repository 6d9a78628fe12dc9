from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ConsumerAssignError, ConsumerBusyError
from pulsar_py.server.dispatch.single_active import SingleActiveConsumerDispatcher
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    messages_of,
    received,
    redeliver,
    settle,
)

EXCLUSIVE = SubscriptionType.EXCLUSIVE
FAILOVER = SubscriptionType.FAILOVER


async def test_everything_in_order_while_there_are_permits(topic: Topic) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=2)
    await settle()
    consumer.flow(10)
    await topic.publish_many(2)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 4]
    assert consumer.permits.unacked_messages == 0


async def test_a_second_exclusive_consumer_is_refused(topic: Topic) -> None:
    await topic.consume(1, EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match="Exclusive consumer is already connected"):
        await topic.consume(2, EXCLUSIVE)


async def test_redelivery_rewinds_whatever_the_ids(topic: Topic) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=100)
    await settle()
    ack(consumer, 1)
    redeliver(consumer, 1)
    await settle()
    assert received(consumer) == [0, 1, 2, 0, 2]
    assert {each.redelivery_count for each in messages_of(consumer)} == {0}


async def test_messages_carry_the_consumers_epoch(topic: Topic) -> None:
    await topic.publish_many(2)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=2, consumer_epoch=0)
    await settle()
    redeliver(consumer, epoch=1)
    await settle()
    consumer.flow(10)
    await settle()
    redeliver(consumer, epoch=0)
    await settle()
    sent = [(each.entry_id, each.consumer_epoch) for each in messages_of(consumer)]
    assert sent == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 1), (1, 1)]


async def test_delays_are_not_honoured(topic: Topic) -> None:
    await topic.publish(message(deliver_at_time=topic.clock.wall_time_millis() + 60_000))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=1)
    await settle()
    assert received(consumer) == [0]


async def test_batches_stop_where_the_permits_do_and_the_rest_is_unread(topic: Topic) -> None:
    await topic.publish(*[message(batch=10) for _ in range(6)])
    consumer = await topic.consume(kind=EXCLUSIVE, permits=15)
    await settle()
    assert received(consumer) == [0, 1]
    assert consumer.permits.available == -5
    consumer.flow(25)
    await settle()
    assert received(consumer) == [0, 1, 2, 3]


async def test_a_batch_acknowledged_in_part_costs_what_is_left(topic: Topic) -> None:
    await topic.publish(message(batch=4), message())
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    ack(consumer, 0, ack_set=[0b1100])
    redeliver(consumer)
    await settle()
    assert [each.ack_set for each in messages_of(consumer)] == [(), (), (12,), ()]
    assert consumer.permits.available == 10 - 5 - 3


async def test_an_unwritable_connection_is_left_alone(topic: Topic) -> None:
    connection = FakeConnection(is_writable=False)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10, connection=connection)
    await topic.publish_many(3)
    await settle()
    assert (received(consumer), connection.waiting_count) == ([], 1)
    connection.become_writable()
    await settle()
    assert received(consumer) == [0, 1, 2]
    assert connection.writes_count == 1


async def test_a_reader_with_hash_ranges_gets_its_slots_and_acknowledges_nothing(
    topic: Topic,
) -> None:
    keys = ["a", "key-1", "key-2", "key-3", "order-42"]
    await topic.publish(*[message(partition_key=key) for key in keys])
    meta = KeySharedMeta(is_sticky=True, hash_ranges=((20001, 25000), (0, 20000)))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10, is_durable=False, key_shared=meta)
    await settle()
    assert received(consumer) == [1, 2, 3]
    assert consumer.subscription.stats().backlog_entries == 5
    assert consumer.permits.available == 7


async def test_bad_hash_ranges_are_refused(topic: Topic) -> None:
    meta = KeySharedMeta(is_sticky=True, hash_ranges=((5, 4),))
    with pytest.raises(ConsumerAssignError):
        await topic.consume(kind=EXCLUSIVE, key_shared=meta)


async def test_the_first_failover_consumer_is_told_that_it_is_active(topic: Topic) -> None:
    connection = FakeConnection()
    await topic.consume(1, FAILOVER, connection=connection)
    assert connection.active_changes() == [(1, True)]


async def test_joining_without_a_change_tells_only_the_newcomer(topic: Topic) -> None:
    connection = FakeConnection()
    await topic.consume(1, FAILOVER, connection=connection, consumer_name="aaa")
    await topic.consume(2, FAILOVER, connection=connection, consumer_name="bbb")
    assert connection.active_changes() == [(1, True), (2, False)]


async def test_a_change_tells_everybody(topic: Topic) -> None:
    connection = FakeConnection()
    await topic.consume(1, FAILOVER, connection=connection, consumer_name="bbb")
    await topic.consume(2, FAILOVER, connection=connection, consumer_name="aaa")
    assert connection.active_changes() == [(1, True), (1, False), (2, True)]


async def test_old_clients_are_not_told(topic: Topic) -> None:
    connection = FakeConnection(protocol_version=11)
    await topic.consume(1, FAILOVER, connection=connection)
    assert connection.active_changes() == []


async def test_the_next_consumer_starts_from_what_is_not_acknowledged(topic: Topic) -> None:
    await topic.publish_many(3)
    first = await topic.consume(1, FAILOVER, permits=10, consumer_name="aaa")
    second = await topic.consume(2, FAILOVER, permits=10, consumer_name="bbb")
    await settle()
    ack(first, 0)
    assert received(second) == []
    first.close()
    await settle()
    assert received(first) == [0, 1, 2]
    assert received(second) == [1, 2]


async def test_a_change_waits_for_the_delay_and_nothing_is_sent_meanwhile(topic: Topic) -> None:
    topic.set(failover_delay_millis=1000)
    await topic.publish_many(1)
    connection = FakeConnection()
    consumer = await topic.consume(1, FAILOVER, permits=10, connection=connection)
    await asyncio.sleep(0.9)
    consumer.flow(1)
    redeliver(consumer)
    await settle()
    assert (received(consumer), connection.active_changes()) == ([], [])
    await asyncio.sleep(0.2)
    assert (received(consumer), connection.active_changes()) == ([0], [(1, True)])


async def test_changes_during_the_delay_are_told_once(topic: Topic) -> None:
    topic.set(failover_delay_millis=1000)
    connection = FakeConnection()
    await topic.consume(1, FAILOVER, connection=connection, consumer_name="bbb")
    await topic.consume(2, FAILOVER, connection=connection, consumer_name="aaa")
    await asyncio.sleep(3)
    assert connection.active_changes() == [(1, False), (2, True)]


async def test_redelivery_for_an_inactive_consumer_does_nothing(topic: Topic) -> None:
    await topic.publish_many(1)
    first = await topic.consume(1, FAILOVER, permits=10, consumer_name="aaa")
    second = await topic.consume(2, FAILOVER, permits=10, consumer_name="bbb")
    await settle()
    redeliver(second)
    await settle()
    assert (received(first), received(second)) == ([0], [])
    redeliver(first)
    await settle()
    assert (received(first), received(second)) == ([0, 0], [])


async def test_cumulative_acknowledgement_moves_the_mark(topic: Topic) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(1, EXCLUSIVE, permits=10)
    await settle()
    ack(consumer, 2, cumulative=True)
    ack(consumer, 100, cumulative=True)
    ack(consumer, 1, 3, cumulative=True)
    consumer.close()
    again = await topic.consume(2, EXCLUSIVE, permits=10)
    await settle()
    assert received(again) == [3, 4]


async def test_consumers_at_the_end_of_a_terminated_topic_are_told_once(topic: Topic) -> None:
    await topic.publish_many(2)
    connection = FakeConnection()
    consumer = await topic.consume(1, EXCLUSIVE, permits=10, connection=connection)
    await settle()
    await topic.ledger.terminate()
    (await topic.subscription()).on_terminated()
    await settle()
    ack(consumer, 0)
    await settle()
    assert connection.ends_of_topic() == []
    ack(consumer, 1)
    ack(consumer, 1)
    await settle()
    assert connection.ends_of_topic() == [1]


async def test_the_end_of_an_empty_topic_is_told_at_once_and_again_after_flow(
    topic: Topic,
) -> None:
    connection = FakeConnection()
    consumer = await topic.consume(1, EXCLUSIVE, connection=connection)
    await topic.ledger.terminate()
    (await topic.subscription()).on_terminated()
    assert connection.ends_of_topic() == [1]
    consumer.flow(10)
    await settle()
    assert connection.ends_of_topic() == [1, 1]


async def test_old_clients_are_not_told_of_the_end(topic: Topic) -> None:
    connection = FakeConnection(protocol_version=8)
    consumer = await topic.consume(1, EXCLUSIVE, connection=connection)
    await topic.ledger.terminate()
    consumer.flow(10)
    await settle()
    assert connection.commands == []


async def test_while_it_is_held_nobody_is_active_whoever_leaves(topic: Topic) -> None:
    await topic.publish_many(2)
    connection = FakeConnection()
    one, two, three = [
        await topic.consume(number, FAILOVER, permits=10, connection=connection, consumer_name=name)
        for number, name in ((1, "a"), (2, "b"), (3, "c"))
    ]
    await settle()
    dispatcher = one.subscription.dispatcher
    assert isinstance(dispatcher, SingleActiveConsumerDispatcher)
    connection.commands.clear()
    assert dispatcher.hold() is one
    one.close()
    two.close()
    three.flow(5)
    redeliver(three)
    await topic.publish_many(1)
    await settle()
    assert dispatcher.active_consumer is None
    assert connection.active_changes() == []
    dispatcher.on_cursor_reset()
    await settle()
    assert connection.active_changes() == [(3, True)]
    assert received(three) == [0, 1, 2]


async def test_holding_drops_a_change_that_waits_and_what_is_being_read(
    topic: Topic, virtual_clock: VirtualClock
) -> None:
    topic.set(failover_delay_millis=1000)
    await topic.publish_many(2)
    consumer = await topic.consume(1, FAILOVER, permits=10)
    dispatcher = consumer.subscription.dispatcher
    assert isinstance(dispatcher, SingleActiveConsumerDispatcher)
    dispatcher.hold()
    await virtual_clock.sleep(5)
    assert received(consumer) == []
    dispatcher.on_cursor_reset()
    await virtual_clock.sleep(0.9)
    assert received(consumer) == []
    await virtual_clock.sleep(0.2)
    assert received(consumer) == [0, 1]
