"""A delayed index, after a crash between every two of its steps.

A process is stopped before or after each call that changes metadata or makes, ends or deletes a
ledger, while buckets are sealed, merged and deleted. Then the topic is loaded again, and the
collector runs with no age to wait for: each message that was not acknowledged comes once, at its
time, no bucket that the cursor names is gone, and when all is acknowledged no ledger is left.
"""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.position import Position
from pulsar_py.server.delayed.bucket_names import stored_buckets
from pulsar_py.server.delayed.delayed_index import CHECK_SECONDS
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.testing.clock import VirtualClock
from tests import dispatch_parts
from tests.crash.test_ledger_collector import CLUSTER, Metadata, Steps, Store
from tests.delayed_parts import (
    FEW,
    acknowledge_all,
    parts_of,
    pause,
    publish_delayed,
    timed_consumer,
)
from tests.managed_ledger_parts import TRIMMING, World, settle

NAME = "persistent://public/default/t"


class Topic(dispatch_parts.Topic):
    """A topic on stores that outlive it."""

    def __init__(self, world: World, ledger) -> None:
        super().__init__(world.clock)
        self._world = world
        self.ledger = ledger
        self.delayed_index = parts_of(self, **FEW, delayedDeliveryMaxNumBuckets=2)

    @property
    def store(self):
        return self._world.store

    async def close(self) -> None:
        for subscription in list(self.subscriptions.values()):
            await subscription.close()
        await self.ledger.close()


class Life:
    """Publishes delayed messages, merges their buckets, and acknowledges most."""

    def __init__(self, clock: VirtualClock, limit: int | None) -> None:
        self.limit = limit
        self.steps = Steps(None)
        self.world = World(clock=clock, store=Store())
        self.world.metadata = Metadata(clock)
        self.world.store.steps = self.world.metadata.steps = self.steps
        self.times: dict[bytes, int] = {}
        self.acknowledged: set[Position] = set()

    async def open(self) -> Topic:
        options = {"cluster": CLUSTER, **TRIMMING}
        name = dispatch_parts.Topic(self.world.clock).name.managed_ledger_name
        ledger = await self.world.open(max_entries=4, name=name, **options)
        return Topic(self.world, ledger)

    async def run(self) -> None:
        topic = await self.open()
        await timed_consumer(topic)
        first = self.steps.count
        self.steps.limit = None if self.limit is None else first + self.limit
        before = asyncio.all_tasks()
        loop = asyncio.get_running_loop()
        living = loop.create_task(self._live(topic))
        stopped = loop.create_task(self.steps.stopped.wait())
        await asyncio.wait((living, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not self.steps.stopped.is_set():
            living.result()
        for handle in loop._scheduled:  # type: ignore[attr-defined]  # the process is gone
            handle.cancel()
        left = asyncio.all_tasks() - before - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.steps_count = self.steps.count - first
        self.steps.limit = None
        self.world.store.steps = self.world.metadata.steps = Steps(None)

    async def _live(self, topic: Topic) -> None:
        consumer = topic.subscriptions["sub"].consumers[0]
        delays = [20.0 + number * 3 % 25 for number in range(19)]
        await publish_delayed(topic, delays, per_ledger=0)
        await pause(60)
        acknowledge_all(consumer)
        await pause(CHECK_SECONDS + 2)
        await publish_delayed(topic, [10.0] * 5)
        await pause(1)
        await topic.close()

    async def check(self) -> None:
        world = self.world
        topic = await self.open()
        collector = LedgerCollector(
            world.store,
            [topic.ledger._shared.named_ledgers],
            world.clock,
            cluster=CLUSTER,
            minimum_age_seconds=0.0,
        )
        await collector.collect()
        cursor = topic.ledger.cursors["sub"]
        waiting = cursor.backlog_count()
        consumer = await timed_consumer(topic, kind=SubscriptionType.SHARED)
        await pause(90)
        messages = consumer.connection.messages
        assert len({(each.ledger_id, each.entry_id) for each in messages}) == len(messages)
        assert len(messages) == waiting, "a message was lost, or came twice"
        times = consumer.connection.times_millis
        assert all(int(each.data[-13:]) <= at for each, at in zip(messages, times, strict=True))
        named = set(stored_buckets(cursor.cursor_properties).values())
        assert named <= world.store.ledgers.keys(), "a bucket that is named is gone"
        acknowledge_all(consumer)
        await pause(CHECK_SECONDS + 2)
        assert not stored_buckets(cursor.cursor_properties)
        await settle()
        assert await collector.collect() == 0, "a ledger that nothing names was left"
        await topic.close()


STEPS_COUNT = 120
"""More than a whole life has; `test_no_step_is_left_out` counts."""


@pytest.mark.parametrize("limit", range(STEPS_COUNT))
async def test_no_message_is_lost_and_no_ledger_is_left(
    virtual_clock: VirtualClock,
    limit: int,
) -> None:
    life = Life(virtual_clock, limit)
    await life.run()
    await life.check()


async def test_no_step_is_left_out(virtual_clock: VirtualClock) -> None:
    life = Life(virtual_clock, None)
    await life.run()
    await life.check()
    assert 50 < life.steps_count <= STEPS_COUNT
