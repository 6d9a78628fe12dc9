"""Settings of ledgers, cursors and the entry cache, in what is stored and kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import NO_LEDGER
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.cursors.segments import StoredSegment, decode_entry
from pulsar_py.managed_ledger.log.ledger_format import cursor_path, ledger_path
from pulsar_py.managed_ledger.log.record_values import RecordCodec
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.broker_settings import managed_ledger_config
from pulsar_py.server.config import BrokerConfig
from pulsar_py.testing.clock import VirtualClock
from tests.managed_ledger_parts import NAME, Recorder, World, append_all, settle, texts
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request
from tests.unit.settings.parts import broker

ROLLS_AT_ONCE = {"managedLedgerMinLedgerRolloverTimeMinutes": 0}
BIG = bytes(600_000)

COMPRESSED = b"\x47\x78"
"""How a compressed record begins."""

OVER_LIMITS = "acknowledgements exceed the limits; all are persisted"


async def opened(world: World, count: int = 0, **settings: object) -> tuple[object, ManagedCursor]:
    """A ledger with such settings, a subscription's cursor, and entries."""
    ledger = await world.open(managed_ledger_config(BrokerConfig(**settings)))
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, count)
    return ledger, cursor


async def after_a_crash(world: World) -> ManagedCursor:
    ledger = await world.open(managed_ledger_config(BrokerConfig()))
    return ledger.cursors["sub"]


@pytest.mark.setting("managedLedgerMaxSizePerLedgerMbytes")
async def test_a_ledger_ends_at_a_size() -> None:
    ledger, _ = await opened(World(), managedLedgerMaxSizePerLedgerMbytes=1, **ROLLS_AT_ONCE)
    positions = [await ledger.append_and_wait(BIG) for _ in range(3)]
    assert len({each.ledger_id for each in positions}) == 2


@pytest.mark.setting("managedLedgerMaxEntriesPerLedger")
async def test_a_ledger_ends_at_a_number_of_entries() -> None:
    ledger, _ = await opened(World(), managedLedgerMaxEntriesPerLedger=2, **ROLLS_AT_ONCE)
    positions = await append_all(ledger, 4)
    assert len({each.ledger_id for each in positions}) == 2


@pytest.mark.setting("managedLedgerMinLedgerRolloverTimeMinutes")
async def test_a_full_ledger_stays_open_for_a_while() -> None:
    settings = {
        "managedLedgerMaxEntriesPerLedger": 1,
        "managedLedgerMinLedgerRolloverTimeMinutes": 1,
    }
    ledger, _ = await opened(World(), **settings)
    await append_all(ledger, 1)
    await asyncio.sleep(61)
    first, second = await append_all(ledger, 2)
    assert first.ledger_id != second.ledger_id


@pytest.mark.setting("managedLedgerMaxLedgerRolloverTimeMinutes")
async def test_an_old_ledger_ends() -> None:
    ledger, _ = await opened(World(), managedLedgerMaxLedgerRolloverTimeMinutes=20)
    (before,) = await append_all(ledger, 1)
    await asyncio.sleep(22 * 60)
    await ledger.roll_if_due()
    (after,) = await append_all(ledger, 1)
    assert before.ledger_id != after.ledger_id


@pytest.mark.setting("managedLedgerInactiveLedgerRolloverTimeSeconds")
async def test_an_idle_ledger_ends() -> None:
    ledger, _ = await opened(World(), managedLedgerInactiveLedgerRolloverTimeSeconds=5)
    (before,) = await append_all(ledger, 1)
    await ledger.roll_if_due()
    await asyncio.sleep(6)
    await ledger.roll_if_due()
    (after,) = await append_all(ledger, 1)
    assert before.ledger_id != after.ledger_id


@pytest.mark.setting("autoSkipNonRecoverableData")
async def test_lost_ledgers_are_skipped() -> None:
    world = World()
    settings = {"managedLedgerMaxEntriesPerLedger": 2, "autoSkipNonRecoverableData": True}
    _, cursor = await opened(world, 4, **settings, **ROLLS_AT_ONCE)
    world.store.is_cold = True
    del world.store.ledgers[min(world.store.ledgers)]
    assert texts(await cursor.read(10, 1000)) == ["m2", "m3"]


@pytest.mark.setting("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB")
@pytest.mark.parametrize(("minutes", "megabytes"), [(10, -1), (-1, 1)])
async def test_how_long_and_how_much_consumed_data_stays(minutes: int, megabytes: int) -> None:
    settings = {
        "defaultRetentionTimeInMinutes": minutes,
        "defaultRetentionSizeInMB": megabytes,
        "managedLedgerMaxEntriesPerLedger": 2,
    }
    ledger, cursor = await opened(World(), 4, **settings, **ROLLS_AT_ONCE)
    await cursor.clear_backlog()
    await asyncio.sleep(300)
    await ledger.trim()
    assert ledger.entries_count == 4


@pytest.mark.setting("managedLedgerDefaultMarkDeleteRateLimit")
async def test_how_often_a_cursor_is_written() -> None:
    world = World()
    _, cursor = await opened(world, 4, managedLedgerDefaultMarkDeleteRateLimit=0.1)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(2)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(2)
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 0)


@pytest.mark.setting("managedLedgerCursorMaxEntriesPerLedger")
async def test_a_cursor_ledger_ends_at_a_number_of_writes() -> None:
    _, cursor = await opened(World(), 2, managedLedgerCursorMaxEntriesPerLedger=1)
    ledgers = set()
    for entry_id in range(2):
        cursor.acknowledge([Position(3, entry_id)])
        await asyncio.sleep(1.1)
        ledgers.add(cursor.cursor_ledger_id)
    assert len(ledgers) == 2


@pytest.mark.setting("managedLedgerCursorRolloverTimeInSeconds")
async def test_an_old_cursor_ledger_ends() -> None:
    _, cursor = await opened(World(), 2, managedLedgerCursorRolloverTimeInSeconds=100)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    before = cursor.cursor_ledger_id
    await asyncio.sleep(100)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(1)
    assert cursor.cursor_ledger_id != before


@pytest.mark.setting("managedLedgerMaxUnackedRangesToPersist")
@pytest.mark.parametrize("limit", [1, 2])
async def test_more_ranges_than_wanted_are_warned_of_and_stored(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    _, cursor = await opened(world, 8, managedLedgerMaxUnackedRangesToPersist=limit)
    cursor.acknowledge([Position(3, 2), Position(3, 4)])
    await asyncio.sleep(1)
    again = await after_a_crash(world)
    assert [again.is_acknowledged(Position(3, each)) for each in (2, 4)] == [True, True]
    assert (OVER_LIMITS in caplog.messages) == (limit == 1)


@pytest.mark.setting("managedLedgerMaxBatchDeletedIndexToPersist")
@pytest.mark.parametrize("limit", [1, 2])
async def test_more_half_acknowledged_batches_than_wanted_are_warned_of_and_stored(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    _, cursor = await opened(world, 8, managedLedgerMaxBatchDeletedIndexToPersist=limit)
    cursor.acknowledge([Position(3, 2), Position(3, 4)], [[0b10], [0b10]])
    await asyncio.sleep(1)
    again = await after_a_crash(world)
    assert again.batch_ack_set(Position(3, 2)) is not None
    assert again.batch_ack_set(Position(3, 4)) is not None
    assert (OVER_LIMITS in caplog.messages) == (limit == 1)


@pytest.mark.setting("acknowledgmentAtBatchIndexLevelEnabled")
async def test_single_messages_of_batches_can_be_acknowledged() -> None:
    _, cursor = await opened(World(), 2, acknowledgmentAtBatchIndexLevelEnabled=False)
    cursor.acknowledge([Position(3, 1)], [[0b10]])
    assert cursor.batch_ack_set(Position(3, 1)) is None


@pytest.mark.setting("managedLedgerMaxUnackedRangesToPersistInMetadataStore")
async def test_ranges_stored_in_metadata_when_a_cursor_closes() -> None:
    world = World()
    settings = {"managedLedgerMaxUnackedRangesToPersistInMetadataStore": 1}
    ledger, cursor = await opened(world, 8, **settings)
    cursor.acknowledge([Position(3, 2), Position(3, 4)])
    await ledger.close()
    assert (await after_a_crash(world)).cursor_ledger_id != NO_LEDGER


@pytest.mark.setting("managedLedgerMaxRangesInCursorEntry")
@pytest.mark.parametrize("limit", [1, 2])
async def test_a_cursor_with_more_ranges_is_stored_in_segments(limit: int) -> None:
    world = World()
    _, cursor = await opened(world, 8, managedLedgerMaxRangesInCursorEntry=limit)
    cursor.acknowledge([Position(3, 2), Position(3, 4)])
    await asyncio.sleep(1)
    stored = [decode_entry(data) for data in world.store.ledgers[cursor.cursor_ledger_id].entries]
    assert any(isinstance(each, StoredSegment) for each in stored) == (limit == 1)
    again = await after_a_crash(world)
    assert again.is_acknowledged(Position(3, 4))


@pytest.mark.setting("managedLedgerCursorMemorySizeMB")
@pytest.mark.parametrize("megabytes", [0, 1])
async def test_acknowledgements_that_cursors_keep_in_memory(
    virtual_clock: VirtualClock, megabytes: int
) -> None:
    settings = {
        "managedLedgerCursorMemorySizeMB": megabytes,
        "managedLedgerMaxRangesInCursorEntry": 0,
        "managedLedgerMaxEntriesPerLedger": 5,
        **ROLLS_AT_ONCE,
    }
    async with broker(virtual_clock, **settings) as rig:
        managed_ledgers, config = rig.broker.managed_ledgers, rig.broker.config
        await rig.broker.namespaces.lookup(TopicName.parse("persistent://public/default/c"))
        ledger = await managed_ledgers.open(
            "public/default/persistent/c", managed_ledger_config(config)
        )
        ledger.listener = Recorder()
        cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
        positions = await append_all(ledger, 20)
        cursor.acknowledge(positions[1::2])
        await virtual_clock.sleep(1.1)
        assert bool(cursor.state.pages.cold) == (megabytes == 0)
        assert cursor.backlog_count() == 10


@pytest.mark.setting("managedLedgerCursorBackloggedThreshold")
async def test_nothing_is_cached_for_cursors_far_behind() -> None:
    world = World()
    world.store.is_cold = True
    ledger, cursor = await opened(world, managedLedgerCursorBackloggedThreshold=0)
    cursor.set_active()
    await append_all(ledger, 2)
    await settle()
    assert cursor.read_cached(10, 1000) is None


@asynccontextmanager
async def caching(clock: VirtualClock, **settings: object) -> AsyncIterator[Rig]:
    """A broker with 18 entries of 60 kB that an active subscription has not read."""
    async with broker(clock, **settings) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        await topic.subscribe(subscribe_request(cnx))
        producer = await rig.producer(topic, cnx)
        for number in range(18):
            send(producer, number, entry(number, bytes(60_000)))
            await clock.sleep(0.001)
        yield rig


def cached_bytes(rig: Rig) -> int:
    return rig.broker.managed_ledgers.cache_manager.used_bytes


@pytest.mark.setting("managedLedgerCacheSizeMB")
async def test_the_size_of_the_cache(virtual_clock: VirtualClock) -> None:
    async with caching(virtual_clock, managedLedgerCacheSizeMB=1) as rig:
        assert 0 < cached_bytes(rig) < 1024 * 1024


@pytest.mark.setting("managedLedgerCacheEvictionWatermark")
async def test_what_is_left_when_the_cache_has_been_full(virtual_clock: VirtualClock) -> None:
    settings = {"managedLedgerCacheSizeMB": 1, "managedLedgerCacheEvictionWatermark": 0.2}
    async with caching(virtual_clock, **settings) as rig:
        assert 0 < cached_bytes(rig) < 0.3 * 1024 * 1024


@pytest.mark.setting("managedLedgerCacheEvictionTimeThresholdMillis")
async def test_how_long_entries_stay_in_the_cache(virtual_clock: VirtualClock) -> None:
    settings = {"managedLedgerCacheEvictionTimeThresholdMillis": 5000}
    async with caching(virtual_clock, **settings) as rig:
        await virtual_clock.sleep(4.9)
        assert cached_bytes(rig) > 18 * 60_000
        await virtual_clock.sleep(0.2)
        assert cached_bytes(rig) == 0


@pytest.mark.setting("managedLedgerCacheEvictionIntervalMs")
async def test_how_often_the_cache_is_looked_at(virtual_clock: VirtualClock) -> None:
    async with caching(virtual_clock, managedLedgerCacheEvictionIntervalMs=5000) as rig:
        await virtual_clock.sleep(4.9)
        assert cached_bytes(rig) > 18 * 60_000
        await virtual_clock.sleep(0.2)
        assert cached_bytes(rig) == 0


async def stored_records(**settings: object) -> tuple[bytes, bytes]:
    """A topic's list of ledgers and the record of a cursor, as they are in the metadata."""
    world = World()
    ledger, _ = await opened(world, 8, **settings)
    await ledger.close()
    found = [
        await world.metadata.get(path) for path in (ledger_path(NAME), cursor_path(NAME, "sub"))
    ]
    assert all(each is not None for each in found)
    return found[0].value, found[1].value  # type: ignore[union-attr]  # just checked


@pytest.mark.setting(
    "managedLedgerInfoCompressionType", "managedLedgerInfoCompressionThresholdInBytes"
)
async def test_lists_of_ledgers_are_compressed_from_a_size_on() -> None:
    settings = {"managedLedgerInfoCompressionType": RecordCodec.ZSTD}
    plain, cursor = await stored_records(**settings)
    packed, same = await stored_records(**settings, managedLedgerInfoCompressionThresholdInBytes=0)
    assert plain[:2] != COMPRESSED == packed[:2]
    assert cursor[:2] != COMPRESSED != same[:2]


@pytest.mark.setting(
    "managedCursorInfoCompressionType", "managedCursorInfoCompressionThresholdInBytes"
)
async def test_records_of_cursors_are_compressed_from_a_size_on() -> None:
    settings = {"managedCursorInfoCompressionType": RecordCodec.LZ4}
    ledgers, plain = await stored_records(**settings)
    same, packed = await stored_records(**settings, managedCursorInfoCompressionThresholdInBytes=0)
    assert plain[:2] != COMPRESSED == packed[:2]
    assert ledgers[:2] != COMPRESSED != same[:2]
