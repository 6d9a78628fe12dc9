"""The lag of a loop, in virtual time."""

from __future__ import annotations

from pulsar_py.common.loops.loop_lag import INTERVAL_SECONDS, WATCHED_SECONDS, LoopLag
from pulsar_py.testing.clock import VirtualClock, run_virtual


def test_it_measures_while_it_is_watched() -> None:
    async def run() -> tuple[int, int, int]:
        clock = VirtualClock()
        lag = LoopLag(clock)
        await clock.sleep(10)
        unwatched = lag.durations.count
        lag.watch()
        lag.watch()
        await clock.sleep(WATCHED_SECONDS + 100)
        counted = lag.durations.count
        lag.watch()
        lag.close()
        lag.watch()
        await clock.sleep(10)
        return unwatched, counted, lag.durations.count

    expected = WATCHED_SECONDS / INTERVAL_SECONDS
    assert run_virtual(run()) == (0, expected, expected)


def test_a_turn_that_takes_long_is_lag() -> None:
    class Slow(VirtualClock):
        shift = 0.0

        def monotonic_seconds(self) -> float:
            return super().monotonic_seconds() + self.shift

    async def run() -> float:
        clock = Slow()
        lag = LoopLag(clock)
        lag.watch()
        clock.shift = 0.75
        await clock.sleep(INTERVAL_SECONDS * 1.5)
        lag.close()
        return lag.durations.sum_seconds

    assert abs(run_virtual(run()) - 0.75) < 1e-6
