from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pulsar_py.common.errors import CorruptDataError, StoreUnavailableError
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.dispatcher import MAX_BATCHES_A_TURN, UNAVAILABLE_BACKOFF_MILLIS
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import FakeConnection, Topic, ack, received, settle

EXCLUSIVE = SubscriptionType.EXCLUSIVE
SHARED = SubscriptionType.SHARED
KINDS = list(SubscriptionType)


@pytest.fixture
async def cold(virtual_clock: VirtualClock) -> Topic:
    """A topic whose entries always have to be read from storage."""
    return await Topic(virtual_clock).open(is_cold=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backlog_is_read_from_storage(cold: Topic, kind: SubscriptionType) -> None:
    await cold.publish_many(350)
    consumer = await cold.consume(kind=kind, permits=1000)
    await settle(200)
    assert received(consumer) == list(range(350))
    await cold.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_read_for_a_consumer_that_left_is_not_lost(
    cold: Topic, kind: SubscriptionType
) -> None:
    await cold.publish_many(50)
    first = await cold.consume(1, kind, permits=100)
    first.close()  # Its read is under way.
    second = await cold.consume(2, kind, permits=100)
    await settle(100)
    assert received(first) == []
    assert received(second) == list(range(50))
    await cold.close()


async def test_a_dispatcher_of_another_type_waits_for_the_read_of_the_last(
    cold: Topic,
) -> None:
    await cold.publish_many(50)
    first = await cold.consume(1, SHARED, permits=100)
    first.close()
    second = await cold.consume(2, EXCLUSIVE, permits=100)
    await settle(100)
    assert received(second) == list(range(50))
    await cold.close()


async def test_a_failed_read_is_tried_again_later(
    cold: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cold.publish_many(3)
    subscription = await cold.subscription()
    read = subscription.cursor.read
    failures = [CorruptDataError("bad"), CorruptDataError("bad")]

    async def failing(*arguments: object) -> list[Entry]:
        if failures:
            raise failures.pop()
        return await read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(subscription.cursor, "read", failing)
    consumer = await cold.consume(permits=10)
    await asyncio.sleep(14)
    consumer.flow(1)
    await settle()
    assert len(failures) == 1
    await asyncio.sleep(2)
    assert len(failures) == 0
    await asyncio.sleep(29)
    assert received(consumer) == []
    await asyncio.sleep(2)
    assert received(consumer) == [0, 1, 2]
    await cold.close()


async def test_a_store_that_can_not_answer_now_is_asked_again_soon(
    cold: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a tenth of a second, then after twice as long each time; with small batches."""
    await cold.publish_many(3)
    subscription = await cold.subscription()
    read, times, sizes = subscription.cursor.read, [], []
    begun = asyncio.get_running_loop().time()

    async def failing(count: int, *arguments: object) -> list[Entry]:
        times.append(round((asyncio.get_running_loop().time() - begun) * 1000))
        sizes.append(count)
        if len(times) < 4:
            raise StoreUnavailableError("not connected")
        return await read(count, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(subscription.cursor, "read", failing)
    cold.set(min_read_batch_entries=1)
    consumer = await cold.consume(permits=10)
    await asyncio.sleep(1)
    waits = [after - before for before, after in pairwise(times[:4])]
    assert waits == [UNAVAILABLE_BACKOFF_MILLIS * factor for factor in (1, 2, 4)]
    assert sizes[1:4] == [1, 1, 1]
    assert received(consumer) == [0, 1, 2]
    await cold.close()


async def test_a_short_backoff_of_the_settings_stays_short(
    cold: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cold.publish_many(1)
    cold.set(read_failure_backoff_initial_millis=10)
    subscription = await cold.subscription()
    read = subscription.cursor.read
    failures = [StoreUnavailableError("not connected")]

    async def failing(*arguments: object) -> list[Entry]:
        if failures:
            raise failures.pop()
        return await read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(subscription.cursor, "read", failing)
    consumer = await cold.consume(permits=10)
    await asyncio.sleep(0.02)
    assert received(consumer) == [0]
    await cold.close()


async def test_other_work_gets_its_turn_during_a_long_backlog(topic: Topic) -> None:
    topic.set(max_read_batch_entries=1)
    await topic.publish_many(MAX_BATCHES_A_TURN * 3)
    consumer = await topic.consume(kind=EXCLUSIVE)
    consumer.flow(1000)
    assert len(received(consumer)) <= MAX_BATCHES_A_TURN
    await settle()
    assert len(received(consumer)) == MAX_BATCHES_A_TURN * 3


async def test_one_write_a_consumer_and_batch(topic: Topic) -> None:
    await topic.publish_many(100)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=1000)
    await settle()
    assert consumer.connection.writes_count == 1  # type: ignore[attr-defined]


async def test_nothing_is_sent_after_closing(topic: Topic) -> None:
    consumer = await topic.consume(permits=10)
    subscription = await topic.subscription()
    await subscription.close()
    await topic.publish_many(1)
    await settle()
    assert received(consumer) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_acknowledged_is_not_read_again(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish_many(6)
    first = await topic.consume(1, kind, permits=10)
    await settle()
    ack(first, 1, 3)
    first.close()
    second = await topic.consume(2, kind, permits=10)
    await settle()
    assert received(second) == [0, 2, 4, 5]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_that_is_closed_is_not_waited_for(
    topic: Topic, kind: SubscriptionType
) -> None:
    """It would call back at once, again and again, until its consumers have left."""
    connection = FakeConnection(is_writable=False, is_connected=True)
    consumer = await topic.consume(kind=kind, connection=connection)
    connection.is_connected = False
    consumer.flow(10)
    await topic.publish_many(1)
    await settle()
    assert connection.waiting_count == 0
