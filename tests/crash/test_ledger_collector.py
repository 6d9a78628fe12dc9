"""The collector at age zero, after a crash between every two steps of a topic's life.

A process is stopped before or after each call that changes metadata or makes, ends or deletes a
ledger. Then the collector runs, with no age to wait for: nothing that metadata names is gone,
nothing of ours that it does not name is left, and what others own has not been touched.
"""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.position import Position
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.storage import SchemaStorage
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import (
    MANY,
    NAME,
    TRIMMING,
    Recorder,
    World,
    append_all,
    settle,
    texts,
)

CLUSTER = "here"
SCHEMA_ID = "public/default/topic"
OTHER = "public/default/persistent/other"


class Steps:
    """Lets so many steps happen, then the process stands still."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.count = 0
        self.stopped = asyncio.Event()

    async def take(self) -> None:
        if self.limit is not None and self.count >= self.limit:
            self.stopped.set()
            await asyncio.get_running_loop().create_future()
        self.count += 1


def stepped(name: str):
    """A method with a step before and after."""

    async def method(self, *args, **options):
        await self.steps.take()
        result = await getattr(super(type(self), self), name)(*args, **options)
        await self.steps.take()
        return result

    return method


class Store(SimulatedLedgerStore):
    steps = Steps(None)
    create, recover, delete = stepped("create"), stepped("recover"), stepped("delete")


class Metadata(MemoryMetadataStore):
    steps = Steps(None)
    put, delete = stepped("put"), stepped("delete")
    create_sequential, delete_recursive = stepped("create_sequential"), stepped("delete_recursive")


def version(number: int) -> StoredSchema:
    definition = SchemaDefinition(Schema.String, bytes([number]), {}, SCHEMA_ID)
    return StoredSchema(definition, number, 1)


class Life:
    """Rolls, trims, switches cursor ledgers, stores schemas, and deletes a topic."""

    def __init__(self, limit: int | None) -> None:
        self.steps = Steps(None)
        self.world = World(store=Store())
        self.world.metadata = Metadata(self.world.clock)
        self.world.store.steps = self.world.metadata.steps = self.steps
        self.foreign = -1
        self._limit = limit

    async def run(self) -> None:
        options = LedgerOptions(custom_metadata=labels.managed_ledger("elsewhere", NAME))
        self.foreign = (await self.world.store.create(Recorder(), options)).ledger_id
        self.steps.limit = None if self._limit is None else self.steps.count + self._limit
        first = self.steps.count
        before = asyncio.all_tasks()
        living = asyncio.get_running_loop().create_task(self._live())
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

    async def _live(self) -> None:
        world = self.world
        options = {"cluster": CLUSTER, "cursor_max_entries_per_ledger": 2, **TRIMMING}
        ledger = await world.open(max_entries=2, **options)
        cursor = await ledger.open_cursor("sub")
        schemas = SchemaStorage(world.metadata, world.store, CLUSTER)
        index = await schemas.append(SCHEMA_ID, version(0), None)
        for number in range(4):
            positions = await append_all(ledger, 3, prefix=f"{number}-")
            cursor.acknowledge([Position(*positions[2])])
            cursor.acknowledge_cumulative(Position(*positions[0]))
            await cursor.flush()
            await settle()
        await schemas.append(SCHEMA_ID, version(1), index)
        other = await world.open(max_entries=2, name=OTHER, **options)
        await other.open_cursor("sub")
        await append_all(other, 3)
        await other.delete()
        await schemas.remove(SCHEMA_ID)
        await ledger.close()

    async def check(self) -> int:
        """Collect, and open everything again; returns how many ledgers were collected."""
        world = self.world
        schemas = SchemaStorage(world.metadata, world.store, CLUSTER)
        names = [world.opener().named_ledgers, schemas.named_ledgers]
        collector = LedgerCollector(
            world.store, names, world.clock, cluster=CLUSTER, minimum_age_seconds=0.0
        )
        before = await names[0]() | await schemas.named_ledgers()
        existing = before & world.store.ledgers.keys()
        collected_count = await collector.collect()
        assert existing <= world.store.ledgers.keys(), "named, and deleted"
        assert set(world.store.ledgers) <= before | {self.foreign}, "ours and unnamed, and left"
        assert self.foreign in world.store.ledgers
        index = await schemas.index(SCHEMA_ID)
        for number in () if index is None else range(len(index)):
            assert await schemas.read(SCHEMA_ID, index, number) == version(number)
        if await world.opener().exists(NAME):
            await self._read_back()
        return collected_count

    async def _read_back(self) -> None:
        ledger = await self.world.open(cluster=CLUSTER)
        cursor = await ledger.open_cursor("sub")
        read = texts(await cursor.read(*MANY)) if cursor.has_more_entries else []
        assert read == sorted(read)
        await ledger.close()


STEPS_COUNT = 130
"""More than a whole life has; `test_no_step_is_left_out` counts."""


@pytest.mark.parametrize("limit", range(STEPS_COUNT))
async def test_nothing_named_goes_and_nothing_unnamed_stays(limit: int) -> None:
    life = Life(limit)
    await life.run()
    await life.check()


async def test_no_step_is_left_out() -> None:
    life = Life(None)
    await life.run()

    assert 60 < life.steps_count <= STEPS_COUNT
    assert await life.check() == 0


async def test_crashes_leave_something_to_collect() -> None:
    collected_count = 0
    for limit in range(0, STEPS_COUNT, 3):
        life = Life(limit)
        await life.run()
        collected_count += await life.check()

    assert collected_count >= 5
