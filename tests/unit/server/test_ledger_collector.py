"""LedgerCollector: what nobody names goes, after a time; what anybody names stays."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.managed_ledger.ledger_format import ledger_path
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.server.schema_registry.storage import SchemaStorage
from pulsar_py.storage.ledger_store import LedgerOptions
from tests.managed_ledger_parts import NAME, Recorder, World, append_all


def collector_of(world: World) -> LedgerCollector:
    schemas = SchemaStorage(world.metadata, world.store)
    names = [world.opener().named_ledgers, schemas.named_ledgers]
    return LedgerCollector(world.store, names, world.clock, minimum_age_seconds=3600.0)


async def leak(world: World, component: bytes = b"") -> int:
    """What a crash between the ledger and its name leaves."""
    options = LedgerOptions(custom_metadata={"component": component} if component else {})
    return (await world.store.create(Recorder(), options)).ledger_id


async def test_an_unnamed_ledger_goes_when_it_is_old_enough():
    world = World()
    ledger = await world.open(max_entries=2)
    cursor = await ledger.open_cursor("sub")
    await append_all(ledger, 3)
    cursor.set_properties({"a": 1})
    await cursor.flush()
    named = set(world.store.ledgers)
    leaked = await leak(world)
    collector = collector_of(world)

    assert await collector.collect() == 0
    world.clock.jump(3599)
    assert await collector.collect() == 0
    assert leaked in world.store.ledgers
    world.clock.jump(1)
    assert await collector.collect() == 1
    assert set(world.store.ledgers) == named


async def test_its_time_begins_anew_when_it_was_named_meanwhile():
    world = World()
    ledger = await world.open()
    record = await world.metadata.get(ledger_path(NAME))
    await world.metadata.delete(ledger_path(NAME))
    collector = collector_of(world)
    await collector.collect()
    world.clock.jump(1800)
    await world.metadata.put(ledger_path(NAME), record.value)
    await collector.collect()
    await world.metadata.delete(ledger_path(NAME))
    world.clock.jump(1800)
    assert await collector.collect() == 0
    world.clock.jump(3600)
    assert await collector.collect() == 1
    assert not ledger.is_closed


async def test_a_compacted_ledger_and_a_foreign_component_stay():
    world = World()
    compacted, foreign = await leak(world), await leak(world, b"compacted-topic")
    ledger = await world.open()
    await ledger.open_cursor("__compaction", properties={"CompactedTopicLedger": compacted})
    collector = collector_of(world)
    await collector.collect()
    world.clock.jump(7200)
    assert await collector.collect() == 0
    assert {compacted, foreign} <= set(world.store.ledgers)


async def test_names_that_cannot_be_read_keep_everything():
    world = World()
    leaked = await leak(world)
    await world.metadata.put("/schemas/public/default/topic", b"\xff\xff\xff")
    collector = collector_of(world)
    with pytest.raises(CorruptDataError, match="/schemas/public/default/topic"):
        await collector.collect()
    await world.metadata.delete("/schemas/public/default/topic")
    await collector.collect()
    world.clock.jump(3600)
    await world.metadata.put(ledger_path(NAME), b"\xff\xff\xff")
    with pytest.raises(CorruptDataError):
        await collector.collect()
    assert leaked in world.store.ledgers
