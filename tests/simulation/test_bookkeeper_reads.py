"""A ledger on bookies that is read in order: a read asks for few entries, and what follows is there.

The bugs that are put back read as an embedded store may: all that fits at once, and nothing ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from unittest.mock import patch

import pytest

from pulsar_py.bookkeeper.protocol.frames import BookieOperation
from pulsar_py.bookkeeper.reading import reader as reader_module
from pulsar_py.bookkeeper.reading.ahead_reads import AheadReads
from pulsar_py.testing.network import run_simulated
from tests.crash.managed_ledger.harness import InvariantError
from tests.unit.bookkeeper.scripted_cluster import THREE, Listener, ScriptedCluster

AT_ONCE = 64
"""Entries that a read may ask for while it knows nothing of the reader."""
DELAY_SECONDS = 0.004
"""Of each bookie's answer."""
TRIES_COUNT = 1.2
"""Requests an entry costs at most, on average."""
SEEDS_COUNT = 500


async def play(seed: int) -> None:
    chance = Random(f"reads {seed}")
    cluster = ScriptedCluster(bookies_count=3)
    await cluster.start()
    store = await cluster.connect()
    count, size_bytes = chance.randint(200, 800), chance.choice((1, 30, 200))
    writer = await store.create(Listener(), THREE)
    for entry_id in range(count):
        writer.append(b"%d " % entry_id * size_bytes)
    await asyncio.sleep(1)
    await writer.close()
    for bookie in cluster.bookies:
        bookie.asked.clear()
        bookie.delay_seconds = DELAY_SECONDS
    max_bytes = chance.choice((500, 5_000, 50_000))
    reader = await (await cluster.connect()).open(writer.ledger_id)
    first = asyncio.get_running_loop().create_task(reader.read(0, count - 1, max_bytes))
    await asyncio.sleep(DELAY_SECONDS / 2)
    if (asked := asked_count(cluster)) > AT_ONCE:
        raise InvariantError(f"the first read of {max_bytes} bytes asked for {asked} entries")
    found = len(await first)
    hits, misses = 0, 0
    while found < count:
        await asyncio.sleep(chance.uniform(0, 2 * DELAY_SECONDS))  # it works
        if entries := reader.read_cached(found, count - 1, max_bytes):
            hits += 1
        else:
            entries = await reader.read(found, count - 1, max_bytes)
            misses += 1
        assert [int(bytes(each).split()[0]) for each in entries] == list(
            range(found, found + len(entries))
        )
        found += len(entries)
    if misses > hits + 2:  # before it is known that it reads in order
        raise InvariantError(f"{misses} reads waited for bookies, {hits} did not")
    if (asked := asked_count(cluster)) > count * TRIES_COUNT + AT_ONCE:
        raise InvariantError(f"{asked} requests for {count} entries")
    await cluster.close()


def asked_count(cluster: ScriptedCluster) -> int:
    operations = [operation for bookie in cluster.bookies for operation, *_ in bookie.asked]
    return operations.count(BookieOperation.READ)


def run_seed(seed: int) -> None:
    run_simulated(play(seed))


@contextmanager
def a_read_asks_for_all_that_fits() -> Iterator[None]:
    """A read is one call, whatever the number of its entries."""
    with patch.object(reader_module, "MAX_ENTRIES_AT_ONCE", 100_000):
        yield


@contextmanager
def nothing_is_read_ahead() -> Iterator[None]:
    """Only the embedded store has a read-ahead."""
    with patch.object(AheadReads, "taken", lambda self, ledger, first, end, reader: None):
        yield


MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    mutation.__name__: mutation
    for mutation in (a_read_asks_for_all_that_fits, nothing_is_read_ahead)
}


def is_found(seed: int) -> bool:
    try:
        run_seed(seed)
    except InvariantError:
        return True
    return False


@pytest.mark.parametrize("seed", range(5))
def test_who_reads_in_order_asks_for_each_entry_once_and_seldom_waits(seed: int) -> None:
    run_seed(seed)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found(name: str) -> None:
    with MUTATIONS[name]():
        assert any(is_found(seed) for seed in range(SEEDS_COUNT))


@pytest.mark.slow
def test_many_seeds_hold() -> None:
    for seed in range(100, 140):
        run_seed(seed)
