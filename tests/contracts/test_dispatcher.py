"""What every persistent dispatcher does, whatever its type."""

from __future__ import annotations

import pytest

from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import pytest_asyncio_loop_factories, virtual_clock
from tests.dispatch_fixtures import topic
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

__all__ = ["pytest_asyncio_loop_factories", "topic", "virtual_clock"]

pytestmark = pytest.mark.parametrize("kind", list(SubscriptionType))


async def test_nothing_before_the_first_flow(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=kind)
    await settle()
    assert received(consumer) == []


async def test_never_more_than_permits(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(kind=kind, permits=2)
    await settle()
    assert received(consumer) == [0, 1]
    consumer.flow(1)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_new_entries_wake_a_waiting_consumer(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    await topic.publish_many(2)
    await settle()
    assert received(consumer) == [0, 1]


async def test_a_consumer_that_returns_gets_what_it_did_not_acknowledge(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(5)
    first = await topic.consume(1, kind, permits=10)
    await settle()
    ack(first, 1, 3)
    first.close()
    again = await topic.consume(1, kind, permits=10)
    await settle()
    assert received(again) == [0, 2, 4]


async def test_permits_die_with_their_consumer(topic: Topic, kind: SubscriptionType) -> None:
    first = await topic.consume(1, kind, permits=10)
    first.close()
    again = await topic.consume(1, kind)
    await topic.publish_many(1)
    await settle()
    assert received(again) == []
    assert again.stats().available_permits == 0


async def test_redelivery_without_ids_brings_all_again(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    ack(consumer, 1)
    redeliver(consumer)
    await settle()
    assert received(consumer) == [0, 1, 2, 0, 2]


async def test_markers_are_never_delivered(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish(message(marker_type=21), message())
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    assert received(consumer) == [1]
    assert consumer.subscription.stats().backlog_entries == 1


async def test_a_batch_in_part_comes_with_its_set(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish(message(batch=4))
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    ack(consumer, 0, ack_set=[0b0110])
    redeliver(consumer)
    await settle()
    assert [each.ack_set for each in messages_of(consumer)] == [(), (6,)]
    assert consumer.permits.available == 10 - 4 - 2


async def test_nothing_to_a_connection_that_is_not_writable(
    topic: Topic, kind: SubscriptionType
) -> None:
    connection = FakeConnection(is_writable=False)
    consumer = await topic.consume(kind=kind, permits=10, connection=connection)
    await topic.publish_many(3)
    await settle()
    assert received(consumer) == []
    connection.become_writable()
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_seek_takes_back_everything(topic: Topic, kind: SubscriptionType) -> None:
    positions = await topic.publish_many(4)
    consumer = await topic.consume(1, kind, permits=10)
    await settle()
    ack(consumer, 0, 1, 2, 3)
    await consumer.subscription.reset_to_position(positions[2], None)
    again = await topic.consume(2, kind, permits=10)
    await settle()
    assert received(again) == [2, 3]


async def test_the_end_is_told_when_all_is_acknowledged(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(2)
    connection = FakeConnection()
    consumer = await topic.consume(kind=kind, permits=10, connection=connection)
    await settle()
    await topic.ledger.terminate()
    (await topic.subscription()).on_terminated()
    await settle()
    assert connection.ends_of_topic() == []
    ack(consumer, 0, 1)
    await settle()
    assert connection.ends_of_topic() == [1]


async def test_removing_a_consumer_twice_is_once(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind)
    dispatcher = consumer.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.remove_consumer(consumer)
    dispatcher.remove_consumer(consumer)
    assert list(dispatcher.consumers) == []


async def test_closing_ends_everything(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    dispatcher = consumer.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.close()
    await topic.publish_many(1)
    consumer.flow(5)
    await settle()
    assert received(consumer) == []
