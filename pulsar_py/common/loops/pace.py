"""`Pace`: lets long work on a loop rest for as long as it works, so that others hardly wait (edge).

What others do takes several turns of the loop: a SEND is read in one, written in the next, answered
in a third, and threads that report to the loop need the interpreter meanwhile. If each of these
turns also has a slice of some long work, the slices add up. So after each slice others have a turn,
and as soon as the slices so far come to a timer's grain, the work sleeps for about as long.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pulsar_py.common.loops.clock import Clock

SHORTEST_REST_SECONDS: Final = 0.001
"""The grain of a loop's timers; for less than that others only have a turn."""

LONGEST_REST_SECONDS: Final = 0.003
"""A slice that seems to have taken longer was interrupted by other processes."""


class Pace:
    """The slices and rests of one piece of work, which owns it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._resumed_seconds = clock.monotonic_seconds()  # when the slice began
        self._owed_seconds = 0.0  # work without a rest so far

    def pause(self) -> None:
        """End a slice, before a wait for something else."""
        self._owed_seconds += self._clock.monotonic_seconds() - self._resumed_seconds

    def resume(self) -> None:
        """Begin a slice, after a wait for something else."""
        self._resumed_seconds = self._clock.monotonic_seconds()

    async def rest(self) -> None:
        """End a slice; returns when the next one begins."""
        self.pause()
        if self._owed_seconds < SHORTEST_REST_SECONDS:
            await asyncio.sleep(0)
        else:
            await self._clock.sleep(min(self._owed_seconds, LONGEST_REST_SECONDS))
            self._owed_seconds = 0.0
        self.resume()
