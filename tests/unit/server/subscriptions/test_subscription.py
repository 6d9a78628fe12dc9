from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pulsar_py.common.errors import (
    ConsumerAssignError,
    ConsumerBusyError,
    NotAllowedError,
    ServiceNotReadyError,
)
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.subscriptions.subscription import MAX_JOIN_ATTEMPTS
from tests.dispatch_fixtures import topic
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    messages_of,
    new_consumer,
    received,
    settle,
)

__all__ = ["topic"]

EXCLUSIVE = SubscriptionType.EXCLUSIVE
SHARED = SubscriptionType.SHARED
FAILOVER = SubscriptionType.FAILOVER
KEY_SHARED = SubscriptionType.KEY_SHARED


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (EXCLUSIVE, SHARED, ("Exclusive", "Shared")),
        (SHARED, FAILOVER, ("Shared", "Failover")),
        (FAILOVER, KEY_SHARED, ("Failover", "Key_Shared")),
        (KEY_SHARED, SHARED, ("Key_Shared", "Shared")),
    ],
)
async def test_another_type_waits_until_nobody_is_connected(
    topic: Topic, first: SubscriptionType, second: SubscriptionType, names: tuple[str, str]
) -> None:
    consumer = await topic.consume(1, first)
    expected = f"type of '{names[0]}' is different than the connecting consumer's type '{names[1]}'"
    with pytest.raises(ConsumerBusyError, match=expected):
        await topic.consume(2, second)
    consumer.close()
    newcomer = await topic.consume(2, second)
    assert newcomer.subscription.subscription_type is second


async def test_another_mode_of_key_shared_is_refused(topic: Topic) -> None:
    sticky = KeySharedMeta(is_sticky=True, hash_ranges=((0, 65535),))
    await topic.consume(1, KEY_SHARED, key_shared=sticky)
    with pytest.raises(ConsumerBusyError, match="key_shared mode of 'STICKY' is different"):
        await topic.consume(2, KEY_SHARED, key_shared=KeySharedMeta())


async def test_the_holder_of_an_exclusive_subscription_is_probed(topic: Topic) -> None:
    alive = FakeConnection()
    await topic.consume(1, EXCLUSIVE, connection=alive)
    with pytest.raises(ConsumerBusyError):
        await topic.consume(2, EXCLUSIVE)
    assert alive.liveness_checks_count == 1


@dataclass(eq=False)
class Leaving(FakeConnection):
    """Answers the PING, and closes its consumer before."""

    leave: Callable[[], None] = lambda: None

    async def check_liveness(self) -> bool:
        self.leave()
        return await super().check_liveness()


async def test_a_holder_that_leaves_while_it_is_probed_makes_room(topic: Topic) -> None:
    connection = Leaving()
    holder = await topic.consume(1, EXCLUSIVE, connection=connection)
    connection.leave = holder.close
    newcomer = await topic.consume(2, EXCLUSIVE)
    assert newcomer.subscription.consumers == [newcomer]


async def test_a_holder_of_hash_ranges_that_leaves_while_it_is_probed_makes_room(
    topic: Topic,
) -> None:
    sticky = KeySharedMeta(is_sticky=True, hash_ranges=((0, 100),))
    connection = Leaving()
    holder = await topic.consume(1, KEY_SHARED, connection=connection, key_shared=sticky)
    connection.leave = holder.close
    newcomer = await topic.consume(2, KEY_SHARED, key_shared=sticky)
    assert list(newcomer.subscription.consumers) == [newcomer]


async def test_a_newcomer_tries_a_few_times_only(topic: Topic) -> None:
    """The place is free and taken again whenever it looks."""
    joins = 0

    class Passing(Leaving):
        async def check_liveness(self) -> bool:
            nonlocal joins
            joins += 1
            await super().check_liveness()
            await pass_on()
            return True

    async def pass_on() -> None:
        connection = Passing()
        holder = await topic.consume(10 + joins, EXCLUSIVE, connection=connection)
        connection.leave = holder.close

    await pass_on()
    with pytest.raises(ConsumerBusyError):
        await topic.consume(2, EXCLUSIVE)
    assert joins == MAX_JOIN_ATTEMPTS - 1


async def test_a_newcomer_whose_client_closed_it_does_not_join(topic: Topic) -> None:
    subscription = await topic.subscription()
    with pytest.raises(ServiceNotReadyError):
        await subscription.add_consumer(new_consumer(subscription, is_wanted=lambda: False))
    assert list(subscription.consumers) == []


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_disconnecting_tells_everybody_and_sends_nothing(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(30)
    connection = FakeConnection()
    count = 1 if kind is EXCLUSIVE else 3
    consumers = [
        await topic.consume(number, kind, connection=connection, permits=10)
        for number in range(count)
    ]
    await settle()
    sent_count = len(connection.messages)
    subscription = consumers[0].subscription
    subscription.disconnect()
    await settle()
    assert len(connection.messages) == sent_count
    assert connection.consumers_closed == [each.consumer_id for each in consumers]
    assert list(subscription.consumers) == []
    assert subscription.stats().messages_out_count == sent_count
    again = await topic.consume(9, kind, permits=100)
    await settle()
    assert received(again) == list(range(30))


async def test_disconnecting_old_clients_closes_their_connection_once(topic: Topic) -> None:
    connection = FakeConnection(protocol_version=4)
    consumers = [await topic.consume(number, connection=connection) for number in range(3)]
    consumers[0].subscription.disconnect()
    assert connection.consumers_closed == [0]
    assert not connection.is_connected
    assert all(each.is_closed for each in consumers)


async def test_a_dead_holder_makes_room(topic: Topic) -> None:
    dead = FakeConnection(is_responsive=False)
    holder = await topic.consume(1, EXCLUSIVE, connection=dead)
    newcomer = await topic.consume(2, EXCLUSIVE)
    assert holder.is_closed
    assert newcomer.subscription.consumers == [newcomer]


async def test_a_dead_holder_of_hash_ranges_makes_room(topic: Topic) -> None:
    sticky = KeySharedMeta(is_sticky=True, hash_ranges=((0, 100),))
    dead = FakeConnection(is_responsive=False)
    await topic.consume(1, KEY_SHARED, connection=dead, key_shared=sticky)
    alive = await topic.consume(2, KEY_SHARED, key_shared=sticky)
    with pytest.raises(ConsumerAssignError, match="Range conflict with consumer"):
        await topic.consume(3, KEY_SHARED, key_shared=sticky)
    assert list(alive.subscription.consumers) == [alive]


async def test_a_newcomer_that_is_gone_itself_does_not_join(topic: Topic) -> None:
    subscription = await topic.subscription()
    gone = new_consumer(subscription, connection=FakeConnection(is_connected=False))
    with pytest.raises(ServiceNotReadyError):
        await subscription.add_consumer(gone)


async def test_disabled_types_are_refused(topic: Topic) -> None:
    topic.set(enabled_subscription_types=frozenset({EXCLUSIVE}))
    with pytest.raises(NotAllowedError, match="doesn't support Shared sub type"):
        await topic.consume(1, SHARED)
    await topic.consume(2, EXCLUSIVE)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("max_consumers_per_topic", "Topic reached max consumers limit"),
        ("max_consumers_per_subscription", "Subscription reached max consumers limit"),
        ("max_same_address_consumers_per_topic", "max same address consumers"),
    ],
)
async def test_limits_of_consumers(topic: Topic, setting: str, message: str) -> None:
    topic.set(**{setting: 2})
    await topic.consume(1)
    await topic.consume(2)
    with pytest.raises(ConsumerBusyError, match=message):
        await topic.consume(3)


async def test_a_second_exclusive_consumer_hears_that_it_is_taken_not_of_a_limit(
    topic: Topic,
) -> None:
    topic.set(max_consumers_per_subscription=1)
    await topic.consume(1, EXCLUSIVE)
    with pytest.raises(ConsumerBusyError, match="Exclusive consumer is already connected"):
        await topic.consume(2, EXCLUSIVE)


async def test_limits_spare_system_topics(topic: Topic) -> None:
    system = await Topic(topic.clock, "persistent://public/default/__change_events").open()
    system.set(max_consumers_per_subscription=1)
    await system.consume(1)
    await system.consume(2)
    await system.close()


async def test_a_consumer_has_a_name_for_errors(topic: Topic) -> None:
    consumer = await topic.consume(7, consumer_name="c")
    assert str(consumer) == (
        "Consumer{subscription=PersistentSubscription{topic=persistent://public/default/t, "
        "name=sub}, consumerId=7, consumerName=c, address=/127.0.0.1:1}"
    )


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
async def test_a_consumer_that_comes_back_with_its_name_and_epoch_goes_on(
    topic: Topic, kind: SubscriptionType
) -> None:
    """Its former connection is dead, which the broker finds out after it has come back."""
    await topic.publish_many(6)
    former = FakeConnection(is_responsive=False)
    again = {"consumer_name": "c", "consumer_epoch": 3}
    old = await topic.consume(1, kind, permits=4, connection=former, **again)
    await settle()
    ack(old, 0)
    assert received(old) == [0, 1, 2, 3]
    new = await topic.consume(1, kind, permits=10, **again)
    await settle()
    former.close()  # for Exclusive the probe has closed it already
    await settle()
    assert sorted(received(new)) == [1, 2, 3, 4, 5]
    assert len(received(old)) <= 4
    assert list(new.subscription.consumers) == [new]
    epoch = 3 if kind.has_single_active_consumer else None
    assert {each.consumer_epoch for each in messages_of(new)} == {epoch}
    for entry_id in range(1, 6):
        ack(new, entry_id)
    assert new.subscription.stats().backlog_entries == 0


async def test_a_name_and_epoch_do_not_displace_a_consumer_that_is_alive(topic: Topic) -> None:
    alive = FakeConnection()
    old = await topic.consume(1, EXCLUSIVE, connection=alive, consumer_name="c", consumer_epoch=3)
    with pytest.raises(ConsumerBusyError):
        await topic.consume(1, EXCLUSIVE, consumer_name="c", consumer_epoch=3)
    assert alive.liveness_checks_count == 1
    assert list(old.subscription.consumers) == [old]


async def test_keys_are_a_consumers_again_when_it_comes_back(topic: Topic) -> None:
    """The ring has a consumer's points by its name, so that others keep their keys."""
    for number, name in enumerate("abc"):
        await topic.consume(number, KEY_SHARED, consumer_name=name)
    subscription = await topic.subscription()

    def ranges() -> dict[str, object]:
        return {
            each.name: tuple(subscription.hash_stats_of(each).ranges)
            for each in subscription.consumers
        }

    before = ranges()
    leaving = next(each for each in subscription.consumers if each.name == "b")
    leaving.close()
    assert ranges().keys() == {"a", "c"}
    await topic.consume(9, KEY_SHARED, consumer_name="b", consumer_epoch=1)
    assert ranges() == before
