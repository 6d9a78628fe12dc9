"""`Clock`: the interface to time, and the real clock (edge).

Deciders take `now` as an argument; edges own a `Clock` and pass it on. Intervals are measured by
`monotonic_seconds`; times that are stored or sent are `wall_time_millis`. Timers come from the
running loop, so a loop in virtual time makes them virtual too.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable


class Clock(ABC):
    """Gives edges the time and timers."""

    @abstractmethod
    def monotonic_seconds(self) -> float:
        """Seconds of a clock that never goes back; only differences of them mean something."""

    @abstractmethod
    def wall_time_millis(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump when the machine's clock is set."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Run `callback` on the running loop after a delay; the handle cancels it."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)

    async def sleep(self, delay_seconds: float) -> None:
        """Return after a delay on the running loop."""
        await asyncio.sleep(delay_seconds)


class SystemClock(Clock):
    """The machine's clocks."""

    # The function itself, so that no call of Python is needed: it is asked for each entry.
    monotonic_seconds = staticmethod(time.monotonic)

    def wall_time_millis(self) -> int:
        """Milliseconds of `time.time`."""
        return time.time_ns() // 1_000_000
