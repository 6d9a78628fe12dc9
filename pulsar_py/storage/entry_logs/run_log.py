"""`RunLog`: writes large entries to an entry log straight away, with a sync of its own (edge).

The journal usually gets each entry, and a flush writes it again to an entry log. For large entries
the second write costs most of what the disk and the processor have. So those of a large group go to
an entry log at once, as runs; when they are durable the group's block is written, which has their
places in place of their bytes; a flush then only puts the places into the index. The journal still
decides what is confirmed: runs that no block refers to are garbage.

Groups may be written at the same time, each to a log that no other is using, not even one that
waits for its block: a log is given up when a write to it fails, and nothing may still need it then.
So there are as many logs as there were groups at once.

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

from msgspec import Struct

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


class _OpenLog(Struct):
    """A log that groups are written to."""

    writer: EntryLogWriter
    is_written: bool = False
    """A group is being written to it."""
    is_taken: bool = False
    """A group is being written to it, or was, and no block refers to that yet."""


class RunLog:
    """The entry logs that groups are written to. Owned by the LedgerStorage."""

    def __init__(
        self, disk: Disk, settings: BookieSettings, allocate_log_id: Callable[[], int]
    ) -> None:
        self._disk = disk
        self._settings = settings
        self._allocate_log_id = allocate_log_id
        self._open: dict[int, _OpenLog] = {}
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
        return busy | set(self._open)

    def hold(self, log_ids: Iterable[int]) -> None:
        """Count these logs as busy, and no others that were held before."""
        self._held_ids = frozenset(log_ids)

    async def write(self, sections: Sequence[Section]) -> None:
        """Write the entries of sections as runs, whose places they then have; returns when durable.

        Raises:
            StorageError: They could not be written.
        """
        log = await self._take_log()
        async with OnFailureAwait(partial(self._on_failed, log)):
            writer = log.writer
            for section in sections:
                section.runs = [
                    writer.add(
                        encode_run(
                            section.ledger_id,
                            section.first_entry_id + start,
                            section.entries[start:end],
                        ),
                        end - start,
                    )
                    for start, end in cut_runs(section.entries, self._settings.run_bytes)
                ]
            writer.pad(self._settings.journal_block_bytes)
            synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            writer.write_and_sync(partial(_settle, synced))
            await synced
        log.is_written = False
        if writer.log_id not in self._open:  # it was given up meanwhile
            await writer.close()

    async def _on_failed(self, log: _OpenLog) -> None:
        """Write no more to a log: it is unknown what it has at its end."""
        if self._open.pop(log.writer.log_id, None) is not None:  # else it was given up meanwhile
            self._noted.append(((0, 0), log.writer.log_id, 0))
        await log.writer.close()

    def refer(self, sections: Sequence[Section], end: Mark) -> None:
        """Note that the block that ends there refers to the runs of sections."""
        sizes = Counter[int]()
        for section in sections:
            for location in section.runs:
                sizes[location.log_id] += location.length
        for log_id, size_bytes in sizes.items():
            self._noted.append((end, log_id, size_bytes))
            if log_id in self._open:  # not while the journal is replayed
                self._open[log_id].is_taken = False

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
        """Write no more to these logs: it is unknown what they have at their ends."""
        logs = [each for each in self._open.values() if not each.is_written]
        self._noted += (((0, 0), log_id, 0) for log_id in self._open)
        self._open.clear()  # all at once: a group that begins meanwhile must take none of them
        for log in logs:
            await log.writer.close()

    async def release(self) -> None:
        """Let the next groups begin other logs, but for those that are being written."""
        for log in list(self._open.values()):
            if not log.is_taken:
                await self._close_log(log)

    async def close(self) -> None:
        """Release the files."""
        for log in list(self._open.values()):
            await self._close_log(log)

    async def _close_log(self, log: _OpenLog) -> None:
        if self._open.pop(log.writer.log_id, None) is not None:
            await log.writer.close()

    async def _take_log(self) -> _OpenLog:
        """A log for one more group, which no other is written to, or waits for its block."""
        room_bytes = self._settings.entry_log_bytes
        for log in self._open.values():
            if not log.is_taken and log.writer.end < room_bytes:
                log.is_written = log.is_taken = True
                return log
        await self.release()
        writer = await EntryLogWriter.create(
            self._disk, self._allocate_log_id(), is_direct=self._settings.is_journal_direct
        )
        log = self._open[writer.log_id] = _OpenLog(writer, is_written=True, is_taken=True)
        async with OnFailureAwait(partial(self._on_failed, log)):
            await self._disk.sync_directory(DIRECTORY)
        return log


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
