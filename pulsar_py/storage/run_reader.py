"""`RunReader`: reads runs of entries from the entry logs into the read cache (edge).

A miss loads a *stretch*: the run that holds the entry and the neighbours that follow it in the log.
A reader that comes to the last run of a stretch reads in order, so the entries that follow are
fetched ahead of it: a *window* of pieces, each a stretch, as large as the settings allow. Each time
the reader begins with a piece, the window moves on by one; so enough reads are always under way to
cover the turns that a busy loop and the disk's threads take. Of several readers each gets half
of the room that is left.

What always holds: each run is checked before it is cached, and entries that were fetched ahead and
not yet read fill at most a third of the cache, or a run more.

Source: the read-ahead of DbLedgerStorage in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Sequence

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.common.recent import remember
from pulsar_py.common.reused_memory import ReusedMemory
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.storage.entry_log import EntryLogReaders, log_path
from pulsar_py.storage.entry_log_format import Run, decode_run
from pulsar_py.storage.index import FoundRun, Index
from pulsar_py.storage.index_format import Location
from pulsar_py.storage.read_cache import ENTRY_OVERHEAD_BYTES, RUN_OVERHEAD_BYTES, ReadCache, RunKey
from pulsar_py.storage.settings import MIB, BookieSettings

logger = logging.getLogger(__name__)

READ_ATTEMPTS_COUNT = 3

PIECE_BYTES = 2 * MIB
"""The most bytes of a piece; at most a quarter of a window, save where one run is larger."""

READS_COUNT = 3
"""Pieces of all ledgers that are read ahead at a time: one of the disk's threads stays free."""

READERS_COUNT = 4
"""Ledgers whose entries are fetched ahead at a time."""

PIECES_COUNT = 32
"""The most pieces of a window: where topics wrote in turns, each run is a piece of its own."""

LEDGERS_COUNT = 256
"""Ledgers for which the end of the last miss, and the window, are remembered."""

SMALLEST_PART = 4
"""Reads smaller than a piece divided by this are not made: they cost more than they save."""


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


class _Window:
    """The pieces fetched ahead of one ledger's reader, in order, none of them read yet."""

    __slots__ = ("coming_count", "end", "is_finding", "pieces", "size_bytes")

    def __init__(self, entry_id: int) -> None:
        self.end = entry_id
        self.pieces: deque[_Piece] = deque()
        self.size_bytes = 0
        self.is_finding = False
        self.coming_count = 0

    @property
    def first(self) -> int:
        """Id of its first entry; of an empty window, of the next entry to fetch."""
        return self.pieces[0].first if self.pieces else self.end

    def add(self, piece: _Piece) -> None:
        """Append the piece that follows."""
        self.pieces.append(piece)
        self.size_bytes += piece.size_bytes
        self.end = piece.end

    def slide(self, entry_id: int) -> bool:
        """Drop the pieces before `entry_id`; False if that entry is not of this window."""
        if not self.first <= entry_id <= self.end:
            return False
        while self.pieces and self.pieces[0].end <= entry_id:
            self.size_bytes -= self.pieces.popleft().size_bytes
        return True

    def piece_with(self, entry_id: int) -> _Piece | None:
        """The piece with an entry; None if none has it."""
        for piece in self.pieces:
            if piece.first <= entry_id < piece.end:
                return piece
        return None


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
        self._ahead_bytes = settings.fetch_ahead_bytes
        self._piece_bytes = min(PIECE_BYTES, settings.fetch_ahead_bytes // 4)
        self._smallest_bytes = self._piece_bytes // SMALLEST_PART
        self._cache_bytes = settings.read_cache_bytes
        # Stretches of large entries are read into this memory, and the entries are views of it.
        self._memory = ReusedMemory(settings.read_cache_bytes)
        # Bytes of the reads under way, and the number of windows that have such reads.
        self._coming_bytes = 0
        self._coming_windows_count = 0
        self._reading = asyncio.Semaphore(READS_COUNT)
        # By ledger, the entry after the last miss's stretch: a reader that wants it reads in order.
        self._ends: OrderedDict[int, int] = OrderedDict()
        self._windows: OrderedDict[int, _Window] = OrderedDict()
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
        # Hot path: benchmarks/micro_storage.py, catch-up
        window = self._windows.get(ledger_id)
        if window is not None and (piece := window.piece_with(entry_id)) is not None:
            if piece.done.done():
                # It was read, yet the cache missed: it failed, or was dropped before it was used.
                del self._windows[ledger_id]
            elif piece.has_begun:
                await asyncio.shield(piece.done)
                found = self._cache.find(ledger_id, entry_id)
                if found is not None:
                    return found
        runs, entries = await self._load(ledger_id, entry_id, ahead_bytes)
        if len(runs) > 1:
            self._cache.mark(ledger_id, runs[-1][0], _end(runs))
        elif self._ends.get(ledger_id) == entry_id:
            self._fetch_ahead(ledger_id, _end(runs))
        remember(self._ends, ledger_id, _end(runs), LEDGERS_COUNT)
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
        """Move a reader's window to `entry_id`, which it will soon want, as it reads in order."""
        window = self._windows.get(ledger_id)
        if window is None or not window.slide(entry_id):
            cached_end = self._cache.end_of(ledger_id, entry_id)
            # If all entries up to another reader's window are cached, both share that window.
            if window is None or not entry_id < window.first <= cached_end:
                window = _Window(cached_end)
        remember(self._windows, ledger_id, window, LEDGERS_COUNT)
        self._extend(ledger_id, window)

    def _extend(self, ledger_id: int, window: _Window) -> None:
        """Fetch one more piece, if there is room."""
        room_bytes = self._cache_bytes // 3 - self._cache.unread_bytes - self._coming_bytes
        size_bytes = min(self._piece_bytes, self._ahead_bytes - window.size_bytes, room_bytes // 2)
        if (
            not self._is_closed
            and not window.is_finding
            and self._windows.get(ledger_id) is window
            and len(window.pieces) < PIECES_COUNT
            and size_bytes > self._smallest_bytes
            and (window.coming_count or self._coming_windows_count < READERS_COUNT)
        ):
            # Counted now, not when the task begins: this may run many times in one loop turn.
            self._coming_windows_count += not window.coming_count
            window.coming_count += 1
            self._coming_bytes += size_bytes
            window.is_finding = True
            self._tasks.spawn(self._fetch(ledger_id, window, size_bytes), "fetch ahead")

    async def _fetch(self, ledger_id: int, window: _Window, size_bytes: int) -> None:
        """Fetch about `size_bytes` of the entries after a window, if there are any."""
        try:
            piece = await self._ask(ledger_id, window, size_bytes)
            if piece is not None:
                self._coming_bytes += piece.size_bytes - size_bytes
                size_bytes = piece.size_bytes
                self._extend(ledger_id, window)
                await self._bring(ledger_id, piece)
        except (StorageError, FileNotFoundError):
            # No error is lost: a reader that needs the entries reads them itself, and gets it.
            logger.debug("fetching ahead failed", exc_info=True)
        finally:
            self._coming_bytes -= size_bytes
            window.coming_count -= 1
            self._coming_windows_count -= not window.coming_count

    async def _ask(self, ledger_id: int, window: _Window, size_bytes: int) -> _Piece | None:
        """Add the next piece to a window; None if the logs have no entries after it.

        That is so at the ledger's end, or if the rest is only in the write cache.
        """
        try:
            runs = await self._index.find_runs(ledger_id, window.end, size_bytes)
        finally:
            window.is_finding = False
        if not runs:
            return None
        piece = _Piece(runs, asyncio.get_running_loop().create_future())
        window.add(piece)
        return piece

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
