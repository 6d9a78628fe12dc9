"""What benchmarks work out of their measurements."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tails
from benchmarks.tails import (
    Load,
    Percentiles,
    bare_groups,
    bare_syncs,
    step,
    under_way,
    worst_moments,
)
from benchmarks.traced_broker import ProcessorTimes


def test_worst_moments_do_not_overlap() -> None:
    times = [(0, 10), (5, 30), (31, 35), (30, 33), (40, 45)]
    assert list(worst_moments(times, 8)) == [(5, 30), (40, 45), (31, 35)]
    assert list(worst_moments(times, 1)) == [(5, 30)]


def test_what_was_under_way_is_counted_once_and_only_within_the_moment() -> None:
    millisecond = 1_000_000
    spans = [
        ("flush", 11 * millisecond, 40 * millisecond),
        ("loop late", 5 * millisecond, 12 * millisecond),
        ("loop late", 0, 10 * millisecond),
        ("before", 0, 4 * millisecond),
        ("after", 20 * millisecond, 21 * millisecond),
    ]
    found = under_way(spans, 4 * millisecond, 20 * millisecond)
    assert found == [("flush", 9.0), ("loop late", 8.0)]


def test_a_bare_loop_ends_with_its_time_on_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda _: threading.Event().wait(0.02))
    assert 1 <= len(bare_syncs(tmp_path, 0.05)) <= 3


async def test_a_step_that_takes_too_long_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"the fill: not done after 0\.01 s"):
        async with step("the fill", 0.01):
            await asyncio.sleep(60)


async def test_a_timeout_within_a_step_is_not_taken_for_its_limit() -> None:
    with pytest.raises(RuntimeError, match="the fill: something in it timed out"):
        async with step("the fill", 60):
            raise TimeoutError


def test_messages_that_did_not_come_are_beyond_any_limit() -> None:
    bare = Percentiles(1, 1, 1, 1)
    load = Load("1 a second", [(0, 4_000_000)] * 9, bare, 5.0, bare, missing=0)
    assert load.beyond() == []
    assert replace(load, limit_millis=3.0).beyond() == ["1 a second: p99.9 4.00 ms"]
    late = replace(load, missing=1)
    assert late.beyond() == ["1 a second: 1 of 10 messages did not come in time"]


def test_a_bare_loop_of_groups_has_a_time_for_each_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "BARE_FILE_BYTES", 4 << 20)
    before = time.perf_counter()
    millis = bare_groups(tmp_path, 5_000, seconds=0.05)
    took = (time.perf_counter() - before) * 1e3

    assert 1 <= len(millis) <= 50 * 5
    assert all(0 < each < took for each in millis)
    assert not list(tmp_path.iterdir())


def test_the_time_that_a_thread_worked_is_told_from_the_time_that_it_slept() -> None:
    with closing(ProcessorTimes()) as times:
        threading.Event().wait(0.02)
        assert times.nanos()[0] < 15_000_000
        begun = time.thread_time()
        while time.thread_time() < begun + 0.05:  # the system counts in ticks of up to 10 ms
            pass
        assert times.nanos()[0] >= 30_000_000
