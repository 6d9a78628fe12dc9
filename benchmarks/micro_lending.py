"""What it costs to say where entries are: `python -m benchmarks.micro_lending [directory]`.

The storage engine alone, with files in the page cache: 100 MB of entries of one size in a ledger
are flushed, and all their places asked for, 16 MB at a time. Each row has the medians of some
rounds, the time and the CPU of all threads for a megabyte of entries.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time

import uvloop

from benchmarks.micro_storage import MIB, Waiter
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.storage.entry_logs.places import PlaceLimits
from pulsar_py.testing.ledger_ids import CountedLedgerIds

ENTRY_SIZES = (1_000_000, 100_000, 1_000)
ALL_BYTES = 100_000_000
ROUNDS_COUNT = 20
LIMITS = PlaceLimits(size_bytes=16 * MIB, entries_count=65_536, runs_count=4096, new_logs_count=16)


async def fill(bookie: Bookie, size: int) -> int:
    """A ledger with entries of that size in entry logs."""
    count = ALL_BYTES // size
    waiter = Waiter(count - 1)
    writer = await bookie.create(waiter, LedgerOptions())
    data = os.urandom(size)
    for _ in range(count):
        while bookie.gate.room_bytes < 16 * MIB:
            await asyncio.sleep(0.001)
        writer.append(data)
    await waiter.confirmed
    await bookie.flush()
    return writer.ledger_id


async def ask_all(bookie: Bookie, ledger_id: int, count: int) -> None:
    """Ask for all places, as one connection."""
    held_logs: set[int] = set()
    entry_id = 0
    while entry_id < count:
        places = await bookie.places(
            ledger_id, entry_id, count - 1, limits=LIMITS, held_logs=held_logs
        )
        held_logs |= places.new_logs.keys()
        places.close()
        entry_id += sum(len(run.lengths) for run in places.runs)


async def measure(directory: str) -> None:
    """Print all rows."""
    bookie = await Bookie.start(
        LocalDisk(directory),
        clock=SystemClock(),
        ledger_ids=CountedLedgerIds(),
        settings=BookieSettings(),
    )
    for size in ENTRY_SIZES:
        ledger_id = await fill(bookie, size)
        await ask_all(bookie, ledger_id, ALL_BYTES // size)  # brings the heads into the page cache
        walls, cpus = [], []
        for _ in range(ROUNDS_COUNT):
            wall, cpu = time.perf_counter(), time.process_time()
            await ask_all(bookie, ledger_id, ALL_BYTES // size)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        megabytes = ALL_BYTES / 1e6
        print(
            f"places of {size:>9,} bytes"
            f"{statistics.median(walls) * 1e6 / megabytes:>8.1f} us a MB, "
            f"cpu {statistics.median(cpus) * 1e6 / megabytes:>7.1f}"
        )
    await bookie.close()


def main() -> None:
    """Run on a directory of its own."""
    parent = sys.argv[1] if len(sys.argv) > 1 else None
    directory = tempfile.mkdtemp(prefix="micro_lending", dir=parent)
    try:
        uvloop.run(measure(directory))
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
