"""`BookKeeperWriter`: appends to one ledger (edge).

Entries are sent as they are appended. An entry's memory is taken over: bytes, and a read-only view
of nearly all of its buffer, stay where they are, anything else is copied, because a slow bookie of
the write set may be sent it after the others have confirmed it. What entries hold is counted until
their whole write set has answered.

A bookie that lags behind the others is replaced once too many bytes wait for it. If no other bookie
can replace it, the writer slows down: once half of the allowed bytes wait, the listener is told of
a confirmed entry only after the slow bookie has answered as well. Publishers have a bounded number
of entries without a receipt, so they send less. Once all of the allowed bytes wait, appends are
refused.

The writer watches its ledger's metadata, where it often learns that the ledger was fenced or
deleted before a bookie refuses an entry; an idle writer learns it there alone.

Source: LedgerHandle in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NoReturn

from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.cluster.settings import FRAME_OVERHEAD_BYTES
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, LedgerStatus
from pulsar_py.bookkeeper.metadata.ledger_records import RecordedLedger
from pulsar_py.bookkeeper.protocol.frames import RequestFlags
from pulsar_py.bookkeeper.reading.ahead_reads import AheadReads
from pulsar_py.bookkeeper.reading.reader import BookKeeperReader, repeated
from pulsar_py.bookkeeper.writing.replication import FailedBookie, Replicator
from pulsar_py.bookkeeper.writing.sent_entries import ENTRY_OVERHEAD_BYTES, JOINED_BYTES
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import (
    EntryTooBigError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    NotEnoughBookiesError,
    StorageError,
    StoreBusyError,
)
from pulsar_py.ledgers.store import LedgerListener, LedgerWriter, LentEntry
from pulsar_py.metadata.store import Notification, NotificationType

logger = logging.getLogger(__name__)

NEARLY_ALL: Final = 15 / 16
"""The share of its buffer from which on a read-only view is kept instead of a copy."""

_FOR_GOOD: Final = (LedgerFencedError, LedgerNotFoundError)


class BookKeeperWriter(BookKeeperReader, LedgerWriter):
    """A ledger open for writing; made by the store, which knows it until it is closed."""

    def __init__(
        self,
        cluster: LedgerCluster,
        ledger: LedgerInUse,
        listener: LedgerListener,
        on_over: Callable[[BookKeeperWriter], None],
        ahead: AheadReads,
        *,
        flags: RequestFlags = RequestFlags.NONE,
    ) -> None:
        """`on_over` is called when it is closed, or can't be used any more."""
        super().__init__(cluster, ledger, -1, 0, ahead)
        self._listener = listener
        self._on_over = on_over
        self._replicator = Replicator(cluster, ledger, self, flags=flags)
        self._told = -1  # the last entry that the listener knows to be confirmed
        self._failure: StorageError | None = None  # to be told to the listener
        self._is_telling = False
        self._is_closing = False  # the end is being written, or was
        self._is_ended = False  # the end was written
        self._closing = asyncio.Lock()
        self._is_looking = False
        self._is_record_changed = False
        self._pushed_before = -1  # the last entry appended when `has_untold_end` was last called
        self._lac_told = -1  # the last add confirmed that bookies were told by a request of its own
        self._stop_watching = cluster.records.watch(self.ledger_id, self._on_record_event)

    # Reading

    @property
    def last_add_confirmed(self) -> int:
        """The last confirmed entry; exact, because only this writer adds entries."""
        return self._replicator.last_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The last entry appended."""
        return self._replicator.last_added

    @property
    def length_bytes(self) -> int:
        """The bytes of all confirmed entries."""
        return self._replicator.confirmed_bytes

    @property
    def is_closed(self) -> bool:
        """Whether the ledger was closed: its end is recorded."""
        return self._is_ended

    async def read_last_add_confirmed(self) -> int:
        """The last confirmed entry, known without asking bookies."""
        return self.last_add_confirmed

    @property
    def ensemble_size(self) -> int:
        """The number of bookies of the ensemble."""
        return self._ledger.recorded.metadata.ensemble_size

    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """The confirmed entries in memory: those that some bookies have not answered for yet.

        None are kept for reading: tailing readers use the managed ledger's cache.
        """
        last = min(last_entry_id, self.last_add_confirmed)
        return self._replicator.held(first_entry_id, last, max_bytes) or super().read_cached(
            first_entry_id, last_entry_id, max_bytes
        )

    # Writing

    def append(self, data: LentEntry) -> int:
        """Send one entry.

        # Hot path: one call an entry.
        """
        if self._replicator.error is not None:
            self._refuse(self._replicator.error)
        lent = data if isinstance(data, tuple) else (data,)
        size_bytes = sum(map(len, lent))
        limit_bytes = self._cluster.limits.max_entry_bytes
        if size_bytes > limit_bytes:
            raise EntryTooBigError(
                f"ledger {self.ledger_id}: an entry of {size_bytes} bytes, "
                f"the store takes {limit_bytes}"
            )
        self._check_room(size_bytes)
        self._cluster.pinned.take(size_bytes + ENTRY_OVERHEAD_BYTES)
        pieces = lent if size_bytes < JOINED_BYTES else tuple(map(_owned, lent))
        return self._replicator.add(pieces, size_bytes)

    def append_run(self, entries: Sequence[bytes]) -> int:
        """Send all entries of a run, or none where one of them needs a closer look.

        # Hot path: one call a run.
        """
        if not self._replicator.takes_runs:
            return 0
        size_bytes = sum(map(len, entries))
        most_bytes = max(self._replicator.waiting_bytes()) + size_bytes
        most_bytes += len(entries) * FRAME_OVERHEAD_BYTES
        if (
            most_bytes > self._cluster.bookies.limits.max_waiting_bytes
            or size_bytes > self._cluster.limits.max_entry_bytes
        ):
            return 0
        try:
            self._cluster.pinned.take(size_bytes + len(entries) * ENTRY_OVERHEAD_BYTES)
        except StoreBusyError:
            return 0
        self._replicator.add_run(entries)
        return len(entries)

    def _check_room(self, size_bytes: int) -> None:
        """Refuse an entry that a bookie has no room for, unless that one alone is slow.

        A bookie that alone lags behind fails with this entry, and is replaced if there is a spare.

        # Hot path: one call an entry.

        Raises:
            StoreBusyError: Too many bytes wait for a bookie that can't be replaced.
        """
        waiting = self._replicator.waiting_bytes()
        limit_bytes = self._cluster.bookies.limits.max_waiting_bytes
        most_bytes = max(waiting) + size_bytes + FRAME_OVERHEAD_BYTES
        if most_bytes <= limit_bytes:
            return
        is_one_slow = min(waiting) <= limit_bytes // 2
        if not is_one_slow or not self._cluster.ensembles.has_spare(self._ledger.recorded.metadata):
            self._cluster.counters.busy_refusals_count += 1
            raise StoreBusyError(
                f"ledger {self.ledger_id}: {most_bytes} bytes would wait for one of its bookies, "
                f"{limit_bytes} may, and "
                f"{'no other one can take its place' if is_one_slow else 'the others lag too'}"
            )

    def _is_slowed_down(self) -> bool:
        """Whether one bookie lags behind the others, and no other one can replace it.

        That ends when the bookie answers, or when its requests time out.
        """
        waiting = self._replicator.waiting_bytes()
        half_bytes = self._cluster.bookies.limits.max_waiting_bytes // 2
        return (
            max(waiting) > half_bytes
            and min(waiting) <= half_bytes // 2
            and not self._cluster.ensembles.has_spare(self._ledger.recorded.metadata)
        )

    def _refuse(self, error: StorageError) -> NoReturn:
        if isinstance(error, (*_FOR_GOOD, LedgerClosedError)):
            raise type(error)(str(error))
        raise StorageError(f"ledger {self.ledger_id}: an earlier entry failed: {error}") from error

    def on_progress(self) -> None:
        """Called when the last confirmed entry has moved."""
        self._tell_soon()

    def on_released(self, size_bytes: int) -> None:
        """Called when the memory of entries is released."""
        self._cluster.pinned.give_back(size_bytes)
        if self.last_add_confirmed > self._told:
            self._tell_soon()

    def on_replication_failed(self, error: StorageError) -> None:
        """Called when an error ended the replication: nothing more will be confirmed."""
        if self.last_add_confirmed < 0 and not isinstance(error, _FOR_GOOD):
            self._cluster.ensembles.on_barren()
        self._failure = error
        self._end_watch()
        self._tell_soon()

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        """Tell the listener of confirmed and of failed entries, in one call each."""
        self._is_telling = False
        last = self._replicator.last_confirmed
        if last > self._told and self._replicator.error is None and self._is_slowed_down():
            last = self._replicator.last_settled
        if last > self._told:
            if self._told < 0:
                self._cluster.ensembles.on_fruitful()
            self._told = last
            self._listener.on_confirmed(self.ledger_id, last)
        failure, self._failure = self._failure, None
        if failure is not None:
            self._listener.on_failed(self.ledger_id, failure)

    async def replace(
        self, failed: Mapping[int, FailedBookie], first_entry_id: int
    ) -> Mapping[int, str]:
        """Choose other bookies and record them, unless another process has fenced the ledger.

        If too few are available this ledger ends; the next one gets a smaller ensemble.
        """
        metadata = self._ledger.recorded.metadata
        before = metadata.last_segment.bookie_ids
        chosen = await self._cluster.ensembles.replacements(
            metadata,
            before,
            {index: each.bookie_id for index, each in failed.items()},
            avoided=self._replicator.failed_bookies,
        )
        kept = {index: each.bookie_id for index, each in failed.items() if index not in chosen}
        gone = [failed[index].bookie_id for index in kept if not failed[index].may_be_kept]
        if gone:
            raise NotEnoughBookiesError(
                f"ledger {self.ledger_id}: nobody can take the place of {', '.join(gone)}"
            )

        def decide(metadata: LedgerMetadata) -> LedgerMetadata | None:
            if self._replicator.error is not None:
                raise self._replicator.error
            self._check_open(metadata)
            before = metadata.last_segment.bookie_ids
            after = list(before)
            for index, bookie_id in chosen.items():
                if before[index] == failed[index].bookie_id:
                    after[index] = bookie_id
            if tuple(after) == before:
                return None  # somebody else has replaced them, or they stay
            return metadata.with_ensemble(first_entry_id, after)

        ledger = self._ledger
        ledger.learn(await self._cluster.records.change(self.ledger_id, ledger.recorded, decide))
        now = ledger.recorded.metadata.last_segment.bookie_ids
        self._cluster.counters.ensemble_changes_count += bool(chosen)
        logger.info(
            "ensemble changed",
            extra={"ledger_id": self.ledger_id, "entry_id": first_entry_id, "bookies": now},
        )
        return {index: now[index] for index in failed}

    def on_bookie_gone(self, bookie_id: str) -> None:
        """Called when a bookie has stopped answering."""
        self._replicator.on_bookie_gone(bookie_id)

    def on_bookies_listed(self, bookie_ids: Collection[str]) -> None:
        """Called with the registered bookies: others are replaced if that is possible.

        A bookie may serve without being registered, but auto-recovery would replace it.
        """
        for bookie_id in self._replicator.bookie_ids:
            if bookie_id not in bookie_ids and self._cluster.ensembles.has_spare(
                self._ledger.recorded.metadata
            ):
                self._replicator.on_bookie_gone(bookie_id)

    def _check_open(self, metadata: LedgerMetadata) -> None:
        if metadata.status is not LedgerStatus.OPEN:
            raise LedgerFencedError(
                f"ledger {self.ledger_id}: somebody else has recovered it, "
                f"it is {metadata.status.name}"
            )

    # What others do to the ledger

    def _on_record_event(self, event: Notification) -> None:
        if self._is_closing or self._replicator.error is not None:
            return
        if event.type is NotificationType.DELETED:
            self._replicator.fail(LedgerNotFoundError(f"ledger {self.ledger_id}: it was deleted"))
            return
        self._is_record_changed = True
        if not self._is_looking:
            self._is_looking = True
            self._cluster.tasks.spawn(self._look_at_record(), f"record of {self.ledger_id}")

    async def _look_at_record(self) -> None:
        try:
            while self._is_record_changed:
                self._is_record_changed = False
                recorded = await self._cluster.records.read(self.ledger_id)
                if self._is_closing or self._replicator.error is not None:
                    return
                self._check_open(recorded.metadata)
                self._ledger.learn(recorded)
        except _FOR_GOOD as error:
            self._replicator.fail(error)
        except StorageError as error:
            # Bookies refuse what is not the writer's any more.
            logger.info(
                "ledger's metadata can't be read",
                extra={"ledger_id": self.ledger_id, "error": str(error)},
            )
        finally:
            self._is_looking = False

    def _end_watch(self) -> None:
        self._stop_watching()
        self._on_over(self)

    # Telling bookies how far an idle ledger is confirmed

    def has_untold_end(self) -> bool:
        """Whether nothing was appended since the last call, and bookies do not know its end.

        While entries follow one another, each tells the end before it.
        """
        before, self._pushed_before = self._pushed_before, self.last_add_pushed
        return self.last_add_pushed == before and self.last_add_confirmed > self._lac_told

    async def tell_end(self) -> None:
        """Tell the write set of the last confirmed entry that this entry is confirmed."""
        last = self.last_add_confirmed
        metadata = self._ledger.recorded.metadata
        ensemble = metadata.last_segment.bookie_ids
        told_count = await self._cluster.explicit_lacs.write(
            [ensemble[index] for index in metadata.write_set(last)],
            self.ledger_id,
            self._ledger.digest,
            self._ledger.master_key,
            last,
        )
        if told_count >= metadata.ack_quorum_size:
            self._lac_told = max(self._lac_told, last)

    # Ending

    async def close(self) -> None:
        """Fail the entries that are not confirmed, and record the end of the ledger."""
        async with self._closing:
            if self._is_ended:
                return
            error = self._replicator.error
            if isinstance(error, _FOR_GOOD):
                raise type(error)(str(error))
            self._is_closing = True
            self._end_appends()
            await self._write_end()
            self._is_ended = True

    def _end_appends(self) -> None:
        if self._replicator.error is None:
            error = LedgerClosedError(f"ledger {self.ledger_id}: it is closed")
            if self._replicator.pending_count:
                self._failure = error
            self._replicator.stop(error)
            self._end_watch()
        self._tell()

    async def _write_end(self) -> None:
        last, length_bytes = self.last_add_confirmed, self.length_bytes

        def decide(metadata: LedgerMetadata) -> LedgerMetadata | None:
            if metadata.is_closed and metadata.last_entry_id == last:
                return None
            self._check_open(metadata)
            return metadata.closed(last, length_bytes)

        ledger = self._ledger

        async def write() -> RecordedLedger:
            return await self._cluster.records.change(self.ledger_id, ledger.recorded, decide)

        ledger.learn(await repeated(self._cluster, self.ledger_id, write))

    def abandon(self) -> None:
        """Fail all waiting entries, because the store is closed; the ledger stays open."""
        self._replicator.fail(StorageError(f"ledger {self.ledger_id}: the store is closed"))


def _owned(piece: EntryBytes) -> EntryBytes:
    """The piece itself if it is immutable and most of its buffer, else a copy."""
    if isinstance(piece, bytes):
        return piece
    if piece.readonly:
        with memoryview(piece.obj) as whole:
            if len(piece) >= NEARLY_ALL * whole.nbytes:
                return piece
    return bytes(piece)
