from __future__ import annotations

import pytest

from pulsar_py.common.errors import ServiceMetadataError, SubscriptionFencedError
from pulsar_py.common.position import EARLIEST
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.non_persistent_subscription import NonPersistentSubscription
from tests.dispatch_fixtures import topic
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    messages_of,
    new_consumer,
    redeliver,
)

__all__ = ["topic"]

SHARED = SubscriptionType.SHARED
EXCLUSIVE = SubscriptionType.EXCLUSIVE


def subscribe(topic: Topic, *, is_durable: bool = True) -> NonPersistentSubscription:
    subscription = NonPersistentSubscription(
        topic, "sub", clock=topic.clock, is_durable=is_durable, properties={"p": "q"}
    )
    topic.subscriptions["sub"] = subscription
    return subscription


async def join(
    subscription: NonPersistentSubscription,
    consumer_id: int = 1,
    kind: SubscriptionType = SHARED,
    connection: FakeConnection | None = None,
) -> Consumer:
    consumer = new_consumer(subscription, consumer_id, kind, connection)
    await subscription.add_consumer(consumer)
    return consumer


async def test_acknowledging_and_redelivering_mean_nothing(topic: Topic) -> None:
    subscription = subscribe(topic)
    consumer = await join(subscription)
    consumer.flow(10)
    subscription.send_messages([Entry(0, 0, message())])
    ack(consumer, 0, ledger_id=0)
    redeliver(consumer)
    assert len(messages_of(consumer)) == 1
    assert consumer.stats().unacked_messages == 0


async def test_seek_succeeds_and_closes_nobody(topic: Topic) -> None:
    subscription = subscribe(topic)
    consumer = await join(subscription)
    await subscription.reset_to_position(EARLIEST, None)
    await subscription.reset_to_time(5)
    assert list(subscription.consumers) == [consumer]


async def test_unsubscribing_forgets_it(topic: Topic) -> None:
    subscription = subscribe(topic)
    consumer = await join(subscription)
    await subscription.unsubscribe(consumer, force=False)
    assert topic.subscriptions == {}


async def test_unsubscribing_with_others_needs_force(topic: Topic) -> None:
    subscription = subscribe(topic)
    connection = FakeConnection()
    first = await join(subscription, 1, connection=connection)
    await join(subscription, 2, connection=connection)
    with pytest.raises(ServiceMetadataError):
        await subscription.unsubscribe(first, force=False)
    await subscription.unsubscribe(first, force=True)
    assert connection.consumers_closed == [2]


async def test_a_non_durable_one_ends_with_its_last_consumer(topic: Topic) -> None:
    consumer = await join(subscribe(topic, is_durable=False))
    consumer.close()
    assert topic.subscriptions == {}


async def test_closing_disconnects_and_lets_nobody_in(topic: Topic) -> None:
    subscription = subscribe(topic)
    connection = FakeConnection()
    await join(subscription, 1, connection=connection)
    await subscription.close()
    assert connection.consumers_closed == [1]
    with pytest.raises(SubscriptionFencedError):
        await join(subscription, 2)


async def test_drops_are_counted_over_changes_of_type(topic: Topic) -> None:
    subscription = subscribe(topic)
    consumer = await join(subscription)
    subscription.send_messages([Entry(0, 0, message(batch=3))])
    consumer.close()
    await join(subscription, 2, EXCLUSIVE)
    subscription.send_messages([Entry(0, 0, message())])
    subscription.roll_rates(2.0)
    stats = subscription.stats()
    assert (stats.dropped_messages_count, stats.dropped_rate) == (4, 2.0)
    assert (stats.subscription_type, stats.properties) == ("Exclusive", {"p": "q"})
