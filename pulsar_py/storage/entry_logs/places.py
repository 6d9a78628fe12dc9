"""`EntryPlaces`: says where entries lie in entry logs, and lends the logs (edge).

For readers on the same machine that read files themselves. What is lent does not change: a log is
written once, and no file is used again as a log, nor a log as anything else. It may be removed
while somebody has it, who then goes on reading what it had.

An entry that no log has (it is in the write cache, its ledger was deleted), or whose run is
damaged, has no place here: whoever reads it in the usual way is told why.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_right
from collections.abc import Container
from itertools import accumulate
from typing import Final, NamedTuple

from pulsar_py.common.disks.disk import Disk, LentFile
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.failures import OnFailure
from pulsar_py.storage.entry_logs.entry_log import EntryLogReaders, log_path
from pulsar_py.storage.entry_logs.entry_log_format import checked_lengths
from pulsar_py.storage.index.index import FoundRun, Index

logger = logging.getLogger(__name__)

ATTEMPTS_COUNT: Final = 3
"""Looks at the index, where logs are compacted meanwhile."""


class PlacedRun(NamedTuple):
    """Consecutive entries that lie one behind the other in an entry log."""

    log_id: int
    offset: int
    """Of the first one's bytes."""
    lengths: array[int]


class PlaceLimits(NamedTuple):
    """The most that one call may say."""

    size_bytes: int
    """Of the entries together; the first one may be longer."""
    entries_count: int
    runs_count: int
    new_logs_count: int


class Places:
    """Consecutive entries, and the logs that the caller did not have. Close it."""

    def __init__(self) -> None:
        self.runs: list[PlacedRun] = []
        self.new_logs: dict[int, LentFile] = {}  # by id, in the order of the runs

    def drop_unused(self) -> None:
        """Give up the logs that no run is in."""
        used = {run.log_id for run in self.runs}
        for log_id in self.new_logs.keys() - used:
            self.new_logs.pop(log_id).close()

    def close(self) -> None:
        """Close the descriptors here."""
        for log in self.new_logs.values():
            log.close()


class EntryPlaces:
    """Of one storage engine. Owned by its LedgerStorage."""

    def __init__(self, index: Index, readers: EntryLogReaders, disk: Disk) -> None:
        self._index = index
        self._readers = readers
        self._disk = disk
        # Whose places were told since the start.
        self.lent_entries_count = 0
        self.lent_bytes = 0

    async def find(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> Places:
        """Where entries are, from the first one on; it may end early, and say nothing.

        Args:
            ledger_id: A ledger that is not deleted.
            first_entry_id: The first entry.
            last_entry_id: The last one, confirmed.
            limits: How much may be said.
            held_logs: Ids of the logs that were lent to the caller before.

        Raises:
            StorageError: The disk can't do it now.
        """
        search = _Search(ledger_id, first_entry_id, last_entry_id, limits, held_logs)
        with OnFailure(search.places.close):
            for _ in range(ATTEMPTS_COUNT):
                if not await self._is_to_be_repeated(search):
                    break
        search.places.drop_unused()
        self.lent_entries_count += search.told_count
        self.lent_bytes += search.told_bytes
        return search.places

    async def _is_to_be_repeated(self, search: _Search) -> bool:
        try:
            await self._go_on(search)
        except FileNotFoundError:
            # The log was compacted meanwhile; the index has the new place by now.
            return not search.places.runs
        except CorruptDataError as error:
            logger.warning("entry log damaged, not lent", extra={"error": str(error)})
        return False

    async def _go_on(self, search: _Search) -> None:
        while search.is_wanted:
            found = await self._index.find_runs(
                search.ledger_id, search.entry_id, search.room_bytes
            )
            if not found:
                return
            # They follow each other in one log.
            if not await self._lend(search, found[0][1].log_id):
                return
            heads = await self._readers.read_heads([location for _, location in found])
            for run, head in zip(found, heads, strict=True):
                if not search.is_wanted:
                    return
                search.add(run, head)

    async def _lend(self, search: _Search, log_id: int) -> bool:
        """Have the caller have a log; False if that can't be."""
        places = search.places
        if log_id in search.held_logs or log_id in places.new_logs:
            return True
        if len(places.new_logs) >= search.limits.new_logs_count:
            return False
        lent = await self._disk.lend(log_path(log_id))
        if lent is None:
            return False
        places.new_logs[log_id] = lent
        return True


class _Search:
    """How far a search has come."""

    def __init__(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> None:
        self.ledger_id = ledger_id
        self.entry_id = first_entry_id  # the next one
        self.limits = limits
        self.held_logs = held_logs
        self.places = Places()
        self.room_bytes = limits.size_bytes
        self.told_count = self.told_bytes = 0
        self._last_entry_id = last_entry_id
        self._room_count = limits.entries_count

    @property
    def is_wanted(self) -> bool:
        """Whether the next entry may be told."""
        return (
            self.entry_id <= self._last_entry_id
            and self.room_bytes > 0
            and self._room_count > 0
            and len(self.places.runs) < self.limits.runs_count
        )

    def add(self, found: FoundRun, head: bytes) -> None:
        """Note the wanted entries of a run.

        Raises:
            CorruptDataError: It is not the one that the index has there.
        """
        first_entry_id, location = found
        path = log_path(location.log_id)
        lengths = checked_lengths(head, path, location, self.ledger_id, first_entry_id)
        start = self.entry_id - first_entry_id
        head_end = location.offset + len(head)
        size_bytes = location.length - len(head)
        if start == 0 and self._has_room_for(location.count, size_bytes):
            self._tell(PlacedRun(location.log_id, head_end, lengths), size_bytes)
            return
        wanted = lengths[start : start + self._last_entry_id - self.entry_id + 1]
        taken = wanted[: self._fitting(wanted)]
        if taken:
            offset = head_end + sum(lengths[:start])
            self._tell(PlacedRun(location.log_id, offset, taken), sum(taken))
        if len(taken) < len(wanted):
            self.room_bytes = 0

    def _has_room_for(self, count: int, size_bytes: int) -> bool:
        return (
            count <= self._last_entry_id - self.entry_id + 1
            and count <= self._room_count
            and size_bytes <= self.room_bytes
        )

    def _tell(self, run: PlacedRun, size_bytes: int) -> None:
        count = len(run.lengths)
        self.places.runs.append(run)
        self.entry_id += count
        self.told_count += count
        self.told_bytes += size_bytes
        self.room_bytes -= size_bytes
        self._room_count -= count

    def _fitting(self, lengths: array[int]) -> int:
        """How many of the next entries may be told; of all of them together, the first always."""
        ends = list(accumulate(lengths[: self._room_count]))
        count = bisect_right(ends, self.room_bytes)
        return count if self.places.runs else max(count, 1)
