"""Compactions of a topic, after a crash between every two of their steps.

A process is stopped before or after each call that changes metadata or makes, ends or deletes a
ledger. Then the topic is loaded again, and the collector runs with no age to wait for: readers of
the compacted topic get the newest message of each key, though the originals are gone, no ledger is
left that nothing names, and the next compaction works.
"""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, LATEST
from pulsar_py.managed_ledger.cursors.format import COMPACTION_CURSOR
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.compaction.compacted_source import CompactedSource
from pulsar_py.server.compaction.compaction_status import CompactionState
from pulsar_py.server.compaction.topic_compaction import (
    CompactionParts,
    TopicCompaction,
)
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.wire.payload import encode_entry, split_entry
from tests.crash.test_ledger_collector import CLUSTER, Metadata, Steps, Store
from tests.managed_ledger_parts import TRIMMING, World, settle

NAME = TopicName.parse("persistent://public/default/topic")


class Topic:
    """The part of a topic that its compaction uses."""

    def __init__(self, world: World, ledger) -> None:
        self.name = NAME
        self.ledger = ledger
        parts = CompactionParts(ledger_store=world.store, disk=MemoryDisk, clock=world.clock)
        self.compaction = TopicCompaction(self, parts)

    def last_readable_entry(self):
        return self.ledger.last_entry_up_to(LATEST)

    async def open_compaction_cursor(self):
        return await self.ledger.open_cursor(COMPACTION_CURSOR, InitialPosition.EARLIEST)

    async def compact(self) -> None:
        self.compaction.begin()
        await self.compaction.finished()
        stats = self.compaction.stats()
        assert stats.state is CompactionState.SUCCESS, stats.last_error

    async def read(self) -> dict[str, bytes]:
        """The newest value of each key, as a new reader from the earliest message gets it."""
        compaction = self.compaction
        cursor = self.ledger.new_non_durable_cursor("reader", InitialPosition.EARLIEST)
        source = CompactedSource(
            cursor, lambda: compaction.compacted, compaction.on_missing, start=EARLIEST
        )
        found: dict[str, bytes] = {}
        positions = []
        while source.has_more_entries():
            for entry in await source.read(3, 1_000_000):
                parts = split_entry(bytes(entry.data))
                found[parts.metadata.partition_key] = parts.payload
                positions.append(entry.position)
        assert positions == sorted(set(positions)), "a message twice, or out of order"
        cursor.abandon()
        return {key: value for key, value in found.items() if value}


class Life:
    """Publishes and compacts three times; the originals are trimmed."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.steps = Steps(None)
        self.world = World(store=Store())
        self.world.metadata = Metadata(self.world.clock)
        self.world.store.steps = self.world.metadata.steps = self.steps
        self.confirmed: dict[str, bytes] = {}

    async def open(self) -> Topic:
        options = {"cluster": CLUSTER, **TRIMMING}
        ledger = await self.world.open(max_entries=4, name=NAME.managed_ledger_name, **options)
        topic = Topic(self.world, ledger)
        await topic.open_compaction_cursor()
        await topic.compaction.load()
        return topic

    async def run(self) -> None:
        topic = await self.open()
        first = self.steps.count
        self.steps.limit = None if self.limit is None else first + self.limit
        before = asyncio.all_tasks()
        living = asyncio.get_running_loop().create_task(self._live(topic))
        stopped = asyncio.get_running_loop().create_task(self.steps.stopped.wait())
        await asyncio.wait((living, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not self.steps.stopped.is_set():
            living.result()
        left = asyncio.all_tasks() - before - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.steps_count = self.steps.count - first
        self.steps.limit = None
        self.world.store.steps = self.world.metadata.steps = Steps(None)

    async def _live(self, topic: Topic) -> None:
        for round_number in range(3):
            await self._publish(topic, round_number, range(round_number, round_number + 6))
            await topic.compact()
            await topic.ledger.trim()
            await settle()
        await self._publish(topic, 9, (0, 9))
        await topic.compaction.close()
        await topic.ledger.close()

    async def _publish(self, topic: Topic, round_number: int, keys) -> None:
        for key in keys:
            value = b"" if key % 4 == 3 else b"%d of %d" % (key, round_number)
            head = MessageMetadata(
                producer_name="p", sequence_id=0, publish_time=1, partition_key=str(key)
            )
            await topic.ledger.append_and_wait(encode_entry(head, value))
            self.confirmed[str(key)] = value

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
        expected = {key: value for key, value in self.confirmed.items() if value}
        assert await topic.read() == expected
        await topic.compact()
        assert await topic.read() == expected
        await settle()
        assert await collector.collect() == 0, "a ledger that nothing names was left"
        await topic.compaction.close()
        await topic.ledger.close()
        reopened = await self.open()
        assert await reopened.read() == expected
        await reopened.compaction.close()
        await reopened.ledger.close()


STEPS_COUNT = 90
"""More than a whole life has; `test_no_step_is_left_out` counts."""


@pytest.mark.parametrize("limit", range(STEPS_COUNT))
async def test_nothing_compacted_is_lost_and_no_ledger_is_left(limit: int) -> None:
    life = Life(limit)
    await life.run()
    await life.check()


async def test_no_step_is_left_out() -> None:
    life = Life(None)
    await life.run()
    await life.check()
    assert 50 < life.steps_count <= STEPS_COUNT


async def test_a_compacted_ledger_that_is_gone_counts_as_never_compacted() -> None:
    life = Life(None)
    topic = await life.open()
    await life._publish(topic, 0, range(6))
    await topic.compact()
    compacted = topic.compaction.compacted
    assert compacted is not None
    await compacted.close()
    await life.world.store.delete(compacted.ledger_id)
    await topic.compaction.close()
    await topic.ledger.close()
    again = await life.open()
    await life._publish(again, 1, (7, 8))
    found = await again.read()
    assert found["8"] == b"8 of 1"
    await again.compact()
    assert (await again.read())["8"] == b"8 of 1"
    assert again.compaction.compacted is not None


async def test_a_store_that_fails_leaves_the_former_compaction(monkeypatch) -> None:
    life = Life(None)
    topic = await life.open()
    await life._publish(topic, 0, range(6))
    await topic.compact()
    before = topic.compaction.compacted
    await life._publish(topic, 1, range(6))

    async def refuse(*_: object, **__: object) -> None:
        raise PulsarError("no")

    monkeypatch.setattr("pulsar_py.server.compaction.compactor.Compactor.write", refuse)
    topic.compaction.begin()
    await topic.compaction.finished()
    stats = topic.compaction.stats()
    assert (stats.state, stats.last_error) == (CompactionState.ERROR, "PulsarError: no")
    assert topic.compaction.compacted is before
    monkeypatch.undo()
    named = await topic.ledger._shared.named_ledgers()
    assert set(life.world.store.ledgers) == named
    assert (await topic.read())["0"] == b"0 of 1"
