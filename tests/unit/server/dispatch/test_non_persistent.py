from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConsumerBusyError
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.non_persistent_subscription import NonPersistentSubscription
from tests.dispatch_parts import FakeConnection, Topic, message, messages_of, new_consumer

EXCLUSIVE = SubscriptionType.EXCLUSIVE
FAILOVER = SubscriptionType.FAILOVER
SHARED = SubscriptionType.SHARED
KEY_SHARED = SubscriptionType.KEY_SHARED


@pytest.fixture
def subscription(topic: Topic) -> NonPersistentSubscription:
    return NonPersistentSubscription(topic, "sub", clock=topic.clock)


async def join(
    subscription: NonPersistentSubscription,
    consumer_id: int,
    kind: SubscriptionType,
    *,
    permits: int = 0,
    **request: object,
) -> Consumer:
    consumer = new_consumer(subscription, consumer_id, kind, **request)  # type: ignore[arg-type]
    await subscription.add_consumer(consumer)
    if permits:
        consumer.flow(permits)
    return consumer


def publish(subscription: NonPersistentSubscription, *entries: bytes) -> None:
    subscription.send_messages([Entry(0, 0, data) for data in entries])


def bodies(consumer: Consumer) -> list[bytes]:
    return [each.data[-2:] for each in messages_of(consumer)]


async def test_what_comes_without_permits_is_dropped(
    subscription: NonPersistentSubscription,
) -> None:
    consumer = await join(subscription, 1, EXCLUSIVE)
    publish(subscription, message(b"m0"))
    consumer.flow(2)
    publish(subscription, message(b"m1"), message(b"m2"), message(b"m3"))
    consumer.flow(10)
    assert bodies(consumer) == [b"m1", b"m2"]
    assert subscription.stats().dropped_messages_count == 2


async def test_a_batch_needs_one_permit_and_costs_all(
    subscription: NonPersistentSubscription,
) -> None:
    consumer = await join(subscription, 1, EXCLUSIVE, permits=4)
    publish(subscription, message(b"b0", batch=3), message(b"b1", batch=3), message(b"m6"))
    assert bodies(consumer) == [b"b0", b"b1"]
    assert consumer.permits.available == -2


async def test_what_a_connection_can_not_take_is_dropped(
    subscription: NonPersistentSubscription,
) -> None:
    connection = FakeConnection(is_writable=False)
    consumer = await join(subscription, 1, EXCLUSIVE, permits=10, connection=connection)
    publish(subscription, message(b"m0"))
    assert bodies(consumer) == []


async def test_shared_goes_round(subscription: NonPersistentSubscription) -> None:
    first = await join(subscription, 1, SHARED, permits=10)
    second = await join(subscription, 2, SHARED, permits=10)
    publish(subscription, *[message(b"m%d" % index) for index in range(4)])
    assert (bodies(first), bodies(second)) == ([b"m0", b"m2"], [b"m1", b"m3"])


async def test_key_shared_goes_by_slot(subscription: NonPersistentSubscription) -> None:
    low = await join(
        subscription, 1, KEY_SHARED, permits=9, key_shared=KeySharedMeta(True, ((0, 20000),))
    )
    high = await join(
        subscription, 2, KEY_SHARED, permits=9, key_shared=KeySharedMeta(True, ((20001, 30000),))
    )
    publish(
        subscription,
        message(b"m0", partition_key="a"),
        message(b"m1", partition_key="key-1"),
        message(b"m2", partition_key="order-42"),
    )
    assert (bodies(low), bodies(high)) == ([b"m1"], [b"m0"])
    assert low.stats().key_hash_ranges == ((0, 20000),)


async def test_failover_tells_only_those_that_do_not_become_active(
    subscription: NonPersistentSubscription,
) -> None:
    connection = FakeConnection()
    first = await join(
        subscription, 1, FAILOVER, permits=9, consumer_name="aaa", connection=connection
    )
    second = await join(
        subscription, 2, FAILOVER, permits=9, consumer_name="bbb", connection=connection
    )
    publish(subscription, message(b"m0"))
    first.close()
    publish(subscription, message(b"m1"))
    assert (bodies(first), bodies(second)) == ([b"m0"], [b"m1"])
    assert connection.active_changes() == [(2, False)]


async def test_types_clash_as_elsewhere(subscription: NonPersistentSubscription) -> None:
    await join(subscription, 1, EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match="Exclusive consumer is already connected"):
        await join(subscription, 2, EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match="Active subscription type of 'Exclusive'"):
        await join(subscription, 3, SHARED)


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_closing_lets_all_consumers_go_and_drops_what_comes(
    subscription: NonPersistentSubscription, kind: SubscriptionType
) -> None:
    consumer = await join(subscription, 1, kind, permits=10)
    publish(subscription, message(b"m0"))
    assert subscription.dispatcher is not None
    subscription.dispatcher.close()
    publish(subscription, message(b"m1"))
    assert bodies(consumer) == [b"m0"]
    assert list(subscription.consumers) == []
    assert subscription.stats().dropped_messages_count == 1
