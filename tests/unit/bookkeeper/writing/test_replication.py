from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerSegment, encode
from pulsar_py.bookkeeper.protocol.frames import BookieCode
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import (
    LedgerFencedError,
    MetadataUnavailableError,
    NotEnoughBookiesError,
    StorageError,
    StoreUnavailableError,
)
from tests.unit.admin.metrics.metric_pages import of_stores, only
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import (
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    length_of,
    payload,
    with_cluster,
)


def dies(bookie: ScriptedBookie) -> None:
    bookie.stop()


def refuses(bookie: ScriptedBookie) -> None:
    bookie.says = lambda _operation, _ledger, _entry: BookieCode.EREADONLY


def is_busy(bookie: ScriptedBookie) -> None:
    bookie.says = lambda _operation, _ledger, _entry: BookieCode.ETOOMANYREQUESTS


def hangs(bookie: ScriptedBookie) -> None:
    bookie.is_mute = True


@pytest.mark.parametrize("fails", [dies, refuses, is_busy, hangs], ids=lambda each: each.__name__)
def test_a_failed_bookie_is_replaced_from_behind_what_is_confirmed(fails: object) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 4)
        before = await cluster.ensemble(1)
        (spare,) = cluster.others(before)
        fails(before[1])  # type: ignore[operator]  # one of the above
        for entry_id in range(4, 8):
            writer.append(payload(entry_id))
        await asyncio.sleep(12)

        assert listener.last == 7
        record = await cluster.record(1)
        first = record.last_segment.first_entry_id
        assert 4 <= first <= 8
        assert len(record.segments) == 2
        assert await cluster.ensemble(1) == [before[0], spare, before[2]]
        for bookie in (before[0], spare, before[2]):
            assert set(range(first, 8)) <= set(bookie.entries.get(1, {}))
        writer.append(payload(8))
        await asyncio.sleep(0.1)
        assert list(await writer.read(0, 8, 1000)) == [payload(each) for each in range(9)]
        await writer.close()
        assert (await cluster.record(1)).length_bytes == length_of(9)

    with_cluster(test, bookies_count=4)


def test_a_second_failure_before_anything_is_confirmed_replaces_the_segment() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 2)
        before = await cluster.ensemble(1)
        spares = cluster.others(before)
        for bookie in (before[0], *spares[:2]):
            refuses(bookie)
        before[1].is_holding = True
        writer.append(payload(2))
        await asyncio.sleep(1)
        assert listener.last == 2
        before[1].release()
        assert await cluster.ensemble(1) == [spares[2], before[1], before[2]]
        assert [each.first_entry_id for each in (await cluster.record(1)).segments] == [0, 2]

    with_cluster(test, bookies_count=6)


def test_two_bookies_that_fail_together_are_replaced_together() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 2)
        before = await cluster.ensemble(1)
        for bookie in before[:2]:
            dies(bookie)
        await asyncio.sleep(0.1)
        for entry_id in range(2, 6):
            writer.append(payload(entry_id))
        await asyncio.sleep(1)
        assert listener.last == 5
        after = await cluster.ensemble(1)
        assert after[2] == before[2]
        assert sorted(each.port for each in after[:2]) == [
            each.port for each in cluster.others(before)
        ]

    with_cluster(test, bookies_count=5)


def test_nothing_is_confirmed_while_the_ensemble_changes() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        before = await cluster.ensemble(1)
        (spare,) = cluster.others(before)
        spare.is_holding = True
        refuses(before[0])
        before[1].is_holding = True
        writer.append(payload(1))
        await asyncio.sleep(1)
        assert listener.last == 0, "one of three has it"
        spare.release()
        await asyncio.sleep(0.1)
        assert listener.last == 1
        before[1].release()
        await asyncio.sleep(0.1)

    with_cluster(test, bookies_count=4)


def test_without_another_bookie_the_ledger_fails_and_can_be_closed_where_it_was() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        dies(cluster.bookies[0])
        await asyncio.sleep(0.1)
        writer.append(b"x")
        await asyncio.sleep(1)
        assert isinstance(listener.failures[0], NotEnoughBookiesError)
        with pytest.raises(StorageError, match="an earlier entry failed") as refused:
            writer.append(b"y")
        assert not isinstance(refused.value, NotEnoughBookiesError)
        await writer.close()
        record = await cluster.record(1)
        assert record.is_closed
        assert record.last_entry_id == listener.last

    with_cluster(test)


@pytest.mark.metric("pulsar_py_bookkeeper_same_bookie_retries_total")
def test_without_another_bookie_one_that_is_back_is_tried_again_with_all_that_it_owes() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        before = await cluster.ensemble(1)
        before[1].is_mute = True
        for entry_id in range(3, 6):
            writer.append(payload(entry_id))
        await asyncio.sleep(0.1)
        assert listener.last == 5, "two of three have them"
        before[1].is_mute = False
        before[1].cut()
        writer.append(payload(6))
        await asyncio.sleep(0.1)
        assert listener.last == 5, "until it is decided who stands there"
        await asyncio.sleep(1)
        assert listener.last == 6
        assert not listener.failures
        assert sorted(before[1].entries[1]) == list(range(7))
        assert (await cluster.record(1)).segments == (
            LedgerSegment(0, tuple(each.bookie_id for each in before)),
        )
        assert store.figures()["pinned_bytes"] == 0
        assert only(of_stores(store), "pulsar_py_bookkeeper_same_bookie_retries_total") == 1

    with_cluster(test)


@pytest.mark.parametrize("fails", [is_busy, hangs], ids=lambda each: each.__name__)
def test_a_bookie_that_goes_on_failing_is_not_tried_for_ever(fails: object) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        fails(cluster.bookies[0])  # type: ignore[operator]  # one of the above
        writer.append(payload(3))
        await asyncio.sleep(11)
        assert isinstance(listener.failures[0], NotEnoughBookiesError)
        await writer.close()
        assert (await cluster.record(1)).last_entry_id == listener.last

    with_cluster(test)


def test_an_ensemble_can_not_be_changed_once_the_ledger_is_somebody_elses() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(await cluster.connect(is_deaf=True), 3)
        before = await cluster.record(1)
        refuses(cluster.bookie(before.last_segment.bookie_ids[0]))
        writer.append(b"x")
        await cluster.put_record(1, encode(before.in_recovery()))
        await asyncio.sleep(1)
        assert [type(each) for each in listener.failures] == [LedgerFencedError]
        assert (await cluster.record(1)).segments == before.segments

    with_cluster(test, bookies_count=4)


def test_a_place_that_others_have_filled_is_taken_as_it_is() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 3)
        before = await cluster.record(1)
        ids = before.last_segment.bookie_ids
        ensemble = await cluster.ensemble(1)
        spares = cluster.others(ensemble)
        refuses(ensemble[0])
        writer.append(payload(3))
        repaired = (spares[0].bookie_id, *ids[1:])
        await cluster.put_record(1, encode(replace(before, segments=(LedgerSegment(0, repaired),))))
        await asyncio.sleep(1)
        assert listener.last == 3
        record = await cluster.record(1)
        assert record.segments == (LedgerSegment(0, repaired),)
        assert 3 in spares[0].entries[1]
        assert not spares[1].entries

    with_cluster(test, bookies_count=5)


def test_an_entry_that_is_not_confirmed_in_time_fails_the_ledger() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create(listener, THREE)
        for bookie in cluster.bookies:
            hangs(bookie)
        began = asyncio.get_running_loop().time()
        writer.append(b"x")
        while not listener.failures:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - began <= 30.2
        assert listener.last == -1

    with_cluster(test, bookies_count=9)


def test_late_answers_of_a_bookie_that_was_replaced_count_for_nothing() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        before = await cluster.ensemble(1)
        (spare,) = cluster.others(before)
        spare.is_mute = before[2].is_mute = True
        before[0].is_holding = True
        before[0].says = lambda _operation, _ledger, entry: BookieCode.EIO if entry == 2 else None
        for entry_id in (1, 2):
            writer.append(payload(entry_id))
            await asyncio.sleep(0.1)
        stored, failed = before[0].held
        failed()
        await asyncio.sleep(0.1)
        assert (await cluster.ensemble(1))[0] is spare

        stored()
        await asyncio.sleep(0.1)

        assert listener.last == 0, "one of three has it, and one that is not asked any more"

    with_cluster(test, bookies_count=4)


class MetadataAway:
    """Takes the metadata of a store away, as a network does: changes may be made all the same."""

    def __init__(self, store: BookKeeperLedgerStore, *, makes_changes: bool = False) -> None:
        self._metadata = store._cluster.records._metadata
        put = self._metadata.put

        async def refuse(*_arguments: object, **_options: object) -> None:
            raise MetadataUnavailableError("away")

        async def make_and_refuse(path: str, value: bytes, **options: int) -> None:
            await put(path, value, expected_version=options["expected_version"])
            raise MetadataUnavailableError("away")

        for name in ("get", "put", "sync", "children"):
            setattr(self._metadata, name, refuse)
        if makes_changes:
            self._metadata.put = make_and_refuse  # type: ignore[assignment, method-assign]

    def come_back(self) -> None:
        for name in ("get", "put", "sync", "children"):
            delattr(self._metadata, name)


@pytest.mark.parametrize("makes_changes", [False, True])
def test_a_bookie_that_fails_while_the_metadata_is_away_is_replaced_later(
    makes_changes: bool,  # noqa: FBT001
) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 4)
        before = await cluster.ensemble(1)
        (spare,) = cluster.others(before)
        metadata = MetadataAway(store, makes_changes=makes_changes)
        before[1].stop()
        for entry_id in range(4, 50):
            writer.append(payload(entry_id))
            await asyncio.sleep(1)
        assert listener.last == 49
        for bookie in (before[0], before[2]):
            assert set(range(50)) == set(bookie.entries[1])
        metadata.come_back()
        await asyncio.sleep(3)
        assert await cluster.ensemble(1) == [before[0], spare, before[2]]
        writer.append(payload(50))
        await asyncio.sleep(0.1)
        assert listener.last == 50
        assert 50 in spare.entries[1]
        first = (await cluster.record(1)).last_segment.first_entry_id
        assert first == 4 if makes_changes else first == 50
        await writer.close()
        reader = await (await cluster.connect()).open(1)
        assert reader.last_add_confirmed == 50

    with_cluster(test, bookies_count=4)


def test_what_a_bookie_stored_that_may_have_been_replaced_counts_no_more() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 4)
        before = await cluster.ensemble(1)
        MetadataAway(store)
        for bookie in before[1:]:
            bookie.is_holding = True
        writer.append(payload(4))  # is on the first, the others will say so later
        await asyncio.sleep(0.1)
        before[0].stop()
        writer.append(payload(5))
        await asyncio.sleep(5)
        before[1].is_holding = False
        before[1].release()
        await asyncio.sleep(1)
        assert listener.last == 3, "it lies on two, of which one may not be in the record"
        before[2].is_holding = False
        before[2].release()
        await asyncio.sleep(1)
        assert listener.last == 5

    with_cluster(test, bookies_count=4)


def test_too_few_bookies_while_the_metadata_is_away_end_the_ledger() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 4)
        before = await cluster.ensemble(1)
        MetadataAway(store)
        for bookie in before[:2]:
            bookie.stop()
        writer.append(payload(4))
        await asyncio.sleep(20)
        (failure,) = listener.failures
        assert isinstance(failure, StoreUnavailableError)
        assert "away" in str(failure)

    with_cluster(test, bookies_count=5)
