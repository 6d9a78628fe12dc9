from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from pulsar_py.admin.metrics.store_lines import BOOKKEEPER_METRICS
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerStatus
from pulsar_py.bookkeeper.metadata.ledger_paths import ledger_path
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.errors import (
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from tests.unit.bookkeeper.scripted_cluster import (
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    length_of,
    payload,
    with_cluster,
)


def test_a_new_ledger_is_a_record_and_no_bookie_knows_it() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        options = replace(THREE, custom_metadata={"a": b"1"}, password=b"secret")
        writer = await store.create(Listener(), options)
        record = await cluster.record(writer.ledger_id)
        assert record.status is LedgerStatus.OPEN
        assert record.password == b"secret"
        assert record.custom_metadata == {"a": b"1"}
        ids = record.last_segment.bookie_ids
        assert sorted(ids) == [bookie.bookie_id for bookie in cluster.bookies]
        assert not any(bookie.asked for bookie in cluster.bookies)

    with_cluster(test)


@pytest.mark.parametrize("quorums", [(2, 3, 2), (3, 2, 3), (0, 0, 0)])
def test_quorums_that_contradict_each_other_are_refused(quorums: tuple[int, int, int]) -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        with pytest.raises(StorageError, match="no ledger can have"):
            await store.create(Listener(), LedgerOptions(*quorums))

    with_cluster(test)


def test_an_id_that_is_taken_is_left_alone() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await cluster.put_record(cluster.ids.last + 1, b"somebody else's")
        writer = await store.create(Listener(), THREE)
        assert writer.ledger_id == 2
        found = await cluster.metadata.get(ledger_path("/ledgers", 1))
        assert found is not None
        assert found.value == b"somebody else's"

    with_cluster(test)


def test_ledgers_of_both_kinds_of_paths_are_listed_in_order() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        ids = [3, 10_001, 10_002, 123_456_789, 2**31 - 1, 2**40]
        for ledger_id in reversed(ids):
            await cluster.put_record(ledger_id, b"x")
        await cluster.metadata.put("/ledgers/underreplication/LAYOUT", b"x")
        pages = [list(page) async for page in store.list_ledgers()]
        assert pages == [[3], [10_001, 10_002], [123_456_789], [2**31 - 1], [2**40]]

    with_cluster(test)


def test_a_ledger_is_read_by_another_client_while_it_is_written_and_after() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 5)
        writer.append(payload(5))
        await asyncio.sleep(0.1)
        other = await cluster.connect()

        reader = await other.open(writer.ledger_id)

        assert not reader.is_closed
        assert (reader.last_add_confirmed, reader.length_bytes) == (4, length_of(5))
        assert list(await reader.read(0, 9, 1000)) == [payload(each) for each in range(5)]
        await writer.close()
        assert await reader.read_last_add_confirmed() == 5
        assert reader.is_closed
        assert reader.length_bytes == length_of(6)
        info = await other.info(writer.ledger_id)
        assert (info.is_closed, info.last_entry_id, info.length_bytes) == (True, 5, length_of(6))

    with_cluster(test)


def test_a_deleted_ledger_has_no_record() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        await store.delete(writer.ledger_id)
        await store.delete(writer.ledger_id)
        with pytest.raises(LedgerNotFoundError):
            await store.open(writer.ledger_id)
        await asyncio.sleep(0.1)
        assert isinstance(listener.failures[0], LedgerNotFoundError)
        with pytest.raises(LedgerNotFoundError):
            writer.append(b"x")

    with_cluster(test)


def test_closing_the_store_fails_what_waits_and_leaves_ledgers_open() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, listener = await filled(store, 1)
        assert store.figures()["connected_bookies"] == 3
        for bookie in cluster.bookies:
            bookie.is_mute = True
        writer.append(b"waits")
        await store.close()
        await asyncio.sleep(0.1)
        assert [str(each) for each in listener.failures] == ["ledger 1: the store is closed"]
        assert (await cluster.record(1)).status is LedgerStatus.OPEN
        assert store.figures()["connected_bookies"] == 0
        with pytest.raises(StorageError, match="closed"):
            await store.create(Listener(), THREE)

    with_cluster(test)


def test_closing_the_store_ends_a_recovery() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        writer, _ = await filled(store, 5)  # sent before any was confirmed: all is added again
        other = await cluster.connect()
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: None
        recovering = asyncio.get_running_loop().create_task(other.recover(writer.ledger_id))
        while not any(1 in bookie.fenced for bookie in cluster.bookies):  # noqa: ASYNC110
            await asyncio.sleep(0)
        for bookie in cluster.bookies:
            bookie.is_mute = True
        await asyncio.sleep(0.1)
        await other.close()
        with pytest.raises(StorageError):
            await recovering
        assert not (await cluster.record(1)).is_closed

    with_cluster(test)


@pytest.mark.parametrize("layout", [None, b"2\norg.apache.bookkeeper.meta.FlatManagerFactory:1"])
def test_a_cluster_with_another_layout_is_refused(layout: bytes | None) -> None:
    async def work() -> None:
        metadata = MemoryMetadataStore(VirtualClock())
        if layout is not None:
            await metadata.put("/ledgers/LAYOUT", layout)
        with pytest.raises(StorageError, match=r"/ledgers/LAYOUT.*Hierarchical"):
            await BookKeeperLedgerStore.connect(metadata, VirtualClock(), CountedLedgerIds())

    run_virtual(work())


def test_the_largest_entry_fits_a_frame() -> None:
    settings = BookKeeperSettings()
    assert settings.limits.max_entry_bytes == settings.connection.max_frame_bytes - 80
    assert settings.limits.max_entry_bytes > 5 * 1024 * 1024


def test_all_figures_are_known_to_the_page_of_metrics() -> None:
    async def test(_: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        await filled(store, 1)
        assert store.figures().keys() == BOOKKEEPER_METRICS.keys()
        bookies = {labels["bookie"] for _name, labels, _value in store.labelled_figures()}
        assert len(bookies) == 3

    with_cluster(test)


CHOSEN = replace(THREE, custom_metadata={"a": b"1"}, password=b"secret")


def test_a_ledger_gets_the_id_that_was_chosen() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        listener = Listener()
        writer = await store.create_chosen(77, listener, CHOSEN)
        assert (writer.ledger_id, writer.last_add_confirmed, cluster.ids.last) == (77, -1, 0)
        writer.append(payload(0))
        await asyncio.sleep(0.1)
        await writer.close()
        record = await cluster.record(77)
        assert (record.status, record.last_entry_id) == (LedgerStatus.CLOSED, 0)
        assert record.custom_metadata == {"a": b"1"}

    with_cluster(test)


@pytest.mark.parametrize("is_repaired", [False, True])
def test_a_chosen_ledger_is_written_again_from_its_first_entry(*, is_repaired: bool) -> None:
    """Also where a repair has fenced and closed it meanwhile."""

    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        killed = await cluster.connect()
        writer = await killed.create_chosen(77, Listener(), CHOSEN)
        for entry_id in range(5):
            writer.append(payload(entry_id))
        await asyncio.sleep(0.1)
        await killed.close()
        if is_repaired:
            reader = await store.recover(77, password=b"secret")
            assert reader.last_add_confirmed == 4
            assert any(77 in bookie.fenced for bookie in cluster.bookies)

        listener = Listener()
        again = await store.create_chosen(77, listener, CHOSEN)
        assert (await cluster.record(77)).status is LedgerStatus.OPEN
        assert again.last_add_confirmed == -1
        for entry_id in range(9):
            again.append(payload(entry_id))
        await asyncio.sleep(0.1)
        await again.close()

        reader = await store.open(77, password=b"secret")
        assert (reader.is_closed, reader.last_add_confirmed) == (True, 8)
        assert reader.length_bytes == length_of(9)
        found = await reader.read(0, 8, 1 << 20)
        assert [bytes(each) for each in found] == [payload(entry_id) for entry_id in range(9)]

    with_cluster(test)


def test_a_ledger_of_somebody_else_is_not_written_over() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        other = await store.create(Listener(), replace(THREE, custom_metadata={"b": b"2"}))
        before = await cluster.record(other.ledger_id)
        with pytest.raises(StorageError, match="belongs to something else"):
            await store.create_chosen(other.ledger_id, Listener(), CHOSEN)
        assert await cluster.record(other.ledger_id) == before

    with_cluster(test)
