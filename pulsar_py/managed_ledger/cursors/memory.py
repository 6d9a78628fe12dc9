"""`CursorMemory`: bounds the memory of all cursors' stored acknowledgements together (pure).

After each save a large cursor reports the memory that its ledgers take. Over the limit, the least
recently used ledgers are evicted: their cursor drops their acknowledgements, which are stored, and
loads them again on demand.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024
"""Enough for 400 million entries of which every second one is acknowledged."""


class Evictable(Protocol):
    """A large cursor, whose stored ledgers may be evicted."""

    def evict(self, ledger_id: int) -> bool:
        """Drop a ledger's stored acknowledgements from memory; False if they have to stay now."""


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
        """Note that a ledger was used and takes about `size_bytes`."""
        key = (holder, ledger_id)
        self.used_bytes += size_bytes - self._sizes.pop(key, 0)
        self._sizes[key] = size_bytes

    def forget(self, holder: Evictable, ledger_id: int | None = None) -> None:
        """Stop counting a ledger of a cursor, or all of them."""
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
