"""The collector of left over ledgers on a cluster of bookies that others use too."""

from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from pulsar_py.bookkeeper.metadata.ledger_paths import ledger_path
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import MetadataUnavailableError, StoreUnavailableError
from pulsar_py.ledgers import labels
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.server.ledger_collector import LedgerCollector
from tests.unit.bookkeeper.scripted_cluster import (
    THREE,
    Listener,
    ScriptedCluster,
    with_cluster,
)

NAME = "public/default/persistent/topic"
FOREIGN = (
    {},
    {"application": b"pulsar", "component": b"managed-ledger"},  # Apache Pulsar's
    labels.managed_ledger("elsewhere", NAME),
    {"application": b"another", labels.CLUSTER: b"here"},
)


class World:
    def __init__(self, cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        self.cluster, self.store = cluster, store
        self.opener = ManagedLedgerOpener(
            store, cluster.metadata, cluster.clock, chance=random.Random(1)
        )

    def collector(self, *, deletes: bool | None) -> LedgerCollector:
        return LedgerCollector(
            self.store,
            [self.opener.named_ledgers],
            self.cluster.clock,
            cluster="here",
            minimum_age_seconds=100,
            deletes=deletes,
        )

    async def fill(self) -> tuple[set[int], int]:
        """A topic's ledger and others', which stay, and one left over; returns both."""
        topic = await self.opener.open(NAME, ManagedLedgerConfig(cluster="here"))
        await topic.append_and_wait(b"x")
        stay = {each async for page in self.store.list_ledgers() for each in page}
        for foreign in FOREIGN:
            options = replace(THREE, custom_metadata=foreign)
            stay.add((await self.store.create(Listener(), options)).ledger_id)
        options = replace(THREE, custom_metadata=labels.managed_ledger("here", NAME))
        return stay, (await self.store.create(Listener(), options)).ledger_id

    async def ledgers(self) -> set[int]:
        return {each async for page in self.store.list_ledgers() for each in page}


def test_what_is_left_over_is_reported_and_stays() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        stay, leaked = await world.fill()
        collector = world.collector(deletes=None)
        for _ in range(3):
            assert await collector.collect() == 0
            await asyncio.sleep(101)
        assert list(collector.reported) == [leaked]
        assert await world.ledgers() == {*stay, leaked}

    with_cluster(test)


def test_where_it_may_delete_only_ledgers_labelled_with_this_cluster_go() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        stay, leaked = await world.fill()
        collector = world.collector(deletes=True)
        assert await collector.collect() == 0
        await asyncio.sleep(101)
        assert await collector.collect() == 1
        assert await world.ledgers() == stay
        assert leaked not in stay

    with_cluster(test)


def test_a_listing_that_ends_early_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        stay, leaked = await world.fill()
        far_id = 2**31 + 5  # in another part of the tree than the rest
        await cluster.metadata.put(ledger_path("/ledgers", far_id), b"x")
        collector = world.collector(deletes=True)
        await collector.collect()
        await asyncio.sleep(101)
        metadata = store._cluster.records._metadata
        children = metadata.children

        async def failing(path: str) -> list[str]:
            if path.startswith("/ledgers/000"):
                raise MetadataUnavailableError("not now")
            return await children(path)

        monkeypatch.setattr(metadata, "children", failing)
        with pytest.raises(StoreUnavailableError, match="/ledgers/000"):
            await collector.collect()
        monkeypatch.setattr(metadata, "children", children)
        assert await world.ledgers() == {*stay, leaked, far_id}

    with_cluster(test)
