"""The read cache: runs of entries read from entry logs, bounded in bytes; pure.

A run is found by any entry in it. The least recently used run goes first; a cursor that reads on
finds the runs that were read ahead for it. Counts what the runs hold in memory, not their payload.

A run may carry a mark: the first one who finds it is reported, with the entry at which what is here
ends, so that what follows can be fetched before it is asked for.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable

from pulsar_py.storage.ledgers import entries_cost

RUN_OVERHEAD_BYTES = 512

OnMark = Callable[[int, int], None]
"""Called with a ledger's id and the entry behind what was read ahead."""


class ReadCache:
    """Decoded runs by ledger and first entry id."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        # Oldest first; the key is (ledger id, first entry id).
        self._runs: OrderedDict[tuple[int, int], tuple[list[bytes], int]] = OrderedDict()
        # First entry ids of each ledger's runs, ascending.
        self._firsts: dict[int, list[int]] = {}
        # By the key of a run that is here: the entry to report when it is found.
        self._marks: dict[tuple[int, int], int] = {}
        # Of those, the ones that stand for a stretch that nobody has asked for.
        self._unread: set[tuple[int, int]] = set()
        self.size_bytes = 0
        self.on_mark: OnMark | None = None

    @property
    def unread_count(self) -> int:
        """Stretches that were fetched ahead, are here, and were not found by anybody."""
        return len(self._unread)

    def put(self, ledger_id: int, first_entry_id: int, entries: list[bytes]) -> None:
        """Keep a run; a run bigger than the whole cache is not kept."""
        key = (ledger_id, first_entry_id)
        cost = entries_cost(entries) + RUN_OVERHEAD_BYTES
        if key in self._runs or cost > self._limit_bytes:
            return
        self._runs[key] = (entries, cost)
        insort(self._firsts.setdefault(ledger_id, []), first_entry_id)
        self.size_bytes += cost
        while self.size_bytes > self._limit_bytes:
            self._forget(next(iter(self._runs)))

    def mark(
        self, ledger_id: int, first_entry_id: int, next_entry_id: int, *, is_unread: bool = False
    ) -> None:
        """Report `next_entry_id` when that run is found, if it is here; `is_unread` counts it."""
        key = (ledger_id, first_entry_id)
        if key in self._runs:
            self._marks[key] = next_entry_id
            if is_unread:
                self._unread.add(key)

    def has(self, ledger_id: int, entry_id: int) -> bool:
        """Whether an entry is here; does not count as a use."""
        return self._key_of(ledger_id, entry_id) is not None

    def find(self, ledger_id: int, entry_id: int) -> tuple[list[bytes], int] | None:
        """Entries of which one is `entry_id`, and its place among them."""
        key = self._key_of(ledger_id, entry_id)
        if key is None:
            return None
        self._runs.move_to_end(key)
        if key in self._marks:
            next_entry_id = self._marks.pop(key)
            self._unread.discard(key)
            if self.on_mark is not None:
                self.on_mark(ledger_id, next_entry_id)
        return self._runs[key][0], entry_id - key[1]

    def _key_of(self, ledger_id: int, entry_id: int) -> tuple[int, int] | None:
        """Of the run that holds an entry."""
        firsts = self._firsts.get(ledger_id)
        if firsts is None:
            return None
        index = bisect_right(firsts, entry_id) - 1
        if index < 0:
            return None
        key = (ledger_id, firsts[index])
        return key if entry_id - firsts[index] < len(self._runs[key][0]) else None

    def forget_ledger(self, ledger_id: int) -> None:
        """Drop a deleted ledger's runs."""
        for first_entry_id in list(self._firsts.get(ledger_id, ())):
            self._forget((ledger_id, first_entry_id))

    def _forget(self, key: tuple[int, int]) -> None:
        ledger_id, first_entry_id = key
        _, cost = self._runs.pop(key)
        self.size_bytes -= cost
        self._marks.pop(key, None)
        self._unread.discard(key)
        firsts = self._firsts[ledger_id]
        del firsts[bisect_right(firsts, first_entry_id) - 1]
        if not firsts:
            del self._firsts[ledger_id]
