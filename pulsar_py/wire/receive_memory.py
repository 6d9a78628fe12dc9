"""`ReceiveMemory`: the memory that connections receive into (pure).

    landing   what a read brings, until it is cut into frames before the next read: one for all
              connections of a loop, because each read is handled before the next begins
    large     the own memory of a large frame that has begun; whoever gets the frame keeps it

A peer names the size of a frame before it sends it. So that no number makes memory grow, large
frames that are under way have together at most `unfinished_bytes_limit`; beyond that a connection
gathers what really arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LANDING_BYTES: Final = 256 * 1024
"""The most that one read brings."""
UNFINISHED_BYTES_LIMIT: Final = 64 * 1024 * 1024
"""Memory of all large frames that have begun and are not complete."""


def new_memory(size: int) -> memoryview:
    """Memory of `size` bytes, which is freed with its last view."""
    return memoryview(bytearray(size))


class ReceiveMemory:
    """Gives connections of one loop the memory that they receive into. Not thread-safe."""

    def __init__(
        self,
        take: Callable[[int], memoryview] = new_memory,
        *,
        landing_bytes: int = LANDING_BYTES,
        unfinished_bytes_limit: int = UNFINISHED_BYTES_LIMIT,
    ) -> None:
        """Make the landing; `take` gives the memory of large frames."""
        self.landing: Final = memoryview(bytearray(landing_bytes))
        self._take = take
        self._limit_bytes = unfinished_bytes_limit
        self._unfinished_bytes = 0

    @property
    def unfinished_bytes(self) -> int:
        """Memory of the large frames under way."""
        return self._unfinished_bytes

    def begin(self, size: int) -> memoryview | None:
        """The memory of a large frame; None where too many are under way."""
        if self._unfinished_bytes + size > self._limit_bytes:
            return None
        self._unfinished_bytes += size
        return self._take(size)

    def end(self, size: int) -> None:
        """Note that a large frame is complete, or will never be."""
        self._unfinished_bytes -= size
        assert self._unfinished_bytes >= 0, "more large frames ended than began"
