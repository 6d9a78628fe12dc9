"""`Index`: finds runs of entries and records of ledgers in sorted tables (edge).

Each flush adds a table on top; a merge makes one of several neighbours. A newer table wins over
older ones. In memory are the sparse indexes (24 bytes a page of about a hundred keys), the sets of
ledgers (at most two bytes a ledger and table, far less where ids are dense), and a bounded cache of
pages. A ledger that is in no set is known to be new without reading any page. The manifest lists
the tables: only `LedgerStorage` changes `tables`, after it has written the manifest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from operator import itemgetter

from pyroaring import BitMap64

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.storage.index.index_format import Item, Page, record_key, run_key, split_key
from pulsar_py.storage.index.index_table import IndexTable, IndexTableWriter, PageCache
from pulsar_py.storage.shared.ledger_record import DELETED, LedgerRecord
from pulsar_py.storage.shared.location import Location

MAX_ENTRY_ID = 2**63 - 1
_RECORD_END = record_key(0)[8:]

FoundRun = tuple[int, Location]
"""The id of a run's first entry, and the run's place."""


class Index:
    """All tables, newest first."""

    def __init__(self, disk: Disk, cache_bytes: int) -> None:
        self.disk = disk
        self.cache = PageCache(cache_bytes)
        self.tables: list[IndexTable] = []

    async def record(self, ledger_id: int) -> LedgerRecord | None:
        """The newest record of a ledger, which may say that it is deleted; None if there is none.

        Raises:
            CorruptDataError: A page is damaged.
        """
        key = record_key(ledger_id)
        for table in self._tables_of(ledger_id):
            found = await table.floor(key)
            if found is not None and found[0].key(found[1]) == key:
                return LedgerRecord.decode(found[0].value(found[1]))
        return None

    async def find_runs(self, ledger_id: int, entry_id: int, ahead_bytes: int) -> list[FoundRun]:
        """The run that holds an entry, and the neighbours that follow it in its log; [] if none.

        Neighbours are taken from the same page, while all have at most `ahead_bytes`.
        """
        key = run_key(ledger_id, entry_id)
        for table in self._tables_of(ledger_id):
            found = await table.floor(key)
            if found is None:
                continue
            page, index = found
            found_ledger_id, first_entry_id = split_key(page.key(index))
            if found_ledger_id != ledger_id or first_entry_id < 0:
                continue
            location = Location.decode(page.value(index))
            if entry_id < first_entry_id + location.count:
                return [
                    (first_entry_id, location),
                    *_neighbours(page, index, (first_entry_id, location), ahead_bytes),
                ]
        return []

    async def ledger_runs(self, ledger_id: int) -> dict[int, Location]:
        """All runs of a ledger by first entry id."""
        runs: dict[int, Location] = {}
        first, last = run_key(ledger_id, 0), run_key(ledger_id, MAX_ENTRY_ID)
        for table in reversed(self._tables_of(ledger_id)):
            async for page in table.pages_from(first):
                for key, value in page.items(max(page.floor(first), 0)):
                    if key > last:
                        break
                    if key >= first:
                        runs[split_key(key)[1]] = Location.decode(value)
                if page.key(page.count - 1) >= last:
                    break
        return runs

    async def ledger_ids(self) -> BitMap64:
        """Ids of all ledgers that are not deleted."""
        seen, living = BitMap64(), BitMap64()
        for table in tuple(self.tables):
            async for items in table.scan(b""):
                for key, value in items:
                    ledger_id, entry_id = split_key(key)
                    if entry_id < 0 and ledger_id not in seen:
                        seen.add(ledger_id)
                        if not value[0] & DELETED:
                            living.add(ledger_id)
        return living

    def _tables_of(self, ledger_id: int) -> list[IndexTable]:
        """Tables that may have something of a ledger, newest first."""
        return [table for table in self.tables if table.may_have(ledger_id)]


def _neighbours(page: Page, index: int, found: FoundRun, ahead_bytes: int) -> list[FoundRun]:
    """Runs behind the one found that follow it in the ledger and in the log."""
    runs: list[FoundRun] = []
    ledger_id, _ = split_key(page.key(index))
    first_entry_id, location = found
    room_bytes = ahead_bytes - location.length
    for key, value in page.items(index + 1):
        next_entry_id = first_entry_id + location.count
        if split_key(key) != (ledger_id, next_entry_id):
            break
        after = Location.decode(value)
        room_bytes -= after.length
        is_adjacent = after.log_id == location.log_id and (
            after.offset == location.offset + location.length
        )
        if not is_adjacent or room_bytes < 0:
            break
        first_entry_id, location = next_entry_id, after
        runs.append((first_entry_id, location))
    return runs


async def write_table(disk: Disk, table_id: int, items: Sequence[Item]) -> None:
    """Write a table of sorted items, durably."""
    writer = await IndexTableWriter.create(disk, table_id)
    async with OnFailureAwait(writer.abandon):
        for start in range(0, len(items), 2000):
            await writer.add(items[start : start + 2000])
        await writer.finish()


async def merge_tables(
    disk: Disk, table_id: int, tables: Sequence[IndexTable], *, is_complete: bool
) -> None:
    """Write one table with the content of `tables`, newest first.

    Runs of deleted ledgers are left out, and with `is_complete` (no older table remains) so are
    the records that say so.
    """
    writer = await IndexTableWriter.create(disk, table_id)
    merge = _Merge(is_complete=is_complete)
    async with OnFailureAwait(writer.abandon):
        async for items in _merged(tables):
            await writer.add(merge.keep(items))
        await writer.finish()


class _Merge:
    """Drops the runs of deleted ledgers."""

    def __init__(self, *, is_complete: bool) -> None:
        self._is_complete = is_complete
        self._deleted_prefix = b""

    def keep(self, items: list[Item]) -> list[Item]:
        kept = []
        for item in items:
            key, value = item
            if key.endswith(_RECORD_END):
                self._deleted_prefix = key[:8] if value[0] & DELETED else b""
                if self._deleted_prefix and self._is_complete:
                    continue
            elif key[:8] == self._deleted_prefix:
                continue
            kept.append(item)
        return kept


async def _merged(tables: Sequence[IndexTable]) -> AsyncIterator[list[Item]]:
    streams = [table.scan(b"") for table in reversed(tables)]
    heads: list[list[Item]] = [[] for _ in streams]
    try:
        while True:
            for place, stream in enumerate(streams):
                if not heads[place]:
                    heads[place] = await anext(stream, [])
            if not any(heads):
                return
            bound = min(head[-1][0] for head in heads if head)
            portions = []
            for head in heads:
                end = bisect_right(head, bound, key=itemgetter(0))
                if end:
                    portions.append(head[:end])
                    del head[:end]
            if len(portions) == 1:  # the usual case: ledger ids grow, so few tables overlap
                yield portions[0]
                continue
            merged: dict[bytes, bytes] = {}
            for portion in portions:
                merged.update(portion)
            yield sorted(merged.items())
    finally:
        for stream in streams:
            await stream.aclose()
