"""`LoopLag`: how late a loop runs what is due, measured by a timer of its own (edge).

It runs while somebody looks: each `watch` keeps it going for `WATCHED_SECONDS`, so a broker that
nobody scrapes has no such timer. What is late by more than a clock's grain is late because another
turn of the loop took that long.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pulsar_py.common.durations import Durations
from pulsar_py.common.loops.clock import Clock

INTERVAL_SECONDS: Final = 0.25
"""Between two measurements."""

WATCHED_SECONDS: Final = 300.0
"""How long it goes on after the last look."""


class LoopLag:
    """The lag of the running loop; owned by the broker."""

    def __init__(self, clock: Clock) -> None:
        self.durations = Durations()
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None  # None while nobody looks
        self._due = 0.0  # when the timer should run
        self._watched_until = 0.0
        self._is_closed = False

    def watch(self) -> None:
        """Measure from now on, for some minutes."""
        self._watched_until = self._clock.monotonic_seconds() + WATCHED_SECONDS
        if self._timer is None and not self._is_closed:
            self._schedule()

    def close(self) -> None:
        """Measure no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        self._due = self._clock.monotonic_seconds() + INTERVAL_SECONDS
        self._timer = self._clock.call_later(INTERVAL_SECONDS, self._on_time)

    def _on_time(self) -> None:
        now = self._clock.monotonic_seconds()
        self.durations.add(now - self._due)
        self._timer = None
        if now < self._watched_until:
            self._schedule()
