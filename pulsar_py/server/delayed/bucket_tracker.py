"""`BucketDelayedDeliveryTracker`: a subscription's delayed entries, most of them on disk (pure).

New entries go into the open bucket in memory. It is sealed, that is handed over to be written, when
an entry of a later data ledger comes and it has the minimum of indexes, or when it has a quarter
more than that. Of a bucket on disk only the times of its segments are in memory; a segment is
loaded shortly before its first entry is due. The set `held` has every entry that waits, wherever
its index is, one bit or less each.

Times are kept to the millisecond. An entry is due at its time rounded up to a multiple of the
largest power of two that fits into one tick, so that wake-ups are shared.

What always holds: no entry is returned before its time, and none twice. An entry that is in `held`
has its index in memory, or in a segment that is still to be loaded. An entry that is in no bucket
on disk is not lost with the process: it is unacknowledged, so it is read again.

Source: BucketDelayedDeliveryTracker, MutableBucket, ImmutableBucket in Pulsar's broker; PIP-195.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.server.delayed.bucket_format import (
    INDEX_BYTES,
    BucketContent,
    pack,
    position_of,
    time_of,
)
from pulsar_py.server.delayed.bucket_names import BucketName
from pulsar_py.server.dispatch.pending_acks import PositionKey

LOAD_AHEAD_MILLIS: Final = 5000
"""A segment is loaded this long before its first entry is due."""

MAX_LOADED: Final = 20_000
"""While so many indexes of segments are in memory and consumers leave due ones there, no further
segment is loaded."""

CROWDED_MILLIS: Final = 1000
"""After this time it is looked again whether consumers have taken them."""

SEALED_IN_A_LEDGER_COUNT: Final = 10_000
"""The fewest indexes that are sealed before an entry of a later data ledger has come."""


class BucketSettings(Struct, frozen=True, kw_only=True):
    """The settings of broker.conf that the comments name."""

    min_indexes: int = 50_000  # delayedDeliveryMinIndexCountPerBucket
    max_segment_indexes: int = 5000  # delayedDeliveryMaxIndexesPerBucketSnapshotSegment
    max_step_seconds: int = 300  # delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds
    max_buckets: int = -1  # delayedDeliveryMaxNumBuckets; below 1: no limit

    @property
    def most_open(self) -> int:
        """Indexes of one data ledger with which the open bucket is sealed."""
        return max(self.min_indexes + self.min_indexes // 4, SEALED_IN_A_LEDGER_COUNT)


class SealedBucket(Struct, eq=False):
    """A bucket on disk."""

    name: BucketName
    ledger_id: int
    content: BucketContent
    next_segment: int = 0  # the next one to load

    @property
    def is_loaded(self) -> bool:
        """Whether no segment is left to load."""
        return self.next_segment >= len(self.content.segment_starts)

    @property
    def next_load_millis(self) -> int:
        """When the next segment has to be loaded; only if there is one."""
        return self.content.segment_starts[self.next_segment] * 1000 - LOAD_AHEAD_MILLIS


class BucketDelayedDeliveryTracker:
    """The delayed entries of a Shared or Key_Shared subscription. Owned by its `DelayedIndex`.

    It is a `DelayedTracker`.
    """

    def __init__(self, *, tick_millis: int, settings: BucketSettings) -> None:
        self.set_tick_millis(tick_millis)
        self._settings = settings
        self.is_ready = False
        self.held = PositionRangeSet()
        # What the cursor need not read: `held`, and what was returned since it was rewound.
        self.passed_over = PositionRangeSet()
        self.buckets: list[SealedBucket] = []
        # Called when the open bucket is sealed: `sealing` has to be written.
        self.on_sealed: Callable[[], None] = lambda: None
        # Called when entries may have become due sooner than the last answer said.
        self.on_news: Callable[[], None] | None = None
        # Indexes in heaps. Those whose entry is not in `held` any more are passed over.
        self._open: list[int] = []
        self._loaded: list[int] = []
        self.sealing: list[int] | None = None
        self._last_open_ledger_id = -1
        # Entries whose segments were due as a whole when they were found on disk.
        self._overdue = PositionRangeSet()

    def __len__(self) -> int:
        """Entries that are held back."""
        return len(self.held)

    @property
    def memory_bytes(self) -> int:
        """Roughly what the index takes in memory."""
        count = len(self._open) + len(self._loaded) + len(self.sealing or ())
        sets = [self.held, *(bucket.content.members for bucket in self.buckets)]
        starts = sum(len(bucket.content.segment_starts) for bucket in self.buckets)
        return count * INDEX_BYTES + starts * 4 + sum(each.size_bytes() for each in sets)

    def set_tick_millis(self, tick_millis: int) -> None:
        """Round times up by another tick from now on."""
        self._precision_bits = max(tick_millis.bit_length() - 1, 0)

    # New entries

    def add(self, position: PositionKey, deliver_at_millis: int, now_millis: int) -> bool:
        """Hold an entry back; False if it may be delivered now. Adding it again changes nothing."""
        if self.knows(position):
            return True
        if deliver_at_millis <= now_millis:
            return False
        self.held.add(Position(*position))
        self.passed_over.add(Position(*position))
        ledger_id, entry_id = position
        count = len(self._open)
        if (
            ledger_id > self._last_open_ledger_id and count >= self._settings.min_indexes
        ) or count >= self._settings.most_open:
            self._seal()
        heappush(self._open, pack(deliver_at_millis, ledger_id, entry_id))
        self._last_open_ledger_id = max(self._last_open_ledger_id, ledger_id)
        return True

    def knows(self, position: PositionKey) -> bool:
        """Whether an entry is held, or was returned since the cursor was rewound."""
        return Position(*position) in self.passed_over

    def _seal(self) -> None:
        if self.sealing is not None or not self._open:
            return
        self.sealing, self._open = self._open, []
        self._last_open_ledger_id = -1
        self.on_sealed()

    def is_pausing(self, now_millis: int) -> bool:  # noqa: ARG002 - the other tracker's matters
        """Whether reading should pause: a bucket could not be written yet, and another is full."""
        return self.sealing is not None and len(self._open) >= self._settings.most_open

    # Due entries

    def take_due(self, limit: int, now_millis: int) -> list[PositionKey]:
        """Remove and return up to `limit` due entries."""
        due: list[PositionKey] = []
        while self._overdue and len(due) < limit:
            overdue = next(iter(self._overdue))
            self._overdue.discard(overdue)
            self.held.discard(overdue)
            due.append(overdue)
        cutoff = self._cutoff_millis(now_millis)
        for heap in self._heaps():
            while heap and len(due) < limit and time_of(heap[0]) <= cutoff:
                position = position_of(heappop(heap))
                if self.held.discard(position):
                    due.append(position)
        return due

    def has_due(self, now_millis: int) -> bool:
        """Whether any entry may be delivered now."""
        if self._overdue:
            return True
        earliest = self._earliest_millis()
        return earliest is not None and earliest <= self._cutoff_millis(now_millis)

    def next_check_millis(self, now_millis: int) -> int | None:
        """Milliseconds until an entry in memory is due, None when none waits there."""
        if self._overdue:
            return 0
        earliest = self._earliest_millis()
        if earliest is None:
            return None
        bits = self._precision_bits
        due_millis = (earliest + (1 << bits) - 1) >> bits << bits
        return max(due_millis - now_millis, 0)

    def _cutoff_millis(self, now_millis: int) -> int:
        """The latest time that is due: a later one would be rounded up to one after now."""
        return now_millis >> self._precision_bits << self._precision_bits

    def _earliest_millis(self) -> int | None:
        earliest = None
        for heap in self._heaps():
            while heap and position_of(heap[0]) not in self.held:
                heappop(heap)
            if heap and (earliest is None or time_of(heap[0]) < earliest):
                earliest = time_of(heap[0])
        return earliest

    def _heaps(self) -> Sequence[list[int]]:
        if self.sealing is None:
            return (self._open, self._loaded)
        return (self._open, self._loaded, self.sealing)

    # Entries that need no delivery any more

    def on_rewind(self) -> None:
        """Let the cursor read again what was returned; what is held is still passed over."""
        self.passed_over.clear()
        self.passed_over.add_all(self.held)

    def discard_up_to(self, position: Position) -> None:
        """Forget entries at or before a mark-delete position: they were skipped or expired."""
        self.forget_passed(position)
        self._overdue.remove_through(position)
        if self.held.remove_through(position):
            self._open = self._still_held(self._open)
            self._loaded = self._still_held(self._loaded)

    def forget_passed(self, position: Position) -> None:
        """Forget that entries up to the mark-delete position were returned: they can't be read."""
        self.passed_over.remove_through(position)

    def _still_held(self, heap: list[int]) -> list[int]:
        kept = [index for index in heap if position_of(index) in self.held]
        heapify(kept)
        return kept

    def on_backlog_cleared(self) -> None:
        """Nothing to do beside `discard_up_to`."""

    # Buckets on disk

    def found(
        self, buckets: Iterable[SealedBucket], held: PositionRangeSet, overdue: PositionRangeSet
    ) -> None:
        """Take over what is on disk.

        `held` are the entries that wait; `overdue`, a part of them, those to be returned at once.
        """
        assert not self.held, "only at the beginning"
        self.held = held
        self.passed_over.add_all(held)
        self._overdue = overdue
        self.buckets = sorted(buckets, key=lambda bucket: bucket.name)
        self.is_ready = True

    def replace(self, old: Iterable[SealedBucket], new: Iterable[SealedBucket]) -> None:
        """Change to other buckets: they were merged, or one was written or deleted."""
        gone = set(map(id, old))
        kept = [bucket for bucket in self.buckets if id(bucket) not in gone]
        self.buckets = sorted([*kept, *new], key=lambda bucket: bucket.name)

    def written(self, buckets: Iterable[SealedBucket]) -> None:
        """The sealed indexes are on disk, in these buckets."""
        self.sealing = None
        self.replace((), buckets)

    def next_load_millis(self, now_millis: int) -> int | None:
        """The wall-clock time at which a segment has to be loaded; None without any."""
        earliest = min(
            (bucket.next_load_millis for bucket in self.buckets if not bucket.is_loaded),
            default=None,
        )
        if earliest is not None and self._is_crowded(now_millis):
            return max(earliest, now_millis + CROWDED_MILLIS)
        return earliest

    def bucket_to_load(self, now_millis: int) -> SealedBucket | None:
        """The bucket whose next segment has to be loaded now."""
        waiting = (bucket for bucket in self.buckets if not bucket.is_loaded)
        bucket = min(waiting, key=lambda bucket: bucket.next_load_millis, default=None)
        if bucket is None or bucket.next_load_millis > now_millis or self._is_crowded(now_millis):
            return None
        return bucket

    def _is_crowded(self, now_millis: int) -> bool:
        loaded = self._loaded
        return len(loaded) >= MAX_LOADED and time_of(loaded[0]) <= self._cutoff_millis(now_millis)

    def loaded(self, bucket: SealedBucket, indexes: Iterable[int]) -> None:
        """Take the indexes of a bucket's next segment."""
        bucket.next_segment += 1
        for index in indexes:
            if position_of(index) in self.held:
                heappush(self._loaded, index)

    def known_again(self, position: Position, deliver_at_millis: int) -> None:
        """Take the time of an entry that is held, and whose bucket is lost."""
        heappush(self._loaded, pack(deliver_at_millis, *position))

    def check(self) -> None:
        """Assert that each entry has an index somewhere; for tests."""
        known = PositionRangeSet()
        for heap in self._heaps():
            for index in heap:
                known.add(position_of(index))
        for bucket in self.buckets:
            known.add_all(bucket.content.members)
        assert not self.held.without(known), "entries without an index"
        assert not self.held.without(self.passed_over), "entries that the cursor would read"
        assert not self._overdue.without(self.held), "overdue entries that do not wait"
