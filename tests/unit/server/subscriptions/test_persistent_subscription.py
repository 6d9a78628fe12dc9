from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import (
    ServiceMetadataError,
    ServiceNotReadyError,
    StorageError,
    SubscriptionBusyError,
    SubscriptionFencedError,
    UnknownServiceError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.persistent_subscription import (
    PersistentSubscription,
    SubscriptionState,
)
from pulsar_py.server.subscriptions.standstill import Cause
from pulsar_py.server.subscriptions.subscription import RESET_WAIT_SECONDS
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.wire.payload import encode_entry
from tests.dispatch_fixtures import topic
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    messages_of,
    new_consumer,
    received,
    redeliver,
    settle,
)

__all__ = ["topic"]

EXCLUSIVE = SubscriptionType.EXCLUSIVE
SHARED = SubscriptionType.SHARED
FAILOVER = SubscriptionType.FAILOVER
KEY_SHARED = SubscriptionType.KEY_SHARED


async def seek_and_return(topic: Topic, position: Position) -> list[int]:
    """Five messages of which three are acknowledged, SEEK, and what comes then."""
    positions = await topic.publish_many(5)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    ack(consumer, 0, 1, 2)
    if position.ledger_id == 0:
        position = positions[position.entry_id]
    await consumer.subscription.reset_to_position(position, None)
    again = await topic.consume(2, EXCLUSIVE, permits=10)
    await settle()
    return received(again)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position(0, 3), [3, 4]),
        (Position(0, 1), [1, 2, 3, 4]),
        (EARLIEST, [0, 1, 2, 3, 4]),
        (LATEST, []),
    ],
)
async def test_seek_makes_the_entry_the_next(
    topic: Topic, position: Position, expected: list[int]
) -> None:
    assert await seek_and_return(topic, position) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(0, [0, 1, 2]), (200, [1, 2]), (250, [2]), (301, [])]
)
async def test_seek_by_time(topic: Topic, timestamp: int, expected: list[int]) -> None:
    await topic.publish(timed(100), timed(200), timed(300))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    ack(consumer, 0, 1, 2)
    await consumer.subscription.reset_to_time(timestamp)
    again = await topic.consume(2, EXCLUSIVE, permits=10)
    await settle()
    assert received(again) == expected


def timed(publish_time: int) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=publish_time)
    return encode_entry(metadata, b"m")


async def test_seek_into_a_batch_leaves_its_later_indexes(topic: Topic) -> None:
    (position,) = await topic.publish(message(batch=4))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    await consumer.subscription.reset_to_position(position, [0b1100])
    again = await topic.consume(2, EXCLUSIVE, permits=10)
    await settle()
    assert messages_of(again)[0].ack_set == (12,)


async def test_seek_closes_consumers_before_it_returns(topic: Topic) -> None:
    connection = FakeConnection()
    first = await topic.consume(1, connection=connection)
    await topic.consume(2, connection=connection)
    tasks = TaskOwner("test")
    resetting = tasks.spawn(first.subscription.reset_to_position(EARLIEST, None), "reset")
    await asyncio.sleep(0)
    assert sorted(connection.consumers_closed) == [1, 2]
    await resetting
    assert first.subscription.consumers == []


async def test_seek_on_failover_closes_the_active_consumer_only(topic: Topic) -> None:
    await topic.publish_many(3)
    connection = FakeConnection()
    active = await topic.consume(1, FAILOVER, connection=connection, consumer_name="aaa")
    other = await topic.consume(2, FAILOVER, connection=connection, consumer_name="bbb", permits=10)
    active.flow(10)
    await settle()
    ack(active, 0, 1, 2)
    await other.subscription.reset_to_position(EARLIEST, None)
    await settle()
    assert connection.consumers_closed == [1]
    assert received(other) == [0, 1, 2]


async def test_on_failover_nobody_is_active_while_the_cursor_is_moved(topic: Topic) -> None:
    await topic.publish_many(3)
    connection = FakeConnection()
    active = await topic.consume(1, FAILOVER, connection=connection, consumer_name="aaa")
    other = await topic.consume(2, FAILOVER, connection=connection, consumer_name="bbb", permits=10)
    active.flow(10)
    await settle()
    connection.commands.clear()
    tasks = TaskOwner("test")
    resetting = tasks.spawn(active.subscription.reset_to_position(LATEST, None), "reset")
    await asyncio.sleep(0)
    other.flow(10)
    redeliver(other)
    assert active.subscription.stats().active_consumer_name is None
    assert connection.active_changes() == []
    await resetting
    await settle()
    assert connection.active_changes() == [(2, True)]
    assert received(other) == []


async def test_a_reset_that_fails_leaves_failover_to_the_next(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await topic.publish_many(3)
    active = await topic.consume(1, FAILOVER, consumer_name="aaa", permits=10)
    other = await topic.consume(2, FAILOVER, consumer_name="bbb", permits=10)
    await settle()

    async def failing(*_: object) -> None:
        await settle()
        assert received(other) == []
        raise StorageError("no room")

    monkeypatch.setattr(topic.subscriptions["sub"].cursor, "reset", failing)  # type: ignore[attr-defined]
    with pytest.raises(UnknownServiceError, match="no room"):
        await active.subscription.reset_to_position(LATEST, None)
    await settle()
    assert active.is_closed
    assert received(other) == [0, 1, 2]


async def test_who_stays_connected_gets_nothing_from_before_the_seek(topic: Topic) -> None:
    await topic.publish_many(3)
    active = await topic.consume(1, FAILOVER, consumer_name="aaa", permits=10)
    other = await topic.consume(2, FAILOVER, consumer_name="bbb", permits=10)
    await settle()
    assert received(active) == [0, 1, 2]
    await active.subscription.reset_to_position(LATEST, None)
    await topic.publish_many(1)
    await settle()
    assert received(other) == [3]


async def test_during_a_reset_newcomers_wait_and_nothing_is_deleted(topic: Topic) -> None:
    consumer = await topic.consume()
    subscription = consumer.subscription
    tasks = TaskOwner("test")
    resetting = tasks.spawn(subscription.reset_to_position(EARLIEST, None), "reset")
    await asyncio.sleep(0)
    newcomers = [tasks.spawn(topic.consume(number), "join") for number in (2, 3)]
    await asyncio.sleep(0)
    assert not any(newcomer.done() for newcomer in newcomers)
    with pytest.raises(SubscriptionBusyError):
        await subscription.delete()
    await resetting
    joined = [await newcomer for newcomer in newcomers]
    assert list(subscription.consumers) == joined


async def test_newcomers_wait_from_the_search_for_a_time_on(topic: Topic) -> None:
    await topic.publish(timed(100), timed(200), timed(300))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    tasks = TaskOwner("test")
    resetting = tasks.spawn(consumer.subscription.reset_to_time(200), "reset")
    await asyncio.sleep(0)
    consumer.close()
    again = await topic.consume(2, EXCLUSIVE, permits=10)
    assert resetting.done()
    await settle()
    assert received(again) == [1, 2]
    assert not again.is_closed


async def test_resets_come_one_after_the_other_in_their_order(topic: Topic) -> None:
    positions = await topic.publish_many(5)
    subscription = (await topic.consume(kind=EXCLUSIVE)).subscription
    tasks = TaskOwner("test")
    resets = [
        tasks.spawn(reset, "reset")
        for reset in (
            subscription.reset_to_time(1),
            subscription.reset_to_position(LATEST, None),
            subscription.reset_to_time(2),
            subscription.reset_to_position(positions[3], None),
        )
    ]
    await asyncio.sleep(0)
    again = tasks.spawn(topic.consume(2, EXCLUSIVE, permits=10), "join")
    await asyncio.gather(*resets)
    await again
    await settle()
    assert received(await again) == [3, 4]


@asynccontextmanager
async def stuck_reset(clock: VirtualClock, **request: object) -> AsyncIterator[Topic]:
    """A topic with a subscription whose reset is not over as long as this lasts."""
    topic = await Topic(clock).open(is_cold=True)
    store = topic.store
    assert isinstance(store, SimulatedLedgerStore)
    subscription = (await topic.consume(**request)).subscription  # type: ignore[arg-type]
    store.is_holding = True
    tasks = TaskOwner("test")
    resetting = tasks.spawn(subscription.reset_to_position(EARLIEST, None), "reset")
    await settle()
    assert not resetting.done()
    yield topic
    store.release()
    await asyncio.wait([resetting])
    await topic.close()


async def test_newcomers_wait_for_a_reset_so_long_and_no_longer(
    virtual_clock: VirtualClock,
) -> None:
    async with stuck_reset(virtual_clock) as topic:
        with pytest.raises(SubscriptionFencedError, match="fenced: it is being reset for more"):
            await topic.consume(2)
        assert virtual_clock.monotonic_seconds() == RESET_WAIT_SECONDS


async def test_a_reset_waits_for_another_so_long_and_no_longer(
    virtual_clock: VirtualClock,
) -> None:
    async with stuck_reset(virtual_clock) as topic:
        subscription = await topic.subscription()
        for reset in (
            subscription.reset_to_position(LATEST, None),
            subscription.reset_to_time(5),
        ):
            before = virtual_clock.monotonic_seconds()
            with pytest.raises(UnknownServiceError, match="it is being reset for more"):
                await reset
            assert virtual_clock.monotonic_seconds() == before + RESET_WAIT_SECONDS


async def test_a_reset_does_not_wait_for_that_of_what_is_closed(
    virtual_clock: VirtualClock,
) -> None:
    async with stuck_reset(virtual_clock) as topic:
        tasks = TaskOwner("test")
        subscription = await topic.subscription()
        second = tasks.spawn(subscription.reset_to_position(LATEST, None), "reset")
        await asyncio.sleep(0)
        closing = tasks.spawn(subscription.close(), "close")
        with pytest.raises(UnknownServiceError, match="is closed"):
            await second
        assert virtual_clock.monotonic_seconds() == 0
    await closing


async def test_newcomers_do_not_wait_for_the_reset_of_what_is_closed(
    virtual_clock: VirtualClock,
) -> None:
    async with stuck_reset(virtual_clock) as topic:
        tasks = TaskOwner("test")
        joining = tasks.spawn(topic.consume(2), "join")
        await asyncio.sleep(0)
        closing = tasks.spawn((await topic.subscription()).close(), "close")
        with pytest.raises(SubscriptionFencedError, match="sub is fenced"):
            await joining
        assert virtual_clock.monotonic_seconds() == 0
    await closing


async def test_a_newcomer_that_is_not_wanted_any_more_leaves_the_place_to_the_next(
    virtual_clock: VirtualClock,
) -> None:
    async with stuck_reset(virtual_clock, kind=EXCLUSIVE) as topic:
        tasks = TaskOwner("test")
        wanted = [True]
        request = {"is_wanted": lambda: wanted[0]}
        first = tasks.spawn(topic.consume(2, EXCLUSIVE, **request), "join")
        second = tasks.spawn(topic.consume(3, EXCLUSIVE), "join")
        await settle()
        wanted[0] = False
        topic.store.release()  # type: ignore[attr-defined]
        with pytest.raises(ServiceNotReadyError):
            await first
        assert (await topic.subscription()).consumers == [await second]


async def test_a_reset_that_fails_lets_consumers_in_again(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await topic.subscription()

    async def failing(*_: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(subscription.cursor, "reset", failing)
    with pytest.raises(UnknownServiceError, match="no room"):
        await subscription.reset_to_position(EARLIEST, None)
    await topic.consume()


async def test_a_reader_that_seeks_finds_its_subscription_again(topic: Topic) -> None:
    await topic.publish_many(3)
    reader = await topic.consume(kind=EXCLUSIVE, permits=10, is_durable=False)
    await settle()
    await reader.subscription.reset_to_position(EARLIEST, None)
    again = await topic.consume(2, EXCLUSIVE, permits=10, is_durable=False)
    await settle()
    assert again.subscription is reader.subscription
    assert received(again) == [0, 1, 2]


async def test_a_reader_that_seeks_and_stays_away_is_forgotten(topic: Topic) -> None:
    reader = await topic.consume(kind=EXCLUSIVE, is_durable=False)
    await reader.subscription.reset_to_position(EARLIEST, None)
    await asyncio.sleep(59)
    assert "sub" in topic.subscriptions
    await asyncio.sleep(2)
    assert topic.subscriptions == {}
    assert "sub" not in topic.ledger.cursors


async def test_a_readers_subscription_ends_with_its_last_consumer(topic: Topic) -> None:
    reader = await topic.consume(kind=EXCLUSIVE, is_durable=False)
    reader.close()
    assert topic.subscriptions == {}
    again = await topic.consume(kind=EXCLUSIVE, is_durable=False)
    assert again.subscription is not reader.subscription


async def test_a_durable_subscription_outlives_its_consumers(topic: Topic) -> None:
    consumer = await topic.consume()
    consumer.close()
    assert list(topic.subscriptions) == ["sub"]


async def test_unsubscribing_deletes_subscription_and_cursor(topic: Topic) -> None:
    consumer = await topic.consume(kind=EXCLUSIVE)
    await consumer.subscription.unsubscribe(consumer, force=False)
    assert topic.subscriptions == {}
    assert "sub" not in topic.ledger.cursors
    assert consumer.connection.consumers_closed == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [SHARED, FAILOVER])
async def test_unsubscribing_with_others_connected_is_refused(
    topic: Topic, kind: SubscriptionType
) -> None:
    first = await topic.consume(1, kind)
    second = await topic.consume(2, kind)
    for consumer in (second, first):
        with pytest.raises(ServiceMetadataError, match="Unconnected or shared consumer"):
            await consumer.subscription.unsubscribe(consumer, force=False)


async def test_unsubscribing_by_force_closes_the_others(topic: Topic) -> None:
    connection = FakeConnection()
    await topic.consume(1, connection=connection)
    second = await topic.consume(2, connection=connection)
    await second.subscription.unsubscribe(second, force=True)
    assert connection.consumers_closed == [1]
    assert topic.subscriptions == {}


async def test_closing_disconnects_and_keeps_the_cursor(topic: Topic) -> None:
    connection = FakeConnection()
    consumer = await topic.consume(1, connection=connection)
    subscription = await topic.subscription()
    await subscription.close()
    await subscription.close()
    assert connection.consumers_closed == [1]
    assert subscription.state is SubscriptionState.CLOSED
    with pytest.raises(SubscriptionFencedError):
        await subscription.add_consumer(new_consumer(subscription, 2))
    consumer.close()


async def test_clearing_the_backlog_leaves_nothing_owed(topic: Topic) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(permits=3)
    await settle()
    subscription = await topic.subscription()
    await subscription.clear_backlog()
    consumer.flow(10)
    await settle()
    assert received(consumer) == [0, 1, 2]
    assert consumer.permits.unacked_messages == 0
    assert subscription.stats().backlog_entries == 0
    await topic.publish_many(1)
    await settle()
    assert received(consumer) == [0, 1, 2, 5]


async def test_nothing_held_back_is_skipped_or_cleared(topic: Topic) -> None:
    positions = await topic.publish_many(5)
    topic.max_position = positions[2]
    consumer = await topic.consume(permits=10)
    await settle()
    subscription = await topic.subscription()
    await subscription.skip_messages(2)
    assert subscription.cursor.mark_delete_position == positions[1]
    await subscription.skip_messages(2)
    assert subscription.cursor.mark_delete_position == positions[2]
    await subscription.skip_messages(1)
    await subscription.clear_backlog()
    assert subscription.cursor.mark_delete_position == positions[2]
    topic.max_position = positions[3]
    await subscription.clear_backlog()
    assert subscription.cursor.mark_delete_position == positions[3]
    topic.max_position = positions[0]
    await subscription.skip_messages(1)
    await subscription.clear_backlog()
    assert subscription.cursor.mark_delete_position == positions[3]
    topic.max_position = LATEST
    subscription.on_max_read_position_moved()
    await settle()
    assert received(consumer) == [0, 1, 2, 4]


async def test_skipping_moves_over_entries(topic: Topic) -> None:
    await topic.publish_many(5)
    subscription = await topic.subscription()
    await subscription.skip_messages(2)
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [2, 3, 4]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (EARLIEST, [0, 1, 2, 3, 4]),
        (Position(0, 1), [1, 2, 3, 4]),
        (Position(0, 3), [3, 4]),
        (Position(0, 4), [3, 4]),
        (Position(9999, 0), [3, 4]),
        (LATEST, [3, 4]),
    ],
)
async def test_seek_does_not_pass_what_is_held_back(
    topic: Topic, position: Position, expected: list[int]
) -> None:
    positions = await topic.publish_many(5)
    topic.max_position = positions[2]
    if position.ledger_id == 0:
        position = positions[position.entry_id]
    subscription = await topic.subscription()
    await subscription.reset_to_position(position, None)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    assert received(consumer) == [each for each in expected if each <= 2]
    topic.max_position = LATEST
    subscription.on_max_read_position_moved()
    await settle()
    assert received(consumer) == expected


async def test_seek_beyond_what_is_held_back_leaves_its_ack_set(topic: Topic) -> None:
    positions = await topic.publish(message(batch=4), message(batch=4))
    topic.max_position = Position(positions[0].ledger_id, -1)
    subscription = await topic.subscription()
    await subscription.reset_to_position(positions[1], [0b1100])
    topic.max_position = LATEST
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    assert [(each.entry_id, each.ack_set) for each in messages_of(consumer)] == [(0, ()), (1, ())]


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(0, [0, 1, 2, 3]), (200, [1, 2, 3]), (301, [2, 3]), (999, [2, 3])]
)
async def test_seek_by_time_looks_at_what_is_not_held_back(
    topic: Topic, timestamp: int, expected: list[int]
) -> None:
    positions = await topic.publish(timed(100), timed(200), timed(300), timed(400))
    topic.max_position = positions[1]
    subscription = await topic.subscription()
    await subscription.reset_to_time(timestamp)
    topic.max_position = LATEST
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    assert received(consumer) == expected


async def test_times_of_what_is_held_back_lead_no_seek_astray(topic: Topic) -> None:
    """Messages of a transaction may be older than what was published before them."""
    positions = await topic.publish(timed(100), timed(200), *[timed(50) for _ in range(5)])
    topic.max_position = positions[1]
    subscription = await topic.subscription()
    await subscription.reset_to_time(150)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=10)
    await settle()
    assert received(consumer) == [1]


async def test_what_is_held_back_does_not_expire(topic: Topic) -> None:
    now = topic.clock.wall_time_millis()
    positions = await topic.publish(*[timed(now - 100_000) for _ in range(4)])
    topic.max_position = positions[1]
    subscription = await topic.subscription()
    assert await subscription.expire_older_than(60)
    assert subscription.stats().backlog_entries == 2
    assert not await subscription.expire_up_to(positions[3])
    assert subscription.stats().backlog_entries == 2
    topic.max_position = positions[2]
    assert await subscription.expire_up_to(positions[3])
    assert subscription.stats().backlog_entries == 1
    topic.max_position = LATEST
    assert await subscription.expire_older_than(60)
    assert subscription.stats().backlog_entries == 0


async def test_nothing_expires_while_all_is_held_back(topic: Topic) -> None:
    positions = await topic.publish(timed(1), timed(1))
    subscription = await topic.subscription()
    for nothing in (EARLIEST, Position(positions[0].ledger_id, -1)):
        topic.max_position = nothing
        assert not await subscription.expire_older_than(60)
        assert not await subscription.expire_up_to(positions[1])
    assert subscription.stats().backlog_entries == 2


async def test_expiring_up_to_a_position_is_inclusive(topic: Topic) -> None:
    positions = await topic.publish_many(5)
    subscription = await topic.subscription()
    assert await subscription.expire_up_to(positions[1])
    assert not await subscription.expire_up_to(positions[1])
    subscription.roll_rates(1.0)
    stats = subscription.stats()
    assert (stats.backlog_entries, stats.expired_rate) == (3, 2.0)


async def test_expiring_by_age(topic: Topic) -> None:
    now = topic.clock.wall_time_millis()
    await topic.publish(timed(now - 100_000), timed(now - 50_000), timed(now))
    subscription = await topic.subscription()
    assert await subscription.expire_older_than(60)
    assert subscription.stats().backlog_entries == 2
    assert not await subscription.expire_older_than(60)


async def test_stats_of_a_shared_subscription(topic: Topic) -> None:
    later = topic.clock.wall_time_millis() + 60_000
    await topic.publish(message(), message(), message(deliver_at_time=later))
    consumer = await topic.consume(permits=10)
    await settle()
    ack(consumer, 1)
    stats = consumer.subscription.stats()
    assert stats.subscription_type == "Shared"
    assert (stats.backlog_entries, stats.backlog_no_delayed_entries) == (2, 1)
    assert (stats.delayed_entries, stats.unacked_messages) == (1, 1)
    assert stats.non_contiguous_deleted_ranges_count == 1
    assert stats.messages_out_count == 2
    assert len(stats.consumers) == 1
    consumer.close()
    assert consumer.subscription.stats().messages_out_count == 2


async def test_stats_name_the_active_consumer_and_the_mode(topic: Topic) -> None:
    await topic.consume(1, FAILOVER, subscription="f", consumer_name="aaa")
    await topic.consume(2, KEY_SHARED, subscription="k")
    failover, key_shared = (
        (await topic.subscription("f")).stats(),
        (await topic.subscription("k")).stats(),
    )
    assert (failover.active_consumer_name, failover.key_shared_mode) == ("aaa", None)
    assert (key_shared.active_consumer_name, key_shared.key_shared_mode) == (None, "AUTO_SPLIT")


async def test_who_does_not_ask_gets_no_reasons_and_all_else(topic: Topic) -> None:
    await topic.publish(message())
    subscription = await topic.subscription()
    whole = subscription.stats()
    assert whole.standstill == (Cause.NO_CONSUMERS,)
    assert await subscription.stats_in_turns(Turns()) == whole
    plain = await subscription.stats_in_turns(Turns(), explains=False)
    assert plain == replace(whole, standstill=())


async def test_a_replicated_subscription_is_marked_in_its_cursor(topic: Topic) -> None:
    consumer = await topic.consume(is_replicated=True)
    subscription = consumer.subscription
    assert isinstance(subscription, PersistentSubscription)
    assert dict(subscription.cursor.properties) == {"pulsar.replicated.subscription": 1}
    assert subscription.stats().is_replicated


async def test_a_raised_limit_of_unacknowledged_messages_lets_messages_flow(topic: Topic) -> None:
    topic.set(max_unacked_messages_per_consumer=2)
    await topic.publish_many(5)
    consumer = await topic.consume(permits=10)
    await settle()
    topic.set(max_unacked_messages_per_consumer=10)
    (await topic.subscription()).on_settings_changed()
    await settle()
    assert len(received(consumer)) == 5
