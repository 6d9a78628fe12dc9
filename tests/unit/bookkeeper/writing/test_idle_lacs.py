from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    ScriptedCluster,
    filled,
    payload,
    with_cluster,
)

TELLING = replace(SETTINGS, explicit_lac_interval_seconds=1.0)


def requests_count(cluster: ScriptedCluster) -> int:
    return sum(bookie.lac_requests_count for bookie in cluster.bookies)


def test_whoever_reads_an_idle_open_ledger_sees_its_last_entry() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store, other = [await cluster.connect(settings=TELLING) for _ in range(2)]
        await filled(store, 9)
        before = await other.open(1)
        assert before.last_add_confirmed < 8, "no entry behind it says so"
        await asyncio.sleep(2.5)
        reader = await other.open(1)
        assert reader.last_add_confirmed == 8
        assert reader.length_bytes == sum(len(payload(each)) for each in range(9))
        assert await before.read_last_add_confirmed() == 8
        assert list(await reader.read(8, 8, 1000)) == [payload(8)]

    with_cluster(test)


def test_it_is_told_once_and_only_while_nothing_follows() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=TELLING)
        writer, listener = await filled(store, 1)
        for entry_id in range(1, 20):  # one every half interval
            await asyncio.sleep(0.5)
            writer.append(payload(entry_id))
        assert requests_count(cluster) == 0
        await asyncio.sleep(10)
        assert listener.last == 19
        assert requests_count(cluster) == 3, "once to each bookie of its write set"
        await writer.close()
        await asyncio.sleep(10)
        assert requests_count(cluster) == 3

    with_cluster(test)


@pytest.mark.metric("pulsar_py_bookkeeper_explicit_lac_failures_total")
def test_what_too_few_bookies_took_is_told_again() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=TELLING)
        await filled(store, 3)
        ensemble = await cluster.ensemble(1)
        for bookie in ensemble[:2]:
            bookie.is_mute = True
        await asyncio.sleep(3)
        for bookie in ensemble[:2]:
            bookie.is_mute = False
        await asyncio.sleep(20)
        assert all(bookie.explicit_lacs for bookie in ensemble)
        assert only(of_stores(store), "pulsar_py_bookkeeper_explicit_lac_failures_total") == 2

    with_cluster(test)


def test_nobody_is_told_or_asked_unless_it_is_switched_on() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 3)
        await asyncio.sleep(100)
        await store.open(1)
        assert requests_count(cluster) == 0

    with_cluster(test)
