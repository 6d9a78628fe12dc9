"""Rebuilds a damaged storage from what a survey found (edge).

Damaged entry logs are copied run by run into new ones, the journal's entries follow, and each lost
entry is replaced by a filler, up to the last entry that the ledger should have: so no position
changes its meaning. One new index table has the places of all runs. Then the manifest is replaced,
which takes effect at once: a crash before it leaves everything as it was. Every file that is
replaced or removed was copied aside before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.disks.disk import Disk, ReadFile
from pulsar_py.common.findings import OnProgress, no_progress
from pulsar_py.storage.entry_logs.entry_log import DIRECTORY as LOG_DIRECTORY
from pulsar_py.storage.entry_logs.entry_log import EntryLogWriter, log_path
from pulsar_py.storage.entry_logs.entry_log_format import cut_runs, encode_run
from pulsar_py.storage.index.index_format import Item, record_key, run_key
from pulsar_py.storage.index.index_table import DIRECTORY as TABLE_DIRECTORY
from pulsar_py.storage.index.index_table import IndexTableWriter, table_path
from pulsar_py.storage.inspection.coverage import (
    EntryRange,
    missing_ranges,
    ranges_of,
    useful_runs,
)
from pulsar_py.storage.inspection.survey import (
    DIRECTORIES,
    Survey,
    SurveyedLedger,
    SurveyedLog,
    reconstructed,
)
from pulsar_py.storage.inspection.walking import FoundBlock, walk_blocks
from pulsar_py.storage.journal.journal_files import DIRECTORY as JOURNAL_DIRECTORY
from pulsar_py.storage.journal.journal_files import SPARE
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.journal.recovery import ReplayFile
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.manifest import PATH as MANIFEST_PATH
from pulsar_py.storage.shared.manifest import LogState, Manifest

LOG_BYTES = 256 * 1024 * 1024
RUN_BYTES = 256 * 1024
FILLERS_PER_RUN = 4096
HELD_BYTES = 4 * 1024 * 1024
ITEMS_PER_WRITE = 1000

KeepAside = Callable[[str], Awaitable[None]]
"""Keeps a copy of a file, durably, before it is replaced or removed."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild."""

    lost: dict[int, list[EntryRange]] = field(default_factory=dict)
    """Ranges of entries that were replaced by fillers, by ledger."""
    dropped_ledgers: list[int] = field(default_factory=list)
    """Ledgers without a record that no metadata refers to."""
    replaced: list[str] = field(default_factory=list)
    """Files that were replaced or removed, and copied aside before."""


async def rebuild_storage(
    disk: Disk,
    survey: Survey,
    *,
    filler: bytes,
    keep_aside: KeepAside,
    expected: Mapping[int, int] | None = None,
    is_expected_complete: bool = False,
    on_progress: OnProgress = no_progress,
) -> Rebuilt:
    """Rebuild the storage, so that a broker can serve it.

    Args:
        disk: Locked by the caller.
        survey: The survey of this disk, made with `reads_logs`.
        filler: The entry that stands for a lost one.
        keep_aside: Called with each file before it is replaced or removed.
        expected: The last entry id that each ledger in use has to have, by ledger.
        is_expected_complete: Whether ledgers outside `expected` that have no record may be dropped.
        on_progress: Called as files are copied.
    """
    rebuilder = _Rebuilder(disk, survey, filler, expected or {}, on_progress)
    return await rebuilder.run(keep_aside, drops_unknown=is_expected_complete)


class _Rebuilder:
    def __init__(
        self,
        disk: Disk,
        survey: Survey,
        filler: bytes,
        expected: Mapping[int, int],
        on_progress: OnProgress,
    ) -> None:
        self._disk = disk
        self._survey = survey
        self._filler = filler
        self._expected = expected
        self._on_progress = on_progress
        self._placed: dict[int, dict[int, Location]] = {}
        self._records: dict[int, LedgerRecord] = {}
        self._result = Rebuilt()
        self._log: EntryLogWriter | None = None
        self._next_log_id = 0
        self._new_logs: Counter[int] = Counter()  # bytes of runs

    async def run(self, keep_aside: KeepAside, *, drops_unknown: bool) -> Rebuilt:
        for directory in DIRECTORIES:
            await self._disk.make_directory(directory)
        self._next_log_id = await self._next_id(LOG_DIRECTORY, self._survey.manifest.next_log_id)
        self._choose_ledgers(drops_unknown=drops_unknown)
        await self._copy_damaged_logs()
        await self._copy_journal()
        await self._fill()
        if self._log is not None:
            await self._log.sync()
            await self._log.close()
        await self._disk.sync_directory(LOG_DIRECTORY)
        table_id = await self._write_table()
        await self._publish(table_id, keep_aside)
        return self._result

    def _choose_ledgers(self, *, drops_unknown: bool) -> None:
        """Choose the ledgers to keep, their records, and the runs that stay where they are."""
        survey = self._survey
        ledgers = dict(survey.ledgers)
        if not (survey.is_index_whole and survey.is_manifest_whole):
            for ledger_id in self._ledgers_in_logs() - ledgers.keys() - survey.deleted_ledgers:
                if drops_unknown and ledger_id not in self._expected:
                    self._result.dropped_ledgers.append(ledger_id)
                else:
                    ledgers[ledger_id] = SurveyedLedger(reconstructed(-1))
        for ledger_id in self._expected.keys() - ledgers.keys():
            ledgers[ledger_id] = SurveyedLedger(reconstructed(-1))
        for ledger_id, ledger in ledgers.items():
            last = max(ledger.last_entry_id, self._expected.get(ledger_id, -1))
            self._records[ledger_id] = replace(ledger.record, last_entry_id=last)
            self._placed[ledger_id] = {
                first: location
                for first, location in ledger.runs.items()
                if first not in ledger.unreadable and not survey.logs[location.log_id].is_damaged
            }

    def _ledgers_in_logs(self) -> set[int]:
        return {run[0] for log in self._survey.logs.values() for run in log.runs.values()}

    async def _next_id(self, directory: str, at_least: int) -> int:
        names = await self._disk.list_directory(directory)
        return max([at_least, *(int(name) + 1 for name in names if name.isdigit())])

    # Entries

    async def _copy_damaged_logs(self) -> None:
        for log_id, log in self._survey.logs.items():
            if log.is_damaged and log.runs:
                await self._copy_log(log_id, log)
            elif not log.is_damaged:
                self._find_strays(log)

    def _find_strays(self, log: SurveyedLog) -> None:
        """Use runs that no readable page of the index names, if they hold missing entries."""
        for ledger_id, first, location in log.runs.values():
            if self._is_missing(ledger_id, first, location):
                self._placed[ledger_id][first] = location

    async def _copy_log(self, log_id: int, log: SurveyedLog) -> None:
        file = await self._disk.open_read(log_path(log_id))
        try:
            for ledger_id, first, location in log.runs.values():
                ledger = self._survey.ledgers.get(ledger_id)
                is_named = ledger is not None and ledger.runs.get(first) == location
                if is_named or self._is_missing(ledger_id, first, location):
                    data = await file.read_at(location.offset, location.length)
                    await self._add(ledger_id, first, [data], location.count)
                self._on_progress(log_path(log_id), location.length)
        finally:
            await file.close()

    def _is_missing(self, ledger_id: int, first: int, location: Location) -> bool:
        """Whether a run has entries of a kept ledger that no chosen run has."""
        placed = self._placed.get(ledger_id)
        if placed is None or placed.get(first) == location:
            return False
        last = first + location.count - 1
        ledger = self._survey.ledgers.get(ledger_id)
        elsewhere = [] if ledger is None else ledger.readable()
        return bool(missing_ranges(ranges_of(placed) + elsewhere, first, last))

    async def _copy_journal(self) -> None:
        """Copy the journal from the start of its files: logs may have lost checkpointed entries."""
        for replay in self._survey.journal:
            file = await self._disk.open_read(replay.path)
            try:
                await self._copy_blocks(file, replay)
            finally:
                await file.close()

    async def _copy_blocks(self, file: ReadFile, replay: ReplayFile) -> None:
        life = replay.life
        async for found in walk_blocks(file, life, life.first_offset, replay.end):
            if isinstance(found, FoundBlock):
                for section in found.block.sections:
                    await self._copy_section(section)
                self._on_progress(file.path, found.length)

    async def _copy_section(self, section: Section) -> None:
        placed = self._placed.get(section.ledger_id)
        if placed is None or section.runs:  # Those are in entry logs, which were copied or stay.
            return
        first = section.first_entry_id
        present = ranges_of(placed)
        for begin, end in missing_ranges(present, first, section.last_entry_id):
            entries = section.entries[begin - first : end + 1 - first]
            await self._add_entries(section.ledger_id, begin, entries)

    async def _fill(self) -> None:
        """Write a filler in the place of every entry that is lost."""
        for ledger_id, placed in self._placed.items():
            ends = [last for _, last in ranges_of(placed)]
            last_entry_id = max(self._records[ledger_id].last_entry_id, *ends, -1)
            self._records[ledger_id] = replace(
                self._records[ledger_id], last_entry_id=last_entry_id
            )
            lost = missing_ranges(ranges_of(placed), 0, last_entry_id)
            for first, last in lost:
                for begin in range(first, last + 1, FILLERS_PER_RUN):
                    count = min(FILLERS_PER_RUN, last + 1 - begin)
                    await self._add_entries(ledger_id, begin, [self._filler] * count)
            if lost:
                self._result.lost[ledger_id] = lost

    async def _add_entries(self, ledger_id: int, first: int, entries: Sequence[EntryBytes]) -> None:
        for start, end in cut_runs(entries, RUN_BYTES):
            run = encode_run(ledger_id, first + start, entries[start:end])
            await self._add(ledger_id, first + start, run, end - start)

    async def _add(self, ledger_id: int, first: int, run: list[Buffer], count: int) -> None:
        if self._log is None or self._log.end >= LOG_BYTES:
            if self._log is not None:
                await self._log.sync()
                await self._log.close()
            self._log = await EntryLogWriter.create(self._disk, self._next_log_id)
            self._next_log_id += 1
        location = self._log.add(run, count)
        self._new_logs[location.log_id] += location.length
        self._placed[ledger_id][first] = location
        if self._log.held_bytes >= HELD_BYTES:
            await self._log.write()

    # Index, manifest

    async def _write_table(self) -> int:
        table_id = await self._next_id(TABLE_DIRECTORY, self._survey.manifest.next_table_id)
        writer = await IndexTableWriter.create(self._disk, table_id)
        items: list[Item] = []
        for ledger_id in sorted(self._records):
            runs = self._placed[ledger_id] = useful_runs(self._placed[ledger_id])
            items.append((record_key(ledger_id), self._records[ledger_id].encode()))
            items += ((run_key(ledger_id, first), runs[first].encode()) for first in sorted(runs))
            if len(items) >= ITEMS_PER_WRITE:
                await writer.add(items)
                items = []
        await writer.add(items)
        await writer.finish()
        return table_id

    def _manifest(self, table_id: int, next_journal_id: int) -> Manifest:
        live: Counter[int] = Counter()
        for runs in self._placed.values():
            for location in runs.values():
                live[location.log_id] += location.length
        sizes = {
            log_id: sum(location.length for _, _, location in log.runs.values())
            for log_id, log in self._survey.logs.items()
            if not log.is_damaged
        } | dict(self._new_logs)
        return Manifest(
            mark=(next_journal_id, 0),
            logs={log_id: LogState(size, live[log_id]) for log_id, size in sizes.items()},
            tables=(table_id,),
            next_log_id=self._next_log_id,
            next_table_id=table_id + 1,
        )

    async def _publish(self, table_id: int, keep_aside: KeepAside) -> None:
        disk, survey = self._disk, self._survey
        first_free = await self._next_id(JOURNAL_DIRECTORY, survey.manifest.mark[0] + 1)
        old = [
            f"{JOURNAL_DIRECTORY}/{name}"
            for name in await disk.list_directory(JOURNAL_DIRECTORY)
            if not name.startswith(SPARE)  # nothing but space
        ]
        old += [
            f"{TABLE_DIRECTORY}/{name}"
            for name in await disk.list_directory(TABLE_DIRECTORY)
            if f"{TABLE_DIRECTORY}/{name}" != table_path(table_id)
        ]
        logs = await disk.list_directory(LOG_DIRECTORY)
        damaged = {log_path(log_id) for log_id, log in survey.logs.items() if log.is_damaged}
        old += [path for path in (f"{LOG_DIRECTORY}/{name}" for name in logs) if path in damaged]
        for path in old:
            await keep_aside(path)
        if MANIFEST_PATH in await disk.list_directory(""):
            await keep_aside(MANIFEST_PATH)
            self._result.replaced.append(MANIFEST_PATH)
        await disk.replace(MANIFEST_PATH, self._manifest(table_id, first_free).encode())
        for path in old:
            await disk.remove(path)
        for directory in DIRECTORIES:
            await disk.sync_directory(directory)
        self._result.replaced.extend(old)
