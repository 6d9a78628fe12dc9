"""Limits the bytes of a client's messages that have no receipt yet (`memory_limit_bytes`).

Reservations are counted, not allocated. As in Pulsar's client, a reservation is granted while the
total does not exceed the limit, even if it exceeds it then: so a message larger than the limit
still goes out. Waiters are served in order; `try_reserve` refuses while somebody waits.

Source: MemoryLimitController in Pulsar's client.
"""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["MemoryLimit"]


class MemoryLimit:
    """The counter of reserved bytes. Owned by its ClientContext.

    Invariant: `current_bytes` is the sum reserved and not released; no caller waits while there is
    room.
    """

    __slots__ = ("_waiters", "current_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes` 0 means no limit: bytes are counted all the same."""
        self.limit_bytes = limit_bytes
        self.current_bytes = 0
        # Callers that wait for room, in order: bytes, the future to wake, and the owner.
        self._waiters: deque[tuple[int, asyncio.Future[None], object]] = deque()

    def _has_room(self) -> bool:
        return not self.limit_bytes or self.current_bytes < self.limit_bytes

    def try_reserve(self, size_bytes: int) -> bool:
        """Reserve `size_bytes` if there is room; returns False, and reserves nothing, if not."""
        # Hot path: produce in `make bench-client`.
        if self.limit_bytes and (self._waiters or self.current_bytes >= self.limit_bytes):
            return False
        self.current_bytes += size_bytes
        return True

    def try_reserve_within(self, size_bytes: int) -> bool:
        """As `try_reserve`, but not even the last byte may be beyond the limit."""
        if self.limit_bytes and (
            self._waiters or self.current_bytes + size_bytes > self.limit_bytes
        ):
            return False
        self.current_bytes += size_bytes
        return True

    def force_reserve(self, size_bytes: int) -> None:
        """Reserve `size_bytes`, even beyond the limit: the message can't be refused any more."""
        self.current_bytes += size_bytes

    async def reserve(self, size_bytes: int, owner: object = None) -> None:
        """Return when `size_bytes` are reserved; cancelling reserves nothing.

        Raises:
            Exception: The error that `fail_waiters` was given for `owner`.
        """
        if self.try_reserve(size_bytes):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (size_bytes, granted, owner)
        self._waiters.append(waiter)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.release(size_bytes)
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def release(self, size_bytes: int) -> None:
        """Release reserved bytes, and wake the waiters that fit now."""
        # Hot path: produce in `make bench-client`.
        self.current_bytes -= size_bytes
        assert self.current_bytes >= 0, f"{-self.current_bytes} bytes released twice"
        if self._waiters:
            self._grant()

    def _grant(self) -> None:
        while self._waiters and self._has_room():
            size_bytes, granted, _ = self._waiters.popleft()
            if not granted.done():
                self.current_bytes += size_bytes
                granted.set_result(None)

    def fail_waiters(self, owner: object, error: Exception) -> None:
        """Raise `error` to all callers that wait for `owner`, a producer that has ended."""
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if waiter[2] is not owner:
                self._waiters.append(waiter)
            elif not waiter[1].done():
                waiter[1].set_exception(error)

    @property
    def waiters_count(self) -> int:
        """The number of reservations that wait for room."""
        return len(self._waiters)
