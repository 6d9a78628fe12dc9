"""`LedgerReading`: reads runs of entries from cache, open writer or store (edge).

The entry cache is read first, then the ledger store's memory, then its disk or bookies. The ledger
that is being written is read through its writer, closed ones through shared readers.

Source: EntryCache and internalReadFromLedger in ManagedLedgerImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsar_py.common.errors import EntryNotFoundError, LedgerNotFoundError
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerWriter
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_cache import EntryCache
from pulsar_py.managed_ledger.log.entry_run import EntryRun
from pulsar_py.managed_ledger.log.ledger_readers import LedgerReaders
from pulsar_py.managed_ledger.log.ledger_state import LedgerState

_ONE_ENTRY_BYTES = 1  # reads give at least one entry whatever the bytes


class LedgerReading:
    """The reads of one managed ledger. Owned by it."""

    def __init__(
        self,
        ledgers: LedgerState,
        cache: EntryCache,
        readers: LedgerReaders,
        current_writer: Callable[[], LedgerWriter | None],
    ) -> None:
        """`current_writer` returns the writer of the ledger that is being written, if any."""
        self._ledgers = ledgers
        self._cache = cache
        self._readers = readers
        self._current_writer = current_writer
        self.entries_read_count = 0
        self.stored_entries_read_count = 0  # of these, the ones that were not in memory

    def run_cached(
        self, ledger_id: int, first: int, last: int, max_bytes: int
    ) -> Sequence[Entry] | None:
        """Neighbouring entries that are in memory, at least the first; else None.

        Hot path: tailing consume.
        """
        entries = self._cache.read(ledger_id, first, last, max_bytes)
        if entries is not None:
            self.entries_read_count += len(entries)
            return entries
        writer = self._current_writer()
        if writer is not None and writer.ledger_id == ledger_id:
            datas = writer.read_cached(first, last, max_bytes)
        else:
            datas = self._readers.read_cached(ledger_id, first, last, max_bytes)
        if not datas:
            return None
        self.entries_read_count += len(datas)
        return EntryRun(ledger_id, first, datas)

    async def run(self, ledger_id: int, first: int, last: int, max_bytes: int) -> EntryRun:
        """Neighbouring entries from storage, at least the first.

        Raises:
            StorageError: It can't be read.
        """
        writer = self._current_writer()
        if writer is not None and writer.ledger_id == ledger_id:
            datas = await writer.read(first, last, max_bytes)
        else:
            datas = await self._readers.read(ledger_id, first, last, max_bytes)
        assert 0 < len(datas) <= last - first + 1, (ledger_id, first, last, len(datas))
        self.entries_read_count += len(datas)
        self.stored_entries_read_count += len(datas)
        return EntryRun(ledger_id, first, datas)

    async def read_entry(self, position: Position) -> Entry:
        """One entry.

        Raises:
            EntryNotFoundError, LedgerNotFoundError: There is none.
            CorruptDataError: The stored entry fails its checksum.
        """
        ledger_id, entry_id = position
        if not self._ledgers.contains(position):
            if ledger_id not in self._ledgers.ledgers:
                raise LedgerNotFoundError(f"the topic has no ledger {ledger_id}")
            raise EntryNotFoundError(f"the topic has no entry {position}")
        cached = self.run_cached(ledger_id, entry_id, entry_id, _ONE_ENTRY_BYTES)
        if cached is not None:
            return cached[0]
        return (await self.run(ledger_id, entry_id, entry_id, _ONE_ENTRY_BYTES))[0]

    async def find_newest(
        self, predicate: Callable[[Entry], bool], *, after: Position | None = None
    ) -> Position | None:
        """The newest entry (after `after`) for which `predicate` holds; None if there is none.

        It is a binary search: the predicate must hold for all entries up to some entry, and for
        none after it.
        """
        ledgers = self._ledgers
        start = after or ledgers.previous_position(ledgers.first_position)
        low, high = 0, ledgers.count_between(start, ledgers.last_confirmed_entry)
        found: Position | None = None
        while low < high:
            middle = (low + high + 1) // 2
            position = ledgers.position_after_entries(start, middle)
            if predicate(await self.read_entry(position)):
                low, found = middle, position
            else:
                high = middle - 1
        return found
