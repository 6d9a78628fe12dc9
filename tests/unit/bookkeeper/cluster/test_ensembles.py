from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.bookies.health import STEADY_SECONDS
from pulsar_py.bookkeeper.cluster.ensembles import TRY_SECONDS
from pulsar_py.bookkeeper.placement.placement import PlacementSettings
from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import NotEnoughBookiesError
from pulsar_py.ledgers.labels import bookie_affinity
from pulsar_py.ledgers.store import LedgerOptions
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    with_cluster,
)


async def sizes_of_a_new_one(
    cluster: ScriptedCluster, store: BookKeeperLedgerStore, policy: LedgerOptions = THREE
) -> tuple[int, int, int]:
    writer = await store.create(Listener(), policy)
    record = await cluster.record(writer.ledger_id)
    ids = record.last_segment.bookie_ids
    assert len(set(ids)) == record.ensemble_size
    return record.ensemble_size, record.write_quorum_size, record.ack_quorum_size


@pytest.mark.metric(
    "pulsar_py_bookkeeper_reduced_ensembles_total", "pulsar_py_bookkeeper_open_ledgers_below_policy"
)
def test_a_ledger_is_made_for_the_bookies_that_are_there_and_says_so() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await cluster.unregister(cluster.bookies[0])
        assert await sizes_of_a_new_one(cluster, store) == (2, 2, 2)
        assert only(of_stores(store), "pulsar_py_bookkeeper_reduced_ensembles_total") == 1
        assert only(of_stores(store), "pulsar_py_bookkeeper_open_ledgers_below_policy") == 1

    with_cluster(test)


def test_the_policy_is_kept_again_once_enough_bookies_are_steady() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await cluster.unregister(cluster.bookies[0])
        assert await sizes_of_a_new_one(cluster, store) == (2, 2, 2)
        await cluster.register(cluster.bookies[0])
        await asyncio.sleep(STEADY_SECONDS - 1)
        assert await sizes_of_a_new_one(cluster, store) == (2, 2, 2)
        await asyncio.sleep(1.1)
        assert await sizes_of_a_new_one(cluster, store) == (3, 3, 2)
        assert only(of_stores(store), "pulsar_py_bookkeeper_reduced_ensembles_total") == 2

    with_cluster(test)


def test_until_then_those_are_taken_that_have_been_there_for_long() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        comes_and_goes = cluster.bookies[0]
        await cluster.unregister(comes_and_goes)
        await sizes_of_a_new_one(cluster, store)
        await cluster.register(comes_and_goes)
        for _ in range(10):
            writer = await store.create(Listener(), THREE)
            assert comes_and_goes not in await cluster.ensemble(writer.ledger_id)

    with_cluster(test)


def test_a_rack_map_that_allows_a_ledger_ends_its_waiting() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        placement = PlacementSettings(enforces_min_racks=True)
        store = await cluster.connect(settings=replace(SETTINGS, placement=placement))
        waiting = asyncio.get_running_loop().create_task(sizes_of_a_new_one(cluster, store))
        await asyncio.sleep(1)
        assert not waiting.done()
        racks = {
            bookie.bookie_id: {"rack": f"/r{number}"}
            for number, bookie in enumerate(cluster.bookies)
        }
        await cluster.metadata.put("/bookies", json.dumps({"default": racks}).encode())
        assert await waiting == (3, 3, 2)

    with_cluster(test)


def test_a_bookie_that_fails_is_not_there_although_it_is_registered() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 1)
        cluster.bookies[1].stop()
        await asyncio.sleep(0.1)
        assert await sizes_of_a_new_one(cluster, store) == (2, 2, 2)

    with_cluster(test)


@pytest.mark.metric("pulsar_py_bookkeeper_waiting_ledgers")
def test_with_fewer_than_the_ack_quorum_a_ledger_waits_for_bookies() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        for bookie in cluster.bookies[:2]:
            await cluster.unregister(bookie)
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(sizes_of_a_new_one(cluster, store)) for _ in range(3)]
        await asyncio.sleep(10)
        assert not any(task.done() for task in waiting)
        assert only(of_stores(store), "pulsar_py_bookkeeper_waiting_ledgers") == 3
        began = loop.time()
        await cluster.register(cluster.bookies[0])
        assert await asyncio.gather(*waiting) == [(2, 2, 2)] * 3
        assert loop.time() - began < 0.1
        assert only(of_stores(store), "pulsar_py_bookkeeper_waiting_ledgers") == 0

    with_cluster(test)


def test_who_waits_too_long_is_told_what_is_missing() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        for bookie in cluster.bookies[:2]:
            await cluster.unregister(bookie)
        began = asyncio.get_running_loop().time()
        with pytest.raises(NotEnoughBookiesError, match="2 bookies are needed at least, 1 can be"):
            await store.create(Listener(), THREE)
        assert asyncio.get_running_loop().time() - began == pytest.approx(30)
        assert [page async for page in store.list_ledgers()] == []

    with_cluster(test)


def test_a_ledger_bound_to_groups_stays_there_when_a_bookie_is_replaced() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        ids = [bookie.bookie_id for bookie in cluster.bookies]
        await cluster.metadata.put(
            "/bookies",
            json.dumps({"mine": dict.fromkeys(ids[:3]), "others": dict.fromkeys(ids[3:])}).encode(),
        )
        policy = LedgerOptions(2, 2, 2, custom_metadata=bookie_affinity(["mine"]))
        writer, listener = await filled(store, 2, policy)
        record = await cluster.record(writer.ledger_id)
        assert set(record.last_segment.bookie_ids) < set(ids[:3])
        cluster.bookie(record.last_segment.bookie_ids[0]).stop()
        writer.append(b"x")
        await asyncio.sleep(1)
        assert listener.last == 2
        record = await cluster.record(writer.ledger_id)
        assert set(record.last_segment.bookie_ids) < set(ids[:3])

    with_cluster(test, bookies_count=6)


def test_racks_are_spread_over() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        racks = {
            bookie.bookie_id: {"rack": f"/r{number % 2}"}
            for number, bookie in enumerate(cluster.bookies)
        }
        await cluster.metadata.put("/bookies", json.dumps({"default": racks}).encode())
        for _ in range(10):
            writer = await store.create(Listener(), LedgerOptions(2, 2, 2))
            ids = (await cluster.record(writer.ledger_id)).last_segment.bookie_ids
            assert {racks[each]["rack"] for each in ids} == {"/r0", "/r1"}

    with_cluster(test, bookies_count=6)


def test_quarantined_bookies_are_taken_where_there_are_no_others() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 1, LedgerOptions(4, 4, 2))
        bad = cluster.bookies[0]
        for _ in range(5):
            bad.cut()
            await asyncio.sleep(6)
        (figures,) = [each for each in store.bookies() if each.bookie_id == bad.bookie_id]
        assert figures.is_quarantined
        for _ in range(10):
            writer = await store.create(Listener(), THREE)
            assert bad not in await cluster.ensemble(writer.ledger_id)
        assert await sizes_of_a_new_one(cluster, store, LedgerOptions(4, 2, 2)) == (4, 2, 2)

    with_cluster(test, bookies_count=4)


def test_bookies_that_store_nothing_are_tried_with_one_ledger_at_a_time() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        def fails_adds(operation: int, _ledger: int, _entry: int) -> int | None:
            return BookieCode.EIO if operation == BookieOperation.ADD else None

        confirmed: list[int] = []

        async def write(number: int) -> None:
            """As a topic does: one ledger after the other until an entry is stored."""
            while number not in confirmed:
                listener = Listener()
                try:
                    writer = await store.create(listener, THREE)
                except NotEnoughBookiesError:
                    continue
                writer.append(b"x")
                while not (listener.failures or listener.confirmed):  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)
                confirmed.extend([number] * len(listener.confirmed))
                await writer.close()

        for bookie in cluster.bookies:
            bookie.says = fails_adds
        writing = [asyncio.get_running_loop().create_task(write(each)) for each in range(20)]
        await asyncio.sleep(30)
        begun = cluster.ids.last
        await asyncio.sleep(100)
        assert 100 / TRY_SECONDS / 3 < cluster.ids.last - begun <= 100 / TRY_SECONDS + 1
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: None
        await asyncio.sleep(2 * TRY_SECONDS + 1)
        assert sorted(confirmed) == list(range(20))
        await asyncio.gather(*writing)

    with_cluster(test)
