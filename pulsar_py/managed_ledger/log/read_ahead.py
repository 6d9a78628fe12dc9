"""`ReadAhead`: entries that a cursor fetched ahead of its consumers (edge).

A catch-up read fetches more than its caller needs; the rest is kept here, in order, and counts in
the budget of the entry caches. It is useful only while the cursor reads on in order: moving the
cursor drops it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.managed_ledger.log.entry_cache import ENTRY_OVERHEAD_BYTES, EntryCacheManager
from pulsar_py.managed_ledger.log.entry_run import EntryRun

_NOTHING = EntryRun(-1, 0, ())


class ReadAhead:
    """Entries of one ledger that follow each other. Owned by a ManagedCursor."""

    __slots__ = ("_cache", "_largest_bytes", "_next", "_reserved_bytes", "_run")

    def __init__(self, cache: EntryCacheManager) -> None:
        self._cache = cache
        self._run = _NOTHING
        self._largest_bytes = 0  # the size of the largest entry
        self._next = 0  # index of the first entry not taken
        self._reserved_bytes = 0  # in the budget, until all are taken

    def keep_at_least(self, run: EntryRun, count: int) -> None:
        """Replace the kept entries; without room in the budget, keep only the first `count`."""
        self.clear()
        # Copies small entries out of the data that was read: a slice of it would keep all of it in
        # memory, which the budget does not count. Large entries stay views, and are counted.
        run = EntryRun(run.ledger_id, run.first_entry_id, list(run.datas))
        sizes = list(map(len, run.datas))
        size = _kept_bytes(run.datas) + len(sizes) * ENTRY_OVERHEAD_BYTES
        self._largest_bytes = max(sizes, default=0)
        if self._cache.reserve(size):
            self._run = run
            self._reserved_bytes = size
        else:
            self._run = run.part(0, count)

    def take(self, ledger_id: int, first: int, last: int, max_bytes: int) -> EntryRun | None:
        """Entries from `first` on, at least one; None, and drop all, if it is not the next one."""
        # Hot path: catch-up.
        run = self._run
        start = self._next
        if start >= len(run):
            return None
        if (
            run.ledger_id != ledger_id
            or not run.first_entry_id + start <= first <= run.last_entry_id
        ):
            self.clear()
            return None
        start = first - run.first_entry_id
        stop = min(start + last - first + 1, len(run))
        if (stop - start) * self._largest_bytes > max_bytes:
            sizes = accumulate(map(len, run.datas[start:stop]))
            stop = start + max(1, bisect_right(list(sizes), max_bytes))
        self._next = stop
        taken = run.part(start, stop)
        if stop == len(run):
            self.clear()
        return taken

    def clear(self) -> None:
        """Drop everything."""
        self._cache.release(self._reserved_bytes)
        self._reserved_bytes = 0
        self._run = _NOTHING
        self._next = 0


def _kept_bytes(datas: Sequence[EntryBytes]) -> int:
    """Bytes that entries keep in memory: of views, the whole buffer behind them."""
    views = [data for data in datas if isinstance(data, memoryview)]
    lent = {id(view.obj): memoryview(view.obj).nbytes for view in views}
    return sum(lent.values()) + sum(map(len, datas)) - sum(map(len, views))
