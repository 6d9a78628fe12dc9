"""Measures time and memory of many ledgers in one engine, in a process of its own.

Run by `benchmarks.storage`; prints one JSON object. Each ledger gets one small entry and is closed.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path

import uvloop

from pulsar_py.cli.standalone import spare_the_loop
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie
from pulsar_py.testing.ledger_ids import CountedLedgerIds

AT_ONCE = 200
LOOKUPS_COUNT = 2000


class LongestTurn:
    """The longest time the loop was away, seen by a callback in each of its turns."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = time.perf_counter()
        self.millis = 0.0
        self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        now = time.perf_counter()
        self.millis = max(self.millis, (now - self._last) * 1e3)
        self._last = now
        self._loop.call_later(0.001, self._tick)

    def take(self) -> float:
        """The longest one since the last call, in ms."""
        millis, self.millis = self.millis, 0.0
        return millis


class _Ignoring:
    def on_confirmed(self, _ledger_id: int, _last_add_confirmed: int) -> None:
        pass

    def on_failed(self, _ledger_id: int, _error: StorageError) -> None:
        pass


def resident_megabytes() -> float:
    """Resident memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def _make_one(bookie: Bookie) -> None:
    writer = await bookie.create(_Ignoring(), LedgerOptions())
    writer.append(b"x" * 100)
    await writer.close()


async def measure(directory: Path, count: int) -> dict[str, float]:
    """Fill an engine, start it anew, look ledgers up, list them, delete nine of ten."""
    ids = CountedLedgerIds()
    turn = LongestTurn()
    figures = {"before_megabytes": resident_megabytes()}
    clock = SystemClock()
    bookie = await Bookie.start(LocalDisk(directory), clock=clock, ledger_ids=ids)
    started, cpu = time.perf_counter(), time.process_time()
    for _ in range(0, count, AT_ONCE):
        await asyncio.gather(*(_make_one(bookie) for _ in range(AT_ONCE)))
    figures["create_seconds"] = time.perf_counter() - started
    figures["create_cpu_seconds"] = time.process_time() - cpu
    figures["create_longest_turn_millis"] = turn.take()
    await bookie.flush()
    figures["flush_longest_turn_millis"] = turn.take()
    figures["filled_megabytes"] = resident_megabytes()
    await bookie.close()

    started = time.perf_counter()
    turn.take()
    bookie = await Bookie.start(LocalDisk(directory), clock=clock, ledger_ids=ids)
    figures["start_seconds"] = time.perf_counter() - started
    figures["start_longest_turn_millis"] = turn.take()
    chance = random.Random(1)
    started = time.perf_counter()
    for _ in range(LOOKUPS_COUNT):
        await bookie.info(chance.randint(1, count))
    figures["lookup_micros"] = (time.perf_counter() - started) / LOOKUPS_COUNT * 1e6
    turn.take()
    started = time.perf_counter()
    assert sum([len(page) async for page in bookie.list_ledgers()]) == count
    figures["list_seconds"] = time.perf_counter() - started
    figures["list_longest_turn_millis"] = turn.take()
    await _delete(bookie, count, figures, turn)
    figures["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    await bookie.close()
    return figures


async def _delete(bookie: Bookie, count: int, figures: dict[str, float], turn: LongestTurn) -> None:
    turn.take()
    started, cpu = time.perf_counter(), time.process_time()
    for first in range(1, count + 1, AT_ONCE):
        gone = [number for number in range(first, first + AT_ONCE) if number % 10]
        await asyncio.gather(*map(bookie.delete, gone))
    figures["delete_seconds"] = time.perf_counter() - started
    figures["delete_cpu_seconds"] = time.process_time() - cpu
    figures["delete_longest_turn_millis"] = turn.take()
    await bookie.flush()
    figures["delete_flush_longest_turn_millis"] = turn.take()


def main() -> None:
    """`directory count`."""
    spare_the_loop()
    print(json.dumps(uvloop.run(measure(Path(sys.argv[1]), int(sys.argv[2])))))


if __name__ == "__main__":
    main()
