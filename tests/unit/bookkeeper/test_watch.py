from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.metadata.ledger_paths import MAX_LEDGER_ID
from pulsar_py.bookkeeper.protocol.frames import BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.bookkeeper.watch import UNLISTED_SECONDS
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import ScriptedCluster, filled, payload, with_cluster


def questions(bookie: ScriptedBookie) -> int:
    return sum(
        each[0] == BookieOperation.READ and each[2] == MAX_LEDGER_ID for each in bookie.asked
    )


@pytest.mark.metric("pulsar_py_bookkeeper_ensemble_changes_total")
def test_an_idle_ledger_does_without_a_bookie_that_died() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        before = await cluster.ensemble(1)
        (spare,) = cluster.others(before)
        before[1].stop()
        await asyncio.sleep(3)
        assert await cluster.ensemble(1) == [before[0], spare, before[2]]
        assert not listener.failures
        writer.append(payload(3))
        await asyncio.sleep(0.1)
        assert listener.last == 3
        assert only(of_stores(store), "pulsar_py_bookkeeper_ensemble_changes_total") == 1

    with_cluster(test, bookies_count=4)


def test_an_idle_ledger_keeps_a_bookie_that_was_only_restarted() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 3)
        before = await cluster.ensemble(1)
        before[1].cut()
        await asyncio.sleep(UNLISTED_SECONDS + 5)
        assert await cluster.ensemble(1) == before
        assert questions(before[1]) == 1

    with_cluster(test, bookies_count=4)


def test_an_idle_ledger_does_without_a_bookie_that_is_not_registered_any_more() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 3)
        before = await cluster.ensemble(1)
        await cluster.unregister(before[0])
        await asyncio.sleep(UNLISTED_SECONDS - 1)
        assert await cluster.ensemble(1) == before
        await asyncio.sleep(2)
        assert before[0] not in await cluster.ensemble(1)

    with_cluster(test, bookies_count=4)


def test_a_bookie_that_only_serves_reads_or_has_no_stand_in_stays() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        _, listener = await filled(store, 3)
        before = await cluster.ensemble(1)
        await cluster.metadata.put(f"/ledgers/available/readonly/{before[0].bookie_id}", b"")
        await cluster.unregister(before[0])
        await asyncio.sleep(2 * UNLISTED_SECONDS)
        assert await cluster.ensemble(1) == before
        await cluster.unregister(before[1])
        await cluster.unregister(*cluster.others(before))
        await asyncio.sleep(2 * UNLISTED_SECONDS)
        assert await cluster.ensemble(1) == before
        assert not listener.failures

    with_cluster(test, bookies_count=4)


def test_failing_bookies_are_asked_less_and_less_often_for_all_ledgers_together() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        for _ in range(10):
            await filled(store, 1)
        bookie = cluster.bookies[0]
        bookie.cut()
        bookie.loses = lambda: True  # it accepts connections, and says nothing
        before = bookie.connects_count
        await asyncio.sleep(300)
        asked = questions(bookie)
        assert 300 / (8 + 5) - 2 <= asked <= 300 / 8 + 2, "each time 8 s pass without an answer"
        assert bookie.connects_count - before <= asked
        bookie.loses = lambda: False
        await asyncio.sleep(14)
        (figures,) = [each for each in store.bookies() if each.bookie_id == bookie.bookie_id]
        assert not figures.is_failing
        await asyncio.sleep(60)
        assert questions(bookie) <= asked + 1

    with_cluster(test, bookies_count=4)


def test_a_bookie_that_is_gone_for_good_is_asked_no_more_until_it_registers() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 1)
        bookie = cluster.bookies[0]
        await cluster.unregister(bookie)
        bookie.stop()
        await asyncio.sleep(100)
        await bookie.start()
        await asyncio.sleep(100)
        assert not questions(bookie)
        await cluster.register(bookie)
        await asyncio.sleep(1)
        assert questions(bookie) == 1

    with_cluster(test, bookies_count=4)
