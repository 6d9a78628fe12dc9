"""Limits how many messages of one producer wait for their receipts (`max_pending_messages`).

Messages are counted, not queued. Callers that wait for room get it in order. A message that must
not wait (`send_nowait` of a producer that blocks when full) is counted even beyond the limit.

Source: the semaphore of ProducerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["SendPermits"]


class SendPermits:
    """Counts one producer's messages without receipt.

    Invariant: `used` is the number taken and not given back; no caller waits while there is room.
    """

    __slots__ = ("_waiters", "limit", "on_given_back", "used")

    def __init__(self, limit: int) -> None:
        """`limit` 0 means no limit."""
        self.limit = limit
        self.used = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        # Called after some were given back; set only while a thread waits for room.
        self.on_given_back: Callable[[], None] | None = None

    def try_take(self) -> bool:
        """Take one if there is room."""
        if self.limit and (self.used >= self.limit or self._waiters):
            return False
        self.used += 1
        return True

    async def take(self) -> None:
        """Return when one is taken; cancelling takes none.

        Raises:
            Exception: The error given to `fail_waiters`.
        """
        if self.try_take():
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.give_back(1)
            elif granted in self._waiters:
                self._waiters.remove(granted)
            raise

    def give_back(self, count: int) -> None:
        """Return `count` permits, and wake the waiters that have room now."""
        self.used -= count
        assert self.used >= 0, f"{-self.used} permits given back twice"
        if self._waiters:
            self._grant()
        if self.on_given_back is not None:
            self.on_given_back()

    def set_limit(self, limit: int) -> None:
        """Change the limit; permits already taken stay taken."""
        self.limit = limit
        self._grant()

    def _grant(self) -> None:
        while self._waiters and (not self.limit or self.used < self.limit):
            granted = self._waiters.popleft()
            if not granted.done():
                self.used += 1
                granted.set_result(None)

    def fail_waiters(self, error: Exception) -> None:
        """Raise `error` to all callers that wait."""
        waiters, self._waiters = self._waiters, deque()
        for granted in waiters:
            if not granted.done():
                granted.set_exception(error)

    @property
    def waiters_count(self) -> int:
        """The number of callers that wait for room."""
        return len(self._waiters)
