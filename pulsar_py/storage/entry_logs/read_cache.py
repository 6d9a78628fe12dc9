"""`ReadCache`: decoded stretches of entry logs, bounded in bytes (pure).

A stretch is the result of one read of a log: runs of one ledger, each found by any entry in it.
They share memory, so the least recently used stretch is dropped as a whole; a cursor that reads on
finds the runs that were read ahead for it. The bound counts their memory, not only the entries.

A run may carry a mark: the first read that finds it is reported, together with the id of the entry
after the cached ones, so that those can be fetched before a reader needs them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from pulsar_py.common.buffer import EntryBytes

RUN_OVERHEAD_BYTES = 512
ENTRY_OVERHEAD_BYTES = 4
"""Bytes for the stored end of an entry."""

OnMark = Callable[[int, int], None]
"""Called with a ledger's id, and the id of the entry after those that were read ahead."""


RunKey: TypeAlias = tuple[int, int]
"""A ledger's id and the id of a run's first entry."""


class _Stretch(Struct, frozen=True, eq=False):
    """The runs of one read."""

    cost_bytes: int
    keys: list[RunKey]


class ReadCache:
    """Checked runs by ledger and first entry id."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        # The key is (ledger id, first entry id).
        self._runs: dict[RunKey, tuple[Sequence[EntryBytes], _Stretch]] = {}
        # Least recently used first.
        self._stretches: OrderedDict[_Stretch, None] = OrderedDict()
        # First entry ids of each ledger's runs, ascending.
        self._firsts: dict[int, list[int]] = {}
        # The entry to report when a cached run is found, by the run's key.
        self._marks: dict[RunKey, int] = {}
        # Bytes that were read ahead and not used yet, by the key of the run that they begin with.
        self._unread: dict[RunKey, int] = {}
        self.unread_bytes = 0
        self.size_bytes = 0
        self.on_mark: OnMark | None = None

    def put(
        self, ledger_id: int, runs: Sequence[tuple[int, Sequence[EntryBytes]]], size_bytes: int
    ) -> None:
        """Keep the runs of a stretch, by first entry ids, but for those that are cached already.

        `size_bytes` is the memory of all their entries; a stretch larger than the whole cache is
        not kept.
        """
        new = [(first, run) for first, run in runs if (ledger_id, first) not in self._runs]
        cost = size_bytes + sum(
            RUN_OVERHEAD_BYTES + ENTRY_OVERHEAD_BYTES * len(run) for _, run in new
        )
        if not new or cost > self._limit_bytes:
            return
        stretch = _Stretch(cost, [(ledger_id, first) for first, _ in new])
        self._stretches[stretch] = None
        for first, run in new:
            self._runs[ledger_id, first] = (run, stretch)
            insort(self._firsts.setdefault(ledger_id, []), first)
        self.size_bytes += cost
        while self.size_bytes > self._limit_bytes:
            self._forget(next(iter(self._stretches)))

    def mark(self, ledger_id: int, first_entry_id: int, next_entry_id: int) -> None:
        """Report `next_entry_id` when that run is found; does nothing if it is not cached."""
        key = (ledger_id, first_entry_id)
        if key in self._runs:
            self._marks[key] = next_entry_id

    def count_unread(self, ledger_id: int, first_entry_id: int, size_bytes: int) -> None:
        """Count `size_bytes` in `unread_bytes` until that run is found, if it is cached.

        They were fetched together with it, ahead of a reader.
        """
        key = (ledger_id, first_entry_id)
        if key in self._runs:
            self._set_unread(key, size_bytes)

    def end_of(self, ledger_id: int, entry_id: int) -> int:
        """Id of the first entry from `entry_id` on that is not cached; does not count as a use."""
        while (key := self._key_of(ledger_id, entry_id)) is not None:
            entry_id = key[1] + len(self._runs[key][0])
        return entry_id

    def find(self, ledger_id: int, entry_id: int) -> tuple[Sequence[EntryBytes], int] | None:
        """The run with `entry_id`, and the entry's index in it; None if it is not cached."""
        key = self._key_of(ledger_id, entry_id)
        if key is None:
            return None
        run, stretch = self._runs[key]
        self._stretches.move_to_end(stretch)
        if key in self._unread:
            self._set_unread(key, 0)
        if key in self._marks:
            next_entry_id = self._marks.pop(key)
            if self.on_mark is not None:
                self.on_mark(ledger_id, next_entry_id)
        return run, entry_id - key[1]

    def _set_unread(self, key: RunKey, size_bytes: int) -> None:
        self.unread_bytes += size_bytes - self._unread.pop(key, 0)
        if size_bytes:
            self._unread[key] = size_bytes

    def _key_of(self, ledger_id: int, entry_id: int) -> tuple[int, int] | None:
        """The key of the run that holds an entry."""
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
        while firsts := self._firsts.get(ledger_id):
            self._forget(self._runs[ledger_id, firsts[0]][1])

    def _forget(self, stretch: _Stretch) -> None:
        del self._stretches[stretch]
        self.size_bytes -= stretch.cost_bytes
        for key in stretch.keys:
            del self._runs[key]
            self._marks.pop(key, None)
            self._set_unread(key, 0)
            ledger_id, first_entry_id = key
            firsts = self._firsts[ledger_id]
            del firsts[bisect_right(firsts, first_entry_id) - 1]
            if not firsts:
                del self._firsts[ledger_id]
