"""The read cache: runs of entries read from entry logs, bounded in bytes; pure.

A run is found by any entry in it. The least recently used run goes first; a cursor that reads on
finds the runs that were read ahead for it. Counts what the runs hold in memory, not their payload.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict

from pulsar_py.storage.ledgers import entries_cost

RUN_OVERHEAD_BYTES = 512


class ReadCache:
    """Decoded runs by ledger and first entry id."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        # Oldest first; the key is (ledger id, first entry id).
        self._runs: OrderedDict[tuple[int, int], tuple[list[bytes], int]] = OrderedDict()
        # First entry ids of each ledger's runs, ascending.
        self._firsts: dict[int, list[int]] = {}
        self.size_bytes = 0

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

    def find(self, ledger_id: int, entry_id: int) -> tuple[list[bytes], int] | None:
        """Entries of which one is `entry_id`, and its place among them."""
        firsts = self._firsts.get(ledger_id)
        if firsts is None:
            return None
        index = bisect_right(firsts, entry_id) - 1
        if index < 0:
            return None
        key = (ledger_id, firsts[index])
        entries, _ = self._runs[key]
        place = entry_id - firsts[index]
        if place >= len(entries):
            return None
        self._runs.move_to_end(key)
        return entries, place

    def forget_ledger(self, ledger_id: int) -> None:
        """Drop a deleted ledger's runs."""
        for first_entry_id in list(self._firsts.get(ledger_id, ())):
            self._forget((ledger_id, first_entry_id))

    def _forget(self, key: tuple[int, int]) -> None:
        ledger_id, first_entry_id = key
        _, cost = self._runs.pop(key)
        self.size_bytes -= cost
        firsts = self._firsts[ledger_id]
        del firsts[bisect_right(firsts, first_entry_id) - 1]
        if not firsts:
            del self._firsts[ledger_id]
