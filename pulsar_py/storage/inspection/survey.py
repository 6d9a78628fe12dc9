"""`survey_storage`: lists a storage's contents and damage without changing anything (edge).

It reads the manifest, the index tables that this names, the journal behind its mark and the entry
logs, in the order of a start, and goes on where a start would fail. Each place that can't be read
is a finding, and so is each entry that a ledger should have and that no file has.

A file of another format version raises `FormatVersionError`, since its contents are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.findings import Finding, OnProgress, Severity, no_progress
from pulsar_py.storage.entry_logs.entry_log import DIRECTORY as LOG_DIRECTORY
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.entry_log_format import (
    LOG_HEADER_BYTES,
    PADDING_LEDGER_ID,
    check_log_header,
)
from pulsar_py.storage.index.index_format import Page, split_key
from pulsar_py.storage.index.index_table import DIRECTORY as TABLE_DIRECTORY
from pulsar_py.storage.index.index_table import table_path
from pulsar_py.storage.inspection.coverage import (
    EntryRange,
    missing_ranges,
    ranges_of,
    ranges_text,
)
from pulsar_py.storage.inspection.walking import (
    Gap,
    may_be_torn,
    walk_blocks,
    walk_pages,
    walk_runs,
)
from pulsar_py.storage.journal.journal_files import DIRECTORY as JOURNAL_DIRECTORY
from pulsar_py.storage.journal.journal_files import SPARE, journal_path
from pulsar_py.storage.journal.journal_format import Block, Section
from pulsar_py.storage.journal.journal_reader import find_files
from pulsar_py.storage.journal.recovery import FoundFile, ReplayFile, plan_replay
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.manifest import PATH as MANIFEST_PATH
from pulsar_py.storage.shared.manifest import Manifest

DIRECTORIES = (JOURNAL_DIRECTORY, LOG_DIRECTORY, TABLE_DIRECTORY)


@dataclass(slots=True)
class SurveyedLedger:
    """One ledger that is not deleted."""

    record: LedgerRecord
    runs: dict[int, Location] = field(default_factory=dict)
    """The places of its runs according to the index, by first entry id."""
    unreadable: set[int] = field(default_factory=set)
    """Keys of `runs` at whose places the logs have no such run."""
    journal: list[EntryRange] = field(default_factory=list)
    blocks: dict[int, tuple[ReplayFile, int]] = field(default_factory=dict)
    """File and offset of the block of each range in `journal`, by first entry id."""

    def take(self, section: Section, replay: ReplayFile, offset: int) -> None:
        """Add a section of the journal's block at `offset`, or the runs that it refers to."""
        if section.runs:
            for first_entry_id, location in section.placed_runs():
                self.runs.setdefault(first_entry_id, location)
        else:
            self.blocks.setdefault(section.first_entry_id, (replay, offset))
            self.journal.append((section.first_entry_id, section.last_entry_id))

    @property
    def last_entry_id(self) -> int:
        """The last entry id that it has or, by its record, should have."""
        ends = (last for _, last in (*self.journal, *ranges_of(self.runs)))
        return max(self.record.last_entry_id, max(ends, default=-1))

    def readable(self) -> list[EntryRange]:
        """The entries that can be read."""
        runs = {key: self.runs[key] for key in self.runs.keys() - self.unreadable}
        return ranges_of(runs) + self.journal

    def lost(self) -> list[EntryRange]:
        """The entries that are missing or can't be read."""
        return missing_ranges(self.readable(), 0, self.last_entry_id)


@dataclass(slots=True)
class SurveyedLog:
    """One entry log."""

    size_bytes: int = 0
    runs: dict[int, tuple[int, int, Location]] = field(default_factory=dict)
    """Ledger id, first entry id and place of each whole run, by offset."""
    is_damaged: bool = False


@dataclass(slots=True)
class Survey:
    """The findings and contents of one storage."""

    manifest: Manifest = field(default_factory=Manifest)
    is_manifest_whole: bool = True
    is_index_whole: bool = True
    findings: list[Finding] = field(default_factory=list)
    ledgers: dict[int, SurveyedLedger] = field(default_factory=dict)
    deleted_ledgers: set[int] = field(default_factory=set)
    logs: dict[int, SurveyedLog] = field(default_factory=dict)
    journal: list[ReplayFile] = field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        """Whether any finding is damage, not only a note."""
        return any(each.severity is Severity.DAMAGE for each in self.findings)

    def report(
        self, path: str, offset: int | None, problem: str, severity: Severity = Severity.DAMAGE
    ) -> None:
        """Add a finding."""
        self.findings.append(Finding(path, offset, problem, severity))


async def survey_storage(
    disk: Disk, *, reads_logs: bool = True, on_progress: OnProgress = no_progress
) -> Survey:
    """Survey a storage; without `reads_logs` it assumes that the logs hold the index's runs.

    Raises:
        FormatVersionError: A file has a version that this program can't read.
    """
    return await _Surveyor(disk, on_progress).run(reads_logs=reads_logs)


class _Surveyor:
    def __init__(self, disk: Disk, on_progress: OnProgress) -> None:
        self._disk = disk
        self._on_progress = on_progress
        self._survey = Survey()

    async def run(self, *, reads_logs: bool) -> Survey:
        survey = self._survey
        await self._read_manifest()
        for table_id in await self._named(TABLE_DIRECTORY, survey.manifest.tables):
            await self._read_table(table_id)
        for ledger_id in survey.deleted_ledgers:
            survey.ledgers.pop(ledger_id, None)
        self._drop_runs_without_record()
        await self._plan_journal()
        for file in survey.journal:
            await self._read_journal(file)
        if reads_logs:
            for log_id in await self._named(LOG_DIRECTORY, self._named_logs()):
                await self._read_log(log_id)
            self._check_runs()
        self._check_ledgers()
        return survey

    # Manifest

    async def _read_manifest(self) -> None:
        survey = self._survey
        try:
            survey.manifest = Manifest.decode(await self._disk.read_whole(MANIFEST_PATH))
        except FileNotFoundError:
            await self._judge_missing_manifest()
        except FormatVersionError:
            raise
        except (CorruptDataError, ValueError, KeyError, TypeError) as error:
            survey.findings.append(Finding.of(error, MANIFEST_PATH))
            survey.is_manifest_whole = False

    async def _judge_missing_manifest(self) -> None:
        """Report the missing manifest, unless the journal has everything that it would name."""
        files = [each for name in DIRECTORIES[1:] for each in await self._disk.list_directory(name)]
        names = await self._disk.list_directory(JOURNAL_DIRECTORY)
        if not files and all(name.startswith(SPARE) for name in names):
            return
        found = await find_files(self._disk, (1, 0))
        try:
            is_whole = bool(plan_replay(found, (1, 0)).files) or not files
        except CorruptDataError:
            is_whole = not files
        if not is_whole:
            self._survey.report(MANIFEST_PATH, None, "missing, and there is data")
            self._survey.is_manifest_whole = False

    def _named_logs(self) -> list[int]:
        """The logs that the manifest names, then those that only the journal refers to."""
        survey = self._survey
        referred = {run.log_id for each in survey.ledgers.values() for run in each.runs.values()}
        return [*survey.manifest.logs, *sorted(referred - survey.manifest.logs.keys())]

    async def _named(self, directory: str, named: Iterable[int]) -> list[int]:
        """Ids of the files to read, newest tables first; without a manifest all that exist."""
        names = await self._disk.list_directory(directory)
        there = [int(name) for name in names if name.isdigit()]
        if not self._survey.is_manifest_whole:
            return sorted(there, reverse=directory == TABLE_DIRECTORY)
        wanted = list(named)
        for name in names:
            if not name.isdigit() or int(name) not in wanted:
                text = "a leftover that no manifest names; the next start removes it"
                self._survey.report(f"{directory}/{name}", None, text, Severity.NOTE)
        return wanted

    # Index

    async def _read_table(self, table_id: int) -> None:
        path = table_path(table_id)
        try:
            file = await self._disk.open_read(path)
        except FileNotFoundError:
            self._survey.report(path, None, "missing, and the manifest names it")
            self._survey.is_index_whole = False
            return

        def on_error(error: CorruptDataError) -> None:
            self._survey.findings.append(Finding.of(error, path))
            self._survey.is_index_whole = False

        known = set(self._survey.ledgers) | self._survey.deleted_ledgers
        try:
            async for offset, page in walk_pages(file, table_id, on_error):
                try:
                    self._take_page(page, known)
                except (CorruptDataError, ValueError) as error:
                    on_error(CorruptDataError(f"{path}: offset {offset}: {error}"))
            self._on_progress(path, file.size_bytes)
        finally:
            await file.close()

    def _take_page(self, page: Page, known: set[int]) -> None:
        """Take the items of a page; `known` are ledgers with a record in a newer table."""
        survey = self._survey
        for key, value in page.items():
            ledger_id, first_entry_id = split_key(key)
            if first_entry_id >= 0:
                place = survey.ledgers.setdefault(ledger_id, SurveyedLedger(_UNKNOWN))
                place.runs.setdefault(first_entry_id, Location.decode(value))
                continue
            record = LedgerRecord.decode(value)
            if record.is_deleted:
                survey.deleted_ledgers.add(ledger_id)
                continue
            ledger = survey.ledgers.setdefault(ledger_id, SurveyedLedger(_UNKNOWN))
            is_newer = ledger_id not in known or ledger.record is _UNKNOWN
            if is_newer if survey.is_manifest_whole else _is_later(record, ledger.record):
                ledger.record = record

    def _drop_runs_without_record(self) -> None:
        survey = self._survey
        for ledger_id in [key for key, each in survey.ledgers.items() if each.record is _UNKNOWN]:
            ledger = survey.ledgers[ledger_id]
            if survey.is_index_whole and survey.is_manifest_whole:
                path = table_path(survey.manifest.tables[-1])
                survey.report(path, None, f"runs of ledger {ledger_id}, which has no record")
            ends = [last for _, last in ranges_of(ledger.runs)]
            ledger.record = reconstructed(max(ends, default=-1))

    # Journal

    async def _plan_journal(self) -> None:
        survey = self._survey
        mark = survey.manifest.mark
        found = await find_files(self._disk, mark if survey.is_manifest_whole else (0, 0))
        if not survey.is_manifest_whole:
            survey.journal = _salvage_plan(found, (0, 0))
            return
        try:
            plan = plan_replay(found, mark)
        except CorruptDataError as error:
            survey.findings.append(Finding.of(error, JOURNAL_DIRECTORY))
            survey.journal = _salvage_plan(found, mark)
            return
        survey.journal = list(plan.files)
        for file_id in plan.leftovers:
            text = "holds nothing confirmed; the next start removes it or uses it again"
            survey.report(journal_path(file_id), None, text, Severity.NOTE)

    async def _read_journal(self, replay: ReplayFile) -> None:
        file = await self._disk.open_read(replay.path)
        stopped_at = replay.start
        try:
            async for found in walk_blocks(file, replay.life, replay.start, replay.end):
                if not isinstance(found, Gap):
                    self._take_block(found.block, replay, found.offset)
                    stopped_at = found.offset + found.length
                elif found.end is not None:
                    text = f"damaged, with a whole block behind it at {found.end}"
                    self._survey.report(replay.path, found.offset, text)
                elif replay.end is None and await may_be_torn(file, replay.life, found.offset):
                    text = "a torn write behind the last block; it was never confirmed"
                    self._survey.report(replay.path, found.offset, text, Severity.NOTE)
            if file.size_bytes < replay.start:
                text = f"the file ends here, the checkpoint reaches to {replay.start}"
                self._survey.report(replay.path, file.size_bytes, text)
            elif replay.end is not None and stopped_at < replay.end:
                text = f"damaged; the next file says that blocks go on to {replay.end}"
                self._survey.report(replay.path, stopped_at, text)
            self._on_progress(replay.path, file.size_bytes)
        finally:
            await file.close()

    def _take_block(self, block: Block, replay: ReplayFile, offset: int) -> None:
        for section in block.sections:
            self._take_section(section, replay, offset)
        for ledger_id, record in block.records:
            survey = self._survey
            if record.is_deleted:
                survey.deleted_ledgers.add(ledger_id)
                survey.ledgers.pop(ledger_id, None)
            elif ledger_id not in survey.deleted_ledgers:
                ledger = survey.ledgers.get(ledger_id)
                if ledger is None:
                    survey.ledgers[ledger_id] = SurveyedLedger(record)
                elif not ledger.record.is_closed:
                    ledger.record = record

    def _take_section(self, section: Section, replay: ReplayFile, offset: int) -> None:
        survey, path = self._survey, replay.path
        if section.ledger_id in survey.deleted_ledgers:
            return
        ledger = survey.ledgers.get(section.ledger_id)
        if ledger is None:
            survey.report(
                path, offset, f"entries of ledger {section.ledger_id}, which has no record"
            )
            ledger = survey.ledgers[section.ledger_id] = SurveyedLedger(reconstructed(-1))
        last = ledger.record.last_entry_id
        if section.last_entry_id <= last:
            if not survey.is_manifest_whole or not survey.is_index_whole:
                ledger.take(section, replay, offset)
            return
        if section.first_entry_id > last + 1:
            text = f"ledger {section.ledger_id}: {section.first_entry_id} follows entry {last}"
            survey.report(path, offset, text)
        ledger.take(section, replay, offset)
        if not ledger.record.is_closed:
            length = ledger.record.length_bytes + section.size_bytes
            ledger.record = ledger.record.at(section.last_entry_id, length)

    # Entry logs

    async def _read_log(self, log_id: int) -> None:
        survey, path = self._survey, log_path(log_id)
        log = survey.logs[log_id] = SurveyedLog()
        try:
            file = await self._disk.open_read(path)
        except FileNotFoundError:
            survey.report(path, None, "missing, and the manifest names it")
            log.is_damaged = True
            return
        log.size_bytes = file.size_bytes
        try:
            self._check_header(log, await file.read_at(0, LOG_HEADER_BYTES), log_id)
            async for found in walk_runs(file):
                if isinstance(found, Gap):
                    self._take_gap(log, found, log_id)
                    continue
                run = found.run
                self._on_progress(path, found.length)
                if run.ledger_id == PADDING_LEDGER_ID:
                    continue
                location = Location(log_id, found.offset, found.length, len(run.entries))
                log.runs[found.offset] = (run.ledger_id, run.first_entry_id, location)
        finally:
            await file.close()

    def _check_header(self, log: SurveyedLog, header: bytes, log_id: int) -> None:
        try:
            check_log_header(header, log_id, log_path(log_id))
        except FormatVersionError:
            raise
        except CorruptDataError as error:
            self._survey.findings.append(Finding.of(error, log_path(log_id)))
            log.is_damaged = True

    def _take_gap(self, log: SurveyedLog, gap: Gap, log_id: int) -> None:
        path = log_path(log_id)
        is_named = any(
            location.log_id == log_id and location.offset >= gap.offset
            for ledger in self._survey.ledgers.values()
            for location in ledger.runs.values()
        )
        is_index_whole = self._survey.is_index_whole and self._survey.is_manifest_whole
        if gap.end is not None and (is_named or not is_index_whole):
            text = f"no whole run here; the next one is at {gap.end}"
            self._survey.report(path, gap.offset, text)
            log.is_damaged = True
        elif is_named:
            self._survey.report(path, gap.offset, "no whole run here, and none behind it")
            log.is_damaged = True
        else:
            text = "the rest of a failed flush; nothing refers to it"
            self._survey.report(path, gap.offset, text, Severity.NOTE)

    def _check_runs(self) -> None:
        """Check that the entry logs hold the runs that the index names."""
        survey = self._survey
        for ledger_id, ledger in survey.ledgers.items():
            wrong: defaultdict[int, list[int]] = defaultdict(list)
            for first, location in ledger.runs.items():
                log = survey.logs.get(location.log_id)
                if log is None or log.runs.get(location.offset) != (ledger_id, first, location):
                    ledger.unreadable.add(first)
                    wrong[location.log_id].append(first)
            for log_id, firsts in wrong.items():
                ranges = ranges_of({first: ledger.runs[first] for first in sorted(firsts)})
                text = f"entries {ranges_text(ranges)} of ledger {ledger_id} can't be read"
                survey.report(log_path(log_id), ledger.runs[min(firsts)].offset, text)
                if log_id not in survey.logs:
                    survey.logs[log_id] = SurveyedLog(is_damaged=True)

    def _check_ledgers(self) -> None:
        """Check that each entry of each ledger is in the logs or the journal."""
        survey = self._survey
        for ledger_id, ledger in survey.ledgers.items():
            known = ranges_of(ledger.runs) + ledger.journal
            missing = missing_ranges(known, 0, ledger.last_entry_id)
            if missing:
                text = f"entries {ranges_text(missing)} of ledger {ledger_id} are in no file"
                survey.report(TABLE_DIRECTORY, None, text)


_UNKNOWN = LedgerRecord(custom_metadata={"unknown": b""})
"""The record of a ledger of which only runs were found; compared by identity."""


def reconstructed(last_entry_id: int) -> LedgerRecord:
    """A record in place of a lost one: the ledger is closed at that entry."""
    return replace(LedgerRecord(is_closed=True, is_fenced=True), last_entry_id=last_entry_id)


def _is_later(record: LedgerRecord, other: LedgerRecord) -> bool:
    """Whether a ledger's record was written after another: ledgers only grow, then close."""
    if other is _UNKNOWN:
        return True
    return (record.is_closed, record.last_entry_id) > (other.is_closed, other.last_entry_id)


def _salvage_plan(found: Sequence[FoundFile], mark: tuple[int, int]) -> list[ReplayFile]:
    """All files that may hold blocks, whether or not their headers form a chain."""
    ends = {
        each.header.previous_id: each.header.previous_end
        for each in found
        if each.header is not None and each.header.previous_end  # 0: none came before, or not begun
    }
    plan = []
    for each in sorted(found, key=lambda file: file.file_id):
        life = each.header if each.is_begun else each.lost_header
        if each.file_id < mark[0] or life is None:
            continue
        start = max(mark[1] if each.file_id == mark[0] else 0, life.first_offset)
        plan.append(ReplayFile(each.file_id, each.path, start, ends.get(each.file_id), life))
    return plan
