"""Micro benchmark of the storage engine: `python -m benchmarks.micro_storage [directory]`.

Rows named in `# Hot path:` comments:

append    200,000 entries of 1 KB to one ledger, appended as fast as the engine takes them; CPU of
          all threads an entry until they are confirmed, and until they are flushed, too
catch-up  the same entries read back from the page cache, past all caches of the engine
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass

import uvloop

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds

ENTRIES_COUNT = 200_000
ENTRY_BYTES = 1024
BATCH_COUNT = 500
"""Appends in one turn of the loop, about what ten connections deliver."""

MIB = 1024 * 1024


class Waiter:
    """Ends a future when an entry is confirmed."""

    def __init__(self, entry_id: int) -> None:
        self._entry_id = entry_id
        self.confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_confirmed(self, _ledger_id: int, last_add_confirmed: int) -> None:
        """Take in how far it is."""
        if last_add_confirmed >= self._entry_id:
            self.confirmed.set_result(None)

    def on_failed(self, _ledger_id: int, error: StorageError) -> None:
        """Give up."""
        self.confirmed.set_exception(error)


@dataclass
class Stopwatch:
    """Wall time and CPU since it was made."""

    def __post_init__(self) -> None:
        self._wall = time.perf_counter()
        self._usage = resource.getrusage(resource.RUSAGE_SELF)

    def row(self, name: str, count: int) -> None:
        """Print what `count` entries took."""
        wall = time.perf_counter() - self._wall
        usage = resource.getrusage(resource.RUSAGE_SELF)
        user = (usage.ru_utime - self._usage.ru_utime) / count * 1e6
        system = (usage.ru_stime - self._usage.ru_stime) / count * 1e6
        megabytes = count * ENTRY_BYTES / wall / 1e6
        print(
            f"{name:<28}{count / wall:>12,.0f}/s{megabytes:>8,.0f} MB/s"
            f"   cpu {user + system:5.2f} µs an entry: user {user:5.2f}, kernel {system:5.2f}"
        )


async def append(bookie: Bookie) -> LedgerWriter:
    """Measure the publish side."""
    entries = [number.to_bytes(4, "big") * (ENTRY_BYTES // 4) for number in range(ENTRIES_COUNT)]
    waiter = Waiter(ENTRIES_COUNT - 1)
    writer = await bookie.create(waiter, LedgerOptions())
    watch, whole = Stopwatch(), Stopwatch()
    for start in range(0, ENTRIES_COUNT, BATCH_COUNT):
        for entry in entries[start : start + BATCH_COUNT]:
            writer.append(entry)
        await asyncio.sleep(0)
        while bookie.gate.room_bytes < 16 * MIB:
            await asyncio.sleep(0.001)
    await waiter.confirmed
    watch.row("append, confirmed", ENTRIES_COUNT)
    await bookie.flush()
    whole.row("append, confirmed, flushed", ENTRIES_COUNT)
    return writer


async def catch_up(writer: LedgerWriter) -> None:
    """Measure the reading side."""
    watch = Stopwatch()
    entry_id = 0
    while entry_id < ENTRIES_COUNT:
        found = writer.read_cached(entry_id, ENTRIES_COUNT, MIB)
        if found is None:
            found = await writer.read(entry_id, ENTRIES_COUNT, MIB)
        entry_id += len(found)
    watch.row("catch-up", ENTRIES_COUNT)


async def measure(name: str, disk: Disk, settings: BookieSettings) -> None:
    """Print all rows for one engine."""
    print(name)
    started = time.perf_counter()
    bookie = await Bookie.start(
        disk, clock=SystemClock(), ledger_ids=CountedLedgerIds(), settings=settings
    )
    print(f"{'start':<28}{(time.perf_counter() - started) * 1e3:>12.1f} ms")
    writer = await append(bookie)
    await catch_up(writer)
    await bookie.close()


def main() -> None:
    """Run on a directory of its own, in memory, and volatile."""
    parent = sys.argv[1] if len(sys.argv) > 1 else None
    directory = tempfile.mkdtemp(prefix="micro_storage", dir=parent)
    try:
        uvloop.run(measure("local disk", LocalDisk(directory), BookieSettings()))
    finally:
        shutil.rmtree(directory)
    uvloop.run(measure("memory disk", MemoryDisk(), BookieSettings()))
    uvloop.run(measure("volatile", MemoryDisk(), BookieSettings(is_volatile=True)))


if __name__ == "__main__":
    main()
