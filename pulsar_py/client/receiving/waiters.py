"""Lets several tasks wait for something to arrive, and wakes them first come, first served (edge).

A waiter that is cancelled just after it was woken wakes the next one, so no wake-up is lost. A
woken task has to look again: what it was woken for may be gone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

__all__ = ["Waiters"]


class Waiters:
    """Tasks that wait; their number is that of the application's tasks that receive."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return when woken."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.wake_one()
            else:
                with suppress(ValueError):  # removed by a wake-up already
                    self._waiters.remove(waiter)
            raise

    def wake_one(self) -> None:
        """Wake the task that has waited longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        """Wake all tasks."""
        while self._waiters:
            self.wake_one()

    def __len__(self) -> int:
        return len(self._waiters)
