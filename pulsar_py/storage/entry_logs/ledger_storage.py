"""`LedgerStorage`: keeps flushed entries and ledgers in entry logs and index tables (edge).

Entry logs hold the entries, the index has their places, the manifest names the files that count.
Each change takes the same steps: new runs are written and synced, then the new index table, then
the manifest that names both is replaced; only then is the state in memory changed, and files that
are no longer named are removed. A crash anywhere leaves the old manifest or the new one.

Flushes, merges and compactions prepare their files concurrently and publish one at a time.

Source: the roles of LedgerStorage, EntryLogger and SortedLedgerStorage in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.storage.entry_logs import compaction
from pulsar_py.storage.entry_logs.entry_log import DIRECTORY as LOG_DIRECTORY
from pulsar_py.storage.entry_logs.entry_log import EntryLogReaders, EntryLogWriter, log_path
from pulsar_py.storage.entry_logs.entry_log_format import cut_runs, encode_run
from pulsar_py.storage.entry_logs.places import EntryPlaces
from pulsar_py.storage.entry_logs.read_cache import ReadCache
from pulsar_py.storage.entry_logs.run_log import RunLog
from pulsar_py.storage.entry_logs.run_reader import RunReader
from pulsar_py.storage.index.index import Index, merge_tables, write_table
from pulsar_py.storage.index.index_format import Item, record_key, run_key
from pulsar_py.storage.index.index_table import DIRECTORY as TABLE_DIRECTORY
from pulsar_py.storage.index.index_table import IndexTable, table_path
from pulsar_py.storage.shared.hold import CopyHold
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.manifest import PATH as MANIFEST_PATH
from pulsar_py.storage.shared.manifest import LogState, Manifest
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.storage.shared.write_cache import CachedLedger, Generation

logger = logging.getLogger(__name__)

SLICE_BYTES = 1 * 1024 * 1024
SLICE_RUNS_COUNT = 200
"""Bytes and runs prepared in one turn of the loop: about 1 ms each."""

SLICE_LEDGERS_COUNT = 50
"""Ledgers looked up in one turn of the loop: about 2 ms if no page has to be read."""


Rest = Callable[[int], Awaitable[None]]
"""Awaited after each piece that was written, with the bytes that are not published yet."""


async def no_rest(_: int) -> None:
    """Go on at once."""


class RunWriter:
    """Writes runs to entry logs, rolling at a size; one for flushes, one for each collection."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage
        self.rest: Rest = no_rest
        self._log: EntryLogWriter | None = None
        self._has_new_name = False
        # Logs that are full and not synced yet.
        self._full_logs: list[EntryLogWriter] = []
        self._held_runs_count = 0
        # Bytes of runs added since the last `sync`, by log.
        self.added_bytes: Counter[int] = Counter()

    @property
    def log_id(self) -> int | None:
        """The log that is being written."""
        return None if self._log is None else self._log.log_id

    async def add(self, run: list[Buffer], count: int) -> Location:
        """Give a run its place; it is written in larger pieces, and durable after `sync`."""
        log = self._log
        if log is None or log.end >= self._storage.settings.entry_log_bytes:
            log = await self._roll()
        location = log.add(run, count)
        self.added_bytes[log.log_id] += location.length
        self._held_runs_count += 1
        if log.held_bytes >= SLICE_BYTES or self._held_runs_count >= SLICE_RUNS_COUNT:
            self._held_runs_count = 0
            await log.write()
            if log.unsynced_bytes >= self._storage.settings.flush_sync_bytes:
                await log.sync()
            await self.rest(sum(self.added_bytes.values()))
        return location

    async def sync(self) -> None:
        """Make everything added durable, content and names."""
        logs = [*self._full_logs, self._log] if self._log is not None else self._full_logs
        for log in logs if self.added_bytes else ():
            await log.sync()
        while self._full_logs:
            await self._full_logs.pop().close()
        if self._has_new_name:
            await self._storage.disk.sync_directory(LOG_DIRECTORY)
            self._has_new_name = False

    def published(self) -> None:
        """Forget the runs that were added: the manifest names them now."""
        self.added_bytes.clear()

    async def close(self) -> None:
        """Release the file."""
        log, self._log = self._log, None
        logs, self._full_logs = self._full_logs, []
        for each in [*logs, log] if log is not None else logs:
            await each.close()

    async def abandon(self, *, remove: bool) -> None:
        """Give up the runs that were not published: the next run begins another log.

        With `remove` their files are removed. Not after a failed publication: the new manifest may
        be in place and name them.
        """
        # An error here would hide the first one; the next start removes a file that stays.
        with suppress(StorageError):
            await self.close()
            for log_id in self.added_bytes if remove else ():
                if log_id not in self._storage.manifest.logs:
                    await self._storage.disk.remove(log_path(log_id))
        self._has_new_name = False
        self.added_bytes.clear()

    async def _roll(self) -> EntryLogWriter:
        if self._log is not None:
            self._full_logs.append(self._log)
            self._log = None
        storage = self._storage
        self._log = await EntryLogWriter.create(
            storage.disk,
            storage.allocate_log_id(),
            is_direct=storage.settings.are_entry_logs_direct,
        )
        self._has_new_name = True
        return self._log


class Change(Struct):
    """The changes that one publication makes to the manifest."""

    items: Sequence[Item] = ()
    mark: tuple[int, int] | None = None
    added: Mapping[int, int] = field(default_factory=dict)
    """Bytes of new runs, by log."""
    placed: Mapping[int, int] = field(default_factory=dict)
    """Bytes of runs among `items` that a group has written to the run log, by log."""
    deleted: Sequence[int] = ()
    """Deleted ledgers, whose runs are garbage from now on."""
    removed_log_id: int | None = None
    """A log whose live runs are among `items`, with their new places."""


class Copy(Struct, frozen=True):
    """A run that compaction has copied."""

    key: bytes
    location: Location


class LedgerStorage:
    """Entry logs, index and manifest together. Owned by the Bookie."""

    def __init__(self, disk: Disk, settings: BookieSettings, manifest: Manifest) -> None:
        self.disk = disk
        self.settings = settings
        self.manifest = manifest
        self.hold = CopyHold(disk)
        self.index = Index(disk, settings.index_cache_bytes)
        self.read_cache = ReadCache(settings.read_cache_bytes)
        self.readers = EntryLogReaders(disk, settings.open_files_count)
        self._runs = RunReader(self.index, self.readers, self.read_cache, settings)
        self.places = EntryPlaces(self.index, self.readers, disk)
        self._writer = RunWriter(self)
        self.run_log = RunLog(disk, settings, self.allocate_log_id)
        self._publishing = asyncio.Lock()
        self._next_log_id = manifest.next_log_id
        self._next_table_id = manifest.next_table_id
        # The writer of a collection's copies. Its log stays while the collection goes on, even if
        # all ledgers in it are deleted.
        self._copier: RunWriter | None = None
        # Ledgers deleted while a log is copied: their copies must not get into the index.
        self._deleted_meanwhile: set[int] | None = None

    def let_flushes_rest(self, rest: Rest) -> None:
        """Have `rest` awaited after each piece of a flush: who calls it knows how much time is."""
        self._writer.rest = rest

    @property
    def busy_log_ids(self) -> set[int]:
        """The logs that flushes and groups add to, and those that the journal needs."""
        log_id = self._writer.log_id
        return self.run_log.busy_ids | (set() if log_id is None else {log_id})

    @classmethod
    async def open(cls, disk: Disk, settings: BookieSettings) -> LedgerStorage:
        """Open the files that the manifest names, and remove others, which a crash left over.

        Raises:
            CorruptDataError: The manifest or a file it names is damaged or missing.
        """
        try:
            manifest = Manifest.decode(await disk.read_whole(MANIFEST_PATH))
        except FileNotFoundError:
            manifest = Manifest()
        storage = cls(disk, settings, manifest)
        for table_id in manifest.tables:
            storage.index.tables.append(await IndexTable.open(disk, table_id, storage.index.cache))
        # The journal may refer to logs that the manifest does not know.
        names = await disk.list_directory(LOG_DIRECTORY)
        there = [int(name) + 1 for name in names if name.isdigit()]
        storage._next_log_id = max([manifest.next_log_id, *there])
        return storage

    async def remove_leftover_tables(self) -> None:
        """Remove tables that the manifest does not name."""
        await self._remove_others(TABLE_DIRECTORY, set(self.manifest.tables))

    async def hold_logs(self) -> None:
        """Keep all logs until `remove_leftover_logs`: the journal may refer to them."""
        names = await self.disk.list_directory(LOG_DIRECTORY)
        self.run_log.hold(int(name) for name in names if name.isdigit())

    async def remove_leftover_logs(self) -> None:
        """Remove logs that neither the manifest names nor the journal, which was replayed."""
        self.run_log.hold(())
        await self._remove_others(LOG_DIRECTORY, set(self.manifest.logs) | self.busy_log_ids)

    async def _remove_others(self, directory: str, named: set[int]) -> None:
        for name in await self.disk.list_directory(directory):
            if not name.isdigit() or int(name) not in named:
                await self.disk.remove(f"{directory}/{name}")

    async def has_files(self) -> bool:
        """Whether there are logs or tables, whether or not the manifest names them."""
        return any(
            [await self.disk.list_directory(name) for name in (LOG_DIRECTORY, TABLE_DIRECTORY)]
        )

    def allocate_log_id(self) -> int:
        """The next log's id."""
        self._next_log_id += 1
        return self._next_log_id - 1

    async def flush(self, generation: Generation) -> None:
        """Write a sealed generation to logs and index; after an error it can be tried again.

        Raises:
            DiskFullError, StorageError: The disk can't do it now; nothing has changed.
        """
        items: list[Item] = []
        deleted = []
        placed = Counter[int]()
        async with OnFailureAwait(partial(self._writer.abandon, remove=True)):
            for number, ledger_id in enumerate(sorted(generation.ledgers)):
                if number % SLICE_RUNS_COUNT == 0:
                    await asyncio.sleep(0)
                cached = generation.ledgers[ledger_id]
                items.append((record_key(ledger_id), cached.final_record().encode()))
                if cached.record.is_deleted:
                    deleted.append(ledger_id)
                else:
                    items += await self._write_stretches(ledger_id, cached, placed)
            await self._writer.sync()
        added = dict(self._writer.added_bytes)
        async with OnFailureAwait(partial(self._writer.abandon, remove=False)):
            await self._publish(
                Change(items, mark=generation.mark, added=added, placed=placed, deleted=deleted)
            )
        self._writer.published()

    async def _write_stretches(
        self, ledger_id: int, cached: CachedLedger, placed: Counter[int]
    ) -> list[Item]:
        """Keys of all runs of a ledger; entries that are in the run log are not written again."""
        items: list[Item] = []
        for stretch in cached.stretches():
            if isinstance(stretch, range):
                start = stretch.start - cached.first_entry_id
                entries = cached.living_entries[start : start + len(stretch)]
                items += await self._write_runs(ledger_id, stretch.start, entries)
            else:
                first_entry_id, location = stretch
                items.append((run_key(ledger_id, first_entry_id), location.encode()))
                placed[location.log_id] += location.length
        return items

    async def _write_runs(
        self, ledger_id: int, first_entry_id: int, entries: Sequence[EntryBytes]
    ) -> list[Item]:
        items = []
        for start, end in cut_runs(entries, self.settings.run_bytes):
            run = encode_run(ledger_id, first_entry_id + start, entries[start:end])
            location = await self._writer.add(run, end - start)
            items.append((run_key(ledger_id, first_entry_id + start), location.encode()))
        return items

    async def set_mark(self, mark: tuple[int, int]) -> None:
        """Publish a new mark alone, when no block of the journal is needed any more."""
        await self._publish(Change(mark=mark))

    async def _publish(self, change: Change) -> None:
        async with self._publishing:
            await self._publish_locked(change)

    async def _publish_locked(self, change: Change) -> None:
        manifest = await self._after(change)
        tables = list(self.index.tables)
        if change.items:
            table_id = self._allocate_table_id()
            await write_table(self.disk, table_id, change.items)
            tables.insert(0, await IndexTable.open(self.disk, table_id, self.index.cache))
        gone: set[int] = set(self.manifest.logs)
        await self._install(manifest, tables)
        gone = (gone | self.run_log.pass_mark(manifest.mark)) - set(manifest.logs)
        for ledger_id in change.deleted:
            self.read_cache.forget_ledger(ledger_id)
        if self._deleted_meanwhile is not None:
            self._deleted_meanwhile.update(change.deleted)
        for log_id in gone:
            await self.hold.remove(log_path(log_id))
            await self.readers.forget(log_id)

    async def _after(self, change: Change) -> Manifest:
        logs = dict(self.manifest.logs)
        mark = change.mark or self.manifest.mark
        # Of the run log everything counts that blocks before the mark refer to, living or not.
        sizes = self.run_log.passed_bytes(mark) + Counter(change.added)
        for log_id, size_bytes in sizes.items():
            old = logs.get(log_id, LogState(0, 0))
            living = change.added.get(log_id, 0) + change.placed.get(log_id, 0)
            logs[log_id] = LogState(old.size_bytes + size_bytes, old.live_bytes + living)
        for number, ledger_id in enumerate(change.deleted):
            if number % SLICE_LEDGERS_COUNT == 0:
                await asyncio.sleep(0)
            if await self.record(ledger_id) is None:
                continue  # It was deleted in an earlier flush, too, which counted its bytes.
            for location in (await self.index.ledger_runs(ledger_id)).values():
                log = logs[location.log_id]
                logs[location.log_id] = replace(log, live_bytes=log.live_bytes - location.length)
        writers = {writer.log_id for writer in (self._writer, self._copier) if writer is not None}
        busy = self.run_log.busy_at(mark) | writers
        logs = {
            log_id: log
            for log_id, log in logs.items()
            if log_id != change.removed_log_id and (log.live_bytes or log_id in busy)
        }
        return replace(self.manifest, logs=logs, mark=mark)

    async def _install(self, manifest: Manifest, tables: list[IndexTable]) -> None:
        manifest = replace(
            manifest,
            tables=tuple(table.table_id for table in tables),
            next_log_id=self._next_log_id,
            next_table_id=self._next_table_id,
        )
        # Journal files before the mark are removed, so the mark must never move back.
        assert manifest.mark >= self.manifest.mark, (manifest.mark, self.manifest.mark)
        await self.disk.replace(MANIFEST_PATH, manifest.encode())
        self.manifest = manifest
        self.index.tables = tables

    def _allocate_table_id(self) -> int:
        self._next_table_id += 1
        return self._next_table_id - 1

    async def load(
        self, ledger_id: int, entry_id: int, ahead_bytes: int
    ) -> tuple[Sequence[EntryBytes], int]:
        """The run with `entry_id`, and the entry's index in it; read-ahead goes to the read cache.

        Raises:
            CorruptDataError: The run is damaged or missing.
        """
        return await self._runs.load(ledger_id, entry_id, ahead_bytes)

    async def record(self, ledger_id: int) -> LedgerRecord | None:
        """A ledger's record as of the last flush; None if it was deleted or never there."""
        record = await self.index.record(ledger_id)
        return None if record is None or record.is_deleted else record

    async def merge(self) -> bool:
        """Merge some tables of the index if that is due; returns whether it did."""
        tables = list(self.index.tables)
        chosen = compaction.choose_merge([table.keys_count for table in tables])
        if chosen is None:
            return False
        old = tables[chosen.start : chosen.stop]
        table_id = self._allocate_table_id()
        await merge_tables(self.disk, table_id, old, is_complete=chosen.stop == len(tables))
        merged = await IndexTable.open(self.disk, table_id, self.index.cache)
        async with self._publishing:
            current = list(self.index.tables)
            place = current.index(old[0])
            assert current[place : place + len(old)] == old
            current[place : place + len(old)] = [merged]
            await self._install(self.manifest, current)
        for table in old:
            await self.hold.remove(table_path(table.table_id))
            await table.retire()
        return True

    def begin_collection(self) -> RunWriter:
        """The writer for the copies of all logs that are compacted one after the other."""
        assert self._copier is None
        self._copier = RunWriter(self)
        return self._copier

    def end_collection(self) -> None:
        """Note that the collection has ended, whether or not it succeeded."""
        self._copier = None

    def begin_copying(self) -> None:
        """Note the ledgers that are deleted from now on, until `end_copying`."""
        assert self._deleted_meanwhile is None
        self._deleted_meanwhile = set()

    def end_copying(self) -> None:
        """Note that the copying has ended, whether or not it succeeded."""
        self._deleted_meanwhile = None

    async def publish_copies(self, log_id: int, copies: Mapping[int, list[Copy]]) -> None:
        """Replace a log by copies of all its live runs; `copies` are by ledger.

        Nothing changes if the log is gone because all its ledgers were deleted meanwhile.

        Raises:
            CorruptDataError: The copies are not all live runs of the log; nothing changed.
        """
        async with self._publishing:
            assert self._deleted_meanwhile is not None
            if log_id not in self.manifest.logs:
                return
            kept = [
                copy
                for ledger_id, runs in copies.items()
                if ledger_id not in self._deleted_meanwhile
                for copy in runs
            ]
            kept_bytes = sum(copy.location.length for copy in kept)
            if kept_bytes != self.manifest.logs[log_id].live_bytes:
                raise CorruptDataError(
                    f"{log_path(log_id)}: found {kept_bytes} bytes of live runs, "
                    f"expected {self.manifest.logs[log_id].live_bytes}"
                )
            added = Counter[int]()
            for copy in kept:
                added[copy.location.log_id] += copy.location.length
            items = sorted((copy.key, copy.location.encode()) for copy in kept)
            await self._publish_locked(Change(items, added=added, removed_log_id=log_id))

    async def remove_dead_logs(self) -> None:
        """Remove logs without live runs, the one that flushes add to included.

        Raises:
            StorageError: It can't be done now; nothing has changed.
        """
        dead = {log_id for log_id, log in self.manifest.logs.items() if not log.live_bytes}
        if dead & self.busy_log_ids:
            await self.roll_log()
        if dead - self.busy_log_ids:
            await self._publish(Change())

    async def roll_log(self) -> None:
        """Let the next flush and group begin new logs, so that these may be compacted."""
        await self._writer.close()
        await self.run_log.release()

    async def close(self) -> None:
        """Release all files."""
        await self._runs.close()
        await self._writer.close()
        await self.run_log.close()
        await self.readers.close()
        for table in self.index.tables:
            await table.retire()
