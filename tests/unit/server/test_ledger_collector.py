"""LedgerCollector: what is ours and named by nobody goes, after a time; all else stays."""

from __future__ import annotations

import random

import pytest

from pulsar_py.common.errors import CorruptDataError, StorageError, StoreUnavailableError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.ledger_format import ledger_path
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.server.schema_registry.storage import SchemaStorage
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import NAME, Recorder, World, append_all

CLUSTER = "here"
OURS = labels.managed_ledger(CLUSTER, NAME)


def collector_of(world: World) -> LedgerCollector:
    schemas = SchemaStorage(world.metadata, world.store, CLUSTER)
    names = [world.opener().named_ledgers, schemas.named_ledgers]
    return LedgerCollector(
        world.store, names, world.clock, cluster=CLUSTER, minimum_age_seconds=3600.0
    )


async def leak(world: World, custom_metadata=OURS) -> int:
    """What a crash between the ledger and its name leaves."""
    options = LedgerOptions(custom_metadata=custom_metadata)
    return (await world.store.create(Recorder(), options)).ledger_id


async def test_an_unnamed_ledger_goes_when_it_is_old_enough():
    world = World()
    ledger = await world.open(max_entries=2, cluster=CLUSTER)
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


async def test_all_ledgers_of_a_topic_bear_our_labels():
    world = World()
    ledger = await world.open(cluster=CLUSTER)
    cursor = await ledger.open_cursor("a/b")
    await append_all(ledger, 1)
    cursor.set_properties({"a": 1})
    await cursor.flush()

    found = [dict(each.options.custom_metadata) for each in world.store.ledgers.values()]

    assert found == [OURS, labels.cursor(CLUSTER, NAME, "a%2Fb")]
    assert all(labels.is_ours(each, CLUSTER) for each in found)


async def test_its_time_begins_anew_when_it_was_named_meanwhile():
    world = World()
    ledger = await world.open(cluster=CLUSTER)
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


@pytest.mark.parametrize(
    "custom_metadata",
    [
        {},
        {"application": b"pulsar", "component": b"managed-ledger"},  # of an Apache Pulsar broker
        labels.managed_ledger("elsewhere", NAME),
        {**OURS, "application": b"other"},
    ],
)
async def test_what_does_not_bear_our_label_stays(custom_metadata):
    world = World()
    foreign, leaked = await leak(world, custom_metadata), await leak(world)
    collector = collector_of(world)
    await collector.collect()
    for _ in range(3):
        world.clock.jump(7200)
        await collector.collect()

    assert foreign in world.store.ledgers
    assert leaked not in world.store.ledgers


async def test_labels_are_read_of_unnamed_aged_candidates_alone_and_once():
    class Asking(SimulatedLedgerStore):
        async def custom_metadata(self, ledger_id):
            asked.append(ledger_id)
            return await super().custom_metadata(ledger_id)

    asked = []
    world = World(store=Asking())
    await world.open(cluster=CLUSTER)
    foreign = await leak(world, {})
    collector = collector_of(world)
    await collector.collect()
    assert not asked
    for _ in range(3):
        world.clock.jump(3600)
        await collector.collect()

    assert asked == [foreign]


@pytest.mark.parametrize(
    "labelled",
    [
        labels.schema(CLUSTER, "a/b/c"),
        labels.compacted_ledger(CLUSTER, "persistent://a/b/c", b"1"),
        labels.delayed_index_bucket(CLUSTER, "persistent://a/b/c", "sub", "key"),
        labels.cursor(CLUSTER, NAME, "sub"),
    ],
)
async def test_every_component_of_ours_is_collected(labelled):
    world = World()
    leaked = await leak(world, labelled)
    collector = collector_of(world)
    await collector.collect()
    world.clock.jump(3600)

    assert await collector.collect() == 1
    assert leaked not in world.store.ledgers


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


async def test_a_listing_that_is_cut_off_deletes_nothing():
    world = World()
    service = HostileLedgers(random.Random(1))
    world.store = service.connect("broker")
    leaked = await leak(world)
    collector = collector_of(world)
    await collector.collect()
    world.clock.jump(3600)
    service.faults = LedgerFaults(listing_cut_share=1.0)

    with pytest.raises(StoreUnavailableError):
        await collector.collect()
    assert service.find(leaked)
    service.faults = LedgerFaults()

    assert await collector.collect() == 1


async def test_one_that_cannot_be_deleted_does_not_keep_the_others():
    world = World()
    await leak(world)
    await leak(world)
    collector = collector_of(world)
    await collector.collect()
    world.clock.jump(3600)
    world.store.delete_error = StorageError("not now")
    assert await collector.collect() == 0
    world.store.delete_error = None

    assert await collector.collect() == 2
