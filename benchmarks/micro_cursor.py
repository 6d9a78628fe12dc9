"""Micro benchmark of acknowledgement holes: `python -m benchmarks.micro_cursor`.

holes      ten million entries in 200 ledgers (and in one), every second one acknowledged: what the
           state takes in memory, what a first save of everything and one after a single
           acknowledgement write and cost, and whether it is restored exactly
batches    one million batches of ten, each half acknowledged: the same

A step is what runs on the loop without a pause, in CPU time of the thread; only those of the cursor
count, not the engine's.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.flusher import CursorFlusher
from pulsar_py.managed_ledger.cursors.memory import CursorMemory
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, LedgerRecord
from pulsar_py.managed_ledger.log.ledger_state import LedgerState
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds

ENTRIES_COUNT = 10_000_000
BATCHES_COUNT = 1_000_000
PATH = "/managed-ledgers/t/n/persistent/a/sub"


async def nobody_asks() -> None:
    """Ownership is not in question here."""


class Owner:
    """The part of a managed ledger that a cursor's persister needs."""

    def __init__(self) -> None:
        self.name = "t/n/persistent/a"
        self.config = ManagedLedgerConfig()
        self.clock: Clock = SystemClock()
        self.tasks = TaskOwner("benchmark")
        self.flusher = CursorFlusher(self.clock)
        self.cursor_memory = CursorMemory()

    @property
    def is_fenced(self) -> bool:
        """Never."""
        return False

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """Nobody waits."""

    def fence(self, error: Exception) -> None:
        """Nobody else is there."""
        raise error


@dataclass
class Stepped:
    """Awaits a coroutine and measures its steps."""

    work: Coroutine[Any, Any, None]  # Any: what a loop sends to and fro
    steps_seconds: list[float] = field(default_factory=list)

    def __await__(self) -> Generator[Any, Any, None]:
        """Run it."""
        while True:
            began = time.thread_time()
            try:
                waiting = self.work.send(None)
            except StopIteration:
                return
            finally:
                self.steps_seconds.append(time.thread_time() - began)
            yield waiting


def ledgers_of(ledgers_count: int, entries_count: int) -> LedgerState:
    """So many closed ledgers with so many entries together."""
    each = entries_count // ledgers_count
    records = [
        LedgerRecord(ledger_id, each, each * 1000, 1, is_closed=True)
        for ledger_id in range(1, ledgers_count + 1)
    ]
    return LedgerState(LedgerList(records))


def with_holes(ledgers: LedgerState) -> CursorState:
    """Every second entry is acknowledged, in random order within 10,000 neighbours."""
    state = CursorState(ledgers, Position(1, -1))
    chance = random.Random(1)  # a fixed seed: the figures stay comparable
    for ledger_id in ledgers.ledger_ids:
        entry_ids = list(range(1, ledgers.ledgers[ledger_id].entries_count, 2))
        for start in range(0, len(entry_ids), 5000):
            part = entry_ids[start : start + 5000]
            chance.shuffle(part)
            state.acknowledge([Position(ledger_id, entry_id) for entry_id in part], None, 0.0)
    return state


def with_batches(ledgers: LedgerState) -> CursorState:
    """Of every batch of ten, five indexes are acknowledged."""
    state = CursorState(ledgers, Position(1, -1))
    for ledger_id in ledgers.ledger_ids:
        for entry_id in range(ledgers.ledgers[ledger_id].entries_count):
            state.acknowledge([Position(ledger_id, entry_id)], [[0b0101010101]], 0.0)
    return state


def store_of(metadata: MetadataStore, bookie: LedgerStore, owner: Owner) -> CursorStore:
    """The cursor's store, as a new process makes it."""
    return CursorStore(
        PATH,
        metadata,
        bookie,
        owner.clock,
        prove_ownership=nobody_asks,
        confirm_newest=nobody_asks,
    )


async def measure(name: str, state: CursorState, memory_bytes: int) -> None:
    """Save, save after one acknowledgement, restore."""
    owner = Owner()
    metadata = MemoryMetadataStore(owner.clock)

    bookie = await Bookie.start(
        MemoryDisk(),
        clock=owner.clock,
        ledger_ids=CountedLedgerIds(1001),
        settings=BookieSettings(),
    )
    store = CursorStore(
        PATH, metadata, bookie, owner.clock, prove_ownership=nobody_asks, confirm_newest=nobody_asks
    )
    await store.create(CursorState(state.ledgers, state.mark_delete_position))
    persister = CursorPersister("sub", owner, state, store)
    first = Stepped(persister.flush())
    await first
    written = await stored_bytes(bookie, store.ledger_id)
    last = state.ledgers.last_confirmed_entry
    state.acknowledge([Position(last.ledger_id, last.entry_id - 1)], None, 1.0)
    second = Stepped(persister.flush())
    await second
    after = await stored_bytes(bookie, store.ledger_id)
    seconds = await restore(metadata, bookie, owner, state)
    steps = first.steps_seconds
    print(
        f"{name:<22} memory {memory_bytes / 1e6:5.2f} MB"
        f"   first save {sum(steps) * 1e3:6.1f} ms in {len(steps)} steps"
        f" of at most {max(steps) * 1e3:4.2f} ms, {written[0]} entries, {written[1] / 1e6:.2f} MB"
        f"   next {sum(second.steps_seconds) * 1e3:5.2f} ms, {after[0] - written[0]} entries,"
        f" {(after[1] - written[1]) / 1e3:.1f} KB   restored in {seconds * 1e3:.0f} ms"
    )
    await bookie.close()


async def stored_bytes(bookie: LedgerStore, ledger_id: int) -> tuple[int, int]:
    """Entries of a ledger and their bytes."""
    reader = await bookie.open(ledger_id)
    found = reader.last_add_confirmed + 1, reader.length_bytes
    await reader.close()
    return found


async def restore(
    metadata: MetadataStore, bookie: LedgerStore, owner: Owner, state: CursorState
) -> float:
    """Read it back, and compare; returns how long reading took."""
    began = time.perf_counter()
    store = CursorStore(
        PATH, metadata, bookie, owner.clock, prove_ownership=nobody_asks, confirm_newest=nobody_asks
    )
    snapshot = await store.recover(owner.config)
    again = CursorState(state.ledgers, snapshot.mark_delete_position)
    again.restore(snapshot)
    seconds = time.perf_counter() - began
    assert again.mark_delete_position == state.mark_delete_position
    assert again.individual_deleted_messages == state.individual_deleted_messages
    assert again.batch_deleted_indexes.page_keys() == state.batch_deleted_indexes.page_keys()
    for key in state.batch_deleted_indexes.page_keys():
        pages = again.batch_deleted_indexes, state.batch_deleted_indexes
        assert pages[0].encode_page(key) == pages[1].encode_page(key)
    return seconds


def main() -> None:
    """Print one line a case."""
    for name, ledgers_count, entries_count, make in (
        ("holes, 200 ledgers", 200, ENTRIES_COUNT, with_holes),
        ("holes, one ledger", 1, ENTRIES_COUNT, with_holes),
        ("batches, 20 ledgers", 20, BATCHES_COUNT, with_batches),
    ):
        ledgers = ledgers_of(ledgers_count, entries_count)
        state = make(ledgers)
        gc.collect()
        memory_bytes = memory_of(state)
        asyncio.run(measure(name, state, memory_bytes))


def memory_of(state: CursorState) -> int:
    """Bytes of a copy of the acknowledgements; the bitmaps' C part by their own numbers."""
    tracemalloc.start()
    records = state.batch_deleted_indexes
    copies = type(records)()
    for key in records.page_keys():
        copies.merge_page(key, records.encode_page(key)[0])
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used + state.individual_deleted_messages.size_bytes()


if __name__ == "__main__":
    main()
