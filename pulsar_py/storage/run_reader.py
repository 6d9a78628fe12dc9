"""RunReader: brings runs of entries from the entry logs into the read cache (edge).

A miss loads a *stretch*: the run that holds the entry and the neighbours that follow it in the log.
Whoever comes to the last run of such a stretch reads in order, and gets what follows fetched while
it is busy with what it has: as much as the settings say, in as many stretches as that lies in. When
it begins with that, the next fetch begins: it takes some turns of a busy loop, however fast the
disk is. Of many who read at a time each gets half of the room there is. Reads of neighbours are one
read of the file.

What always holds: each run is checked before it is cached; at most one fetch a ledger is under way,
and what was fetched ahead and not yet wanted fills at most half of the cache.

Source: the read-ahead of DbLedgerStorage in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence

from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.recent import remember
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.storage.entry_log import EntryLogReaders, log_path
from pulsar_py.storage.entry_log_format import Run, decode_run
from pulsar_py.storage.index import FoundRun, Index
from pulsar_py.storage.index_format import Location
from pulsar_py.storage.read_cache import ENTRY_OVERHEAD_BYTES, RUN_OVERHEAD_BYTES, ReadCache, RunKey
from pulsar_py.storage.settings import MIB, BookieSettings

logger = logging.getLogger(__name__)

READ_ATTEMPTS_COUNT = 3

STRETCH_BYTES = 2 * MIB
"""What is fetched ahead is read in pieces of at most that, save where one run is larger."""

READS_COUNT = 2
"""Stretches read ahead at a time, of all ledgers: a thread is left for everybody else."""

FETCHES_COUNT = 4
"""Ledgers for which something is fetched ahead at a time."""

STRETCHES_COUNT = 32
"""Most stretches of one fetch: where topics take turns, each run lies by itself."""

ENDS_COUNT = 256
"""Ledgers of which it is known where their last miss ended."""

SMALLEST_PART = 8
"""Less than such a part of what the settings say is not worth a fetch's turns of the loop."""


class _Piece:
    """One stretch of a fetch."""

    __slots__ = ("done", "has_begun", "runs")

    def __init__(self, runs: list[FoundRun], done: asyncio.Future[None]) -> None:
        self.runs = runs
        self.has_begun = False
        self.done = done  # what of it could be cached is


class _Fetch:
    """What is being fetched ahead of one ledger's reader."""

    __slots__ = ("is_marked", "next_entry_id", "pieces")

    def __init__(self) -> None:
        self.pieces: list[_Piece] = []
        self.is_marked = False
        # Set when the reader has come to it before all of it was there.
        self.next_entry_id: int | None = None

    def begun(self, entry_id: int) -> asyncio.Future[None] | None:
        """What to wait for where the read that brings an entry has begun."""
        for piece in self.pieces:
            if piece.has_begun and piece.runs[0][0] <= entry_id < _end(piece.runs):
                return piece.done
        return None


class RunReader:
    """Reads of all ledgers. Owned by the LedgerStorage."""

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
        self._smallest_bytes = settings.fetch_ahead_bytes // SMALLEST_PART
        self._cache_bytes = settings.read_cache_bytes
        # What fetches that are under way will bring.
        self._coming_bytes = 0
        self._reading = asyncio.Semaphore(READS_COUNT)
        # By ledger, the entry behind what the last miss brought: who wants that reads in order.
        self._ends: OrderedDict[int, int] = OrderedDict()
        self._tasks = TaskOwner("run reader")
        self._fetches: dict[int, _Fetch] = {}
        self._is_closed = False
        cache.on_mark = self._fetch_ahead

    async def load(
        self, ledger_id: int, entry_id: int, ahead_bytes: int
    ) -> tuple[Sequence[bytes], int]:
        """Entries of which one is `entry_id`, and its place; the rest of the stretch is cached.

        # Hot path: benchmarks/micro_storage.py, catch-up

        Raises:
            CorruptDataError: The run is damaged or missing.
        """
        fetch = self._fetches.get(ledger_id)
        if fetch is not None and (done := fetch.begun(entry_id)) is not None:
            await asyncio.shield(done)
            found = self._cache.find(ledger_id, entry_id)
            if found is not None:
                return found
        runs, entries = await self._load(ledger_id, entry_id, ahead_bytes)
        if len(runs) > 1:
            self._cache.mark(ledger_id, runs[-1][0], _end(runs))
        elif self._ends.get(ledger_id) == entry_id:
            self._fetch_ahead(ledger_id, _end(runs))
        remember(self._ends, ledger_id, _end(runs), ENDS_COUNT)
        return entries, entry_id - runs[0][0]

    async def _load(
        self, ledger_id: int, entry_id: int, ahead_bytes: int
    ) -> tuple[list[FoundRun], Sequence[bytes]]:
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
                continue  # Compacted since the index was asked; it knows the new place.
            checked = self._decode(ledger_id, runs, data)
            return runs[: len(checked)], checked[0][1]
        raise CorruptDataError(f"{path}: missing; it has entry {entry_id} of ledger {ledger_id}")

    async def _read(self, runs: list[FoundRun]) -> bytes:
        first = runs[0][1]
        return await self._readers.read(first.log_id, first.offset, _size_bytes(runs))

    def _decode(
        self, ledger_id: int, runs: list[FoundRun], data: bytes
    ) -> list[tuple[int, Sequence[bytes]]]:
        """Check the runs of a stretch and cache them: by first entry ids, up to a damaged one.

        Raises:
            CorruptDataError: That is the first.
        """
        start = runs[0][1].offset
        checked: list[tuple[int, Sequence[bytes]]] = []
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
        """Somebody reads in order and will soon want `entry_id`: fetch it, if there is room."""
        fetch = self._fetches.get(ledger_id)
        if fetch is not None:
            fetch.next_entry_id = entry_id
            return
        unread_bytes = self._cache.unread_bytes + self._coming_bytes
        size_bytes = min(self._ahead_bytes, (self._cache_bytes // 2 - unread_bytes) // 2)
        if (
            not self._is_closed
            and len(self._fetches) < FETCHES_COUNT
            and size_bytes > self._smallest_bytes
        ):
            fetch = self._fetches[ledger_id] = _Fetch()
            self._coming_bytes += size_bytes
            self._tasks.spawn(self._fetch(fetch, ledger_id, entry_id, size_bytes), "fetch ahead")

    async def _fetch(self, fetch: _Fetch, ledger_id: int, entry_id: int, size_bytes: int) -> None:
        """Cache about `size_bytes` of what follows `entry_id` and is not here."""
        loop = asyncio.get_running_loop()
        first = self._cache.end_of(ledger_id, entry_id)
        try:
            for runs in await self._find(ledger_id, first, size_bytes):
                fetch.pieces.append(_Piece(runs, loop.create_future()))
            await asyncio.gather(*(self._bring(fetch, ledger_id, each) for each in fetch.pieces))
        except StorageError:
            logger.debug("fetching ahead failed", exc_info=True)
        finally:
            del self._fetches[ledger_id]
            self._coming_bytes -= size_bytes
        if fetch.next_entry_id is not None:
            self._fetch_ahead(ledger_id, fetch.next_entry_id)

    async def _bring(self, fetch: _Fetch, ledger_id: int, piece: _Piece) -> None:
        """Cache a stretch, unless somebody has done so meanwhile."""
        runs, cache = piece.runs, self._cache
        try:
            async with self._reading:
                if cache.end_of(ledger_id, runs[0][0]) >= _end(runs):
                    return
                piece.has_begun = True
                data = await self._read(runs)
            first = cache.end_of(ledger_id, runs[0][0])
            self._decode(ledger_id, runs, data)
            cache.count_unread(ledger_id, first, _size_bytes(runs))
            if not fetch.is_marked:
                fetch.is_marked = cache.mark(ledger_id, first, _end(fetch.pieces[-1].runs))
        except (StorageError, FileNotFoundError):
            # Whoever needs the entries reads them again, and is told.
            logger.debug("fetching ahead failed", exc_info=True)
        finally:
            piece.done.set_result(None)

    async def _find(self, ledger_id: int, entry_id: int, size_bytes: int) -> list[list[FoundRun]]:
        """Stretches from `entry_id` on: none at the ledger's end, nor of the write cache's."""
        stretches: list[list[FoundRun]] = []
        while size_bytes > self._smallest_bytes and len(stretches) < STRETCHES_COUNT:
            wanted = min(size_bytes, STRETCH_BYTES)
            runs = await self._index.find_runs(ledger_id, entry_id, wanted)
            if not runs:
                break
            stretches.append(runs)
            size_bytes -= _size_bytes(runs)
            entry_id = _end(runs)
        return stretches

    async def close(self) -> None:
        """Return when nothing is being fetched any more."""
        self._is_closed = True
        await self._tasks.drain()


def _checked_run(key: RunKey, location: Location, data: bytes, start: int) -> Run:
    """A run of a stretch that begins at `start` of its log.

    Raises:
        CorruptDataError: It is damaged, or another than the index says.
    """
    path, offset = log_path(location.log_id), location.offset
    run = decode_run(data, path, offset, start=offset - start, length=location.length)
    if (run.ledger_id, run.first_entry_id) != key:
        raise CorruptDataError(
            f"{path}: offset {offset}: a run of ledger {run.ledger_id} "
            f"where the index has ledger {key[0]}"
        )
    return run


def _fitting(runs: list[FoundRun], limit_bytes: int) -> list[FoundRun]:
    """The runs of a stretch that a cache of that size keeps together; at least the first."""
    for count, (_, location) in enumerate(runs):
        limit_bytes -= location.length + RUN_OVERHEAD_BYTES + ENTRY_OVERHEAD_BYTES * location.count
        if limit_bytes < 0:
            return runs[: max(count, 1)]
    return runs


def _size_bytes(runs: list[FoundRun]) -> int:
    return sum(location.length for _, location in runs)


def _end(runs: list[FoundRun]) -> int:
    """Id of the entry behind a stretch."""
    first_entry_id, location = runs[-1]
    return first_entry_id + location.count
