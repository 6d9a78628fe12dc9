from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import StorageError, StoreUnavailableError
from tests.unit.bookkeeper.scripted_cluster import ScriptedCluster, filled, with_cluster


def test_who_opens_asks_all_and_goes_on_once_enough_have_answered() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        other = await cluster.connect()
        cluster.bookies[2].is_mute = True
        began = asyncio.get_running_loop().time()
        reader = await other.open(writer.ledger_id)
        assert asyncio.get_running_loop().time() - began < 1
        assert reader.last_add_confirmed == -1, "those three were sent before any was confirmed"
        asked = [(BookieOperation.READ, 0, 1, -1)]
        assert [bookie.asked[3:] for bookie in cluster.bookies] == [asked] * 3

    with_cluster(test)


def test_the_greatest_last_add_confirmed_counts() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        before = await cluster.ensemble(1)
        before[0].is_mute = True  # it never gets what follows
        before[0].entries[1] = dict(before[0].entries[1])
        writer.append(b"x")
        await asyncio.sleep(0.1)
        assert listener.last == 3
        before[0].is_mute = False
        reader = await (await cluster.connect()).open(1)
        assert reader.last_add_confirmed == 2

    with_cluster(test)


def test_too_few_answers_are_told_with_their_reasons() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 3)
        other = await cluster.connect()
        cluster.bookies[0].says = lambda _operation, _ledger, _entry: BookieCode.EIO
        cluster.bookies[1].entries[1][2] = b"damaged"
        with pytest.raises(StoreUnavailableError, match="too few") as refused:
            await other.open(1)
        assert "bookie:3181: EIO" in str(refused.value)
        assert "7 bytes, its head has 36" in str(refused.value)

    with_cluster(test)


def test_another_key_is_no_matter_of_time() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 3)
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: BookieCode.EUA
        with pytest.raises(StorageError, match="another key") as refused:
            await (await cluster.connect()).open(1)
        assert not isinstance(refused.value, StoreUnavailableError)

    with_cluster(test)
