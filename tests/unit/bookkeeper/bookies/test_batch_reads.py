from __future__ import annotations

import asyncio
from dataclasses import replace

from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from tests.unit.bookkeeper.scripted_cluster import SETTINGS, ScriptedCluster, with_cluster

BATCHED = replace(SETTINGS, batch_read_bytes=100_000)


def test_a_bookie_is_asked_once_on_a_connection_of_its_own() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        known = store._cluster.bookies.batch_reads
        new, old = cluster.bookies[:2]
        new.takes_batches = True
        for bookie in (new, old):
            assert not known.takes(bookie.bookie_id), "nobody knows so far"
            assert not known.takes(bookie.bookie_id)
        await asyncio.sleep(1)
        for _ in range(3):
            assert known.takes(new.bookie_id)
            assert not known.takes(old.bookie_id)
        await asyncio.sleep(1)
        assert [bookie.connects_count for bookie in (new, old)] == [1, 1]
        assert not store.figures()["connected_bookies"]

    with_cluster(test)


def test_a_bookie_that_was_lost_or_away_is_asked_anew() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        known = store._cluster.bookies.batch_reads
        bookie = cluster.bookies[0]
        bookie.stop()
        assert not known.takes(bookie.bookie_id)
        await asyncio.sleep(1)
        await bookie.start()
        bookie.takes_batches = True
        assert not known.takes(bookie.bookie_id)
        await asyncio.sleep(1)
        assert known.takes(bookie.bookie_id)
        known.forget(bookie.bookie_id)
        bookie.takes_batches = False
        assert not known.takes(bookie.bookie_id)
        await asyncio.sleep(1)
        assert not known.takes(bookie.bookie_id)

    with_cluster(test)


def test_a_silent_bookie_is_read_from_entry_by_entry() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        known = store._cluster.bookies.batch_reads
        bookie = cluster.bookies[0]
        bookie.takes_batches = bookie.is_mute = True
        assert not known.takes(bookie.bookie_id)
        await asyncio.sleep(60)
        assert not known.takes(bookie.bookie_id)

    with_cluster(test)
