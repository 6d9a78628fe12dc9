"""Freed memory goes back once after each busy time."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from pulsar_py.common.loops.idle_heap import (
    IDLE_SHARE,
    INTERVAL_SECONDS,
    IdleHeap,
    keep_freed_memory,
    trim_heap,
)
from pulsar_py.testing.clock import VirtualClock, run_virtual


class Process:
    """Its CPU time, and how often it gave memory back."""

    def __init__(self) -> None:
        self.cpu_seconds = 5.0
        self.count = 0

    def give_back(self) -> None:
        self.count += 1


def test_memory_is_given_back_once_after_each_busy_time() -> None:
    process, counts = Process(), list[int]()

    async def work() -> None:
        clock = VirtualClock()
        with IdleHeap(clock, lambda: process.cpu_seconds, process.give_back):
            for share in (1.0, 0.9, 0.0, IDLE_SHARE / 2, 0.0, 0.5, 0.0, 0.0):
                process.cpu_seconds += share * INTERVAL_SECONDS
                await clock.sleep(INTERVAL_SECONDS)
                counts.append(process.count)

    run_virtual(work())
    assert counts == [0, 0, 1, 1, 1, 1, 2, 2]


def test_nothing_is_looked_at_after_the_end() -> None:
    process = Process()

    async def work() -> None:
        clock = VirtualClock()
        with IdleHeap(clock, lambda: process.cpu_seconds, process.give_back):
            pass
        await clock.sleep(3 * INTERVAL_SECONDS)

    run_virtual(work())
    assert process.count == 0


def test_the_heap_of_this_process_can_be_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    trim_heap()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())  # as where there is no glibc
    trim_heap()


MEASURED = """
import resource, sys
from pulsar_py.common.loops.idle_heap import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
before = 0
for turn in range(20):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    entries = [bytes([turn]) * 131_000 for _ in range(200)]
    del entries
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another allocator")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    def faults(mode: str) -> int:
        command = [sys.executable, "-c", MEASURED, mode]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert faults("given back") > 10_000  # ten turns, 6,400 pages each
    assert faults("kept") < 1000


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())

    keep_freed_memory()
