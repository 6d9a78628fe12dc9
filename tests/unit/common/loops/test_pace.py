"""How long work rests, in virtual time in which only the work moves the clock."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.loops.pace import LONGEST_REST_SECONDS, SHORTEST_REST_SECONDS, Pace
from pulsar_py.testing.clock import VirtualClock, run_virtual


def rests(*slices: float, waits: float = 0.0) -> list[float]:
    """How long each rest takes after a slice of so many seconds, each with a wait in it."""

    async def work() -> list[float]:
        clock = VirtualClock()
        pace = Pace(clock)
        took = []
        for seconds in slices:
            clock.jump(seconds / 2)
            pace.pause()
            clock.jump(waits)
            pace.resume()
            clock.jump(seconds / 2)
            began = clock.monotonic_seconds()
            await pace.rest()
            took.append(clock.monotonic_seconds() - began)
        return took

    return run_virtual(work())


def test_a_slice_is_followed_by_as_long_a_rest() -> None:
    assert rests(0.0015, 0.002) == pytest.approx([0.0015, 0.002])


def test_short_slices_add_up_to_one_rest() -> None:
    short = SHORTEST_REST_SECONDS * 0.4
    assert rests(short, short, short, short) == pytest.approx([0, 0, 3 * short, 0])


def test_what_was_interrupted_for_long_rests_no_longer_than_the_bound() -> None:
    assert rests(1.0) == pytest.approx([LONGEST_REST_SECONDS])


def test_a_wait_for_something_else_is_no_work() -> None:
    assert rests(0.0002, waits=1.0) == pytest.approx([0])


def test_others_have_a_turn_even_without_a_rest() -> None:
    async def work() -> list[str]:
        seen = []
        asyncio.get_running_loop().call_soon(seen.append, "other")
        await Pace(VirtualClock()).rest()
        return [*seen, "work"]

    assert run_virtual(work()) == ["other", "work"]
