from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerStatus, encode
from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.bookkeeper.protocol.entry_format import unpacked
from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.bookkeeper.writing.sent_entries import JOINED_BYTES
from pulsar_py.common.errors import (
    LedgerClosedError,
    LedgerFencedError,
    StorageError,
    StoreBusyError,
)
from pulsar_py.ledgers.store import DigestType
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    length_of,
    payload,
    with_cluster,
)


def test_an_append_is_confirmed_by_two_of_three_and_held_until_the_third_answers() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        slow = cluster.bookies[1]
        slow.is_holding = True
        writer.append(b"x" * 1000)
        await asyncio.sleep(0.1)
        assert listener.confirmed == [0]
        assert store.figures()["pinned_bytes"] > 1000
        slow.release()
        await asyncio.sleep(0.1)
        assert store.figures()["pinned_bytes"] == 0
        assert listener.confirmed == [0]

    with_cluster(test)


def test_entries_bear_the_last_add_confirmed_and_the_length() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 3)
        writer.append(b"later")
        await asyncio.sleep(0.1)
        for bookie in cluster.bookies:
            heads = [stored[:32] for stored in bookie.entries[writer.ledger_id].values()]
            numbers = [
                [int.from_bytes(head[at : at + 8], "big", signed=True) for at in range(0, 32, 8)]
                for head in heads
            ]
            assert numbers[0] == [1, 0, -1, length_of(1)]
            assert numbers[2] == [1, 2, -1, length_of(3)], "nothing was confirmed when it was sent"
            assert numbers[3] == [1, 3, 2, length_of(3) + 5]

    with_cluster(test)


def test_a_run_is_written_as_its_entries_would_be() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        single, _ = await filled(store, 6)
        listener = Listener()
        writer = await store.create(listener, THREE)
        large = bytes(20_000)
        for data in (*map(payload, range(6)), large):
            single.append(data)
        assert writer.append_run([payload(entry_id) for entry_id in range(6)]) == 6
        await asyncio.sleep(0.1)
        assert writer.append_run([*map(payload, range(6)), large]) == 7
        await asyncio.sleep(0.1)
        assert listener.last == 12
        assert store.figures()["pinned_bytes"] == 0
        for bookie in cluster.bookies:
            stored, expected = bookie.entries[writer.ledger_id], bookie.entries[single.ledger_id]
            for entry_id in range(13):
                # Ledger, entry, last add confirmed, length, then digest and payload.
                assert stored[entry_id][8:32] == expected[entry_id][8:32]
                assert stored[entry_id][36:] == expected[entry_id][36:]
        wanted = [*map(payload, range(6)), *map(payload, range(6)), large]
        assert list(await writer.read(0, 12, 100_000)) == wanted
        await writer.close()
        reader = await store.open(writer.ledger_id)
        assert list(await reader.read(0, 12, 100_000)) == wanted

    with_cluster(test)


def test_a_run_for_which_there_is_no_room_is_not_taken() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        assert writer.append_run([bytes(store.limits.max_entry_bytes), b"x"]) == 0
        for bookie in cluster.bookies:
            bookie.is_holding = True
        taken = 0
        while writer.append_run([bytes(1000)] * 100):
            taken += 100
        assert 0 < taken * 1000 <= SETTINGS.max_pinned_bytes
        for bookie in cluster.bookies:
            bookie.release()
        await asyncio.sleep(0.1)
        assert listener.last == taken - 1
        assert writer.append_run([b"x", b"y"]) == 2

    with_cluster(test)


@pytest.mark.parametrize("size", [100, JOINED_BYTES, 400_000])
def test_memory_that_may_change_is_copied(size: int) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        memory = bytearray(b"a" * size)
        writer.append(memoryview(memory))
        memory[:] = bytes(size)
        await asyncio.sleep(0.1)
        for bookie in await cluster.ensemble(writer.ledger_id):
            assert bookie.entries[writer.ledger_id][0].endswith(b"a" * size)

    with_cluster(test, bookies_count=3)


@pytest.mark.parametrize("size", [JOINED_BYTES - 1, JOINED_BYTES])
def test_large_payloads_of_a_run_are_not_copied(size: int) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer = await store.create(Listener(), THREE)
        cluster.bookies[0].is_holding = True
        payloads = [b"%d" % number * size for number in range(3)]
        assert writer.append_run(payloads) == 3
        await asyncio.sleep(0.1)
        held = writer.read_cached(0, 2, 10**6)
        assert held == payloads
        same = [each is payload for each, payload in zip(held, payloads, strict=True)]
        assert same == [size >= JOINED_BYTES] * 3
        digest = EntryDigest(DigestType.CRC32C, b"")
        for bookie in cluster.bookies[1:]:
            for entry_id, stored in bookie.entries[writer.ledger_id].items():
                found = unpacked(digest, writer.ledger_id, entry_id, stored)
                assert found.payload == payloads[entry_id]

    with_cluster(test)


@pytest.mark.parametrize("size", [JOINED_BYTES, 300_000])
def test_a_view_of_little_of_its_buffer_does_not_keep_it(size: int) -> None:
    class Memory(bytearray):
        pass

    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer = await store.create(Listener(), THREE)
        for bookie in cluster.bookies:
            bookie.is_mute = True
        memory = Memory(1_000_000)
        gone = weakref.ref(memory)
        writer.append(memoryview(memory)[:size].toreadonly())
        del memory
        gc.collect()
        assert gone() is None

    with_cluster(test)


def test_appends_beyond_what_may_be_pinned_are_refused_and_the_ledger_goes_on() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        for _ in range(2):
            writer.append(bytes(1_000_000))
        with pytest.raises(StoreBusyError, match=str(SETTINGS.max_pinned_bytes)):
            writer.append(bytes(1_000_000))
        await asyncio.sleep(0.1)
        assert writer.append(bytes(1_000_000)) == 2
        await asyncio.sleep(0.1)
        assert listener.last == 2

    with_cluster(test)


@pytest.mark.parametrize(
    ("code", "error"),
    [(BookieCode.EFENCED, LedgerFencedError), (BookieCode.EUA, StorageError)],
)
def test_a_refusal_for_good_ends_the_writer_after_what_was_confirmed(
    code: BookieCode, error: type[StorageError]
) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        cluster.bookies[0].says = lambda _operation, _ledger, _entry: code
        writer.append(b"x")
        await asyncio.sleep(0.1)
        assert [type(each) for each in listener.failures] == [error]
        assert listener.last in (2, 3)
        with pytest.raises(error):
            writer.append(b"y")
        assert (await cluster.record(1)).last_segment.first_entry_id == 0

    with_cluster(test)


def test_an_idle_writer_learns_from_the_metadata_that_it_was_fenced() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        fenced = (await cluster.record(1)).in_recovery()
        await cluster.put_record(1, encode(fenced))
        await asyncio.sleep(0.1)
        assert [type(each) for each in listener.failures] == [LedgerFencedError]
        with pytest.raises(LedgerFencedError, match="IN_RECOVERY"):
            await writer.close()

    with_cluster(test)


def test_a_record_that_others_change_and_leave_open_is_taken_over() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        await cluster.put_record(1, encode(await cluster.record(1)))
        await asyncio.sleep(0.1)
        writer.append(b"x")
        await asyncio.sleep(0.1)
        assert listener.last == 3
        await writer.close()
        assert not listener.failures
        assert (await cluster.record(1)).is_closed

    with_cluster(test)


def test_close_writes_the_end_of_what_is_confirmed_and_fails_the_rest() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        for bookie in cluster.bookies[1:]:
            bookie.is_mute = True
        writer.append(b"pending")
        await asyncio.sleep(0.1)
        await writer.close()
        assert [type(each) for each in listener.failures] == [LedgerClosedError]
        record = await cluster.record(1)
        assert (record.status, record.last_entry_id, record.length_bytes) == (
            LedgerStatus.CLOSED, 2, length_of(3),
        )  # fmt: skip
        await writer.close()
        with pytest.raises(LedgerClosedError):
            writer.append(b"late")

    with_cluster(test)


def test_what_is_confirmed_and_not_told_is_told_before_the_end() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        writer.append(payload(1))
        while writer.last_add_confirmed < 1:  # noqa: ASYNC110 - a turn at a time
            await asyncio.sleep(0)
        await writer.close()
        assert listener.last == 1
        assert not listener.failures

    with_cluster(test)


def test_close_after_a_recovery_with_the_same_end_is_fine_and_with_another_is_not() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        for last, is_refused in ((2, False), (1, True)):
            writer, _ = await filled(store, 3)
            record = (await cluster.record(writer.ledger_id)).closed(last, length_of(last + 1))
            closing = asyncio.get_running_loop().create_task(writer.close())
            await cluster.put_record(writer.ledger_id, encode(record))
            if is_refused:
                with pytest.raises(LedgerFencedError):
                    await closing
                with pytest.raises(LedgerFencedError):
                    await writer.close()
            else:
                await closing
            assert (await cluster.record(writer.ledger_id)).last_entry_id == last

    with_cluster(test)


def test_a_fence_of_one_bookie_ends_the_writer() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        cluster.bookies[2].fenced[writer.ledger_id] = None
        writer.append(b"x")
        await asyncio.sleep(0.1)
        assert isinstance(listener.failures[0], LedgerFencedError)
        assert BookieOperation.ADD in {each[0] for each in cluster.bookies[2].asked}

    with_cluster(test)


@pytest.mark.parametrize("size", [10, JOINED_BYTES, 300_000])
def test_what_is_held_for_a_slow_bookie_is_read_without_asking_one(size: int) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        cluster.bookies[0].is_holding = True
        datas = [b"%d" % number * size for number in range(3)]
        for data in datas[:2]:
            writer.append(data)
        writer.append((datas[2][:5], datas[2][5:]))
        assert writer.read_cached(0, 2, 10**6) is None, "nothing is confirmed"
        await asyncio.sleep(0.1)
        assert writer.read_cached(0, 9, 10**6) == datas
        assert writer.read_cached(1, 1, 1) == datas[1:2]
        assert writer.read_cached(0, 2, size) == datas[:1]
        assert writer.read_cached(3, 9, 10**6) is None
        cluster.bookies[0].release()
        await asyncio.sleep(0.1)
        assert writer.read_cached(0, 2, 10**6) is None

    with_cluster(test)


BIG = 300_000
NARROW = replace(SETTINGS, connection=ConnectionLimits(max_waiting_bytes=2_500_000))


def test_more_at_once_than_any_bookie_has_room_for_is_refused_and_none_is_replaced() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=NARROW)
        listener = Listener()
        writer = await store.create(listener, THREE)
        ensemble = await cluster.ensemble(1)
        for _ in range(NARROW.connection.max_waiting_bytes // BIG):
            writer.append(bytes(BIG))
        with pytest.raises(StoreBusyError, match="the others lag too"):
            writer.append(bytes(BIG))
        last = writer.last_add_pushed
        await asyncio.sleep(0.1)
        assert listener.last == last > 3
        assert await cluster.ensemble(1) == ensemble

    with_cluster(test, bookies_count=4)


@pytest.mark.parametrize("has_spare", [True, False])
def test_confirmations_wait_for_a_slow_bookie_that_nobody_can_replace(*, has_spare: bool) -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=NARROW)
        listener = Listener()
        writer = await store.create(listener, THREE)
        slow = (await cluster.ensemble(1))[0]
        slow.is_holding = True
        halves = NARROW.connection.max_waiting_bytes // 2 // BIG
        for _number in range(halves + 1):
            writer.append(bytes(BIG))
            await asyncio.sleep(0.1)
        assert writer.last_add_confirmed == halves
        assert listener.last == (halves if has_spare else halves - 1)
        slow.release()
        await asyncio.sleep(0.1)
        assert listener.last == halves

    with_cluster(test, bookies_count=4 if has_spare else 3)


def test_what_a_slow_bookie_held_back_is_told_before_the_end() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=NARROW)
        listener = Listener()
        writer = await store.create(listener, THREE)
        (await cluster.ensemble(1))[0].is_mute = True
        for _number in range(NARROW.connection.max_waiting_bytes // BIG):
            writer.append(bytes(BIG))
            await asyncio.sleep(0.1)
        assert listener.last < writer.last_add_confirmed
        await writer.close()
        assert listener.last == writer.last_add_pushed
        assert not listener.failures

    with_cluster(test)


@pytest.mark.parametrize("has_spare", [True, False])
@pytest.mark.metric("pulsar_py_bookkeeper_busy_refusals_total")
def test_a_bookie_for_which_too_much_waits_is_replaced_or_slows_the_writer(
    *, has_spare: bool
) -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=NARROW)
        listener = Listener()
        writer = await store.create(listener, THREE)
        ensemble = await cluster.ensemble(1)
        ensemble[0].is_holding = True
        for _ in range(NARROW.connection.max_waiting_bytes // BIG):
            writer.append(bytes(BIG))
            await asyncio.sleep(0.1)
        last = writer.last_add_confirmed
        assert last == writer.last_add_pushed
        if has_spare:
            writer.append(bytes(BIG))
            await asyncio.sleep(0.1)
            assert listener.last == last + 1
            assert ensemble[0] not in await cluster.ensemble(1)
            assert store.figures()["pinned_bytes"] == 0
        else:
            with pytest.raises(StoreBusyError, match="no other one can take its place"):
                writer.append(bytes(BIG))
            assert only(of_stores(store), "pulsar_py_bookkeeper_busy_refusals_total") == 1
            ensemble[0].release()
            await asyncio.sleep(0.1)
            writer.append(bytes(BIG))
            await asyncio.sleep(0.1)
            assert listener.last == last + 1
            assert await cluster.ensemble(1) == ensemble

    with_cluster(test, bookies_count=4 if has_spare else 3)
