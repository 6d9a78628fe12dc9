from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.metadata.ledger_metadata import encode
from pulsar_py.bookkeeper.reading.reader import MAX_ENTRIES_AT_ONCE
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    LedgerNotFoundError,
    StoreUnavailableError,
)
from tests.unit.bookkeeper.scripted_cluster import (
    ScriptedCluster,
    filled,
    payload,
    with_cluster,
)


def test_a_read_asks_for_about_as_much_as_it_may_return() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 200)
        for bookie in cluster.bookies:
            bookie.asked.clear()
        assert len(await writer.read(0, 199, 1)) == 1
        assert sum(len(bookie.asked) for bookie in cluster.bookies) == 1
        assert len(await writer.read(0, 199, 10**9)) == MAX_ENTRIES_AT_ONCE
        read = await writer.read(0, 199, 100)
        assert list(read) == [payload(each) for each in range(len(read))]
        assert 1 < sum(map(len, read)) <= 100

    with_cluster(test)


def test_what_is_not_confirmed_is_not_asked_for() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 2)
        assert writer.read_cached(0, 1, 1000) is None
        with pytest.raises(EntryNotFoundError, match="the last one that is known to be is 1"):
            await writer.read(2, 5, 1000)
        with pytest.raises(EntryNotFoundError):
            await writer.read(-1, 1, 1000)
        assert len(await writer.read(1, 5, 1000)) == 1

    with_cluster(test)


def test_a_repaired_ledger_is_read_from_where_it_is_now() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        await writer.close()
        reader = await (await cluster.connect()).open(1)
        before = await cluster.ensemble(1)
        spares = cluster.others(before)
        for bookie, spare in zip(before, spares, strict=True):
            spare.entries[1] = bookie.entries.pop(1)
        record = await cluster.record(1)
        repaired = record.with_ensemble(0, [bookie.bookie_id for bookie in spares])
        await cluster.put_record(1, encode(repaired))
        assert list(await reader.read(0, 2, 1000)) == [payload(each) for each in range(3)]

    with_cluster(test, bookies_count=6)


def test_an_entry_that_is_gone_with_its_ledger_says_so() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        await writer.close()
        reader = await store.open(1)
        for bookie in cluster.bookies:
            bookie.entries.clear()
        with pytest.raises(CorruptDataError):
            await reader.read(0, 2, 1000)
        await store.delete(1)
        with pytest.raises(LedgerNotFoundError):
            await reader.read(0, 2, 1000)
        with pytest.raises(LedgerNotFoundError):
            await reader.read_last_add_confirmed()

    with_cluster(test)


def test_bookies_that_say_nothing_end_a_read_in_time() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        for bookie in cluster.bookies:
            bookie.is_mute = True
        began = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailableError):
            await writer.read(0, 2, 1000)
        with pytest.raises(StoreUnavailableError):
            await (await cluster.connect()).open(1)
        assert asyncio.get_running_loop().time() - began <= 61

    with_cluster(test)


def test_a_blip_is_not_told() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        other = await cluster.connect()
        for bookie in cluster.bookies:
            bookie.stop()
        calls = [
            asyncio.get_running_loop().create_task(writer.read(0, 2, 1000)),
            asyncio.get_running_loop().create_task(other.open(1)),
        ]
        await asyncio.sleep(1)
        for bookie in cluster.bookies:
            await bookie.start()
        read, reader = await asyncio.gather(*calls)
        assert list(read) == [payload(each) for each in range(3)]  # type: ignore[call-overload]
        assert not reader.is_closed  # type: ignore[union-attr]

    with_cluster(test)


def test_a_segment_that_begins_later_says_what_is_confirmed() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)  # sent before any was confirmed
        record = await cluster.record(1)
        changed = record.with_ensemble(3, record.last_segment.bookie_ids)
        await cluster.put_record(1, encode(changed))
        reader = await (await cluster.connect()).open(1)
        assert reader.last_add_confirmed == 2
        assert reader.length_bytes == writer.length_bytes

    with_cluster(test)
