"""Recovery by tables: what each bookie of three has, and where the ledger ends then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, LedgerStatus, encode
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.bookkeeper.protocol.entry_format import packed_head
from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import LedgerFencedError, StorageError, StoreUnavailableError
from pulsar_py.ledgers.store import DigestType, LedgerOptions
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_cluster import (
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    length_of,
    payload,
    with_cluster,
)

LEDGER = 7
CRC32C = EntryDigest(DigestType.CRC32C, b"")
Says = Callable[[int, int, int], int | None]


def stored(entry_id: int, last_add_confirmed: int) -> bytes:
    head = packed_head(
        CRC32C, ledger_id=LEDGER, entry_id=entry_id, last_add_confirmed=last_add_confirmed,
        length_bytes=length_of(entry_id + 1), pieces=(payload(entry_id),),
    )  # fmt: skip
    return head + payload(entry_id)


async def an_open_ledger(
    cluster: ScriptedCluster, has: tuple[str, ...], options: LedgerOptions = THREE
) -> LedgerMetadata:
    """One on the first bookies, which have these entries; `5@3` bears 3 as last add confirmed."""
    ids = [each.bookie_id for each in cluster.bookies[: options.ensemble_size]]
    metadata = LedgerMetadata.new(options, ids)
    await cluster.put_record(LEDGER, encode(metadata))
    for bookie, entries in zip(cluster.bookies, has, strict=False):
        for word in entries.split():
            entry, _, confirmed = word.partition("@")
            last = int(confirmed) if confirmed else int(entry) - 1
            bookie.entries.setdefault(LEDGER, {})[int(entry)] = stored(int(entry), last)
    return metadata


def says(code: int) -> Says:
    return lambda _operation, _ledger, _entry: code


@dataclass(frozen=True)
class Case:
    name: str
    has: tuple[str, ...]
    end: int | None
    """None: it is not known."""
    down: tuple[int, ...] = ()
    codes: tuple[tuple[int, int], ...] = ()
    """By place: what that bookie says to everything."""
    options: LedgerOptions = THREE


E3W2 = structs.replace(THREE, write_quorum_size=2)
TWO = LedgerOptions(ensemble_size=2, write_quorum_size=2, ack_quorum_size=2)

CASES = [
    Case("nobody ever saw it", ("", "", ""), -1),
    Case("all have all", ("0 1 2 3",) * 3, 3),
    Case("the writer knew no confirmation", ("0@-1 1@-1 2@-1",) * 3, 2),
    Case("the last on two", ("0 1", "0 1 2", "0 1 2"), 2),
    Case("the last on the first of its write set alone", ("0 1", "0 1", "0 1 2"), 2),
    Case("on the last of its write set alone, which told it", ("0 1", "0 1 2", "0 1"), 2),
    Case("told, but behind one that was not confirmed", ("0 1 2@0", "0", "0"), 0),
    Case("0 to 3 on three, 4 on two, 5 on one", ("0 1 2 3", "0 1 2 3 4", "0 1 2 3 4 5@3"), 5),
    Case("a gap ends it", ("0 1 3@1", "0 1 3@1", "0 1 3@1"), 1),
    Case("a gap before what is confirmed is not looked at", ("3@2",) * 3, 3),
    Case("one is down", ("0 1 2", "0 1 2", "0 1 2"), 2, down=(0,)),
    Case("one is down and one missed the last", ("0 1 2", "0 1", "0 1 2"), 2, down=(0,)),
    Case("one is down and nobody else has the last", ("0 1 2", "0 1", "0 1"), 1, down=(0,)),
    Case("two are down", ("0 1 2",) * 3, None, down=(0, 1)),
    Case(
        "one does not know its state, the others are enough",
        ("", "0 1", "0 1"), 1, codes=((0, BookieCode.EUNKNOWNLEDGERSTATE),),
    ),
    Case(
        "two do not know their state",
        ("", "", "0 1"), None, codes=((0, BookieCode.EUNKNOWNLEDGERSTATE), (1, BookieCode.EIO)),
    ),
    Case("copied entries know more than themselves", ("0@5 1@5 5@4", "0 1 5@4", "5@4"), 5),
    Case("two of two, one is down, the other has not", ("", "0"), 0, down=(0,), options=TWO),
    Case("two of two, none is down, on one alone", ("0", ""), 0, options=TWO),
    Case("two of two, the first asked has not", ("", "0"), -1, options=TWO),
    Case("round-robin over three", ("0 2 3", "0 1 3", "1 2"), 3, options=E3W2),
    Case("round-robin, one is down", ("0 2 3", "0 1 3", "1 2"), 3, down=(2,), options=E3W2),
    Case("round-robin, two are down", ("0 2", "0 1", "1 2"), None, down=(1, 2), options=E3W2),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_where_a_ledger_ends(case: Case) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = await an_open_ledger(cluster, case.has, case.options)
        for index in case.down:
            cluster.bookies[index].stop()
        for index, code in case.codes:
            cluster.bookies[index].says = says(code)
        if case.end is None:
            with pytest.raises(StoreUnavailableError):
                await store.recover(LEDGER)
            assert await cluster.record(LEDGER) == metadata.in_recovery()
            return

        reader = await store.recover(LEDGER)

        length = length_of(case.end + 1)
        assert reader.is_closed
        assert (reader.last_add_confirmed, reader.length_bytes) == (case.end, length)
        record = await cluster.record(LEDGER)
        assert (record.status, record.last_entry_id) == (LedgerStatus.CLOSED, case.end)
        assert record.length_bytes == length
        again = await (await cluster.connect()).recover(LEDGER)
        assert again.last_add_confirmed == case.end
        if case.end >= 0:
            assert list(await again.read(case.end, case.end, 10)) == [payload(case.end)]
        working = [
            cluster.bookie(each)
            for each in record.last_segment.bookie_ids
            if cluster.bookie(each) not in [cluster.bookies[index] for index in case.down]
            and not case.codes
        ]
        for bookie in working:
            if bookie in cluster.bookies[: case.options.ensemble_size]:
                assert LEDGER in bookie.fenced

    with_cluster(test, bookies_count=5)
    if not case.codes:
        # Without others to take the places of those that are down an ack quorum is enough.
        alone = len(case.down) <= case.options.write_quorum_size - case.options.ack_quorum_size
        if alone:
            with_cluster(test, bookies_count=case.options.ensemble_size)


@pytest.mark.metric(
    "pulsar_py_bookkeeper_failed_recoveries_total", "pulsar_py_bookkeeper_recoveries_total"
)
def test_without_an_ack_quorum_nothing_found_is_confirmed() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = await an_open_ledger(cluster, ("0", "0"), TWO)
        cluster.bookies[1].stop()
        with pytest.raises(StoreUnavailableError, match="too few of its bookies"):
            await store.recover(LEDGER)
        assert await cluster.record(LEDGER) == metadata.in_recovery()
        assert only(of_stores(store), "pulsar_py_bookkeeper_failed_recoveries_total") == 4, (
            "each attempt"
        )
        await cluster.bookies[1].start()
        await store.recover(LEDGER)
        assert only(of_stores(store), "pulsar_py_bookkeeper_recoveries_total") == 1

    with_cluster(test, bookies_count=2)


def test_what_was_found_is_added_again_to_its_whole_write_set_before_the_end() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0 1", "0 1", "0 1 2"))
        await store.recover(LEDGER)
        for bookie in cluster.bookies[:3]:
            flags = {(each[0], each[3]): each[1] for each in bookie.asked}
            assert flags[BookieOperation.READ, -1] == frames.FENCE_AND_READ
            assert flags[BookieOperation.ADD, 2] == frames.RECOVERY_ADD
            assert 2 in bookie.entries[LEDGER]
            assert (BookieOperation.ADD, 0) not in flags, "it is known to be confirmed"

    with_cluster(test)


def test_what_a_bookie_told_with_the_fence_is_not_read_once_more() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0 1 2",) * 3)
        reader = await store.recover(LEDGER)
        assert reader.last_add_confirmed == 2
        asked = [
            (entry_id, flags)
            for bookie in cluster.bookies[:3]
            for operation, flags, _, entry_id in bookie.asked
            if operation == BookieOperation.READ
        ]
        assert sorted(asked) == [
            *[(-1, frames.FENCE_AND_READ)] * 3,
            *[(3, frames.RECOVERY_READ)] * 2,
        ], "nobody is asked for 2"

    with_cluster(test)


def test_a_bookie_that_missed_the_fence_is_fenced_by_the_first_read() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0 1 2",) * 3)
        late = cluster.bookies[0]
        late.says = lambda operation, _ledger, entry: (
            BookieCode.EIO if operation == BookieOperation.READ and entry == -1 else None
        )
        await store.recover(LEDGER)
        assert LEDGER in late.fenced

    with_cluster(test)


def test_a_damaged_replica_is_neither_there_nor_absent() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0 1 2", "0 1", "0 1"))
        # Of entry 2 the write set is 2, 0, 1: one absent, one damaged, one absent.
        cluster.bookies[0].entries[LEDGER][2] = bytes(40)
        reader = await store.recover(LEDGER)
        assert reader.last_add_confirmed == 1

        await an_open_ledger(cluster, ("0 1 2", "0 1 2", "0 1"))
        for bookie in cluster.bookies[:2]:
            bookie.entries[LEDGER][2] = bytes(40)
        with pytest.raises(StoreUnavailableError):
            await store.recover(LEDGER)

    with_cluster(test)


def test_a_recovery_that_could_not_end_is_repeated() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0 1 2",) * 3)
        for bookie in cluster.bookies[:2]:
            bookie.says = says(BookieCode.EIO)
        with pytest.raises(StoreUnavailableError, match="too few bookies answered"):
            await store.recover(LEDGER)
        for bookie in cluster.bookies[:2]:
            bookie.says = lambda _operation, _ledger, _entry: None
        assert (await store.recover(LEDGER)).last_add_confirmed == 2

    with_cluster(test)


def test_frozen_bookies_end_it_in_time_and_are_asked_last() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0@-1 1@-1 2@-1 3@-1",) * 3)
        cluster.bookies[0].is_mute = True
        began = asyncio.get_running_loop().time()
        reader = await store.recover(LEDGER)
        assert reader.last_add_confirmed == 3
        assert asyncio.get_running_loop().time() - began <= 25

    with_cluster(test, bookies_count=4)


def test_other_bookies_are_recorded_with_the_end_and_not_before() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = await an_open_ledger(cluster, ("0 1 2@0",) * 3)
        full = cluster.bookies[1]
        full.says = lambda operation, _ledger, _entry: (
            BookieCode.EREADONLY if operation == BookieOperation.ADD else None
        )
        spare = cluster.bookies[3]
        spare.is_holding = True
        cluster.bookies[0].is_holding = False
        recovering = asyncio.get_running_loop().create_task(store.recover(LEDGER))
        await asyncio.sleep(1)
        if not recovering.done():
            assert (await cluster.record(LEDGER)).segments == metadata.segments
        spare.release()
        await recovering
        record = await cluster.record(LEDGER)
        assert len(record.segments) == 2
        assert record.last_segment.first_entry_id in (1, 2)
        assert record.last_segment.bookie_ids[1] == spare.bookie_id
        assert set(range(record.last_segment.first_entry_id, 3)) <= set(spare.entries[LEDGER])

    with_cluster(test, bookies_count=4)


def test_the_end_of_a_faster_recovery_is_taken() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = await an_open_ledger(cluster, ("0 1 2",) * 3)
        for bookie in cluster.bookies:
            bookie.is_holding = True
        recovering = asyncio.get_running_loop().create_task(store.recover(LEDGER))
        await asyncio.sleep(0.1)
        await cluster.put_record(LEDGER, encode(metadata.closed(1, length_of(2))))
        while not recovering.done():
            for bookie in cluster.bookies:
                bookie.release()
            await asyncio.sleep(0.01)
        reader = await recovering
        assert (reader.last_add_confirmed, reader.length_bytes) == (1, length_of(2))
        assert (await cluster.record(LEDGER)).last_entry_id == 1

    with_cluster(test)


def test_the_end_is_written_on_top_of_a_repair_that_came_between() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = await an_open_ledger(cluster, ("0 1 2",) * 3)
        for bookie in cluster.bookies:
            bookie.is_holding = True
        recovering = asyncio.get_running_loop().create_task(store.recover(LEDGER))
        await asyncio.sleep(0.1)
        repaired = replace(metadata.in_recovery(), custom_metadata={"by": b"repair"})
        await cluster.put_record(LEDGER, encode(repaired))
        while not recovering.done():
            for bookie in cluster.bookies:
                bookie.release()
            await asyncio.sleep(0.01)
        assert await cluster.record(LEDGER) == repaired.closed(2, length_of(3))

    with_cluster(test)


def test_a_key_that_is_another_one_ends_it() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await an_open_ledger(cluster, ("0", "0", "0"))
        cluster.bookies[0].says = says(BookieCode.EUA)
        with pytest.raises(StorageError, match="another key"):
            await store.recover(LEDGER)

    with_cluster(test)


def test_recovery_takes_the_ledger_from_its_writer_with_all_that_was_confirmed() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 50)
        other = await cluster.connect()
        for entry_id in range(50, 60):
            writer.append(payload(entry_id))
        reader = await other.recover(writer.ledger_id)
        await asyncio.sleep(0.1)
        assert listener.last <= reader.last_add_confirmed <= 59
        if not listener.failures:
            writer.append(b"late")
            await asyncio.sleep(0.1)
        with pytest.raises(LedgerFencedError):
            writer.append(b"refused")
        assert listener.last <= reader.last_add_confirmed

    with_cluster(test)


def test_a_writer_that_nobody_told_is_stopped_by_the_bookies() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        writer.append(payload(0))
        await asyncio.sleep(0.1)
        for bookie in cluster.bookies[:2]:
            bookie.fenced[writer.ledger_id] = None
        writer.append(payload(1))
        await asyncio.sleep(0.1)
        assert listener.last == 0

    with_cluster(test)
