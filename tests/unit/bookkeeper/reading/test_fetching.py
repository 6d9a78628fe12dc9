from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.cluster.settings import BookKeeperSettings
from pulsar_py.bookkeeper.protocol.entry_format import HEAD_BYTES
from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import CorruptDataError, StoreUnavailableError
from pulsar_py.ledgers.store import LedgerOptions
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    ScriptedCluster,
    filled,
    payload,
    with_cluster,
)


def forget_questions(cluster: ScriptedCluster) -> None:
    for bookie in cluster.bookies:
        bookie.asked.clear()


def test_a_reader_stays_with_one_bookie_as_long_as_that_gives_its_entries() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 9)
        await writer.close()
        reader = await store.open(1)
        forget_questions(cluster)
        for first in (0, 4, 8):
            await reader.read(first, 8, 1000)
        asked = {bookie: len(bookie.asked) for bookie in cluster.bookies if bookie.asked}
        assert list(asked.values()) == [9 + 5 + 1]
        (sticky,) = asked
        sticky.says = lambda _operation, _ledger, _entry: BookieCode.EIO
        assert list(await reader.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        forget_questions(cluster)
        await reader.read(0, 8, 1000)
        assert not sticky.asked
        assert sum(bool(bookie.asked) for bookie in cluster.bookies) == 1

    with_cluster(test)


def test_entries_that_do_not_lie_on_all_bookies_are_asked_of_those_that_have_them() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 9, LedgerOptions(3, 2, 2))
        forget_questions(cluster)
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        assert [len(bookie.asked) for bookie in cluster.bookies] == [3, 3, 3]

    with_cluster(test)


@pytest.mark.metric("pulsar_py_bookkeeper_speculative_reads_total")
def test_the_next_bookie_is_asked_too_when_an_answer_takes_long() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        settings = replace(SETTINGS, speculative_read_timeout_seconds=0.2)
        store = await cluster.connect(settings=settings)
        writer, _listener = await filled(store, 3)
        forget_questions(cluster)
        await writer.read(0, 2, 1000)
        slow = next(bookie for bookie in cluster.bookies if bookie.asked)
        slow.delay_seconds = 3.0
        began = asyncio.get_running_loop().time()
        assert list(await writer.read(0, 2, 1000)) == [payload(each) for each in range(3)]
        assert asyncio.get_running_loop().time() - began < 0.3
        assert only(of_stores(store), "pulsar_py_bookkeeper_speculative_reads_total") == 3
        others = [bookie for bookie in cluster.bookies if bookie is not slow]
        for bookie in others:
            bookie.says = lambda _operation, _ledger, _entry: BookieCode.ENOENTRY
        assert list(await writer.read(0, 2, 1000)) == [payload(each) for each in range(3)]
        assert asyncio.get_running_loop().time() - began > 3, "the first one still counts"

    with_cluster(test)


def test_without_speculative_reads_one_bookie_is_waited_for() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        for bookie in cluster.bookies:
            bookie.delay_seconds = 3.0
        forget_questions(cluster)
        await writer.read(0, 2, 1000)
        assert sum(len(bookie.asked) for bookie in cluster.bookies) == 3

    with_cluster(test)


def test_entries_are_asked_for_together_and_of_one_bookie_each() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=replace(SETTINGS, has_sticky_reads=False))
        writer, _listener = await filled(store, 9)
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


BATCHED = replace(SETTINGS, batch_read_bytes=100_000)


async def with_batches(
    cluster: ScriptedCluster, settings: BookKeeperSettings = BATCHED
) -> BookKeeperLedgerStore:
    """A store that knows that all bookies take batches."""
    for bookie in cluster.bookies:
        bookie.takes_batches = True
    store = await cluster.connect(settings=settings)
    for bookie in cluster.bookies:
        store._cluster.bookies.batch_reads.takes(bookie.bookie_id)
    await asyncio.sleep(0.1)
    return store


def asked(cluster: ScriptedCluster) -> list[tuple[int, int]]:
    """Operations and entries that bookies were asked for, in their order."""
    return [
        (operation, entry_id)
        for bookie in cluster.bookies
        for operation, _, _, entry_id in bookie.asked
    ]


def asked_for_batch(cluster: ScriptedCluster) -> ScriptedBookie:
    question = BookieOperation.BATCH_READ, 0, 1, 0
    (bookie,) = [each for each in cluster.bookies if question in each.asked]
    return bookie


def test_a_run_is_one_request_to_a_bookie_that_takes_batches() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await with_batches(cluster)
        writer, _listener = await filled(store, 9)
        forget_questions(cluster)
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        assert asked(cluster) == [(BookieOperation.BATCH_READ, 0)]
        forget_questions(cluster)
        assert list(await writer.read(4, 4, 1000)) == [payload(4)]
        assert asked(cluster) == [(BookieOperation.READ, 4)], "one entry is no batch"

    with_cluster(test)


def test_a_batch_that_ended_at_its_size_is_followed_by_another_one() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        of_three = 36 + 3 * (4 + HEAD_BYTES + 4 + max(len(payload(each)) for each in range(8)))
        store = await with_batches(cluster, replace(BATCHED, batch_read_bytes=of_three))
        writer, _listener = await filled(store, 8)
        forget_questions(cluster)
        assert list(await writer.read(0, 7, 1000)) == [payload(each) for each in range(8)]
        operations, firsts = zip(*asked(cluster), strict=True)
        assert set(operations) == {BookieOperation.BATCH_READ}
        assert firsts[:2] == (0, 3)
        assert len(firsts) == 3

    with_cluster(test)


def test_entries_that_do_not_lie_on_all_bookies_are_asked_for_one_by_one() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await with_batches(cluster)
        writer, _listener = await filled(store, 9, LedgerOptions(3, 2, 2))
        forget_questions(cluster)
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        assert sorted(asked(cluster)) == [(BookieOperation.READ, each) for each in range(9)]

    with_cluster(test)


def test_what_a_batch_lacks_is_found_elsewhere() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await with_batches(cluster)
        writer, _listener = await filled(store, 9)
        await writer.read(0, 8, 1000)
        asked_one = asked_for_batch(cluster)
        for missing in (0, 4, 8):
            del asked_one.entries[1][missing]
        damaged = bytearray(asked_one.entries[1][6])
        damaged[-1] ^= 1
        asked_one.entries[1][6] = bytes(damaged)
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]

    with_cluster(test)


@pytest.mark.parametrize(
    "code", [BookieCode.EIO, BookieCode.ENOLEDGER, BookieCode.EOK, BookieCode.ETOOMANYREQUESTS]
)
def test_a_bookie_that_fails_a_batch_is_done_without(code: BookieCode) -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await with_batches(cluster)
        writer, _listener = await filled(store, 9)
        await writer.read(0, 8, 1000)
        sticky = asked_for_batch(cluster)
        sticky.says = lambda _operation, _ledger, _entry: code
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]

    with_cluster(test)


def test_a_batch_that_nobody_has_is_told_as_what_it_is() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await with_batches(cluster)
        writer, _listener = await filled(store, 3)
        for bookie in cluster.bookies:
            bookie.entries.get(1, {}).pop(0, None)
        with pytest.raises(CorruptDataError, match=r"entry 0: .* said ENOENTRY"):
            await writer.read(0, 2, 1000)
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: BookieCode.EIO
        with pytest.raises(StoreUnavailableError, match="said EIO"):
            await writer.read(0, 2, 1000)

    with_cluster(test)
