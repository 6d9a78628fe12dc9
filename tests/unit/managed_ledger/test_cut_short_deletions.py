from __future__ import annotations

import asyncio

from pulsar_py.common.errors import MetadataUnavailableError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.managed_ledger.cut_short_deletions import FIRST_LOOK_SECONDS, CutShortDeletions
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, encode_ledger_list
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Versioned
from pulsar_py.testing.clock import VirtualClock

PREFIX = "/managed-ledgers/t/n/persistent"
DELETED = encode_ledger_list(LedgerList(is_being_deleted=True))
WHOLE = encode_ledger_list(LedgerList())


class CountingStore(MemoryMetadataStore):
    """Counts reads, can hold them, and can fail them."""

    reads_count = 0
    error: Exception | None = None
    gate: asyncio.Event | None = None

    async def get(self, path: str) -> Versioned | None:
        self.reads_count += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return await super().get(path)


async def stored(clock: VirtualClock, *, whole_count: int = 20) -> CountingStore:
    store = CountingStore(clock)
    for number in range(whole_count):
        await store.put(f"{PREFIX}/whole{number}", WHOLE)
    await store.put(f"{PREFIX}/cut%20short", DELETED)
    await store.put(f"{PREFIX}/cut%20short/sub", b"what is left of it")
    await store.put("/managed-ledgers/t/other/persistent/cut", DELETED)
    return store


async def test_they_are_found_once_and_then_read_alone(virtual_clock: VirtualClock) -> None:
    store = await stored(virtual_clock)
    deletions = CutShortDeletions(store)
    tasks = TaskOwner("test")
    deletions.begin(tasks)
    assert await deletions.below(PREFIX) == {"cut%20short"}
    store.reads_count = 0
    assert await deletions.below(PREFIX) == {"cut%20short"}
    assert await deletions.below("/managed-ledgers/t/other/persistent") == {"cut"}
    assert store.reads_count == 2
    await store.close()


async def test_who_lists_waits_for_the_first_look(virtual_clock: VirtualClock) -> None:
    store = await stored(virtual_clock)
    store.gate = asyncio.Event()
    deletions = CutShortDeletions(store)
    tasks = TaskOwner("test")
    deletions.begin(tasks)
    listing = tasks.spawn(deletions.below(PREFIX), "list")
    await virtual_clock.sleep(FIRST_LOOK_SECONDS / 2)
    assert not listing.done()
    store.gate.set()
    assert await listing == {"cut%20short"}
    await store.close()


async def test_nobody_waits_long_for_a_store_that_does_not_answer(
    virtual_clock: VirtualClock,
) -> None:
    store = await stored(virtual_clock)
    store.gate = asyncio.Event()
    deletions = CutShortDeletions(store)
    tasks = TaskOwner("test")
    deletions.begin(tasks)
    assert await deletions.below(PREFIX) == set()
    assert virtual_clock.monotonic_seconds() == FIRST_LOOK_SECONDS
    tasks.abandon()
    await store.close()


async def test_a_look_that_fails_keeps_nobody_waiting(virtual_clock: VirtualClock) -> None:
    store = await stored(virtual_clock)
    store.error = MetadataUnavailableError("not now")
    deletions = CutShortDeletions(store)
    tasks = TaskOwner("test")
    deletions.begin(tasks)
    assert await deletions.below(PREFIX) == set()
    await store.close()


async def test_what_was_made_anew_or_is_gone_is_forgotten(virtual_clock: VirtualClock) -> None:
    store = await stored(virtual_clock)
    deletions = CutShortDeletions(store)
    deletions.note(f"{PREFIX}/gone")
    deletions.note(f"{PREFIX}/whole1")
    deletions.note(f"{PREFIX}/cut%20short")
    assert await deletions.below(PREFIX) == {"cut%20short"}
    store.reads_count = 0
    await store.put(f"{PREFIX}/cut%20short", WHOLE)
    assert await deletions.below(PREFIX) == set()
    assert await deletions.below(PREFIX) == set()
    assert store.reads_count == 1
    await store.close()
