"""`Room`: bounds the requests without an answer at a server, by number and bytes (edge).

Whoever finds no room waits, in the order of coming; a large request is not overtaken by small ones.
A request larger than the whole room goes alone.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """Counts what is under way, and lets no more in than fits."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._count = 0
        self._bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting_count(self) -> int:
        """The number of requests that wait for room."""
        return sum(not future.done() for _, future in self._waiting)

    def _fits(self, size_bytes: int) -> bool:
        if self._count == 0:
            return True
        return self._count < self._max_count and self._bytes + size_bytes <= self._max_bytes

    async def take(self, size_bytes: int) -> None:
        """Return when there is room; it is taken then, until `give_back`.

        # Hot path: one call a request; without waiting where there is room.
        """
        if not self._waiting and self._fits(size_bytes):
            self._count += 1
            self._bytes += size_bytes
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back(size_bytes)  # it was given room, and goes without it
            else:
                self._let_in()  # those behind may fit now
            raise

    def give_back(self, size_bytes: int) -> None:
        """What was taken is answered, or given up."""
        self._count -= 1
        self._bytes -= size_bytes
        assert self._count >= 0 <= self._bytes
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            size_bytes, future = self._waiting[0]
            if future.done():  # cancelled
                self._waiting.popleft()
                continue
            if not self._fits(size_bytes):
                return
            self._waiting.popleft()
            self._count += 1
            self._bytes += size_bytes
            future.set_result(None)
