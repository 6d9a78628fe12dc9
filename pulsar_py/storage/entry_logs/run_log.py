"""`RunLog`: writes large entries to an entry log straight away, with a sync of its own (edge).

The journal usually gets each entry, and a flush writes it again to an entry log. For large entries
the second write costs most of what the disk and the processor have. So those of a large group go to
an entry log at once, as runs; when they are durable the group's block is written, which has their
places in place of their bytes; a flush then only puts the places into the index. The journal still
decides what is confirmed: runs that no block refers to are garbage.

Each write begins at a multiple of the device's block, behind a run of padding, so that no write
touches what was confirmed before, and all can bypass the page cache. Padding is a run of
`PADDING_LEDGER_ID`, so that a log of this kind reads as any other.

A log stays while a block behind the checkpoint's mark refers to it, whatever became of its ledgers:
a start reads the entries back from it. So each write is noted with the end of its block, until a
checkpoint has passed that. From then on the manifest counts the log.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.storage.entry_logs.entry_log import (
    DIRECTORY,
    EntryLogReaders,
    EntryLogWriter,
    log_path,
)
from pulsar_py.storage.entry_logs.entry_log_format import cut_runs, decode_run, encode_run
from pulsar_py.storage.journal.journal import Mark
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.settings import BookieSettings


class RunLog:
    """The entry log that groups are written to. Owned by the LedgerStorage."""

    def __init__(
        self, disk: Disk, settings: BookieSettings, allocate_log_id: Callable[[], int]
    ) -> None:
        self._disk = disk
        self._settings = settings
        self._allocate_log_id = allocate_log_id
        self._log: EntryLogWriter | None = None
        # Runs were written and no block refers to them yet.
        self._is_writing = False
        # The end of each block behind the mark with runs, and their log and bytes. Where a write
        # has failed: an end before every mark, and no bytes.
        self._noted: deque[tuple[Mark, int, int]] = deque()
        # While the journal is replayed, all logs there are: blocks that were not read yet may refer
        # to any of them.
        self._held_ids: frozenset[int] = frozenset()

    @property
    def busy_ids(self) -> set[int]:
        """Logs that are written, or that the journal needs."""
        return self.busy_at((0, 0)) | {log_id for _, log_id, _ in self._noted}

    def busy_at(self, mark: Mark) -> set[int]:
        """Logs that are written, or that the journal behind `mark` needs."""
        busy = {log_id for end, log_id, _ in self._noted if end > mark} | self._held_ids
        return busy if self._log is None else busy | {self._log.log_id}

    def hold(self, log_ids: Iterable[int]) -> None:
        """Count these logs as busy, and no others that were held before."""
        self._held_ids = frozenset(log_ids)

    async def write(self, sections: Sequence[Section]) -> None:
        """Write the entries of sections as runs, whose places they then have; returns when durable.

        Raises:
            StorageError: They could not be written.
        """
        self._is_writing = True
        async with OnFailureAwait(self.give_up):
            log = self._log
            if log is None or log.end >= self._settings.entry_log_bytes:
                log = await self._roll()
            for section in sections:
                section.runs = [
                    log.add(
                        encode_run(
                            section.ledger_id,
                            section.first_entry_id + start,
                            section.entries[start:end],
                        ),
                        end - start,
                    )
                    for start, end in cut_runs(section.entries, self._settings.run_bytes)
                ]
            log.pad(self._settings.journal_block_bytes)
            synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            log.write_and_sync(partial(_settle, synced))
            await synced

    def refer(self, sections: Sequence[Section], end: Mark) -> None:
        """Note that the block that ends there refers to the runs of sections."""
        self._is_writing = False
        sizes = Counter[int]()
        for section in sections:
            for location in section.runs:
                sizes[location.log_id] += location.length
        self._noted += ((end, log_id, size_bytes) for log_id, size_bytes in sizes.items())

    def passed_bytes(self, mark: Mark) -> Counter[int]:
        """Bytes of the runs, by log, that only blocks before `mark` refer to."""
        passed = Counter[int]()
        for end, log_id, size_bytes in self._noted:
            if end > mark:
                break
            passed[log_id] += size_bytes
        return passed

    def pass_mark(self, mark: Mark) -> set[int]:
        """Forget what blocks before `mark` refer to; returns the logs that are busy no more."""
        passed = set()
        while self._noted and self._noted[0][0] <= mark:
            passed.add(self._noted.popleft()[1])
        return passed - self.busy_ids

    async def give_up(self) -> None:
        """Write no more to the log: it is unknown what it has at its end."""
        if self._log is not None:
            self._noted.append(((0, 0), self._log.log_id, 0))
        await self._close_log()

    async def release(self) -> None:
        """Let the next group begin another log, unless one is being written."""
        if not self._is_writing:
            await self._close_log()

    async def close(self) -> None:
        """Release the file."""
        await self._close_log()

    async def _close_log(self) -> None:
        self._is_writing = False
        log, self._log = self._log, None
        if log is not None:
            await log.close()

    async def _roll(self) -> EntryLogWriter:
        await self._close_log()
        self._is_writing = True
        self._log = await EntryLogWriter.create(
            self._disk, self._allocate_log_id(), is_direct=self._settings.is_journal_direct
        )
        await self._disk.sync_directory(DIRECTORY)
        return self._log


async def read_back(readers: EntryLogReaders, section: Section) -> list[EntryBytes]:
    """The entries of a section that are in entry logs.

    Raises:
        CorruptDataError: A run is damaged or missing; it was durable before its block was written.
    """
    entries: list[EntryBytes] = []
    for first_entry_id, location in section.placed_runs():
        path = log_path(location.log_id)
        try:
            data = await readers.read(location.log_id, location.offset, location.length)
        except FileNotFoundError:
            raise CorruptDataError(f"{path}: the journal refers to it, and it is missing") from None
        run = decode_run(data, path, location.offset)
        found = (run.ledger_id, run.first_entry_id, len(run.entries))
        expected = (section.ledger_id, first_entry_id, location.count)
        if found != expected:
            raise CorruptDataError(
                f"{path}: offset {location.offset}: ledger, first entry and count are {found}, "
                f"the journal says {expected}"
            )
        entries += map(bytes, run.entries)
    return entries


def _settle(synced: asyncio.Future[None], error: BaseException | None) -> None:
    if synced.done():
        return
    if error is None:
        synced.set_result(None)
    else:
        synced.set_exception(error)
