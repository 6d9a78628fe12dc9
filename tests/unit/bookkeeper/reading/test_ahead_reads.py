from __future__ import annotations

import asyncio
from dataclasses import replace

from pulsar_py.bookkeeper.protocol.frames import BookieCode
from pulsar_py.bookkeeper.reading.ahead_reads import WINDOWS_COUNT
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.ledgers.store import LedgerReader
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    THREE,
    Listener,
    ScriptedCluster,
    with_cluster,
)

ENTRY_BYTES = 1000
WINDOW_BYTES = 100_000
AHEAD = replace(SETTINGS, read_ahead_bytes=WINDOW_BYTES)


def data(entry_id: int) -> bytes:
    return b"%09d." % entry_id * (ENTRY_BYTES // 10)


async def stored(store: BookKeeperLedgerStore, count: int) -> LedgerReader:
    """A closed ledger with so many entries."""
    writer = await store.create(Listener(), THREE)
    for entry_id in range(count):
        writer.append(data(entry_id))
    await asyncio.sleep(0.1)
    await writer.close()
    return await store.open(writer.ledger_id)


def asked(cluster: ScriptedCluster) -> list[int]:
    """Entries that bookies were asked for, in order; forgets them."""
    found = sorted(each[3] for bookie in cluster.bookies for each in bookie.asked)
    for bookie in cluster.bookies:
        bookie.asked.clear()
    return found


async def read_run(reader: LedgerReader, first: int, count: int) -> None:
    got: list[EntryBytes] = []
    while len(got) < count:  # one read ends where what was fetched together does
        got += await reader.read(first + len(got), first + count - 1, count * ENTRY_BYTES)
    assert got == [data(entry_id) for entry_id in range(first, first + count)]


def test_who_reads_in_order_finds_what_follows_in_memory_and_each_entry_is_asked_once() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        reader = await stored(store, 500)
        asked(cluster)
        await read_run(reader, 0, 10)
        assert asked(cluster) == list(range(10))
        await read_run(reader, 10, 10)
        await asyncio.sleep(0.1)
        ahead = asked(cluster)
        assert ahead == list(range(10, 20 + WINDOW_BYTES // ENTRY_BYTES))
        first, waits = 20, 0
        while first < 500:
            got = reader.read_cached(first, 499, 7 * ENTRY_BYTES)
            if got is None:
                waits += 1
                got = await reader.read(first, 499, 7 * ENTRY_BYTES)
            assert list(got) == [data(entry_id) for entry_id in range(first, first + len(got))]
            first += len(got)
            await asyncio.sleep(0.001)
            assert store.figures()["read_ahead_bytes"] <= 1.5 * WINDOW_BYTES
        assert waits == 0
        assert sorted([*range(20), *ahead[10:], *asked(cluster)]) == list(range(500))

    with_cluster(test)


def test_single_reads_fetch_nothing_ahead() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        reader = await stored(store, 100)
        asked(cluster)
        for entry_id in (50, 25, 12, 90):
            await read_run(reader, entry_id, 1)
        await asyncio.sleep(0.1)
        assert asked(cluster) == [12, 25, 50, 90]
        assert store.figures()["read_ahead_bytes"] == 0

    with_cluster(test)


def test_a_reader_that_comes_early_waits_for_what_is_on_its_way() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        reader = await stored(store, 200)
        await read_run(reader, 0, 10)
        await read_run(reader, 10, 10)
        asked(cluster)
        for bookie in cluster.bookies:
            bookie.delay_seconds = 1.0
        await read_run(reader, 20, 5)
        await read_run(reader, 25, 5)
        assert len(asked(cluster)) <= WINDOW_BYTES // ENTRY_BYTES + 25

    with_cluster(test)


def test_what_could_not_be_fetched_ahead_is_read_by_who_needs_it() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        reader = await stored(store, 200)
        await read_run(reader, 0, 10)
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, entry: BookieCode.EIO if entry >= 30 else None
        await read_run(reader, 10, 10)
        await asyncio.sleep(0.1)
        for bookie in cluster.bookies:
            bookie.says = lambda _operation, _ledger, _entry: None
        for first in range(20, 200, 10):
            await read_run(reader, first, 10)

    with_cluster(test)


def test_an_open_ledger_is_read_ahead_as_far_as_it_is_confirmed() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        writer = await store.create(Listener(), THREE)
        for entry_id in range(30):
            writer.append(data(entry_id))
        await asyncio.sleep(0.1)
        asked(cluster)
        for first in (0, 10, 20):
            await read_run(writer, first, 10)
            await asyncio.sleep(0.1)
        assert asked(cluster) == list(range(30))
        for entry_id in range(30, 60):
            writer.append(data(entry_id))
        await asyncio.sleep(0.1)
        for first in (30, 40, 50):
            await read_run(writer, first, 10)
        await writer.close()

    with_cluster(test)


def test_many_readers_share_the_bound_and_who_stopped_gives_way() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await cluster.connect(settings=AHEAD)
        readers = [await stored(store, 150) for _ in range(2 * WINDOWS_COUNT)]
        for reader in readers:
            for first in (0, 10, 20):
                await read_run(reader, first, 10)
            await asyncio.sleep(0.1)
            held = store.figures()["read_ahead_bytes"]
            assert held <= (WINDOWS_COUNT + 1) * WINDOW_BYTES
        assert readers[-1].read_cached(30, 30, 1) == [data(30)]
        assert readers[0].read_cached(30, 30, 1) is None
        for reader in readers:
            await reader.close()
        assert store.figures()["read_ahead_bytes"] == 0

    with_cluster(test)
