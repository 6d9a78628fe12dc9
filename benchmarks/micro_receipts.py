"""Micro benchmark of receipts of acknowledgements: `python -m benchmarks.micro_receipts`.

A cursor with no holes, and one with five million (every second entry of ten million), gets single
acknowledgements at random places; on a fast disk and on a slow one, with and without receipts. They
come in turns of the loop, some hundred in each. In flight are as many as four consumers with the
clients' default receiver queue hold: that bounds the rate, since a receipt takes a sync of the disk
or two. Printed are acknowledgements a second, bytes written an acknowledgement, the mean of them in
a group, the CPU of the loop, and how long a restart after it takes.

Both kinds take turns for some rounds, and who begins changes from round to round. With holes, each
writes the whole state once: without receipts at the end, with them at the first. A broker does so
once in a second, or in some hundred thousand acknowledgements; with a small `--count` that write is
too large a part of what is measured.

A cursor alone does a tenth to a quarter of what a broker does for a message. So `--broker` measures
a whole one, on a real disk, in a process of its own: a Shared subscription takes a backlog and
acknowledges each message by a command, both kinds by turns on the same broker; and on one whose
disk takes a slow one's time more for each sync; both without holes and amid five million of them.

The exit status is 1 if the median of the rates' ratios is too low, or too much is written, or a
restart takes too long.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvloop

from benchmarks import slow_syncs
from benchmarks.acknowledging_loads import (
    acknowledge,
    acknowledge_amid_holes,
    with_holes_acknowledged,
)
from benchmarks.limited_rows import exit_with, print_limited
from benchmarks.micro_cursor import Owner, ledgers_of, store_of, stored_bytes, with_holes
from benchmarks.targets import start_ours
from pulsar_py.cli.standalone import COLLECTOR_THRESHOLDS
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.disk import SimulatedDisk
from pulsar_py.testing.ledger_ids import CountedLedgerIds

ENTRIES_COUNT = 10_000_000
IN_FLIGHT = 4000
A_TURN = 500
SYNC_SECONDS = {"fast disk": 0.0003, "slow disk": 0.004}

HOLES_COUNT = 5_500_000
"""Of a whole broker's subscription, which has still five million when all rounds are done."""
ONE_LEDGER = {
    "managedLedgerMaxEntriesPerLedger": str(2**31 - 1),
    "managedLedgerMaxSizePerLedgerMbytes": "65536",
}

LIMITS = {
    "rate_without_to_with_receipts": 1 / 0.8,
    "bytes_beyond_those_of_groups": 64.0,
    "recovery_millis": 1000.0,
}
GROUP_BYTES = 8 * 1024
"""What a group may take beside what each of its acknowledgements does."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one run measured."""

    per_second: float
    bytes_each: float  # less those that groups may take
    recovery_millis: float


@dataclass
class Consumer:
    """Acknowledges at random places, and waits for receipts if it asks for them."""

    state: CursorState
    persister: CursorPersister
    asks: bool
    entry_ids: list[int]
    count: int
    done_count: int = 0
    free_count: int = IN_FLIGHT  # that may be acknowledged before further receipts
    is_free: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.receiver = self._on_durable  # one for all, as that of a connection's consumer

    async def acknowledge_all(self) -> None:
        """All entries, some in each turn of the loop."""
        while self.entry_ids:
            for _ in range(min(A_TURN, len(self.entry_ids), self.free_count)):
                self.acknowledge()
            if self.free_count:
                await asyncio.sleep(0)
            else:
                self.is_free.clear()
                await self.is_free.wait()
        if not self.asks:
            await self.persister.flush()
        while self.done_count < self.count:
            self.is_free.clear()
            await self.is_free.wait()

    def acknowledge(self) -> None:
        """The next one, as a ManagedCursor does it."""
        positions = [Position(1, self.entry_ids.pop())]
        self.state.acknowledge(positions, None, time.monotonic())
        self.persister.schedule()
        if self.asks:
            self.free_count -= 1
            self.persister.when_durable(self.receiver, 0)
        else:
            self.done_count += 1

    def _on_durable(self, numbers: Sequence[int], error: Exception | None) -> None:
        assert error is None
        self.done_count += len(numbers)
        self.free_count += len(numbers)
        self.is_free.set()


async def measure(disk_name: str, count: int, *, holes: bool, asks: bool) -> Row:
    """One row."""
    ledgers = ledgers_of(1, ENTRIES_COUNT)
    state = with_holes(ledgers) if holes else CursorState(ledgers, Position(1, -1))
    owner, disk = Owner(), SimulatedDisk(random.Random(1))
    disk.sync_seconds = SYNC_SECONDS[disk_name]
    bookie = await Bookie.start(
        disk, clock=owner.clock, ledger_ids=CountedLedgerIds(1001), settings=BookieSettings()
    )
    metadata = MemoryMetadataStore(owner.clock)

    store = store_of(metadata, bookie, owner)
    await store.create(CursorState(ledgers, state.mark_delete_position))
    persister = CursorPersister("sub", owner, state, store)
    state.acknowledge([Position(1, 1)], None, 0.0)
    await persister.flush()
    before = await stored_bytes(bookie, store.ledger_id)
    # Even ones: no hole has them. Without holes they are neighbours, out of order by a little.
    chance = random.Random(2)
    if holes:
        entry_ids = [2 * chance.randrange(1, ENTRIES_COUNT // 2) for _ in range(count)]
    else:
        entry_ids = sorted(range(count), key=lambda each: -each + chance.randrange(20))
    consumer = Consumer(state, persister, asks, entry_ids, count)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)  # as a broker
    cpu, start = time.thread_time(), time.perf_counter()
    await consumer.acknowledge_all()
    seconds, used = time.perf_counter() - start, time.thread_time() - cpu
    after = await stored_bytes(bookie, store.ledger_id)
    groups = max(after[0] - before[0], 1)
    began = time.perf_counter()
    snapshot = await store_of(metadata, bookie, owner).recover(owner.config)
    again = CursorState(ledgers, snapshot.mark_delete_position)
    again.restore(snapshot)
    recovery_seconds = time.perf_counter() - began
    assert again.backlog_count() == state.backlog_count()
    print(
        f"{'5 million holes' if holes else 'no holes':<16}{disk_name}, "
        f"{'with' if asks else 'without':<8}receipts  {count / seconds / 1000:7.1f}k/s"
        f"  {used / count * 1e6:5.1f} us CPU"
        f"  {(after[1] - before[1]) / count:7.1f} B an acknowledgement"
        f"  {groups} groups of {count / groups:.0f}"
        f"  recovered in {recovery_seconds * 1e3:.0f} ms"
    )
    owner.flusher.close()
    await bookie.close()
    written = max(after[1] - before[1] - groups * GROUP_BYTES, 0)
    return Row(count / seconds, written / count, recovery_seconds * 1e3)


def measure_pairs(disk_name: str, count: int, rounds: int, *, holes: bool) -> list[str]:
    """Some rounds without and with receipts by turns; returns what is beyond its limit."""
    ratios, rows = [], []
    for number in range(rounds):
        turns = {
            asks: asyncio.run(measure(disk_name, count, holes=holes, asks=asks))
            for asks in order(number)
        }
        without, receipts = turns[False], turns[True]
        ratios.append(without.per_second / receipts.per_second)
        rows.append(receipts)
    figures = {
        "rate_without_to_with_receipts": statistics.median(ratios),
        "bytes_beyond_those_of_groups": statistics.median(row.bytes_each for row in rows),
        "recovery_millis": statistics.median(row.recovery_millis for row in rows),
    }
    title = f"{'5 million holes' if holes else 'no holes'}, {disk_name}, with receipts"
    return print_limited(title, figures, LIMITS)


def order(number: int) -> tuple[bool, bool]:
    """Who begins a round: without receipts in even ones, with them in odd ones."""
    return (False, True) if number % 2 == 0 else (True, False)


def measure_broker(count: int, rounds: int, *, holes: bool, is_slow: bool) -> list[str]:
    """A whole broker without and with receipts by turns; returns what is beyond its limit.

    Its disk is a real one, whose syncs take a slow one's time more if `is_slow`.
    """
    ratios: list[float] = []
    name = f"{'5 million holes' if holes else 'no holes'}, {'slow' if is_slow else 'real'} disk"
    program = [str(Path(sys.executable).with_name("pulsar-py"))]
    if is_slow:
        millis = SYNC_SECONDS["slow disk"] * 1000
        program = [sys.executable, str(Path(slow_syncs.__file__)), str(millis)]
    with tempfile.TemporaryDirectory() as directory:
        target = start_ours(Path(directory), ONE_LEDGER, program=program)
        try:
            topic = uvloop.run(with_holes_acknowledged(target, HOLES_COUNT)) if holes else None
            for number in range(rounds):
                rates: dict[bool, float] = {}
                for asks in order(number):
                    load = partial(acknowledge, target)
                    if topic is not None:
                        load = partial(acknowledge_amid_holes, target, topic)
                    row = uvloop.run(load(asks_for_receipts=asks, count=count)).as_dict()
                    rates[asks] = row["entries_per_second"]
                    print(
                        f"whole broker, {name}, {'with' if asks else 'without':<8}receipts"
                        f"  {row['entries_per_second'] / 1000:7.1f}k/s"
                        f"  {row['cpu_micros_per_entry']:5.1f} us CPU",
                        flush=True,
                    )
                ratios.append(rates[False] / rates[True])
        finally:
            target.stop()
    figures = {"rate_without_to_with_receipts": statistics.median(ratios)}
    return print_limited(f"whole broker, {name}, with receipts", figures, LIMITS)


def main() -> None:
    """Print one line a run, and what became of each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="acknowledgements a row")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-holes", action="store_true", help="only the cursor without holes")
    parser.add_argument("--broker", action="store_true", help="a whole broker")
    arguments = parser.parse_args()
    missed: list[str] = []
    for holes in (False,) if arguments.no_holes else (False, True):
        for disk_name in SYNC_SECONDS:
            if arguments.broker:
                missed += measure_broker(
                    arguments.count,
                    arguments.rounds,
                    holes=holes,
                    is_slow=disk_name == "slow disk",
                )
                continue
            missed += measure_pairs(disk_name, arguments.count, arguments.rounds, holes=holes)
    exit_with(missed)


if __name__ == "__main__":
    main()
