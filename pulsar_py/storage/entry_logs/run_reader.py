"""`RunReader`: reads runs of entries from the entry logs into the read cache (edge).

A miss loads a *stretch*: the run that holds the entry and the neighbours that follow it in the log.
A reader that comes to the last run of a stretch reads in order, so what `ReadAhead` decides on is
fetched while it is busy; its pieces are stretches here.

What always holds: each run is checked before it is cached, and entries that were fetched ahead and
not yet read fill at most a third of the cache, or a run more.

Source: the read-ahead of DbLedgerStorage in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.ledgers.read_ahead import AheadWindow, ReadAhead
from pulsar_py.storage.entry_logs.entry_log import EntryLogReaders, log_path
from pulsar_py.storage.entry_logs.entry_log_format import Run, decode_run
from pulsar_py.storage.entry_logs.read_cache import (
    ENTRY_OVERHEAD_BYTES,
    RUN_OVERHEAD_BYTES,
    ReadCache,
    RunKey,
)
from pulsar_py.storage.index.index import FoundRun, Index
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.settings import BookieSettings

logger = logging.getLogger(__name__)

READ_ATTEMPTS_COUNT = 3

READS_COUNT = 3
"""Pieces of all ledgers that are read ahead at a time: one of the disk's threads stays free."""


class _Piece:
    """One stretch of a window."""

    __slots__ = ("done", "end", "first", "has_begun", "runs", "size_bytes")

    def __init__(self, runs: list[FoundRun], done: asyncio.Future[None]) -> None:
        self.runs = runs
        self.first = runs[0][0]
        self.end = _end(runs)
        self.size_bytes = _size_bytes(runs)
        self.has_begun = False
        self.done = done  # set when the read has ended, and its runs are cached if it succeeded


class RunReader:
    """Reads the runs of all ledgers. Owned by the LedgerStorage."""

    def __init__(
        self,
        index: Index,
        readers: EntryLogReaders,
        cache: ReadCache,
        settings: BookieSettings,
    ) -> None:
        self._index = index
        self._readers = readers
        self._cache = cache
        self._ahead: ReadAhead[_Piece] = ReadAhead(settings.fetch_ahead_bytes)
        self._cache_bytes = settings.read_cache_bytes
        # Stretches of large entries are read into this memory, and the entries are views of it.
        self._memory = ReusedMemory(settings.read_cache_bytes)
        self._reading = asyncio.Semaphore(READS_COUNT)
        self._tasks = TaskOwner("run reader")
        self._is_closed = False
        cache.on_mark = self._fetch_ahead

    async def load(
        self, ledger_id: int, entry_id: int, ahead_bytes: int
    ) -> tuple[Sequence[EntryBytes], int]:
        """The run with `entry_id`, and the entry's index in it; the rest of the stretch is cached.

        Raises:
            CorruptDataError: The run is damaged or missing.
        """
        window = self._ahead.window(ledger_id)
        if window is not None and (piece := window.piece_with(entry_id)) is not None:
            if piece.done.done():
                self._ahead.forget(ledger_id)  # It gave way before it was wanted, or failed.
            elif piece.has_begun:
                await asyncio.shield(piece.done)
                found = self._cache.find(ledger_id, entry_id)
                if found is not None:
                    return found
        runs, entries = await self._load(ledger_id, entry_id, ahead_bytes)
        if len(runs) > 1:
            self._cache.mark(ledger_id, runs[-1][0], _end(runs))
        elif self._ahead.is_in_order(ledger_id, entry_id):
            self._fetch_ahead(ledger_id, _end(runs))
        self._ahead.on_miss(ledger_id, _end(runs))
        place = entry_id - runs[0][0]
        assert 0 <= place < len(entries), f"ledger {ledger_id}: entry {entry_id}"
        return entries, place

    async def _load(
        self, ledger_id: int, entry_id: int, ahead_bytes: int
    ) -> tuple[list[FoundRun], Sequence[EntryBytes]]:
        """A stretch, and the entries of its first run."""
        path = ""
        for _ in range(READ_ATTEMPTS_COUNT):
            runs = await self._index.find_runs(ledger_id, entry_id, ahead_bytes)
            if not runs:
                raise CorruptDataError(f"ledger {ledger_id}: entry {entry_id} is not in the index")
            runs = _fitting(runs, self._cache_bytes)
            path = log_path(runs[0][1].log_id)
            try:
                data = await self._read(runs)
            except FileNotFoundError:
                continue  # The log was compacted meanwhile; the index has the new place by now.
            checked = self._decode(ledger_id, runs, data)
            return runs[: len(checked)], checked[0][1]
        raise CorruptDataError(f"{path}: missing; it has entry {entry_id} of ledger {ledger_id}")

    async def _read(self, runs: list[FoundRun]) -> EntryBytes:
        first, size_bytes = runs[0][1], _size_bytes(runs)
        if size_bytes < LENT_BYTES * sum(location.count for _, location in runs):
            return await self._readers.read(first.log_id, first.offset, size_bytes)
        return await self._readers.read_lent(first.log_id, first.offset, size_bytes, self._memory)

    def _decode(
        self, ledger_id: int, runs: list[FoundRun], data: EntryBytes
    ) -> list[tuple[int, Sequence[EntryBytes]]]:
        """Check the runs of a stretch and cache them, up to the first damaged one.

        Returns them by first entry ids.

        Raises:
            CorruptDataError: The first run is damaged.
        """
        start = runs[0][1].offset
        checked: list[tuple[int, Sequence[EntryBytes]]] = []
        for first_entry_id, location in runs:
            try:
                run = _checked_run((ledger_id, first_entry_id), location, data, start)
            except CorruptDataError:
                if not checked:
                    raise
                break
            checked.append((first_entry_id, run.entries))
        self._cache.put(ledger_id, checked, len(data))
        return checked

    def _fetch_ahead(self, ledger_id: int, entry_id: int) -> None:
        """A reader in order will soon want `entry_id`: move its window there."""
        held_end = partial(self._cache.end_of, ledger_id, entry_id)
        self._extend(ledger_id, self._ahead.move(ledger_id, entry_id, held_end))

    def _extend(self, ledger_id: int, window: AheadWindow[_Piece]) -> None:
        """Fetch one more piece, if there is room."""
        room_bytes = self._cache_bytes // 3 - self._cache.unread_bytes
        if self._is_closed or not (
            size_bytes := self._ahead.next_bytes(ledger_id, window, room_bytes)
        ):
            return
        self._tasks.spawn(self._fetch(ledger_id, window, size_bytes), "fetch ahead")

    async def _fetch(self, ledger_id: int, window: AheadWindow[_Piece], size_bytes: int) -> None:
        """Fetch about `size_bytes` of the entries behind a window, if there are any."""
        try:
            piece = await self._ask(ledger_id, window, size_bytes)
            if piece is not None:
                size_bytes = self._ahead.on_found(window, piece, size_bytes)
                self._extend(ledger_id, window)
                await self._bring(ledger_id, piece)
        except (StorageError, FileNotFoundError):
            # No error is lost: a reader that needs the entries reads them itself, and gets it.
            logger.debug("fetching ahead failed", exc_info=True)
        finally:
            self._ahead.on_ended(window, size_bytes)

    async def _ask(
        self, ledger_id: int, window: AheadWindow[_Piece], size_bytes: int
    ) -> _Piece | None:
        """What follows: None at the ledger's end, and where the write cache has the rest."""
        try:
            runs = await self._index.find_runs(ledger_id, window.end, size_bytes)
        finally:
            self._ahead.on_nothing_found(window)  # unless it is told what was
        if not runs:
            return None
        return _Piece(runs, asyncio.get_running_loop().create_future())

    async def _bring(self, ledger_id: int, piece: _Piece) -> None:
        """Read and cache a piece, unless a reader has done so meanwhile."""
        cache = self._cache
        try:
            async with self._reading:
                first = cache.end_of(ledger_id, piece.first)
                if self._is_closed or first >= piece.end:
                    return
                piece.has_begun = True
                data = await self._read(piece.runs)
            first = cache.end_of(ledger_id, piece.first)
            self._decode(ledger_id, piece.runs, data)
            cache.count_unread(ledger_id, first, piece.size_bytes)
            cache.mark(ledger_id, first, piece.end)
        finally:
            piece.done.set_result(None)

    async def close(self) -> None:
        """Start no more reads, and wait for those under way."""
        self._is_closed = True
        await self._tasks.drain()


def _checked_run(key: RunKey, location: Location, data: EntryBytes, start: int) -> Run:
    """A run of a stretch that begins at `start` of its log.

    Raises:
        CorruptDataError: It is damaged, or not the run that the index names.
    """
    path, offset = log_path(location.log_id), location.offset
    run = decode_run(data, path, offset, start=offset - start, length=location.length)
    if (run.ledger_id, run.first_entry_id) != key:
        raise CorruptDataError(
            f"{path}: offset {offset}: a run of ledger {run.ledger_id} "
            f"where the index has ledger {key[0]}"
        )
    if len(run.entries) != location.count:
        raise CorruptDataError(
            f"{path}: offset {offset}: a run of {len(run.entries)} entries "
            f"where the index has {location.count}"
        )
    return run


def _fitting(runs: list[FoundRun], limit_bytes: int) -> list[FoundRun]:
    """The first runs of a stretch, as many as a cache of that size can hold; at least one."""
    for count, (_, location) in enumerate(runs):
        limit_bytes -= location.length + RUN_OVERHEAD_BYTES + ENTRY_OVERHEAD_BYTES * location.count
        if limit_bytes < 0:
            return runs[: max(count, 1)]
    return runs


def _size_bytes(runs: list[FoundRun]) -> int:
    return sum(location.length for _, location in runs)


def _end(runs: list[FoundRun]) -> int:
    """Id of the entry after a stretch."""
    first_entry_id, location = runs[-1]
    return first_entry_id + location.count
