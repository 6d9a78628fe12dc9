"""`JournalReplay`: applies, at a start, the journal's blocks that came after the checkpoint (edge).

`recovery` decides which journal files count and from where; here their blocks are read and applied,
by the code that applies a group at run time. What is replayed is made durable before it is used.
Replayed entries are flushed in between, so that a long journal does not fill the memory, unless the
disk is full.
"""

from __future__ import annotations

from typing import Protocol

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError, DiskFullError
from pulsar_py.storage.entry_logs.entry_log import DIRECTORY as LOG_DIRECTORY
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.entry_logs.run_log import read_back
from pulsar_py.storage.housekeeper import Housekeeper
from pulsar_py.storage.index.index_table import DIRECTORY as TABLE_DIRECTORY
from pulsar_py.storage.journal.journal import Mark
from pulsar_py.storage.journal.journal_files import DIRECTORY as JOURNAL_DIRECTORY
from pulsar_py.storage.journal.journal_files import JournalFiles, journal_path
from pulsar_py.storage.journal.journal_format import Block, Section
from pulsar_py.storage.journal.journal_reader import find_files, has_block_after, read_blocks
from pulsar_py.storage.journal.recovery import ReplayFile, check_end, plan_replay
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import ENTRY_OVERHEAD_BYTES, Ledger
from pulsar_py.storage.shared.manifest import Manifest
from pulsar_py.storage.shared.write_cache import AppendGate, WriteCache


class ReplayTarget(Protocol):
    """The part of the Bookie to which blocks are applied."""

    async def find_or_none(self, ledger_id: int) -> Ledger | None:
        """The ledger, loaded from the index if it is not in memory; it may be deleted."""

    def adopt(self, ledger_id: int, record: LedgerRecord) -> Ledger:
        """Add a ledger that is neither in memory nor in the index."""

    def apply_section(self, ledger: Ledger, section: Section) -> None:
        """Apply a ledger's section of a journal block."""

    def apply_record(self, ledger: Ledger, record: LedgerRecord) -> None:
        """Apply a ledger's changed record."""


class JournalReplay:
    """One start's replay. Used by `Bookie.start`."""

    def __init__(
        self,
        disk: Disk,
        storage: LedgerStorage,
        cache: WriteCache,
        gate: AppendGate,
        housekeeper: Housekeeper,
        *,
        files: JournalFiles,
        write_cache_bytes: int,
        target: ReplayTarget,
    ) -> None:
        """`files` gets the journal files that are left over.

        Whenever more than `write_cache_bytes` were replayed they are flushed.
        """
        self._disk = disk
        self._files = files
        self._storage = storage
        self._cache = cache
        self._gate = gate
        self._housekeeper = housekeeper
        self._write_cache_bytes = write_cache_bytes
        self._target = target

    async def run(self) -> Mark | None:
        """Replay the blocks after the checkpoint; returns the journal's end, None on a new disk.

        Raises:
            CorruptDataError: Confirmed data is damaged or missing.
        """
        mark = self._storage.manifest.mark
        await self._sync_journal(mark[0])
        found = await find_files(self._disk, mark)
        if not found and self._storage.manifest == Manifest():
            if await self._storage.has_files():
                raise CorruptDataError(
                    "MANIFEST and journal are missing, but there are entry logs or index tables"
                )
            await self._make_directories()
            return None
        # A process that was killed may have left a manifest whose name is not durable; what the one
        # before it needs is removed from here on.
        await self._disk.sync_directory("")
        if not found:
            await self._make_directories()  # A restored backup has those alone that have files.
        plan = plan_replay(found, mark)
        await self._storage.remove_leftover_tables()
        await self._storage.hold_logs()
        await self._files.find_spares()
        # A write that a killed process had handed to the kernel may come after this, and must not
        # meet another life of its file. All writes of files before the newest were confirmed.
        for file in plan.files[:-1]:
            if file.life.is_used_again:
                self._files.on_written(file.file_id)
        for file_id in plan.leftovers:
            await self._files.retire(file_id)
        end = mark
        for file in plan.files:
            end = await self._replay_file(file)
        await self._storage.remove_leftover_logs()
        return end

    async def _make_directories(self) -> None:
        for directory in (JOURNAL_DIRECTORY, LOG_DIRECTORY, TABLE_DIRECTORY):
            await self._disk.make_directory(directory)
        await self._disk.sync_directory("")

    async def _sync_journal(self, first_id: int) -> None:
        """Make durable what is replayed.

        A process that was killed may have left whole blocks that are not, or that a failed sync has
        lost. From here on they count: readers get their entries, and the next file's header names
        their end.
        """
        for name in await self._disk.list_directory(JOURNAL_DIRECTORY):
            if name.isdigit() and int(name) >= first_id:
                await self._disk.sync_file(journal_path(int(name)))

    async def _flush_if_there_is_room(self) -> None:
        """Flush replayed entries; on a full disk they stay in memory, so that a start succeeds."""
        if self._gate.is_shut:
            return
        try:
            await self._housekeeper.flush()
        except DiskFullError as error:
            self._housekeeper.on_disk_full(error)

    async def _replay_file(self, replay: ReplayFile) -> Mark:
        file = await self._disk.open_read(journal_path(replay.file_id))
        offset = replay.start
        try:
            async for block, block_end in read_blocks(file, replay):
                # Before a flush that passes the block can remove a log that it refers to.
                self._storage.run_log.refer(block.sections, (replay.file_id, block_end))
                await self._replay_block(block, f"{replay.path}: offset {offset}")
                offset = block_end
                self._cache.current.mark = (replay.file_id, offset)
                if self._cache.current.cost_bytes >= self._write_cache_bytes:
                    await self._flush_if_there_is_room()
            has_later_block = replay.end is None and await has_block_after(
                file, replay.life, offset
            )
        finally:
            await file.close()
        check_end(replay, offset, has_later_block=has_later_block)
        return replay.file_id, offset

    async def _replay_block(self, block: Block, place: str) -> None:
        target = self._target
        for section in block.sections:
            ledger = await target.find_or_none(section.ledger_id)
            if ledger is None:
                raise CorruptDataError(
                    f"{place}: entries of ledger {section.ledger_id}, which has no record"
                )
            if section.last_entry_id <= ledger.last_add_confirmed or ledger.record.is_deleted:
                continue
            if section.first_entry_id != ledger.last_add_confirmed + 1:
                raise CorruptDataError(
                    f"{place}: ledger {section.ledger_id}: entry {section.first_entry_id} follows "
                    f"entry {ledger.last_add_confirmed}, expected {ledger.last_add_confirmed + 1}"
                )
            if section.runs:
                section.entries = await read_back(self._storage.readers, section)
            ledger.last_add_pushed = ledger.last_add_taken = section.last_entry_id
            target.apply_section(ledger, section)
            self._gate.room_bytes -= section.size_bytes + ENTRY_OVERHEAD_BYTES * len(
                section.entries
            )
        for ledger_id, record in block.records:
            ledger = await target.find_or_none(ledger_id)
            if ledger is None:
                ledger = target.adopt(ledger_id, record.at(-1, 0))
                self._cache.current.set_record(ledger)
            target.apply_record(ledger, record)
