"""Each cause of a standstill, set up on a real topic, told, and cured by what the answer names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.server.hooks.contained import Contained, HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilter
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.subscriptions.standstill import Cause, Reason
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_fixtures import topic
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    received,
    redeliver,
    settle,
)
from tests.hook_classes import ByPayload

__all__ = ["topic"]

FAILOVER = SubscriptionType.FAILOVER
KEY_SHARED = SubscriptionType.KEY_SHARED
ALL = [*SubscriptionType]


async def why(topic: Topic) -> list[Reason]:
    """The reasons, which the statistics have, too."""
    await settle()
    subscription = topic.subscriptions["sub"]
    assert isinstance(subscription, PersistentSubscription)
    found = list(subscription.standstill())
    assert subscription.stats().standstill == tuple(each.cause for each in found)
    return found


async def codes(topic: Topic) -> list[str]:
    return [each.cause for each in await why(topic)]


@pytest.mark.parametrize("kind", ALL)
async def test_no_consumers(topic: Topic, kind: SubscriptionType) -> None:
    await topic.subscription()
    await topic.publish_many(3)
    (reason,) = await why(topic)
    assert reason.cause is Cause.NO_CONSUMERS
    assert reason.fields == {"backlogEntries": 3}
    consumer = await topic.consume(kind=kind, permits=2)
    await settle()
    assert received(consumer) == [0, 1]


@pytest.mark.parametrize("kind", ALL)
async def test_no_permits(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind, permits=2, consumer_name="c")
    await topic.publish_many(3)
    (reason,) = await why(topic)
    assert reason.cause is Cause.NO_PERMITS
    assert reason.fields["consumers"] == [{"name": "c", "permits": 0}]
    consumer.flow(1)
    assert await codes(topic) == [Cause.UNACKNOWLEDGED]
    assert received(consumer) == [0, 1, 2]


@pytest.mark.parametrize("kind", ALL)
async def test_everything_was_sent_and_then_everything_acknowledged(
    topic: Topic, kind: SubscriptionType
) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    await topic.publish_many(2)
    (reason,) = await why(topic)
    assert reason.cause is Cause.UNACKNOWLEDGED
    assert reason.fields == {"backlogEntries": 2}
    ack(consumer, 0, 1)
    assert await codes(topic) == [Cause.NOTHING_THERE]
    await topic.publish_many(1)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_paused(topic: Topic) -> None:
    consumer = await topic.consume(permits=10)
    subscription = await topic.subscription()
    await subscription.pause_dispatch()
    await topic.publish_many(1)
    assert await codes(topic) == [Cause.PAUSED]
    await subscription.resume_dispatch()
    await settle()
    assert received(consumer) == [0]


async def test_a_slow_socket(topic: Topic) -> None:
    connection = FakeConnection(is_writable=False)
    consumer = await topic.consume(permits=10, connection=connection, consumer_name="c")
    await topic.publish_many(1)
    (reason,) = await why(topic)
    assert reason.cause is Cause.SLOW_SOCKET
    assert reason.fields["consumers"] == [{"name": "c", "address": "/127.0.0.1:1"}]
    connection.become_writable()
    await settle()
    assert received(consumer) == [0]


async def test_one_of_two_consumers_that_can_take_is_enough(topic: Topic) -> None:
    await topic.consume(1, permits=0)
    await topic.consume(2, permits=10)
    await topic.publish_many(1)
    assert await codes(topic) == [Cause.UNACKNOWLEDGED]


async def test_the_limit_of_a_consumer(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_consumer=2)
    consumer = await topic.consume(permits=10, consumer_name="c")
    await topic.publish_many(3)
    (reason,) = await why(topic)
    assert reason.cause is Cause.CONSUMER_UNACKED_LIMIT
    assert reason.fields["consumers"] == [{"name": "c", "unackedMessages": 2, "limit": 2}]
    ack(consumer, 0)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_the_limit_of_a_subscription(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_subscription=2)
    consumer = await topic.consume(permits=2)
    await topic.publish_many(3)
    await settle()
    consumer.flow(10)
    (reason,) = await why(topic)
    assert reason.cause is Cause.SUBSCRIPTION_UNACKED_LIMIT
    assert reason.fields["unackedMessages"] == 2
    assert reason.fields["limit"] == 2
    ack(consumer, 0, 1)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_the_limit_of_the_broker(topic: Topic) -> None:
    subscription = await topic.subscription()
    subscription._broker_unacked_limit = BrokerUnackedLimit(
        max_unacked_messages=2, blocked_share=0.5
    )
    consumer = await topic.consume(permits=2)
    await topic.publish_many(3)
    await settle()
    consumer.flow(10)
    (reason,) = await why(topic)
    assert reason.cause is Cause.BROKER_UNACKED_LIMIT
    assert reason.fields["limit"] == 2
    ack(consumer, 0, 1)
    await asyncio.sleep(0.01)
    assert received(consumer) == [0, 1, 2]


async def test_a_rate(topic: Topic, virtual_clock: VirtualClock) -> None:
    limiter = RateLimiter(virtual_clock, "topic")
    limiter.set_limits(2, 0)
    topic.throttle = DispatchThrottle([limiter])
    topic.set(rates_hold_without_backlog=True)
    consumer = await topic.consume(permits=10)
    await topic.publish_many(4)
    (reason,) = await why(topic)
    assert reason.cause is Cause.RATE_LIMIT
    assert reason.fields == {
        "scope": "topic",
        "messagesPerSecond": 2.0,
        "bytesPerSecond": 0.0,
        "waitMillis": 500,
    }
    assert received(consumer) == [0, 1]
    limiter.set_limits(100, 0)
    await asyncio.sleep(0.1)
    assert received(consumer) == [0, 1, 2, 3]


async def test_delays(topic: Topic, virtual_clock: VirtualClock) -> None:
    topic.set(delayed_delivery_tick_millis=1)
    due_millis = virtual_clock.wall_time_millis() + 60_000
    consumer = await topic.consume(permits=10)
    await topic.publish(message(deliver_at_time=due_millis), message())
    await settle()
    assert await codes(topic) == [Cause.DELAYED]
    ack(consumer, 1)
    delayed, hole = await why(topic)
    assert delayed.cause is Cause.DELAYED
    assert delayed.fields == {"delayedEntries": 1, "nextDeliveryMillis": due_millis}
    assert hole.cause is Cause.HOLE
    assert hole.fields["place"] == "DELAYED"
    await asyncio.sleep(60)
    assert received(consumer) == [1, 0]


async def test_a_hole_at_a_consumer(topic: Topic) -> None:
    consumer = await topic.consume(permits=10, consumer_name="c")
    first, *_ = await topic.publish_many(4)
    await settle()
    ack(consumer, 1, 3)
    hole = (await why(topic))[0]
    assert hole.cause is Cause.HOLE
    assert hole.fields == {
        "position": str(first),
        "rangesCount": 2,
        "place": "CONSUMER",
        "consumer": "c",
    }
    ack(consumer, 0, 2)
    assert await codes(topic) == [Cause.NOTHING_THERE]


async def test_holes_of_who_holds_nothing(topic: Topic) -> None:
    consumer = await topic.consume(permits=2, consumer_name="c")
    await topic.publish_many(2)
    await settle()
    ack(consumer, 1)
    redeliver(consumer, 0)
    permits, hole = await why(topic)
    assert permits.cause is Cause.NO_PERMITS
    assert hole.fields["place"] == "WAITING"
    consumer.flow(1)
    assert await codes(topic) == [Cause.HOLE, Cause.UNACKNOWLEDGED]
    consumer.close()
    alone, hole = await why(topic)
    assert alone.cause is Cause.NO_CONSUMERS
    assert hole.fields["place"] == "UNREAD"


async def test_a_hole_of_the_active_consumer(topic: Topic) -> None:
    consumer = await topic.consume(kind=FAILOVER, permits=10, consumer_name="c")
    await topic.publish_many(2)
    await settle()
    ack(consumer, 1)
    hole = (await why(topic))[0]
    assert hole.fields["consumer"] == "c"


async def test_a_hash_that_drains(topic: Topic) -> None:
    first = await topic.consume(1, KEY_SHARED, permits=10, consumer_name="c1")
    await topic.publish(message(partition_key="k1"))
    await settle()
    second = await topic.consume(2, KEY_SHARED, permits=10, consumer_name="c2")
    await topic.publish(message(partition_key="k1"))
    (reason,) = await why(topic)
    assert reason.cause is Cause.BLOCKED_HASH
    assert reason.fields["hashesCount"] == 1
    assert isinstance(reason.fields["hashes"], list)
    assert reason.fields["hashes"][0] | {"hash": 0} == {
        "hash": 0,
        "consumer": "c1",
        "pendingEntries": 1,
    }
    ack(first, 0)
    await asyncio.sleep(1)
    assert received(second) == [1]


async def test_the_owner_of_a_key_without_permits(topic: Topic) -> None:
    await topic.consume(1, KEY_SHARED, permits=10, consumer_name="c1")
    second = await topic.consume(2, KEY_SHARED, consumer_name="c2")
    await topic.publish(message(partition_key="k1"))  # a key of c2
    (reason,) = await why(topic)
    assert reason.cause is Cause.NO_PERMITS
    assert reason.fields["consumers"] == [{"name": "c2", "permits": 0}]
    second.flow(1)
    await settle()
    assert received(second) == [0]


async def test_a_hash_in_no_consumers_range(topic: Topic) -> None:
    low = KeySharedMeta(is_sticky=True, hash_ranges=((0, 0),))
    await topic.consume(1, KEY_SHARED, permits=10, key_shared=low)
    await topic.publish(message(partition_key="k1"))
    assert await codes(topic) == [Cause.HASH_WITHOUT_CONSUMER]
    high = KeySharedMeta(is_sticky=True, hash_ranges=((1, 65535),))
    second = await topic.consume(2, KEY_SHARED, permits=10, key_shared=high)
    await settle()
    assert received(second) == [0]


async def test_the_limit_of_reading_ahead(topic: Topic) -> None:
    topic.set(look_ahead_per_subscription=1, max_read_batch_entries=1)
    first = await topic.consume(1, KEY_SHARED, permits=10, consumer_name="c1")
    second = await topic.consume(2, KEY_SHARED, consumer_name="c2")
    await topic.publish(message(partition_key="k1"), message(partition_key="k0"))
    permits, limit = await why(topic)
    assert permits.cause is Cause.NO_PERMITS
    assert limit.cause is Cause.LOOK_AHEAD_LIMIT
    assert limit.fields == {
        "waitingEntries": 1,
        "limit": 1,
        "setting": "keySharedLookAheadMsgInReplayThresholdPerSubscription",
    }
    assert received(first) == []
    second.flow(1)
    await settle()
    assert (received(first), received(second)) == ([1], [0])


async def test_the_limit_of_reading_ahead_by_the_number_of_consumers(topic: Topic) -> None:
    topic.set(look_ahead_per_consumer=1, max_read_batch_entries=1)
    await topic.consume(1, KEY_SHARED, permits=10, consumer_name="c1")
    await topic.consume(2, KEY_SHARED, consumer_name="c2")
    await topic.publish(*[message(partition_key="k1") for _ in range(3)])
    _, limit = await why(topic)
    assert limit.fields == {
        "waitingEntries": 2,
        "limit": 2,
        "setting": "keySharedLookAheadMsgInReplayThresholdPerConsumer",
    }


@pytest.mark.parametrize("kind", ALL)
async def test_what_an_entry_filter_put_off(
    topic: Topic, virtual_clock: VirtualClock, kind: SubscriptionType
) -> None:
    faults = Contained("later", HookErrors(virtual_clock))
    topic.filters = (InstalledFilter("later", ByPayload(), faults),)
    topic.set(rescheduled_delay_millis=500)
    consumer = await topic.consume(kind=kind, permits=10)
    first, _ = await topic.publish(message(b"later 1"), message(b"later 2"))
    (reason,) = await why(topic)
    assert reason.cause is Cause.PUT_OFF
    assert reason.fields == {"position": str(first), "waitMillis": 500}
    await asyncio.sleep(0.6)
    assert received(consumer) == [0, 1]
    assert await codes(topic) == [Cause.UNACKNOWLEDGED]


@pytest.mark.parametrize("kind", ALL)
async def test_a_hole_at_what_a_filter_put_off(
    topic: Topic, virtual_clock: VirtualClock, kind: SubscriptionType
) -> None:
    faults = Contained("later", HookErrors(virtual_clock))
    topic.filters = (InstalledFilter("later", ByPayload(), faults),)
    topic.set(rescheduled_delay_millis=500)
    consumer = await topic.consume(kind=kind, permits=10)
    await topic.publish(message(b"later"), message(b"now"))
    await settle()
    ack(consumer, 1)
    put_off, hole = await why(topic)
    assert (put_off.cause, hole.cause) == (Cause.PUT_OFF, Cause.HOLE)
    assert hole.fields["place"] == "PUT_OFF"


async def test_a_read_that_is_not_answered(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await Topic(virtual_clock).open(is_cold=True)
    await topic.publish_many(1)
    cursor = (await topic.subscription()).cursor
    read, answer = cursor.read, asyncio.Event()

    async def late(*arguments: Any) -> Any:
        await answer.wait()
        return await read(*arguments)

    monkeypatch.setattr(cursor, "read", late)
    consumer = await topic.consume(permits=10)
    assert await codes(topic) == []
    await asyncio.sleep(2)
    (reason,) = await why(topic)
    assert reason.cause is Cause.SLOW_READ
    assert reason.fields == {"readMillis": 2000}
    answer.set()
    await settle()
    assert received(consumer) == [0]
    await topic.close()


async def test_what_may_not_be_read_yet(topic: Topic) -> None:
    consumer = await topic.consume(permits=10)
    await topic.publish_many(1)
    await settle()
    topic.max_position = topic.ledger.last_confirmed_entry
    await topic.publish_many(1)
    (reason,) = await why(topic)
    assert reason.cause is Cause.HELD_BACK
    assert reason.fields == {"position": str(topic.max_position)}
    topic.max_position = topic.ledger.last_confirmed_entry
    (await topic.subscription()).on_max_read_position_moved()
    await settle()
    assert received(consumer) == [0, 1]


async def test_a_new_active_consumer(topic: Topic) -> None:
    await topic.publish_many(1)
    topic.set(failover_delay_millis=1000)
    consumer = await topic.consume(kind=FAILOVER, permits=10)
    (reason,) = await why(topic)
    assert reason.cause is Cause.SWITCHING_CONSUMER
    assert reason.fields == {"waitMillis": 1000}
    await asyncio.sleep(1.1)
    assert received(consumer) == [0]


async def test_a_failed_read(virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = await Topic(virtual_clock).open(is_cold=True)
    await topic.publish_many(1)
    cursor = (await topic.subscription()).cursor
    topic.dispatch_settings = replace(
        topic.dispatch_settings, read_failure_backoff_initial_millis=700
    )

    async def fail(*_: object) -> None:
        raise CorruptDataError("bad")

    with monkeypatch.context() as patch:
        patch.setattr(cursor, "read", fail)
        consumer = await topic.consume(permits=10)
        (reason,) = await why(topic)
    assert reason.cause is Cause.READ_FAILED
    assert reason.fields == {"waitMillis": 700}
    await asyncio.sleep(1)
    assert received(consumer) == [0]
    await topic.close()


async def test_a_subscription_that_is_being_closed(topic: Topic) -> None:
    subscription = await topic.subscription()
    await subscription.close()
    (reason,) = subscription.standstill()
    assert reason.cause is Cause.NOT_OPEN
    assert reason.fields == {"state": "CLOSED"}
