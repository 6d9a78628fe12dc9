"""`Bookie`: the embedded LedgerStore, made of journal, write cache and ledger storage (edge).

    append -> pending lists -> journal (one write and sync a group) -> write cache -> listeners
                                                          |  at a size or an age
                                                          v
                      read cache <- entry logs, index, manifest  (checkpoint; old journals go)

What a group's end changes in memory is applied on the loop (`GroupOutcomes`), by the same code that
replays the journal at the start. A ledger is readable up to its last confirmed entry: from the
write cache, the read cache, or the logs, in this order.

In a volatile engine groups end without a write, nothing is ever flushed, and all entries stay in
the write cache.

Source: Bookie in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import asdict
from pyroaring import BitMap64

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import (
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.work import in_turns
from pulsar_py.ledgers.chosen_ledgers import ChosenLedgers, check_same_owner
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerWriter,
    StoreLimits,
)
from pulsar_py.storage.entry_logs.entry_log import check_log_versions
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.entry_logs.places import PlaceLimits, Places
from pulsar_py.storage.handles import BookieLedger
from pulsar_py.storage.housekeeper import Housekeeper
from pulsar_py.storage.journal.answer_watch import AnswerWatch
from pulsar_py.storage.journal.group_outcomes import GroupOutcomes
from pulsar_py.storage.journal.journal import Journal
from pulsar_py.storage.journal.journal_files import JournalFiles
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.journal_replay import JournalReplay
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.ledgers import (
    Ledger,
    Ledgers,
    check_exists,
    check_password,
)
from pulsar_py.storage.shared.manifest import Manifest
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.storage.shared.write_cache import AppendGate, WriteCache

__all__ = ["Bookie", "BookieSettings", "BookieStatistics"]

logger = logging.getLogger(__name__)

LISTED_LEDGERS_COUNT = 10_000
"""Ledgers in one page of `list_ledgers`."""


class BookieStatistics(Struct, frozen=True):
    """Counts since the start, and sizes now."""

    journal_groups_count: int
    write_cache_bytes: int
    read_cache_bytes: int
    entry_log_bytes: int
    entry_log_live_bytes: int
    entry_log_read_bytes: int
    lent_entries_count: int
    lent_bytes: int
    """Of the entries whose places in files readers were told."""
    index_tables_count: int
    is_taking_writes: bool
    disk_free_bytes: int
    """When it was looked at last; 0 before the first look."""


class Bookie(ChosenLedgers):
    """A LedgerStore of its own on one `Disk`; one copy of each entry.

    Owns the disk from `start` to `close`. One loop, one owner: the composition root.
    """

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        ledger_ids: LedgerIds,
        settings: BookieSettings,
        storage: LedgerStorage,
    ) -> None:
        """Use `start`."""
        self._disk = disk
        self._clock = clock
        self._ledger_ids = ledger_ids
        self._settings = settings
        self._ledgers = Ledgers()
        self._loop = asyncio.get_running_loop()
        self.storage = storage
        self.cache = WriteCache(clock.monotonic_seconds(), storage.manifest.mark)
        limit_bytes = (
            settings.volatile_limit_bytes if settings.is_volatile else settings.append_limit_bytes
        )
        self.gate = AppendGate(limit_bytes, holds_all=settings.is_volatile)
        self.limits = StoreLimits(
            max_entry_bytes=settings.max_entry_bytes,
            max_pinned_bytes=limit_bytes,
            answer_timeout_seconds=settings.answer_timeout_seconds,
        )
        self._journal_files = JournalFiles(disk, settings)
        self._housekeeper = Housekeeper(
            disk=disk,
            journal_files=self._journal_files,
            clock=clock,
            settings=settings,
            cache=self.cache,
            gate=self.gate,
            storage=storage,
            on_room=self._on_room,
        )
        self._outcomes = GroupOutcomes(
            self.gate,
            self.cache,
            self._housekeeper,
            lambda: self.journal.group,
            is_volatile=settings.is_volatile,
        )
        self.journal = Journal(
            self._journal_files,
            settings,
            end=storage.manifest.mark,
            on_group=self._outcomes.on_group,
            may_take=self._housekeeper.has_room,
            once=storage.run_log,
        )
        self._watch = AnswerWatch(
            self.journal,
            clock,
            timeout_seconds=settings.answer_timeout_seconds,
            on_late=self._on_late,
        )
        self._is_closed = False

    @classmethod
    async def start(
        cls,
        disk: Disk,
        *,
        clock: Clock,
        ledger_ids: LedgerIds,
        settings: BookieSettings | None = None,
    ) -> Bookie:
        """Lock the disk, recover what is on it, and serve it.

        Args:
            disk: For this object alone until `close`, which closes the disk, too.
            clock: For the intervals of flushes and checks.
            ledger_ids: Gives new ledgers their ids.
            settings: Sizes and thresholds; None for the defaults.

        Raises:
            ConfigurationError: The settings contradict one another.
            DirectoryLockedError: Another process has the directory.
            CorruptDataError: Confirmed data is damaged; the message names file and offset. It is a
                `FormatVersionError` for a file of another version of its format.
        """
        settings = settings or BookieSettings()
        settings.check()
        await disk.lock()
        async with OnFailureAwait(disk.close):
            if settings.is_volatile:
                storage = LedgerStorage(disk, settings, Manifest())
                bookie = cls(disk, clock, ledger_ids, settings, storage)
            else:
                storage = await LedgerStorage.open(disk, settings)
                await check_log_versions(disk, storage.manifest.logs)
                bookie = cls(disk, clock, ledger_ids, settings, storage)
                # Replaying has to know whether the disk is full: it can't flush then, and keeps
                # everything in memory.
                await bookie._housekeeper.check_room()
                await bookie._replay_journal()
                # Entries already in the journal need room on the disk once, new ones twice. The
                # first check counted the replayed ones as new.
                await bookie._housekeeper.check_room()
        bookie._housekeeper.start()
        if not settings.is_volatile:
            bookie._watch.start()
        return bookie

    @property
    def is_volatile(self) -> bool:
        """Whether all entries are in memory alone."""
        return self._settings.is_volatile

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new, empty, durable ledger whose id is greater than every id given before."""
        if self.gate.is_shut:
            raise self.gate.refusal()
        ledger_id = await self._ledger_ids.next()
        async with self.storage.hold.change_of_ledgers(), self.in_time(ledger_id):
            if await self._find(ledger_id) is not None:
                raise StorageError(f"ledger {ledger_id} exists already: its id was given twice")
            ledger = await self._create(ledger_id, listener, options)
        return BookieLedger(self, ledger, is_writer=True)

    async def _create(
        self, ledger_id: int, listener: LedgerListener, options: LedgerOptions
    ) -> Ledger:
        record = LedgerRecord.created(options)
        ledger = self._ledgers.adopt(ledger_id, record)
        ledger.listener = listener
        await self.journal.submit(ledger, record)
        return ledger

    async def create_chosen(
        self, ledger_id: int, listener: LedgerListener, options: LedgerOptions
    ) -> LedgerWriter:
        """A new ledger with that id, or what an earlier attempt has written of it, to go on."""
        async with self.storage.hold.change_of_ledgers(), self.in_time(ledger_id):
            ledger = await self._find(ledger_id)
            if ledger is None:
                ledger = await self._create(ledger_id, listener, options)
            elif ledger.record.is_closed:
                raise StorageError(f"ledger {ledger_id} exists already, and has ended")
            else:
                check_same_owner(ledger_id, ledger.record.custom_metadata, options.custom_metadata)
                await self._settled(ledger)
                ledger.listener = listener
        return BookieLedger(self, ledger, is_writer=True)

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading without fencing a writer."""
        ledger = await self._require(ledger_id)
        check_password(ledger, password)
        return _reader(self, ledger)

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence the writer if there is one, end the ledger at its last durable entry, open it."""
        ledger = await self._require(ledger_id)
        check_password(ledger, password)
        if not ledger.record.is_closed:
            text = f"ledger {ledger_id} was recovered by another owner"
            self._outcomes.fail(ledger, LedgerFencedError(text))
            await self._end(ledger, is_fenced=True)
        return _reader(self, ledger)

    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger for good; fine if it is gone already."""
        async with self.storage.hold.change_of_ledgers(), self.in_time(ledger_id):
            ledger = await self._find(ledger_id)
            if ledger is None or ledger.record.is_deleted:
                return
            self._outcomes.fail(ledger, LedgerNotFoundError(f"ledger {ledger_id} was deleted"))
            await self._settled(ledger)
            await self.journal.submit(ledger, TOMBSTONE)

    async def close_ledger(self, ledger: Ledger) -> None:
        """End the writer's ledger; entries that the journal has not taken yet fail."""
        closed = LedgerClosedError(f"ledger {ledger.ledger_id} is closed")
        dropped = self._outcomes.give_up(ledger, closed)
        try:
            await self._end(ledger, is_fenced=False)
        finally:
            if dropped:
                self._outcomes.report(ledger, closed)
        if ledger.record.is_fenced:
            raise LedgerFencedError(f"ledger {ledger.ledger_id} was recovered by another owner")

    async def _end(self, ledger: Ledger, *, is_fenced: bool) -> None:
        """End a ledger at its last confirmed entry, durably; fine if it has ended already."""
        async with self.in_time(ledger.ledger_id):
            await self._settled(ledger)
            check_exists(ledger)
            if ledger.record.is_closed:
                return
            record = ledger.record.closed(
                is_fenced=is_fenced,
                last_entry_id=ledger.last_add_confirmed,
                length_bytes=ledger.length_bytes,
            )
            await self.journal.submit(ledger, record)

    async def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """Ids of all ledgers, in ascending pages; the loop runs other tasks before each page."""
        ledger_ids = iter(await self._living_ledgers())
        while page := list(islice(ledger_ids, LISTED_LEDGERS_COUNT)):
            await asyncio.sleep(0)
            yield page

    async def _living_ledgers(self) -> BitMap64:
        """Ids of all ledgers that are not deleted, collected over several turns of the loop."""
        changed, living = BitMap64(), BitMap64()
        for generation in (self.cache.sealed, self.cache.current):
            if generation is None:
                continue
            async for some in in_turns(list(generation.ledgers.items())):
                for ledger_id, cached in some:
                    changed.add(ledger_id)
                    (living.discard if cached.record.is_deleted else living.add)(ledger_id)
        living |= await self.storage.index.ledger_ids() - changed
        return living

    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return (await self._require(ledger_id)).record.custom_metadata

    async def info(self, ledger_id: int) -> LedgerInfo:
        """State, end and labels of one ledger."""
        ledger = await self._require(ledger_id)
        return ledger.record.at(ledger.last_add_confirmed, ledger.length_bytes).info(ledger_id)

    async def places(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        *,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> Places:
        """Where confirmed entries lie in entry logs, for a reader who opens these himself.

        It may be nothing, for any reason: `LedgerReader.read` says which. See `EntryPlaces.find`.

        Raises:
            StorageError: The disk can't do it now, or not in time.
        """
        async with self.in_time(ledger_id):
            ledger = await self._find(ledger_id)
            if ledger is None or ledger.record.is_deleted:
                return Places()
            last = min(last_entry_id, ledger.last_add_confirmed)
            return await self.storage.places.find(
                ledger_id, first_entry_id, last, limits, held_logs
            )

    async def flush(self) -> None:
        """Move all confirmed entries to entry logs; returns when they are durable there.

        Raises:
            DiskFullError, StorageError: It can't be done now; the journal still has the entries.
        """
        if not self._settings.is_volatile:
            await self._housekeeper.flush()

    async def collect_garbage(self, *, threshold: float | None = None) -> int:
        """Flush, and rewrite entry logs whose share of live bytes is below `threshold`.

        Returns the number of logs; the default is the threshold of major compaction.
        """
        if self._settings.is_volatile:
            return 0
        if threshold is None:
            threshold = self._settings.major_compaction_threshold
        return await self._housekeeper.collect_garbage(threshold)

    def figures(self) -> Mapping[str, float]:
        """The statistics by name."""
        return asdict(self.statistics())

    def labelled_figures(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """How long groups took to be written and synced, as a histogram."""
        return self.journal.write_durations.figures("journal_write_seconds")

    def statistics(self) -> BookieStatistics:
        """Counts and sizes."""
        logs = self.storage.manifest.logs.values()
        sealed = self.cache.sealed
        return BookieStatistics(
            journal_groups_count=self.journal.groups_count,
            write_cache_bytes=self.cache.current.cost_bytes + (sealed.cost_bytes if sealed else 0),
            read_cache_bytes=self.storage.read_cache.size_bytes,
            entry_log_bytes=sum(log.size_bytes for log in logs),
            entry_log_live_bytes=sum(log.live_bytes for log in logs),
            entry_log_read_bytes=self.storage.readers.read_bytes,
            lent_entries_count=self.storage.places.lent_entries_count,
            lent_bytes=self.storage.places.lent_bytes,
            index_tables_count=len(self.storage.index.tables),
            is_taking_writes=not self.gate.is_shut,
            disk_free_bytes=self._housekeeper.free_bytes,
        )

    async def close(self) -> None:
        """Flush everything and stop. Open writers' ledgers stay open and get recovered later.

        It takes at most twice `answer_timeout_seconds`: a disk that does not answer by then is left
        as it is, and the next start replays the journal.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._watch.stop()
        self._housekeeper.stop()
        self.gate.shut(StorageError("the store is closed"))
        for close in (self._close_files, self._disk.close):
            try:
                async with asyncio.timeout(self.limits.answer_timeout_seconds):
                    await close()
            except TimeoutError:
                logger.error("the disk hangs, and is left as it is")  # noqa: TRY400 - no traceback

    async def _close_files(self) -> None:
        await self.journal.close()
        await self._housekeeper.close()
        if not self._settings.is_volatile:
            await self._last_checkpoint()
        await self.storage.close()

    async def _replay_journal(self) -> None:
        replay = JournalReplay(
            self._disk,
            self.storage,
            self.cache,
            self.gate,
            self._housekeeper,
            files=self._journal_files,
            write_cache_bytes=self._settings.write_cache_bytes,
            target=self,
        )
        end = await replay.run()
        if end is not None:
            self.journal.start_after(end)

    # For the replay

    async def find_or_none(self, ledger_id: int) -> Ledger | None:
        """The ledger, loaded from the index if it is not in memory; it may be deleted."""
        return await self._find(ledger_id)

    def adopt(self, ledger_id: int, record: LedgerRecord) -> Ledger:
        """Add a ledger that is neither in memory nor in the index."""
        return self._ledgers.adopt(ledger_id, record)

    def apply_section(self, ledger: Ledger, section: Section) -> None:
        """Take in what a block has of a ledger."""
        self._outcomes.apply_section(ledger, section)

    def apply_record(self, ledger: Ledger, record: LedgerRecord) -> None:
        """Take in a ledger's changed record."""
        self._outcomes.apply_record(ledger, record)

    def _on_room(self) -> None:
        self.journal.resume()

    async def _last_checkpoint(self) -> None:
        """Flush everything and remove the journal: the next start has nothing to replay then."""
        if self.journal.end == self.storage.manifest.mark:
            return
        try:
            await self._housekeeper.flush()
            await self.storage.set_mark((self.journal.next_file_id, 0))
            await self._housekeeper.remove_journals()
        except StorageError:
            logger.exception("last flush failed, the journal will be replayed")

    async def _find(self, ledger_id: int) -> Ledger | None:
        """The ledger, loaded from the index if it is not in memory; it may be deleted."""
        if self._is_closed:
            raise StorageError("the store is closed")
        while True:
            ledger = self._ledgers.find(ledger_id)
            if ledger is not None:
                return ledger
            manifest = self.storage.manifest
            record = await self.storage.record(ledger_id)
            if manifest is self.storage.manifest:
                # Without this check, a record that was read before the ledger was loaded, changed
                # and flushed by others would come back.
                living = self._ledgers.find(ledger_id)
                if living is not None or record is None:
                    return living
                return self._ledgers.adopt(ledger_id, record)

    async def _require(self, ledger_id: int) -> Ledger:
        async with self.in_time(ledger_id):
            ledger = await self._find(ledger_id)
        if ledger is None:
            raise LedgerNotFoundError(f"there is no ledger {ledger_id}")
        check_exists(ledger)
        return ledger

    async def _settled(self, ledger: Ledger) -> None:
        """Return when every append to the ledger is confirmed or has failed."""
        while not ledger.is_settled:
            settled = self._loop.create_future()
            ledger.settled_callbacks.append(partial(_resolve, settled))
            await settled

    @asynccontextmanager
    async def in_time(self, ledger_id: int) -> AsyncIterator[None]:
        """A context that ends after `answer_timeout_seconds` at the latest.

        Raises:
            StoreUnavailableError: The time is over; the call inside may still take effect.
        """
        seconds = self.limits.answer_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"ledger {ledger_id}: no answer of the disk within {seconds} seconds; try again"
            ) from error

    def _on_late(self, ledger: Ledger) -> None:
        if ledger.listener is None:
            return
        seconds = self.limits.answer_timeout_seconds
        text = f"ledger {ledger.ledger_id}: no answer of the disk within {seconds} seconds"
        logger.error("append not answered", extra={"ledger_id": ledger.ledger_id})
        self._outcomes.fail(ledger, StoreUnavailableError(text))


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _reader(owner: Bookie, ledger: Ledger) -> LedgerReader:
    return BookieLedger(owner, ledger, is_writer=False)
