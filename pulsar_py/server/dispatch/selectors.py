"""Key_Shared selectors: map each slot of sticky keys to the consumer that owns it (pure).

| selector | slots | a consumer gets |
| --- | --- | --- |
| ConsistentHashingSelector | 1..65535 | the slots before its points on a ring |
| HashRangeAutoSplitSelector | 0..65535 | half of the widest range when it joins |
| HashRangeExclusiveSelector | any | the ranges it asked for |

A slot of 0 means "no hash" elsewhere, so no key ever hashes to it. `add` and `remove` do not return
the slots that got other owners: `DrainingHashes.reassign` calls `select` again for pending hashes.

Source: ConsistentHashingStickyKeyConsumerSelector, HashRangeAutoSplitStickyKeyConsumerSelector,
HashRangeExclusiveStickyKeyConsumerSelector in Pulsar's broker; PIP-379.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from pulsar_py.common.errors import ConsumerAssignError
from pulsar_py.common.hashing import consistent_sticky_slot, sticky_slot

SLOTS_COUNT = 65536

HashRange = tuple[int, int]
"""First and last slot, both included."""


class Named(Protocol):
    """The part of a consumer that selectors use."""

    @property
    def name(self) -> str:
        """The name that its points on the ring are hashed from."""

    @property
    def requested_ranges(self) -> Sequence[HashRange]:
        """The ranges it asked for in mode STICKY."""


C = TypeVar("C", bound=Named)


class HashRangeConflictError(ConsumerAssignError):
    """A range belongs to another consumer; once that one is removed, a repetition may succeed."""

    def __init__(self, message: str, owner: object) -> None:
        super().__init__(message)
        self.owner = owner


class StickyKeySelector(ABC, Generic[C]):
    """Assigns slots to consumers."""

    @abstractmethod
    def add(self, consumer: C) -> None:
        """Give a consumer its slots.

        Raises:
            ConsumerAssignError: No slots are available for it; nothing changed.
        """

    @abstractmethod
    def remove(self, consumer: C) -> None:
        """Give a consumer's slots to others, or leave them without owner; fine if it has none."""

    @abstractmethod
    def select(self, slot: int) -> C | None:
        """The owner of a slot, None without one."""

    @abstractmethod
    def slot_of(self, sticky_key: bytes) -> int:
        """The slot of a key; never 0."""

    @abstractmethod
    def ranges_of(self, consumer: C) -> list[HashRange]:
        """The ranges that a consumer owns, in order; for stats."""


class ConsistentHashingSelector(StickyKeySelector[C]):
    """A ring of points; a slot belongs to the first point at or after it, around the end.

    Point i of a consumer is the slot of `name NUL name index NUL i`, where the name index
    distinguishes consumers of equal name. A point that two share belongs to the one that joined
    first, then to the other.
    """

    def __init__(self, points_per_consumer: int = 100) -> None:
        self._points_per_consumer = points_per_consumer
        self._owners: dict[int, list[C]] = {}
        self._points: list[int] = []  # Sorted keys of _owners.
        self._name_indexes: dict[str, dict[int, C]] = defaultdict(dict)

    def add(self, consumer: C) -> None:
        """Put a consumer's points on the ring."""
        indexes = self._name_indexes[consumer.name]
        name_index = next(index for index in range(len(indexes) + 1) if index not in indexes)
        indexes[name_index] = consumer
        for point in self._points_of(consumer.name, name_index):
            self._owners.setdefault(point, []).append(consumer)
        self._points = sorted(self._owners)

    def remove(self, consumer: C) -> None:
        """Take a consumer's points off the ring; shared ones pass to the other consumer."""
        indexes = self._name_indexes.get(consumer.name, {})
        for name_index, owner in list(indexes.items()):
            if owner is consumer:
                del indexes[name_index]
                self._remove_points(consumer, name_index)
        if not indexes:
            self._name_indexes.pop(consumer.name, None)

    def _remove_points(self, consumer: C, name_index: int) -> None:
        for point in self._points_of(consumer.name, name_index):
            owners = self._owners.get(point, [])
            owners[:] = [owner for owner in owners if owner is not consumer]
            if not owners:
                self._owners.pop(point, None)
        self._points = sorted(self._owners)

    def select(self, slot: int) -> C | None:
        """The owner of the first point at or after the slot."""
        points = self._points
        if not points:
            return None
        index = bisect_left(points, slot)
        return self._owners[points[index if index < len(points) else 0]][0]

    def slot_of(self, sticky_key: bytes) -> int:
        """A slot of 1..65535."""
        return consistent_sticky_slot(sticky_key)

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """The ranges of slots before the consumer's points."""
        ranges: list[HashRange] = []
        previous = 0
        for point in self._points:
            if self._owners[point][0] is consumer:
                _append_range(ranges, previous + 1, point)
            previous = point
        if self._points and self._owners[self._points[0]][0] is consumer and previous < SLOTS_COUNT:
            _append_range(ranges, previous + 1, SLOTS_COUNT - 1)
        return ranges

    @property
    def points(self) -> Sequence[int]:
        """All points in use, ascending."""
        return self._points

    def _points_of(self, name: str, name_index: int) -> list[int]:
        return [
            consistent_sticky_slot(f"{name}\0{name_index}\0{point}".encode())
            for point in range(self._points_per_consumer)
        ]


class HashRangeAutoSplitSelector(StickyKeySelector[C]):
    """Upper bounds and their owners; a new consumer gets the lower half of the widest range.

    A bound stands for the range (bound before, bound]; the last one is the number of slots.
    """

    def __init__(self, slots_count: int = SLOTS_COUNT) -> None:
        self._slots_count = slots_count
        self._bounds: list[int] = []
        self._owners: list[C] = []

    def add(self, consumer: C) -> None:
        """Split the first of the widest ranges."""
        if not self._bounds:
            self._bounds.append(self._slots_count)
            self._owners.append(consumer)
            return
        lowers = [0, *self._bounds[:-1]]
        widths = [upper - lower for lower, upper in zip(lowers, self._bounds, strict=True)]
        widest = widths.index(max(widths))
        if widths[widest] <= 1:
            raise ConsumerAssignError(
                "no hash range is left that could be split: the subscription has too many consumers"
            )
        split = self._bounds[widest] - (widths[widest] >> 1)
        self._bounds.insert(widest, split)
        self._owners.insert(widest, consumer)

    def remove(self, consumer: C) -> None:
        """Merge a consumer's range into the next higher one, the highest into the one below."""
        index = next((i for i, owner in enumerate(self._owners) if owner is consumer), None)
        if index is None:
            return
        if index == len(self._bounds) - 1 and index > 0:
            del self._bounds[index - 1]
        else:
            del self._bounds[index]
        del self._owners[index]

    def select(self, slot: int) -> C | None:
        """The owner of the smallest bound at or after the slot."""
        if not self._bounds:
            return None
        return self._owners[bisect_left(self._bounds, slot)]

    def slot_of(self, sticky_key: bytes) -> int:
        """A slot of 1..65535."""
        return sticky_slot(sticky_key)

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """At most one range; the first begins at 0."""
        lowers = [-1, *self._bounds][: len(self._bounds)]
        return [
            (lower + 1, upper)
            for lower, upper, owner in zip(lowers, self._bounds, self._owners, strict=True)
            if owner is consumer
        ]


class HashRangeExclusiveSelector(StickyKeySelector[C]):
    """The ranges that the consumers ask for; a slot in none of them has no owner."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, C]] = []  # Sorted by start, not overlapping.

    def add(self, consumer: C) -> None:
        """Take the consumer's ranges; bounds outside 0..65535 are accepted.

        Raises:
            HashRangeConflictError: One belongs to another consumer.
        """
        ranges = validated_ranges(consumer.requested_ranges)
        for start, end in ranges:
            owner = self._owner_between(start, end)
            if owner is not None:
                raise HashRangeConflictError(f"Range conflict with consumer {owner}", owner)
        self._ranges = sorted(
            [*self._ranges, *((start, end, consumer) for start, end in ranges)],
            key=lambda each: each[0],
        )
        self._starts = [start for start, _, _ in self._ranges]

    def remove(self, consumer: C) -> None:
        """Leave a consumer's slots without owner."""
        self._ranges = [each for each in self._ranges if each[2] is not consumer]
        self._starts = [start for start, _, _ in self._ranges]

    def select(self, slot: int) -> C | None:
        """The owner of the range that holds the slot."""
        return self._owner_between(slot, slot)

    def slot_of(self, sticky_key: bytes) -> int:
        """A slot of 1..65535."""
        return sticky_slot(sticky_key)

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """The ranges it asked for, in order."""
        return [(start, end) for start, end, owner in self._ranges if owner is consumer]

    def _owner_between(self, start: int, end: int) -> C | None:
        """The consumer of some range that overlaps this one."""
        index = bisect_right(self._starts, end) - 1
        if index < 0 or self._ranges[index][1] < start:
            return None
        return self._ranges[index][2]


def validated_ranges(ranges: Sequence[HashRange]) -> list[HashRange]:
    """The ranges of one consumer, sorted.

    Raises:
        ConsumerAssignError: There are none, one ends before it starts, or two overlap.
    """
    if not ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    ordered = sorted(ranges)
    for start, end in ordered:
        if start > end:
            raise ConsumerAssignError(f"Fixed hash range start {start} is above its end {end}.")
    for (start, end), (next_start, next_end) in pairwise(ordered):
        if next_start <= end:
            raise ConsumerAssignError(
                f"Consumer's own ranges conflict: [{start},{end}] overlaps "
                f"with [{next_start},{next_end}]"
            )
    return ordered


def covers(ranges: Sequence[HashRange], slot: int) -> bool:
    """Whether sorted ranges hold a slot."""
    index = bisect_right(ranges, (slot, SLOTS_COUNT * 2)) - 1
    return index >= 0 and slot <= ranges[index][1]


def _append_range(ranges: list[HashRange], start: int, end: int) -> None:
    """Add a range, or extend the last one if both touch."""
    if start > end:
        return
    if ranges and ranges[-1][1] + 1 == start:
        ranges[-1] = (ranges[-1][0], end)
    else:
        ranges.append((start, end))
