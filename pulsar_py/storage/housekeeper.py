"""`Housekeeper`: flushes, checkpoints, merges, collects garbage, checks the free space (edge).

The Bookie calls `on_group` after each group; a timer starts everything else. A step that fails is
logged and tried again at the next tick; meanwhile the journal still has all entries.

Each tick checks the free space. Between two checks the gate counts appended bytes against the space
that the last one found, so that all of them can still be written and flushed; when half of it is
used up the next check comes early. So a disk with little room is checked often, others are not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError, DiskFullError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.storage.disk_reserve import DiskReserve
from pulsar_py.storage.entry_logs import compaction
from pulsar_py.storage.entry_logs.garbage import compact_logs
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.journal.journal_files import JournalFiles
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.storage.shared.write_cache import AppendGate, Generation, WriteCache

logger = logging.getLogger(__name__)

RELEASE_ENTRIES_COUNT = 4000
"""Entries of a flushed generation that are freed in one turn of the loop, about half a millisecond;
a ledger counts as four."""

FLUSH_REST_SECONDS = 0.004
"""How long a flush rests after each piece of 1 MB that it has written, if there is time."""

FLUSH_LEAD = 2.0
"""There is time while the written share of the flush is so many times that of the write cache that
has been filled meanwhile."""


class Housekeeper:
    """Background work of one Bookie, which owns it."""

    def __init__(
        self,
        *,
        disk: Disk,
        journal_files: JournalFiles,
        clock: Clock,
        settings: BookieSettings,
        cache: WriteCache,
        gate: AppendGate,
        storage: LedgerStorage,
        on_room: Callable[[], None],
    ) -> None:
        """`on_room` is called when `has_room` may have become true."""
        self._disk = disk
        self._journal_files = journal_files
        self._clock = clock
        self._settings = settings
        self._cache = cache
        self._gate = gate
        self._storage = storage
        self._on_room = on_room
        self._reserve = DiskReserve(disk, settings.reserve_bytes)
        # The last flush failed; until one succeeds only the gate's limit bounds memory.
        self._is_flush_failing = False
        # Callers of `flush`, who wait: no flush rests meanwhile.
        self._hurried_count = 0
        storage.let_flushes_rest(self._rest_of_flush)
        # Of the disk, as it was found last.
        self.free_bytes = 0
        self._tasks = TaskOwner("storage")
        self._flushing = asyncio.Lock()
        self._collecting = asyncio.Lock()
        self._merging = asyncio.Lock()
        self._looking = asyncio.Lock()
        # The next check comes early when the gate's room on the disk is below this.
        self._look_below_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        now = clock.monotonic_seconds()
        self._last_garbage_seconds = now
        self._last_minor_seconds = now
        self._last_major_seconds = now
        # The oldest journal file that may still be there.
        self.oldest_journal_id = storage.manifest.mark[0]

    def start(self) -> None:
        """Start the timer."""
        self._schedule()

    def on_group(self) -> None:
        """Flush, and check the free space, if they are due after a confirmed group."""
        self.maybe_flush()
        if self._gate.disk_room_bytes < self._look_below_bytes:
            self._look()

    def maybe_flush(self) -> None:
        """Seal the current generation and flush it, if that is due and the other one is flushed.

        It is when the generation is full, or the journal has become long with small groups.
        """
        current = self._cache.current
        journal_files_count = current.mark[0] - self._storage.manifest.mark[0]
        if (
            (
                current.cost_bytes >= self._settings.write_cache_bytes
                or journal_files_count >= self._settings.journal_files_count
            )
            and self._cache.sealed is None
            and not self._settings.is_volatile
            and not self._is_closed
        ):
            self._cache.seal(self._clock.monotonic_seconds())
            self._tasks.spawn(self._try_flush(), "flush")

    def has_room(self) -> bool:
        """Whether another group may be confirmed: False while both generations are full.

        True also if flushes fail or the gate is shut: groups held back would then wait for a flush
        that may never come, and the gate bounds memory anyway.
        """
        return (
            self._cache.sealed is None
            or self._cache.current.cost_bytes < self._settings.write_cache_bytes
            or self._is_flush_failing
            or self._gate.is_shut
        )

    async def flush(self) -> None:
        """Flush everything confirmed by now.

        Raises:
            DiskFullError, StorageError: It can't be done now.
        """
        self._hurried_count += 1
        try:
            await self._flush_all()
        finally:
            self._hurried_count -= 1
        await self.merge()

    async def _flush_all(self) -> None:
        async with self._flushing:
            await self._flush_sealed()
            # Flushing the sealed generation let other groups end: entries confirmed before this
            # call may be in the current generation or, again, in a sealed one.
            if self._cache.sealed is None and self._cache.current.ledgers:
                self._cache.seal(self._clock.monotonic_seconds())
            await self._flush_sealed()

    async def _rest_of_flush(self, written_bytes: int) -> None:
        """After a piece of a flush: let others have the loop and the disk, if there is time."""
        sealed, settings = self._cache.sealed, self._settings
        if (
            sealed is not None
            and not self._hurried_count
            and not self._is_closed
            and not self._gate.is_shut
            and has_time_to_rest(
                written_bytes=written_bytes,
                sealed_bytes=sealed.entries_cost_bytes,
                filled_bytes=self._cache.current.cost_bytes,
                write_cache_bytes=settings.write_cache_bytes,
            )
        ):
            await self._clock.sleep(FLUSH_REST_SECONDS)

    async def merge(self) -> None:
        """Merge tables of the index as long as that is due."""
        async with self._merging:
            while await self._storage.merge():
                pass

    async def collect_garbage(self, threshold: float) -> int:
        """Flush, then rewrite entry logs whose share of live bytes is below `threshold`.

        Returns the number of logs.

        Raises:
            CorruptDataError: A live run is damaged; the log stays.
            StorageError: It can't be done now.
        """
        async with self._collecting:
            await self.flush()
            async with self._flushing:
                await self._storage.roll_log()
            chosen = compaction.choose_logs(
                self._storage.manifest.logs,
                threshold=threshold,
                busy_log_ids=self._storage.busy_log_ids,
            )
            await compact_logs(self._storage, chosen)
            return len(chosen)

    def stop(self) -> None:
        """Start no more work. The caller shuts the gate, which releases groups held back."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._on_room()

    async def close(self) -> None:
        """Stop, and wait until running work has ended."""
        self.stop()
        await self._tasks.drain()

    def on_disk_full(self, error: StorageError) -> None:
        """Refuse appends until a check finds room, after a write that found none."""
        if not self._gate.is_shut:
            logger.error("disk full, taking no writes", extra={"error": str(error)})
        self._gate.shut(error)

    async def remove_journals(self) -> None:
        """Give journal files that end before the mark back, to be used again or removed."""
        marked_id = self._storage.manifest.mark[0]
        while self.oldest_journal_id < marked_id:
            await self._journal_files.retire(self.oldest_journal_id)
            self.oldest_journal_id += 1

    async def _flush_sealed(self) -> None:
        """Flush the sealed generation, if there is one."""
        sealed = self._cache.sealed
        if sealed is None:
            return
        try:
            await self._storage.flush(sealed)
        except StorageError:
            self._is_flush_failing = True
            self._on_room()
            raise
        self._is_flush_failing = False
        self._cache.drop_sealed()
        self._gate.give_back(sealed.entries_cost_bytes)
        self._on_room()
        await self.remove_journals()
        if self._gate.is_disk_bound:
            self._look()
        await _release(sealed)

    async def _try_flush(self) -> None:
        try:
            async with self._flushing:
                await self._flush_sealed()
        except DiskFullError as error:
            self.on_disk_full(error)
            return
        except StorageError:
            logger.exception("flush failed, will be tried again")
            return
        await self._try_merge()
        self.maybe_flush()

    async def _try_merge(self) -> None:
        try:
            await self.merge()
        except StorageError:
            logger.exception("merge of index tables failed")

    def _schedule(self) -> None:
        if not self._is_closed and not self._settings.is_volatile:
            self._timer = self._clock.call_later(
                self._settings.disk_check_interval_seconds, self._on_timer
            )

    def _on_timer(self) -> None:
        self._tasks.spawn(self._tick(), "tick")

    async def _tick(self) -> None:
        try:
            free_bytes = await self.check_room()
            now = self._clock.monotonic_seconds()
            current, sealed = self._cache.current, self._cache.sealed
            is_old = now - current.born_seconds >= self._settings.flush_interval_seconds
            # On a full disk a flush may free space: it also removes logs of deleted ledgers.
            if sealed is None and current.ledgers and (is_old or self._gate.is_shut):
                sealed = self._cache.seal(now)
            # The space that the deleted reserve has freed is for records, so a flush, which moves
            # whole entries, must not use it up.
            kept_bytes = self._settings.reserve_bytes
            if sealed is not None and sealed.flush_bytes() + kept_bytes < free_bytes:
                await self._try_flush()
            elif sealed is not None:
                self._is_flush_failing = True
                self._on_room()
            self._maybe_remove_dead_logs(now)
            self._maybe_compact(now)
        finally:
            self._schedule()

    @property
    def _spares_from_bytes(self) -> int:
        """Free space from which journal files may be kept to be used again."""
        minimum_bytes = self._settings.minimum_free_bytes
        return minimum_bytes and minimum_bytes + self._settings.append_limit_bytes

    def _look(self) -> None:
        """Check the free space before the next tick: there may be more than the gate knows of."""
        if not (self._looking.locked() or self._gate.is_shut or self._is_closed):
            self._tasks.spawn(self.check_room(), "look at the disk")

    async def check_room(self) -> int:
        """Open or shut the gate according to the free space; returns the free bytes."""
        async with self._looking:
            return await self._check_room()

    async def _check_room(self) -> int:
        settings = self._settings
        # Taken before the free space: entries that get to the journal in between may use space that
        # is still counted as free, so they must not count as written.
        journaled_bytes = self._cache.entries_cost_bytes
        try:
            free_bytes = await self._disk.free_bytes()
            for make_room in (self._disk.free_removed, self._journal_files.give_up_spares):
                if self._gate.is_shut or free_bytes < self._spares_from_bytes:
                    await make_room()
                    free_bytes = await self._disk.free_bytes()
            free_bytes = await self._reserve.adapt(
                free_bytes, enough_bytes=settings.minimum_free_bytes
            )
        except StorageError:
            logger.exception("free space unknown")
            return 0
        self.free_bytes = free_bytes
        if settings.minimum_free_bytes:
            room_bytes = disk_room_bytes(
                free_bytes,
                kept_bytes=settings.kept_bytes,
                waiting_bytes=self._gate.waiting_bytes,
                journaled_bytes=min(journaled_bytes, self._cache.entries_cost_bytes),
            )
            self._gate.set_disk_room(room_bytes)
            self._look_below_bytes = room_bytes // 2
        if free_bytes < settings.minimum_free_bytes:
            self.on_disk_full(
                DiskFullError(
                    f"{free_bytes} bytes are free on the disk, the minimum is "
                    f"{settings.minimum_free_bytes}: make room, then writes go on by themselves"
                )
            )
        elif self._gate.is_shut and not self._is_closed:
            logger.info("disk has room again", extra={"free_bytes": free_bytes})
            self._gate.reopen()
        return free_bytes

    def _maybe_remove_dead_logs(self, now: float) -> None:
        if now - self._last_garbage_seconds >= self._settings.garbage_interval_seconds:
            self._last_garbage_seconds = now
            self._tasks.spawn(self._try_remove_dead_logs(), "remove dead logs")

    async def _try_remove_dead_logs(self) -> None:
        try:
            async with self._flushing:
                await self._storage.remove_dead_logs()
        except StorageError:
            logger.exception("dead entry logs not removed")

    def _maybe_compact(self, now: float) -> None:
        settings = self._settings
        if now - self._last_major_seconds >= settings.major_compaction_interval_seconds:
            threshold = settings.major_compaction_threshold
            self._last_major_seconds = self._last_minor_seconds = now
        elif now - self._last_minor_seconds >= settings.minor_compaction_interval_seconds:
            threshold = settings.minor_compaction_threshold
            self._last_minor_seconds = now
        else:
            return
        self._tasks.spawn(self._try_collect(threshold), "collect garbage")

    async def _try_collect(self, threshold: float) -> None:
        try:
            await self.collect_garbage(threshold)
        except CorruptDataError:
            logger.exception("entry log damaged, not compacted")
        except StorageError:
            logger.exception("garbage collection failed")


def has_time_to_rest(
    *, written_bytes: int, sealed_bytes: int, filled_bytes: int, write_cache_bytes: int
) -> bool:
    """Whether a flush is well ahead of the generation that is being filled meanwhile.

    It has written so much of its own; what it has to write is at most `sealed_bytes`.
    """
    return written_bytes * write_cache_bytes > FLUSH_LEAD * filled_bytes * sealed_bytes


def disk_room_bytes(
    free_bytes: int, *, kept_bytes: int, waiting_bytes: int, journaled_bytes: int
) -> int:
    """Bytes that may still be appended, so that all can be written and `kept_bytes` are left.

    Each byte is written to the journal and again to an entry log. Of the waiting bytes, those that
    are in the journal already will be written only once more.
    """
    return (free_bytes - kept_bytes + journaled_bytes) // 2 - waiting_bytes


async def _release(generation: Generation) -> None:
    """Free a flushed generation in steps: tens of thousands of entries would block the loop."""
    room = RELEASE_ENTRIES_COUNT
    while generation.ledgers:
        entries = generation.ledgers.popitem()[1].entries
        room -= 4
        while entries:
            if room <= 0:
                await asyncio.sleep(0)
                room = RELEASE_ENTRIES_COUNT
            count = min(room, len(entries))
            del entries[-count:]
            room -= count
        if room <= 0:
            await asyncio.sleep(0)
            room = RELEASE_ENTRIES_COUNT
