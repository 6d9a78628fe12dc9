"""CursorMemory: bounds how much acknowledgement state all cursors keep in memory (pure).

After each save a large cursor reports the memory that its ledgers take. Over the limit, the ledgers
touched longest ago are evicted: their cursor drops what is stored, and loads it again on demand.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024
"""The acknowledgement holes of 400 million entries with every second one acknowledged."""


class Evictable(Protocol):
    """A large cursor."""

    def evict(self, ledger_id: int) -> bool:
        """Forget a ledger that is stored; False if it has to stay for now."""


class CursorMemory:
    """Least recently used ledgers of large cursors. Owned by the opener."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._sizes: OrderedDict[tuple[Evictable, int], int] = OrderedDict()  # oldest touch first
        self.used_bytes = 0  # of all ledgers reported

    @property
    def room_bytes(self) -> int:
        """Bytes that may still be loaded."""
        return max(self._limit_bytes - self.used_bytes, 0)

    def touch(self, holder: Evictable, ledger_id: int, size_bytes: int) -> None:
        """A ledger was used, and takes about so many bytes."""
        key = (holder, ledger_id)
        self.used_bytes += size_bytes - self._sizes.pop(key, 0)
        self._sizes[key] = size_bytes

    def forget(self, holder: Evictable, ledger_id: int | None = None) -> None:
        """A ledger, or all that a cursor has, is gone."""
        keys = [(holder, ledger_id)] if ledger_id is not None else None
        for key in keys or [each for each in self._sizes if each[0] is holder]:
            self.used_bytes -= self._sizes.pop(key, 0)

    def make_room(self) -> None:
        """Evict ledgers, least recently touched first, until the limit is kept."""
        if self.used_bytes <= self._limit_bytes:
            return
        for key in list(self._sizes):
            holder, ledger_id = key
            if holder.evict(ledger_id):
                self.used_bytes -= self._sizes.pop(key, 0)
                if self.used_bytes <= self._limit_bytes:
                    return
