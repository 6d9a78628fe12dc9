"""`DelayedIndex`: keeps a subscription's delayed entries in buckets on disk (edge).

It has the buckets found that the cursor's properties name, writes what the tracker seals, loads
segments before they are due, merges buckets and deletes those whose messages are all acknowledged.

    sealing   1  the bucket's ledger is written and closed
              2  one write of the cursor's record names it
    merging   1  as above, of the messages that are not acknowledged
              2  one write names the new bucket, takes out the old names, and lists the old ledgers
                 as doomed
              3  the old ledgers are deleted
              4  one write takes out the list
    deleting  as merging, from 2 on, without a new bucket

After a crash the record names whole ledgers alone. A new one that it does not name (a crash before
2) is left to the ledger collector; doomed ones are deleted when the index is next loaded. An entry
that is in no bucket is unacknowledged in the topic, and read again there.

What always holds: a bucket is deleted only when all its messages are acknowledged, or are in the
bucket that replaces it. No dispatcher reads before the buckets are known: it would read the whole
backlog.

Source: BucketDelayedDeliveryTracker in Pulsar's broker, which deletes a bucket once its last
segment was handed out, and leaves segments out when it merges.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from heapq import merge
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import (
    CorruptDataError,
    LedgerNotFoundError,
    ManagedLedgerError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.cursors.format import DELAYED_DOOMED
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.server.delayed.bucket_format import BucketBuilder, NewBucket, position_of
from pulsar_py.server.delayed.bucket_ledgers import BucketLedgers, BucketPlace
from pulsar_py.server.delayed.bucket_names import doomed_ledgers, free_name, stored_buckets
from pulsar_py.server.delayed.bucket_recovery import find_buckets
from pulsar_py.server.delayed.bucket_tracker import (
    BucketDelayedDeliveryTracker,
    BucketSettings,
    SealedBucket,
)
from pulsar_py.server.delayed.merged_segments import buckets_to_merge, merged_indexes
from pulsar_py.server.dispatch.filtering import summary_of

logger = logging.getLogger(__name__)

INDEXES_AT_ONCE: Final = 500
"""Indexes that are encoded in one turn of the loop."""

SORTED_AT_ONCE: Final = 2048
READ_AGAIN_AT_ONCE: Final = 100
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0

CHECK_SECONDS: Final = 10.0
"""While there are buckets whose segments were all loaded, it is looked so often whether their
messages are acknowledged."""

CLOSING_SECONDS: Final = 5.0
"""So long closing waits for a bucket that is being written."""


class DelayedIndexParts(Struct, frozen=True, kw_only=True):
    """The parts that the delayed indexes of one broker share.

    Attributes:
        ledger_store: Where buckets are.
        settings: Asked for with each new index; None: there are none, delays are in memory.
    """

    ledger_store: LedgerStore
    clock: Clock
    settings: Callable[[], BucketSettings | None]


class DelayedIndex:
    """One subscription's delayed index. Owned by it, and made anew after a reset."""

    def __init__(
        self,
        cursor: ManagedCursor,
        parts: DelayedIndexParts,
        settings: BucketSettings,
        place: BucketPlace,
        options: LedgerOptions,
        *,
        tick_millis: int,
    ) -> None:
        """`options` are those of the topic's ledgers."""
        self._cursor = cursor
        self._settings = settings
        self._clock = parts.clock
        self._log_fields = {"topic": place.topic, "subscription": place.subscription}
        self._ledgers = BucketLedgers(parts.ledger_store, parts.clock, options, place)
        self._tasks = TaskOwner(f"delayed index of {place.subscription} of {place.topic}")
        self._worker: asyncio.Task[None] | None = None  # writes and deletes, while there is work
        self._is_loading = False
        self._load_timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._is_check_due = False  # some bucket may not be needed any more
        self._doomed: list[int] = []  # ledgers that the record lists for deletion
        self._lost: list[SealedBucket] = []  # buckets that the record has to forget
        self.tracker = BucketDelayedDeliveryTracker(tick_millis=tick_millis, settings=settings)
        self.tracker.on_sealed = self._work_soon
        properties = cursor.cursor_properties
        if stored_buckets(properties) or doomed_ledgers(properties):
            self._tasks.spawn(self._find(), "find buckets")
        else:
            self.tracker.found((), PositionRangeSet(), PositionRangeSet())
            cursor.pass_over(self.tracker.passed_over)

    async def _find(self) -> None:
        found = await find_buckets(self._cursor, self._ledgers, self._clock, self._log_fields)
        self._doomed, self._lost = found.doomed, found.lost
        self.tracker.found(found.buckets, found.held, found.overdue)
        self._cursor.pass_over(self.tracker.passed_over)
        self._is_check_due = bool(found.buckets)
        if found.buckets or found.doomed or found.lost:
            self._work_soon()
        self._arm_load()
        self._tell_news()

    def _tell_news(self) -> None:
        if self.tracker.on_news is not None:
            self.tracker.on_news()

    def on_mark_delete_moved(self, position: Position) -> None:
        """Forget entries up to `position`: they were skipped or expired."""
        self.tracker.discard_up_to(position)
        if self.tracker.buckets:
            self._is_check_due = True
            self._work_soon()

    # Loading segments

    def _arm_load(self) -> None:
        """Set the timer for the next segment; one load at a time."""
        if self._load_timer is not None:
            self._load_timer.cancel()
            self._load_timer = None
        now_millis = self._clock.wall_time_millis()
        due_millis = self.tracker.next_load_millis(now_millis)
        if due_millis is None or self._is_stopping or self._is_loading:
            return
        seconds = max(due_millis - now_millis, 0) / 1000
        self._load_timer = self._clock.call_later(seconds, self._on_load_timer)

    def _on_load_timer(self) -> None:
        self._load_timer = None
        self._is_loading = True
        self._tasks.spawn(self._load_due(), "load segments")

    async def _load_due(self) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        try:
            while bucket := self.tracker.bucket_to_load(self._clock.wall_time_millis()):
                try:
                    await self._load(bucket)
                except StorageError as error:
                    self._log("segment of delayed messages not loaded yet", error)
                    await self._clock.sleep(pause_seconds)
                    pause_seconds = min(pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        finally:
            self._is_loading = False
        self._arm_load()
        self._arm_check()
        self._tell_news()

    async def _load(self, bucket: SealedBucket) -> None:
        number = bucket.next_segment
        try:
            indexes = await self._ledgers.read_segment(bucket.ledger_id, number)
        except (LedgerNotFoundError, CorruptDataError) as error:
            if bucket in self.tracker.buckets:  # else it was merged meanwhile
                self._log("bucket of delayed messages lost", error, bucket.ledger_id)
                await self._read_again(bucket)
            return
        if bucket.next_segment == number and bucket in self.tracker.buckets:
            self.tracker.loaded(bucket, indexes)

    async def _read_again(self, bucket: SealedBucket) -> None:
        """Learn the times of a lost bucket's entries from the topic."""
        tracker = self.tracker
        waiting = bucket.content.members.common_with(tracker.held)
        positions = [Position(*each) for each in waiting]
        for start in range(0, len(positions), READ_AGAIN_AT_ONCE):
            some = positions[start : start + READ_AGAIN_AT_ONCE]
            entries = await self._cursor.read_replay(some)
            times = {each.position: summary_of(each).deliver_at_time_millis for each in entries}
            for position in some:
                if position in times:
                    tracker.known_again(position, times[position])
                else:
                    tracker.held.discard(position)  # it is acknowledged, or gone
        tracker.replace((bucket,), ())
        self._lost.append(bucket)
        self._work_soon()

    # Writing

    def _work_soon(self) -> None:
        if self._is_stopping or (self._worker is not None and not self._worker.done()):
            return
        self._worker = self._tasks.spawn(self._work(), "write buckets")

    async def _work(self) -> None:
        """Do what is due until there is nothing; after an error later again."""
        pause_seconds = FIRST_PAUSE_SECONDS
        while self._has_work() and not self._is_stopping:
            try:
                await self._do_next()
            except (StorageError, MetadataError) as error:
                self._log("delayed index not written yet", error)
                await self._clock.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, LONGEST_PAUSE_SECONDS)
            except ManagedLedgerError as error:
                self._log("delayed index not written any more", error)
                return  # the cursor is closed, or another owner's
            else:
                pause_seconds = FIRST_PAUSE_SECONDS
        self._arm_check()

    def _has_work(self) -> bool:
        return bool(
            self._doomed or self._lost or self._is_check_due or self.tracker.sealing is not None
        )

    async def _do_next(self) -> None:
        self.tracker.forget_passed(self._cursor.mark_delete_position)
        if self._is_check_due:
            self._is_check_due = False
            self._lost += self._finished()
        if self._lost:
            lost = list(self._lost)
            await self._name({}, lost)
            self._lost = self._lost[len(lost) :]
            self.tracker.replace(lost, ())
        if self._doomed:
            await self._delete_doomed()
        sealing = self.tracker.sealing
        if sealing is not None:
            await self._merge()
            if not self._is_stopping:
                await self._seal(list(sealing))

    def _finished(self) -> list[SealedBucket]:
        """The buckets whose messages are all acknowledged."""
        unacknowledged_of = self._cursor.unacknowledged_of
        return [
            bucket
            for bucket in self.tracker.buckets
            if bucket not in self._lost and not unacknowledged_of(bucket.content.members)
        ]

    async def _seal(self, indexes: list[int]) -> None:
        """Write the sealed indexes; those delivered meanwhile do no harm in a bucket."""
        held = self.tracker.held
        parts = []
        for start in range(0, len(indexes), SORTED_AT_ONCE):
            some = indexes[start : start + SORTED_AT_ONCE]
            parts.append(sorted(index for index in some if position_of(index) in held))
            await asyncio.sleep(0)
        builder = self._new_builder()
        for count, index in enumerate(merge(*parts), 1):
            builder.add(index)
            if count % INDEXES_AT_ONCE == 0:
                await asyncio.sleep(0)
        written = await self._write(builder.finish(), ())
        self.tracker.written(written)
        self._arm_load()
        self._tell_news()  # reading may have paused until now

    async def _merge(self) -> None:
        """Merge buckets if there are too many."""
        sources = buckets_to_merge(self.tracker.buckets, self._settings.max_buckets)
        if not sources:
            return
        builder = self._new_builder()
        count = 0
        is_acknowledged = self._cursor.is_acknowledged
        async for index in merged_indexes(sources, self._ledgers.read_segment):
            count += 1
            if not is_acknowledged(position_of(index)):
                builder.add(index)
            if count % INDEXES_AT_ONCE == 0:
                await asyncio.sleep(0)
        merged = await self._write(builder.finish(), sources)
        self.tracker.replace(sources, merged)
        self._arm_load()
        await self._delete_doomed()

    def _new_builder(self) -> BucketBuilder:
        settings = self._settings
        return BucketBuilder(
            max_segment_indexes=settings.max_segment_indexes,
            max_step_millis=settings.max_step_seconds * 1000,
            max_metadata_bytes=self._ledgers.max_metadata_bytes,
        )

    async def _write(
        self, new: Sequence[NewBucket], old: Sequence[SealedBucket]
    ) -> list[SealedBucket]:
        """Write buckets in place of others, and name them.

        Raises:
            StorageError, MetadataError, ManagedLedgerError: They are not named; nothing is left.
        """
        # Also names of buckets that could not be read, and so are not known here.
        named = stored_buckets(self._cursor.cursor_properties)
        taken = list(named.keys() - {each.name for each in old})
        written: list[SealedBucket] = []
        try:
            for bucket in new:
                content = bucket.content
                name = free_name(content.first_ledger_id, content.last_ledger_id, taken)
                ledger_id = await self._ledgers.write(name, bucket)
                taken.append(name)
                written.append(SealedBucket(name, ledger_id, content))
            if written or old:
                await self._name({str(each.name): each.ledger_id for each in written}, old)
        except (StorageError, ManagedLedgerError):
            for each in written:
                await self._ledgers.try_delete(each.ledger_id)
            raise
        return written

    async def _name(self, new: Mapping[str, int], old: Sequence[SealedBucket]) -> None:
        """Store new names in place of old ones, whose ledgers are doomed from then on.

        A write whose outcome is unknown is repeated until it is known.

        Raises:
            ManagedLedgerError: The names are not stored, and nothing can be stored any more.
        """
        doomed = [*self._doomed, *(bucket.ledger_id for bucket in old)]
        changes: dict[str, str | None] = {str(bucket.name): None for bucket in old}
        changes |= {name: str(ledger_id) for name, ledger_id in new.items()}
        changes[DELAYED_DOOMED] = ",".join(map(str, doomed)) or None
        await self._store(changes)
        self._doomed = doomed

    async def _store(self, changes: Mapping[str, str | None]) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._cursor.change_internal_properties(changes)
            except MetadataError as error:
                if self._is_stopping:
                    raise
                self._log("buckets of delayed messages not named yet", error)
                await self._clock.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, LONGEST_PAUSE_SECONDS)
            else:
                return

    async def _delete_doomed(self) -> None:
        """Delete the ledgers that the record lists, then the list.

        Raises:
            StorageError: One may still be there; it is tried again.
        """
        for ledger_id in self._doomed:
            await self._ledgers.delete(ledger_id)
        await self._store({DELAYED_DOOMED: None})
        self._doomed = []

    # Looking for what is finished

    def _arm_check(self) -> None:
        if self._check_timer is not None or self._is_stopping:
            return
        if any(bucket.is_loaded for bucket in self.tracker.buckets):
            self._check_timer = self._clock.call_later(CHECK_SECONDS, self._on_check_timer)

    def _on_check_timer(self) -> None:
        self._check_timer = None
        self._is_check_due = True
        self._work_soon()

    # The end

    def _stop(self) -> None:
        self._is_stopping = True
        self.tracker.on_news = None
        self.tracker.is_ready = False
        for timer in (self._load_timer, self._check_timer):
            if timer is not None:
                timer.cancel()

    async def close(self) -> None:
        """Stop; a bucket that is being written is finished first, or deleted."""
        self._stop()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait((self._worker,), timeout=CLOSING_SECONDS)
        await self._tasks.close()
        self._cursor.pass_over(None)

    def abandon(self) -> None:
        """Stop at once; what is being written is left to the ledger collector."""
        self._stop()
        self._tasks.abandon()
        self._cursor.pass_over(None)

    async def idle(self) -> None:
        """Return when nothing is being written or loaded; for tests and tools."""
        await self._tasks.drain()

    def _log(self, event: str, error: Exception, ledger_id: int | None = None) -> None:
        extra = {**self._log_fields, "error": str(error)}
        if ledger_id is not None:
            extra["ledger_id"] = str(ledger_id)
        logger.warning(event, extra=extra)
