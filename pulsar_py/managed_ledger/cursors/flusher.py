"""`CursorFlusher`: writes dirty cursors when they are due, all with one timer (edge).

A cursor says when its next write is due; that time does not change until the write begins, so a
heap of times is enough. Cursors due together append their states in one turn of the loop, which
the journal syncs as one group; beyond `WRITES_A_TURN` they follow in the next turns, so that a
store over a network is not flooded.

Cursors with receipts to give don't wait for a time: they are called once the commands that came
with this turn of the loop are served, all together.

While many managed ledgers are being opened, as those of a broker that died are, new cursor ledgers
wait some seconds: they take processor time that the openings need, and a topic that is not open yet
can't be published to at all.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Protocol

from pulsar_py.common.loops.clock import Clock

WRITES_A_TURN = 1000
"""Cursors whose writes begin in one turn of the loop: some ten milliseconds."""
MANY_OPENINGS = 8
"""Managed ledgers that are being opened, from which on new cursor ledgers wait."""
MAX_WAIT_SECONDS = 5.0
"""They don't wait for longer, however many there are."""


class Flushable(Protocol):
    """A cursor that may be dirty."""

    def write_if_due(self) -> None:
        """Begin a write if one is due. Schedules itself again if it has to."""

    def write_for_receipts(self) -> None:
        """Begin a write if receipts wait for one."""


class CursorFlusher:
    """The due times of all dirty cursors. Owned by the opener."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, Flushable]] = []  # heap; the number breaks ties
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # when the timer runs, if there is one
        self._soon: list[Flushable] = []  # those with receipts to give
        self._soon_timer: asyncio.TimerHandle | None = None
        self._openings_count = 0
        self._few_openings = asyncio.Event()
        self._few_openings.set()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Note that a managed ledger is being opened, within the context."""
        self._openings_count += 1
        if self._openings_count == MANY_OPENINGS:
            self._few_openings.clear()
        try:
            yield
        finally:
            self._openings_count -= 1
            if self._openings_count < MANY_OPENINGS:
                self._few_openings.set()

    async def until_few_openings(self) -> None:
        """Return when few managed ledgers are being opened, after some seconds in any case."""
        if not self._few_openings.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    await self._few_openings.wait()

    def schedule(self, cursor: Flushable, due_at: float) -> None:
        """Call the cursor's `write_if_due` at that time of the clock."""
        heapq.heappush(self._due, (due_at, next(self._numbers), cursor))
        self._set_timer()

    def soon(self, cursor: Flushable) -> None:
        """Call the cursor's `write_for_receipts` in the next turn of the loop."""
        self._soon.append(cursor)
        if self._soon_timer is None:
            self._soon_timer = self._clock.call_later(0.0, self._on_soon)

    def _on_soon(self) -> None:
        self._soon_timer = None
        soon, self._soon = self._soon, []
        for cursor in soon:
            cursor.write_for_receipts()

    def _set_timer(self) -> None:
        due_at = self._due[0][0]
        if self._timer is not None:
            if self._timer_at <= due_at:
                return
            self._timer.cancel()
        self._timer_at = due_at
        delay = max(0.0, due_at - self._clock.monotonic_seconds())
        self._timer = self._clock.call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        # A timer may run a clock tick early; cursors due by then should be written together.
        now = max(self._clock.monotonic_seconds(), self._timer_at)
        due: list[Flushable] = []
        while self._due and self._due[0][0] <= now and len(due) < WRITES_A_TURN:
            due.append(heapq.heappop(self._due)[2])
        for cursor in due:
            cursor.write_if_due()
        if self._due:
            self._set_timer()

    def close(self) -> None:
        """Stop the timer and forget all due times; nobody waits for openings any more."""
        self._few_openings.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._soon_timer is not None:
            self._soon_timer.cancel()
            self._soon_timer = None
        self._soon.clear()
        self._due.clear()
