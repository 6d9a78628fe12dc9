"""Settings of compaction: what starts it, what it keeps, what it may hold; in virtual time."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.server.compaction.compaction_status import CompactionState, CompactionStats
from pulsar_py.server.settings.topics import CompactionOrder
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import Rig, entry, send
from tests.unit.settings.parts import broker

MANY_KEYS = 1200
LONG_KEY = "k" * 1000


async def published(rig: Rig, *entries: bytes) -> PersistentTopic:
    """A topic with these entries."""
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    for number, data in enumerate(entries):
        send(producer, number, data)
    await rig.clock.sleep(0.1)
    return topic


async def compacted(topic: PersistentTopic) -> CompactionStats:
    """What a compaction says of itself that is asked for now."""
    assert topic.compaction is not None
    topic.compaction.begin()
    await topic.compaction.finished()
    return topic.compaction.stats()


@pytest.mark.setting(
    "brokerServiceCompactionThresholdInBytes", "brokerServiceCompactionMonitorIntervalInSeconds"
)
async def test_a_threshold_starts_it(virtual_clock: VirtualClock) -> None:
    settings = {
        "brokerServiceCompactionThresholdInBytes": 10,
        "brokerServiceCompactionMonitorIntervalInSeconds": 7,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await published(rig, *(entry(each, partition_key="k") for each in range(3)))
        assert topic.compaction is not None
        assert topic.compaction.stats().state is not CompactionState.SUCCESS
        await rig.clock.sleep(8)
        assert topic.compaction.stats().removed_messages == 2


@pytest.mark.setting("topicCompactionRetainNullKey")
@pytest.mark.parametrize(("is_kept", "removed"), [(True, 0), (False, 2)])
async def test_messages_without_a_key(
    virtual_clock: VirtualClock, *, is_kept: bool, removed: int
) -> None:
    async with broker(virtual_clock, topicCompactionRetainNullKey=is_kept) as rig:
        topic = await published(rig, entry(0), entry(1), entry(2, partition_key="k"))
        assert (await compacted(topic)).removed_messages == removed


@pytest.mark.setting("compactionServiceFactoryClassName")
async def test_the_newest_by_event_time(virtual_clock: VirtualClock) -> None:
    order = CompactionOrder.EVENT_TIME
    async with broker(virtual_clock, compactionServiceFactoryClassName=order) as rig:
        newest = entry(0, partition_key="k", event_time=9)
        topic = await published(rig, newest, entry(1, partition_key="k", event_time=5))
        await compacted(topic)
        assert topic.compaction is not None
        assert topic.compaction.compacted is not None
        kept = await topic.compaction.compacted.read(0, 10, 1 << 20)
        assert [each.position.entry_id for each in kept] == [0]


@pytest.mark.setting("topicCompactionMaxMemoryMB", "topicCompactionSpillDirectory")
async def test_keys_beyond_the_memory_go_to_files(
    virtual_clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not-there"))
    settings = {
        "topicCompactionMaxMemoryMB": 1,
        "topicCompactionSpillDirectory": str(tmp_path),
    }
    keys = [f"{LONG_KEY}{number}" for number in range(MANY_KEYS)]
    async with broker(virtual_clock, **settings) as rig:
        topic = await published(rig, *(entry(n, partition_key=k) for n, k in enumerate(keys)))
        assert (await compacted(topic)).state is CompactionState.SUCCESS
        assert rig.broker.compaction_totals.sorted_runs_count > 0


@pytest.mark.setting("brokerServiceCompactionPhaseOneLoopTimeInSeconds")
async def test_a_read_that_takes_too_long_ends_it(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    async with broker(virtual_clock, brokerServiceCompactionPhaseOneLoopTimeInSeconds=5) as rig:
        topic = await published(rig, entry(0, partition_key="k"))
        monkeypatch.setattr(ManagedCursor, "read", never)
        began = rig.clock.wall_time_millis()
        stats = await compacted(topic)
        assert stats.state is CompactionState.ERROR
        assert rig.clock.wall_time_millis() - began == pytest.approx(5000, abs=100)
