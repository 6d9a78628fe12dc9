"""The index on disk under a dispatcher: sealing, loading, merging, deleting, finding again."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import LedgerNotFoundError, StorageError
from pulsar_py.common.position import EARLIEST
from pulsar_py.ledgers import labels
from pulsar_py.server.delayed.delayed_index import CHECK_SECONDS
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock
from tests.delayed_parts import (
    acknowledge_all,
    bucket_ledgers,
    delaying,
    pause,
    publish_delayed,
    reload,
    timed_consumer,
    tracker_of,
)
from tests.managed_ledger_parts import settle

DELAYS = (30.0, 20.0, 25.0, 21.0, 40.0, 22.0, 35.0, 33.0, 50.0)


def assert_on_time(consumer, times) -> None:
    received = consumer.connection.messages
    assert len(received) == len(times), "each one once"
    for each, came in zip(received, consumer.connection.times_millis, strict=True):
        due = int(each.data[-13:])
        assert due <= came < due + 1000


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
async def test_each_message_comes_once_and_never_early(virtual_clock: VirtualClock, kind) -> None:
    async with delaying(virtual_clock) as topic:
        consumer = await timed_consumer(topic, kind=kind)
        times = await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        assert len(bucket_ledgers(topic)) == 2
        tracker = tracker_of(topic)
        assert len(tracker) == len(DELAYS)
        await pause(60)
        assert_on_time(consumer, times)
        assert len(tracker_of(topic)) == 0


async def test_buckets_have_the_labels_and_names_of_apache_pulsar(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        first = topic.ledger._ledgers.ledger_ids[0]
        name = f"delayed.bucket_{first}_{first}"
        ledger_id = bucket_ledgers(topic)[name]
        assert await topic.store.custom_metadata(ledger_id) == labels.delayed_index_bucket(
            topic.ledger.config.cluster, str(topic.name), "sub", f"#pulsar.internal.{name}"
        )
        assert (await topic.store.info(ledger_id)).is_closed


async def test_a_bucket_stays_until_its_messages_are_acknowledged(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        consumer = await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        ledgers = bucket_ledgers(topic)
        await pause(100)
        assert bucket_ledgers(topic) == ledgers
        acknowledge_all(consumer)
        await pause(CHECK_SECONDS + 1)
        assert bucket_ledgers(topic) == {}
        for ledger_id in ledgers.values():
            with pytest.raises(LedgerNotFoundError):
                await topic.store.open(ledger_id)


async def test_after_a_restart_only_what_is_in_no_bucket_is_read(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        times = await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        await reload(topic)
        last = topic.ledger._ledgers.ledger_ids[-1]
        reads: list[int] = []
        reading = topic.ledger.reading
        fetch, cached = reading.run, reading.run_cached

        async def run(ledger_id: int, *span: int):
            reads.append(ledger_id)
            return await fetch(ledger_id, *span)

        def run_cached(ledger_id: int, *span: int):
            reads.append(ledger_id)
            return cached(ledger_id, *span)

        monkeypatch.setattr(reading, "run", run)
        monkeypatch.setattr(reading, "run_cached", run_cached)
        again = await timed_consumer(topic)
        assert set(reads) == {last}, "entries in buckets were read"
        assert len(tracker_of(topic)) == len(DELAYS)
        await pause(60)
        assert_on_time(again, times)


async def test_what_fell_due_while_it_was_down_comes_at_once(virtual_clock: VirtualClock) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        await reload(topic)
        await pause(100)
        again = await timed_consumer(topic)
        assert len(again.connection.messages) == len(DELAYS)
        acknowledge_all(again)
        await pause(CHECK_SECONDS + 1)
        assert bucket_ledgers(topic) == {}


async def test_too_many_buckets_are_merged_without_losing_a_segment(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock, delayedDeliveryMaxNumBuckets=3) as topic:
        consumer = await timed_consumer(topic)
        delays = [40.0 + number * 7 % 60 for number in range(22)]
        times = await publish_delayed(topic, delays, per_ledger=4)
        await pause(1)
        named = bucket_ledgers(topic)
        ids = topic.ledger._ledgers.ledger_ids
        assert list(named) == [
            f"delayed.bucket_{ids[0]}_{ids[3]}",
            f"delayed.bucket_{ids[4]}_{ids[4]}",
        ]
        tracker = tracker_of(topic)
        assert sum(len(each.content.members) for each in tracker.buckets) == 20
        await pause(120)
        assert_on_time(consumer, times)


async def test_a_bucket_that_is_gone_is_read_again_in_the_topic(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        consumer = await timed_consumer(topic)
        times = await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        first, second = bucket_ledgers(topic).values()
        await topic.store.delete(first)  # noticed when a segment is loaded
        await pause(60)
        assert_on_time(consumer, times)
        assert list(bucket_ledgers(topic).values()) == [second]


async def test_a_bucket_missing_at_start_is_read_again_and_forgotten(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        times = await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        await reload(topic)
        first, second = bucket_ledgers(topic).values()
        await topic.store.delete(first)
        again = await timed_consumer(topic)
        await pause(60)
        assert_on_time(again, times)
        named = bucket_ledgers(topic).values()
        assert second in named
        assert first not in named


async def test_a_store_that_fails_is_tried_again_and_reading_pauses(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delaying(virtual_clock) as topic:
        consumer = await timed_consumer(topic)
        create = topic.store.create

        async def refuse(*_: object) -> None:
            raise StorageError("no")

        await publish_delayed(topic, DELAYS[:4])
        await topic.ledger.roll_ledger()
        monkeypatch.setattr(topic.store, "create", refuse)
        times = await publish_delayed(topic, DELAYS[4:])
        await pause(3)
        assert bucket_ledgers(topic) == {}
        assert tracker_of(topic).sealing is not None
        monkeypatch.setattr(topic.store, "create", create)
        await pause(10)
        assert len(bucket_ledgers(topic)) == 1
        await pause(60)
        assert len(consumer.connection.messages) == 4 + len(times)


async def test_cleared_backlog_deletes_the_buckets(virtual_clock: VirtualClock) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        subscription = topic.subscriptions["sub"]
        await subscription.clear_backlog()
        await pause(1)
        assert (bucket_ledgers(topic), len(tracker_of(topic))) == ({}, 0)


async def test_a_deleted_subscription_leaves_no_ledger(virtual_clock: VirtualClock) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        ledgers = bucket_ledgers(topic)
        await topic.subscriptions["sub"].delete()
        for ledger_id in ledgers.values():
            with pytest.raises(LedgerNotFoundError):
                await topic.store.open(ledger_id)


async def test_a_reset_brings_the_buckets_messages_again_at_their_times(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        await timed_consumer(topic)
        times = await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        await topic.subscriptions["sub"].reset_to_position(EARLIEST, None)
        again = await timed_consumer(topic, 2)
        assert len(tracker_of(topic)) == len(DELAYS)
        await pause(60)
        assert_on_time(again, times)


async def test_another_type_of_subscription_gets_delayed_messages_at_once(
    virtual_clock: VirtualClock,
) -> None:
    async with delaying(virtual_clock) as topic:
        consumer = await timed_consumer(topic)
        await publish_delayed(topic, DELAYS, per_ledger=4)
        await pause(1)
        consumer.disconnect()
        await settle()
        alone = await timed_consumer(topic, 2, kind=SubscriptionType.EXCLUSIVE)
        await asyncio.sleep(0.1)
        assert len(alone.connection.messages) == len(DELAYS)
