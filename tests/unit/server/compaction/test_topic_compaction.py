"""States, figures and ledgers of a topic's compactions; crashes are in `tests/crash`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import DiskFullError, NotAllowedError, StoreUnavailableError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.cursors.format import COMPACTED_LEDGER_PROPERTY, COMPACTION_CURSOR
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.compaction.compaction_status import CompactionState
from pulsar_py.server.compaction.topic_compaction import CompactionParts, TopicCompaction
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.payload import encode_entry
from tests.managed_ledger_parts import World, settle
from tests.simulated_client import World as SimulatedWorld
from tests.simulated_client import simulated


def full_disk() -> MemoryDisk:
    raise DiskFullError("no room")


class Topic:
    """The part of a topic that its compaction uses, and the compaction."""

    name = TopicName.parse("persistent://public/default/topic")

    async def open(self, **options: Any) -> Topic:
        self.world = World()
        self.ledger = await self.world.open(name=self.name.managed_ledger_name)
        self.parts = CompactionParts(
            ledger_store=self.world.store,
            clock=self.world.clock,
            **{"disk": MemoryDisk, **options},
        )
        self.compaction = TopicCompaction(self, self.parts)
        return self

    def last_readable_entry(self) -> Position:
        return self.ledger.last_entry_up_to(LATEST)

    async def open_compaction_cursor(self) -> ManagedCursor:
        return await self.ledger.open_cursor(COMPACTION_CURSOR, InitialPosition.EARLIEST)

    async def publish(self, keys: str) -> None:
        for key in keys:
            head = MessageMetadata(
                producer_name="p", sequence_id=0, publish_time=1, partition_key=key
            )
            await self.ledger.append_and_wait(encode_entry(head, b"value"))

    async def compact(self) -> CompactionState:
        self.compaction.begin()
        await self.compaction.finished()
        return self.compaction.stats().state


async def test_a_topic_without_messages_is_compacted_to_nothing() -> None:
    topic = await Topic().open()
    assert await topic.compact() is CompactionState.SUCCESS
    assert topic.compaction.compacted is None
    assert (topic.compaction.stats().succeeded_millis, topic.parts.totals.succeeded_count) == (0, 0)


async def test_figures_of_a_compaction_and_of_one_with_nothing_new() -> None:
    topic = await Topic().open()
    await topic.publish("aabab")
    assert await topic.compact() is CompactionState.SUCCESS
    stats = await topic.compaction.stats_with_ledger()
    compacted = topic.compaction.compacted
    assert compacted is not None
    assert (stats.removed_messages, stats.ledger_entries_count) == (3, 2)
    assert stats.ledger_id == compacted.ledger_id
    assert stats.ledger_bytes == topic.parts.totals.bytes_written
    assert stats.succeeded_millis == topic.world.clock.wall_time_millis()
    assert (stats.succeeded_count, stats.failed_count, stats.removed_count) == (1, 0, 3)
    await topic.compact()
    assert topic.compaction.compacted is compacted
    assert await topic.compaction.stats_with_ledger() == stats
    assert topic.parts.totals.succeeded_count == 1


async def test_a_newer_compaction_replaces_the_former_ledger() -> None:
    topic = await Topic().open()
    await topic.publish("ab")
    await topic.compact()
    former = topic.compaction.compacted
    await topic.publish("bc")
    await topic.compact()
    newer = topic.compaction.compacted
    assert former is not None
    assert newer is not None
    assert newer.horizon == topic.ledger.last_confirmed_entry
    cursor = await topic.open_compaction_cursor()
    assert cursor.properties[COMPACTED_LEDGER_PROPERTY] == newer.ledger_id
    assert former.ledger_id not in topic.world.store.ledgers
    assert (await topic.compaction.stats_with_ledger()).ledger_entries_count == 3


async def test_only_one_runs_and_a_stopped_one_has_not_run() -> None:
    topic = await Topic().open()
    await topic.publish("ab")
    topic.world.store.is_holding = True
    topic.compaction.begin()
    with pytest.raises(NotAllowedError):
        topic.compaction.begin()
    await settle()
    assert topic.compaction.is_running
    await topic.compaction.stop()
    assert topic.compaction.stats().state is CompactionState.NOT_RUN
    topic.world.store.release()
    await topic.compact()
    assert topic.compaction.stats().removed_messages == 0


async def test_a_store_that_refuses_is_told_and_the_next_one_works() -> None:
    topic = await Topic().open()
    await topic.publish("ab")
    topic.world.store.create_error = StoreUnavailableError("too few bookies")
    assert await topic.compact() is CompactionState.ERROR
    stats = topic.compaction.stats()
    assert stats.last_error == "StoreUnavailableError: too few bookies"
    assert (stats.succeeded_millis, topic.parts.totals.failed_count) == (0, 1)
    topic.world.store.create_error = None
    assert await topic.compact() is CompactionState.SUCCESS
    assert topic.compaction.stats().last_error == ""
    counted = topic.compaction.stats()
    assert (counted.failed_count, counted.succeeded_count) == (1, 1)


async def test_keys_that_do_not_fit_in_memory_need_the_disk() -> None:
    topic = await Topic().open(memory_bytes=lambda: 1)
    await topic.publish("abca")
    assert await topic.compact() is CompactionState.SUCCESS
    assert topic.parts.totals.sorted_runs_count > 1
    assert (await topic.compaction.stats_with_ledger()).ledger_entries_count == 3
    other = await Topic().open(memory_bytes=lambda: 1, disk=full_disk)
    await other.publish("ab")
    assert await other.compact() is CompactionState.ERROR
    assert other.compaction.stats().last_error == "DiskFullError: no room"


async def test_a_ledger_that_is_gone_counts_as_never_compacted() -> None:
    topic = await Topic().open()
    await topic.publish("ab")
    await topic.compact()
    compacted = topic.compaction.compacted
    assert compacted is not None
    await topic.compaction.close()
    await topic.world.store.delete(compacted.ledger_id)
    stats = await topic.compaction.stats_with_ledger()
    assert (stats.ledger_id, stats.ledger_entries_count) == (None, -1)
    assert topic.compaction.compacted is None


async def test_a_reader_that_is_late_does_not_take_the_new_ledger_away() -> None:
    topic = await Topic().open()
    await topic.publish("ab")
    await topic.compact()
    former = topic.compaction.compacted
    await topic.publish("ab")
    await topic.compact()
    newer = topic.compaction.compacted
    assert former is not None
    topic.compaction.on_missing(former)
    assert topic.compaction.compacted is newer
    topic.compaction.on_cursor_deleted()
    assert topic.compaction.compacted is None


def test_policy_events_are_compacted_in_virtual_time() -> None:
    async def work(world: SimulatedWorld) -> None:
        topic = TopicName.parse("persistent://public/default/with-policies")
        await world.send(str(topic), "one")
        service = world.broker.service
        for number in range(1, 4):
            document = {"maxConsumerPerTopic": number}
            await service.topic_policies.change(topic, lambda _, new=document: dict(new))  # type: ignore[misc]
        events = world.topics.loaded(TopicName.parse("public/default/__change_events"))
        assert isinstance(events, PersistentTopic)
        assert events.compaction is not None
        await asyncio.sleep(180)  # virtual: system topics are looked at each minute
        stats = events.compaction.stats()
        assert stats.state is CompactionState.SUCCESS, stats
        assert stats.removed_count == 2

    # The topic has no subscription, and would leave its tombstone among the events.
    simulated(work, brokerDeleteInactiveTopicsEnabled=False)
