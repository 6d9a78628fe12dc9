"""ReadAhead: what a cursor has read ahead of its consumers (edge).

A catch-up read fetches more than was asked for; the rest is kept here, in order, and counts in the
budget of the entry caches. It is worth something only while the cursor reads straight on: whoever
moves it lets the rest go.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.managed_ledger.entry import Entry
from pulsar_py.managed_ledger.entry_cache import ENTRY_OVERHEAD_BYTES, EntryCacheManager


class ReadAhead:
    """Entries of one ledger that follow each other. Owned by a ManagedCursor."""

    __slots__ = ("_cache", "_entries", "_next", "_reserved_bytes")

    def __init__(self, cache: EntryCacheManager) -> None:
        self._cache = cache
        self._entries: Sequence[Entry] = ()
        self._next = 0  # index of the first one not taken
        self._reserved_bytes = 0  # in the budget, until all are taken

    def keep_at_least(self, entries: Sequence[Entry], count: int) -> None:
        """Replace what is here; without room in the budget, keep only the first `count`."""
        self.clear()
        size = sum(len(entry.data) for entry in entries) + len(entries) * ENTRY_OVERHEAD_BYTES
        if self._cache.reserve(size):
            self._entries = entries
            self._reserved_bytes = size
        else:
            self._entries = entries[:count]

    def take(self, ledger_id: int, first: int, last: int, max_bytes: int) -> list[Entry] | None:
        """Entries from `first` on, at least one; None (and nothing is kept) if it is not next."""
        entries = self._entries
        start = self._next
        if start >= len(entries):
            return None
        head = entries[start]
        if head.ledger_id != ledger_id or head.entry_id > first or entries[-1].entry_id < first:
            self.clear()
            return None
        start += first - head.entry_id
        stop = min(start + last - first + 1, len(entries))
        taken: list[Entry] = []
        room = max_bytes
        for place in range(start, stop):
            entry = entries[place]
            room -= len(entry.data)
            if room < 0 and taken:
                break
            taken.append(entry)
        self._next = start + len(taken)
        if self._next == len(entries):
            self.clear()
        return taken

    def clear(self) -> None:
        """Let everything go."""
        self._cache.release(self._reserved_bytes)
        self._reserved_bytes = 0
        self._entries = ()
        self._next = 0
