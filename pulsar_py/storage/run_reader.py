"""RunReader: brings runs of entries from the entry logs into the read cache (edge).

A miss loads a *stretch*: the run that holds the entry and the neighbours that follow it in the log.
Whoever comes to the last run of such a stretch reads in order, and gets what follows loaded while
it is busy with what it has; from then on it finds the next stretch in memory each time it has used
up one, as long as it keeps reading and there is room. Reads of neighbours are one read of the file.

What always holds: each run is checked before it is cached; at most one stretch a ledger is fetched
ahead at a time, and what was fetched ahead and not yet wanted fills at most half of the cache.

Source: the read-ahead of DbLedgerStorage in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.storage.entry_log import EntryLogReaders, log_path
from pulsar_py.storage.entry_log_format import decode_run
from pulsar_py.storage.index import FoundRun, Index
from pulsar_py.storage.read_cache import ENTRY_OVERHEAD_BYTES, RUN_OVERHEAD_BYTES, ReadCache
from pulsar_py.storage.settings import BookieSettings

logger = logging.getLogger(__name__)

READ_ATTEMPTS_COUNT = 3

FETCHES_COUNT = 2
"""Stretches fetched ahead at a time, of all ledgers: a thread is left for everybody else."""


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
        self._cache_bytes = settings.read_cache_bytes
        # Stretches fetched ahead that nobody has come to yet.
        self._unread_limit_count = (
            settings.read_cache_bytes // (2 * self._ahead_bytes) if self._ahead_bytes else 0
        )
        self._tasks = TaskOwner("run reader")
        # By ledger, what is being fetched ahead.
        self._fetches: dict[int, asyncio.Task[None]] = {}
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
        if fetch is not None:
            await asyncio.wait([fetch])
            found = self._cache.find(ledger_id, entry_id)
            if found is not None:
                return found
        runs, entries = await self._load(ledger_id, entry_id, ahead_bytes)
        if len(runs) > 1:
            self._cache.mark(ledger_id, runs[-1][0], _end(runs))
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
            first = runs[0][1]
            length = sum(location.length for _, location in runs)
            try:
                data = await self._readers.read(first.log_id, first.offset, length)
            except FileNotFoundError:
                continue  # Compacted since the index was asked; it knows the new place.
            return runs, self._decode(ledger_id, runs, data)
        raise CorruptDataError(f"{path}: missing; it has entry {entry_id} of ledger {ledger_id}")

    def _decode(self, ledger_id: int, runs: list[FoundRun], data: bytes) -> Sequence[bytes]:
        """Check the runs of a stretch and cache them; the entries of the first."""
        start = runs[0][1].offset
        checked: list[tuple[int, Sequence[bytes]]] = []
        for first_entry_id, location in runs:
            at = location.offset - start
            path = log_path(location.log_id)
            run = decode_run(data, path, location.offset, start=at, length=location.length)
            if (run.ledger_id, run.first_entry_id) != (ledger_id, first_entry_id):
                raise CorruptDataError(
                    f"{path}: offset {location.offset}: a run of ledger {run.ledger_id} "
                    f"where the index has ledger {ledger_id}"
                )
            checked.append((first_entry_id, run.entries))
        self._cache.put(ledger_id, checked, len(data))
        return checked[0][1]

    def _fetch_ahead(self, ledger_id: int, entry_id: int) -> None:
        """Somebody reads in order and will soon want `entry_id`: fetch it, if there is room."""
        if (
            not self._is_closed
            and ledger_id not in self._fetches
            and len(self._fetches) < FETCHES_COUNT
            and len(self._fetches) + self._cache.unread_count < self._unread_limit_count
        ):
            work = self._fetch(ledger_id, entry_id)
            self._fetches[ledger_id] = self._tasks.spawn(work, "fetch ahead")

    async def _fetch(self, ledger_id: int, entry_id: int) -> None:
        try:
            if self._cache.has(ledger_id, entry_id):
                return
            if not await self._index.find_runs(ledger_id, entry_id, 0):
                return  # The ledger's end, or what is still in the write cache.
            runs, _ = await self._load(ledger_id, entry_id, self._ahead_bytes)
            self._cache.mark(ledger_id, runs[0][0], _end(runs), is_unread=True)
        except StorageError:
            # Whoever needs the entry reads it again, and is told.
            logger.debug("fetching ahead failed", exc_info=True)
        finally:
            del self._fetches[ledger_id]

    async def close(self) -> None:
        """Return when nothing is being fetched any more."""
        self._is_closed = True
        await self._tasks.drain()


def _fitting(runs: list[FoundRun], limit_bytes: int) -> list[FoundRun]:
    """The runs of a stretch that a cache of that size keeps together; at least the first."""
    for count, (_, location) in enumerate(runs):
        limit_bytes -= location.length + RUN_OVERHEAD_BYTES + ENTRY_OVERHEAD_BYTES * location.count
        if limit_bytes < 0:
            return runs[: max(count, 1)]
    return runs


def _end(runs: list[FoundRun]) -> int:
    """Id of the entry behind a stretch."""
    first_entry_id, location = runs[-1]
    return first_entry_id + location.count
