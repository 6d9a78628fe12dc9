from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.frames import BookieCode
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import CorruptDataError, StoreUnavailableError
from tests.unit.bookkeeper.scripted_cluster import (
    ScriptedCluster,
    filled,
    payload,
    with_cluster,
)


def test_entries_are_asked_for_together_and_of_one_bookie_each() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 9)
        for bookie in cluster.bookies:
            bookie.asked.clear()
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        assert [len(bookie.asked) for bookie in cluster.bookies] == [3, 3, 3]

    with_cluster(test)


@pytest.mark.parametrize("code", [BookieCode.ENOENTRY, BookieCode.EIO, BookieCode.ENOLEDGER])
def test_another_bookie_is_asked_where_one_can_not_give_it(code: BookieCode) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        for bookie in cluster.bookies[:2]:
            bookie.says = lambda _operation, _ledger, _entry: code
        assert list(await writer.read(0, 2, 1000)) == [payload(each) for each in range(3)]

    with_cluster(test)


def test_a_damaged_replica_is_as_good_as_none() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        for bookie in cluster.bookies[:2]:
            for entry_id, stored in bookie.entries[1].items():
                bookie.entries[1][entry_id] = stored[:-1] + b"?"
        assert list(await writer.read(0, 2, 1000)) == [payload(each) for each in range(3)]
        for entry_id in range(3):
            cluster.bookies[2].entries[1][entry_id] = b"?"
        with pytest.raises(CorruptDataError, match=r"entry 1: .*damaged.*damaged.*damaged"):
            await writer.read(1, 2, 1000)

    with_cluster(test)


def test_an_entry_that_may_be_there_is_unavailable_and_one_that_nobody_has_is_lost() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: BookieCode.ENOENTRY
        with pytest.raises(CorruptDataError, match="said ENOENTRY"):
            await writer.read(0, 2, 1000)
        cluster.bookies[0].says = lambda _operation, _ledger, _entry: BookieCode.EUNKNOWNLEDGERSTATE
        with pytest.raises(StoreUnavailableError, match="EUNKNOWNLEDGERSTATE"):
            await writer.read(0, 2, 1000)

    with_cluster(test)


def test_what_is_read_ends_before_the_first_entry_that_can_not_be() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 5)
        for bookie in cluster.bookies:
            del bookie.entries[1][3]
        assert list(await writer.read(1, 4, 1000)) == [payload(1), payload(2)]
        assert list(await writer.read(4, 4, 1000)) == [payload(4)]

    with_cluster(test)


def test_a_failing_bookie_is_asked_last() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 6)
        cluster.bookies[0].cut()
        await asyncio.sleep(0.1)
        cluster.bookies[0].asked.clear()
        await writer.read(0, 5, 1000)
        assert not cluster.bookies[0].asked

    with_cluster(test)
