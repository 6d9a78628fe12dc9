"""`PositionRangeSet`: a set of entries, one roaring bitmap a ledger (pure).

A cursor may have millions of acknowledgement holes, so no object stands for a hole or an entry: a
ledger costs one compressed bitmap of its entry ids, whatever the order of the acknowledgements.
Ranges, as `(lower, upper]` of positions, exist only while someone iterates; they never span
ledgers.

What always holds: no ledger is kept with an empty bitmap, and `len` is exact. Entry ids are below
2^32 (BookKeeper's limit for a ledger is lower); callers check ids of clients before.

Source: LongPairRangeSet, ConcurrentOpenLongPairRangeSet in Pulsar's managed-ledger.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pyroaring import BitMap

from pulsar_py.common import ack_set
from pulsar_py.common.position import Position

_MAX_ENTRIES = 2**32
_WORD_BITS = 64
_WORD_BYTES = 8
_BITMAP_BYTES = 250  # a bitmap without containers, its Python object and its place in the set
_CONTAINER_BYTES = 32  # a container without its values


class PositionRange(NamedTuple):
    """Entries `first` to `last` of one ledger, both included."""

    ledger_id: int
    first: int
    last: int

    def __str__(self) -> str:
        """Pulsar's text form `(ledger:first-1..ledger:last]`."""
        return f"({self.ledger_id}:{self.first - 1}..{self.ledger_id}:{self.last}]"


class StoredPage(NamedTuple):
    """A part of one ledger's entries, as it is stored."""

    data: bytes
    entries_count: int
    ranges_count: int


class PositionRangeSet:
    """A set of positions that answers in ranges."""

    __slots__ = ("_bitmaps", "_count", "_ledger_ids")

    def __init__(self) -> None:
        self._bitmaps: dict[int, BitMap] = {}  # ledger id -> entry ids, never an empty one
        self._ledger_ids: list[int] = []  # sorted keys of _bitmaps
        self._count = 0  # entries in all bitmaps

    def __len__(self) -> int:
        """Positions in the set."""
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, position: Position) -> bool:
        bitmap = self._bitmaps.get(position[0])
        # Foreign ids may be negative or too large for a bitmap to be asked.
        return bitmap is not None and 0 <= position[1] < _MAX_ENTRIES and position[1] in bitmap

    def __iter__(self) -> Iterator[Position]:
        """All positions, ascending. The set must not change while iterating."""
        for ledger_id in self._ledger_ids:
            for entry_id in self._bitmaps[ledger_id]:
                yield Position(ledger_id, entry_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionRangeSet) and self._bitmaps == other._bitmaps

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __str__(self) -> str:
        return "[" + ",".join(str(found) for found in self.ranges()) + "]"

    def add(self, position: Position) -> bool:
        """Add one position; False if it was there."""
        ledger_id, entry_id = position
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            bitmap = self._new_bitmap(ledger_id)
        elif entry_id in bitmap:
            return False
        bitmap.add(entry_id)
        self._count += 1
        return True

    def add_range(self, ledger_id: int, first: int, last: int) -> int:
        """Add entries `first` to `last`, both included; returns how many are new."""
        if last < first:
            return 0
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            bitmap = self._new_bitmap(ledger_id)
        added = last - first + 1 - bitmap.range_cardinality(first, last + 1)
        bitmap.add_range(first, last + 1)
        self._count += added
        return added

    def add_entries(self, ledger_id: int, entry_ids: Iterable[int], *, after: int) -> BitMap:
        """Add those entries of one ledger that are behind `after`; returns those that are new."""
        # Hot path: benchmarks/micro_acks.
        added = BitMap(entry_ids)
        if after >= 0:
            added.remove_range(0, after + 1)
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is not None:
            added -= bitmap
        if added:
            if bitmap is None:
                bitmap = self._new_bitmap(ledger_id)
            bitmap |= added
            self._bitmaps[ledger_id] = bitmap
            self._count += len(added)
        return added

    def add_all(self, other: PositionRangeSet) -> None:
        """Add all positions of another set."""
        for ledger_id, bitmap in other._bitmaps.items():
            ours = self._bitmaps.get(ledger_id)
            if ours is None:
                ours = self._new_bitmap(ledger_id)
            before = len(ours)
            ours |= bitmap
            self._bitmaps[ledger_id] = ours
            self._count += len(ours) - before

    def _new_bitmap(self, ledger_id: int) -> BitMap:
        bitmap = self._bitmaps[ledger_id] = BitMap()
        insort(self._ledger_ids, ledger_id)
        return bitmap

    def discard(self, position: Position) -> bool:
        """Take out one position; False if it was not there."""
        if position not in self:
            return False
        bitmap = self._bitmaps[position[0]]
        bitmap.discard(position[1])
        self._count -= 1
        if not bitmap:
            self._drop(position[0])
        return True

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether any entry of the ledger is in the set."""
        return ledger_id in self._bitmaps

    def ledger_ids(self) -> list[int]:
        """Ledgers with entries in the set, ascending."""
        return list(self._ledger_ids)

    def count_in_ledger(self, ledger_id: int) -> int:
        """Entries of one ledger."""
        bitmap = self._bitmaps.get(ledger_id)
        return 0 if bitmap is None else len(bitmap)

    def count_through(self, upper: Position) -> int:
        """Positions at or below `upper`."""
        total = 0
        for ledger_id in self._ledger_ids:
            if ledger_id > upper.ledger_id:
                break
            bitmap = self._bitmaps[ledger_id]
            if ledger_id < upper.ledger_id:
                total += len(bitmap)
            elif upper.entry_id >= 0:
                total += bitmap.range_cardinality(0, upper.entry_id + 1)
        return total

    def count_between(self, ledger_id: int, first: int, last: int) -> int:
        """Positions of a ledger from `first` to `last`."""
        bitmap = self._bitmaps.get(ledger_id)
        return 0 if bitmap is None else int(bitmap.range_cardinality(first, last + 1))

    def run_end(self, ledger_id: int, entry_id: int) -> int:
        """Last entry of the unbroken run that starts at `entry_id`; `entry_id - 1` if not in it."""
        return _run_end(self._bitmaps.get(ledger_id), entry_id)

    def joined_run_end(self, other: PositionRangeSet, ledger_id: int, entry_id: int) -> int:
        """As `run_end`, of entries that are in this set or in `other`."""
        ours, theirs = self._bitmaps.get(ledger_id), other._bitmaps.get(ledger_id)
        if ours is None or theirs is None:
            return _run_end(theirs if ours is None else ours, entry_id)
        if entry_id not in ours and entry_id not in theirs:
            return entry_id - 1
        return _run_end(ours | theirs, entry_id)

    def remove_through(self, upper: Position) -> int:
        """Take out everything at or below `upper`; returns how many that were."""
        if not self._count:
            return 0
        removed = 0
        while self._ledger_ids and self._ledger_ids[0] < upper.ledger_id:
            removed += len(self._bitmaps[self._ledger_ids[0]])
            self._drop(self._ledger_ids[0])
        bitmap = self._bitmaps.get(upper.ledger_id)
        if bitmap is not None and upper.entry_id >= 0:
            removed += bitmap.range_cardinality(0, upper.entry_id + 1)
            bitmap.remove_range(0, upper.entry_id + 1)
            if not bitmap:
                self._drop(upper.ledger_id)
        self._count -= removed
        return removed

    def truncate_ledger(self, ledger_id: int, entries_count: int) -> int:
        """Take out a ledger's entries from `entries_count` on; returns how many that were."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return 0
        before = len(bitmap)
        bitmap.remove_range(entries_count, _MAX_ENTRIES)
        removed = before - len(bitmap)
        self._count -= removed
        if not bitmap:
            self._drop(ledger_id)
        return removed

    def remove_ledger(self, ledger_id: int) -> int:
        """Take out all entries of one ledger; returns how many that were."""
        removed = self.count_in_ledger(ledger_id)
        if removed:
            self._count -= removed
            self._drop(ledger_id)
        return removed

    def _drop(self, ledger_id: int) -> None:
        del self._bitmaps[ledger_id]
        self._ledger_ids.remove(ledger_id)

    def clear(self) -> None:
        """Take out everything."""
        self._bitmaps.clear()
        self._ledger_ids.clear()
        self._count = 0

    def copy(self) -> PositionRangeSet:
        """An independent set with the same positions."""
        other = PositionRangeSet()
        other._bitmaps = {ledger_id: bitmap.copy() for ledger_id, bitmap in self._bitmaps.items()}
        other._ledger_ids = list(self._ledger_ids)
        other._count = self._count
        return other

    def common_with(self, other: PositionRangeSet) -> PositionRangeSet:
        """A new set of the positions that both have."""
        return self._of_bitmaps(
            (ledger_id, bitmap & other._bitmaps.get(ledger_id, BitMap()))
            for ledger_id, bitmap in self._bitmaps.items()
        )

    def among(self, entry_ids: Mapping[int, array[int]]) -> PositionRangeSet:
        """A new set of those entries, by ledger and in any order, that are in this one."""
        # Hot path: acknowledge with a receipt. A bitmap takes the memory of an array as it is.
        return self._of_bitmaps(
            (ledger_id, BitMap(asked) & self._bitmaps[ledger_id])
            for ledger_id, asked in entry_ids.items()
            if ledger_id in self._bitmaps
        )

    def without(self, other: PositionRangeSet) -> PositionRangeSet:
        """A new set of the positions that `other` has not."""
        return self._of_bitmaps(
            (ledger_id, bitmap - other._bitmaps.get(ledger_id, BitMap()))
            for ledger_id, bitmap in self._bitmaps.items()
        )

    @staticmethod
    def _of_bitmaps(bitmaps: Iterable[tuple[int, BitMap]]) -> PositionRangeSet:
        found = PositionRangeSet()
        found._bitmaps = {ledger_id: bitmap for ledger_id, bitmap in bitmaps if bitmap}
        found._ledger_ids = sorted(found._bitmaps)
        found._count = sum(map(len, found._bitmaps.values()))
        return found

    def ranges_count(self) -> int:
        """Ranges in the set: entries whose successor is missing."""
        return sum(self._ranges_in(bitmap) for bitmap in self._bitmaps.values())

    @staticmethod
    def _ranges_in(bitmap: BitMap) -> int:
        return len(bitmap) - bitmap.intersection_cardinality(bitmap.shift(-1))

    def ranges_count_in_ledger(self, ledger_id: int) -> int:
        """Ranges of one ledger."""
        bitmap = self._bitmaps.get(ledger_id)
        return 0 if bitmap is None else self._ranges_in(bitmap)

    def ranges(self) -> Iterator[PositionRange]:
        """All ranges, ascending. The set must not change while iterating."""
        for ledger_id in self._ledger_ids:
            yield from self.ranges_in_ledger(ledger_id)

    def ranges_in_ledger(self, ledger_id: int) -> Iterator[PositionRange]:
        """The ranges of one ledger, ascending."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return
        starts = bitmap - bitmap.shift(1)
        ends = bitmap - bitmap.shift(-1)
        for first, last in zip(starts, ends, strict=True):
            yield PositionRange(ledger_id, first, last)

    def missing_in(self, ledger_id: int, first: int, last: int) -> Iterator[int]:
        """Entry ids from `first` to `last` that are not in the set."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return iter(range(first, last + 1))
        return iter(BitMap(range(first, last + 1)) - bitmap)

    def present_in(self, ledger_id: int, first: int, last: int) -> Iterator[int]:
        """Entry ids from `first` to `last` that are in the set."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return iter(())
        return iter(BitMap(range(first, last + 1)) & bitmap)

    # Pages of a ledger, for callers that store a set in parts

    def page_numbers(self, ledger_id: int, shift: int) -> list[int]:
        """The pages of `2 ** shift` entries of one ledger in which there are any."""
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return []
        last = bitmap.max() >> shift
        return [
            number
            for number in range(bitmap.min() >> shift, last + 1)
            if bitmap.range_cardinality(number << shift, (number + 1) << shift)
        ]

    def page(self, ledger_id: int, number: int, shift: int) -> StoredPage:
        """The entries of one page, in the portable form of roaring bitmaps."""
        bitmap = self._bitmaps.get(ledger_id, BitMap())
        part = bitmap & BitMap(range(number << shift, (number + 1) << shift))
        part.run_optimize()
        return StoredPage(part.serialize(), len(part), self._ranges_in(part))

    def serialized(self, ledger_id: int) -> bytes:
        """All entries of one ledger, in the portable form of roaring bitmaps."""
        return self._bitmaps.get(ledger_id, BitMap()).serialize()

    def lowest(self, ranges_count: int, shift: int) -> PositionRangeSet:
        """A copy of the lowest pages: as few as have that many ranges, or all."""
        part = PositionRangeSet()
        for ledger_id in self._ledger_ids:
            for number in self.page_numbers(ledger_id, shift):
                if ranges_count <= 0:
                    return part
                page = self.page(ledger_id, number, shift)
                ranges_count -= page.ranges_count
                part.add_serialized(ledger_id, page.data)
        return part

    def size_bytes(self) -> int:
        """An estimate of the set's memory: the bitmaps' own figures and a fixed part for each."""
        return sum(_bitmap_bytes(bitmap) for bitmap in self._bitmaps.values())

    def words_count(self) -> int:
        """Words that all ledgers together take as `words`."""
        return sum(bitmap.max() // _WORD_BITS + 1 for bitmap in self._bitmaps.values())

    def add_serialized(self, ledger_id: int, data: bytes) -> int:
        """Add the entries of a `page`; returns how many are new.

        Raises:
            ValueError: It is not a bitmap.
        """
        added = BitMap.deserialize(data)
        if not added:
            return 0
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            bitmap = self._new_bitmap(ledger_id)
        before = len(bitmap)
        bitmap |= added
        self._bitmaps[ledger_id] = bitmap
        count = len(bitmap) - before
        self._count += count
        return count

    def words(self, ledger_id: int) -> list[int]:
        """One ledger as signed 64-bit words, bit `e % 64` of word `e // 64` for entry `e`.

        Trailing zero words are left out. Source: BitSet.toLongArray in Java.
        """
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            return []
        data = bytearray((bitmap.max() // _WORD_BITS + 1) * _WORD_BYTES)
        for _, first, last in self.ranges_in_ledger(ledger_id):
            head, tail = first >> 3, last >> 3
            head_bits, tail_bits = 0xFF << (first & 7) & 0xFF, 0xFF >> (7 - (last & 7))
            if head == tail:
                data[head] |= head_bits & tail_bits
                continue
            data[head] |= head_bits
            data[head + 1 : tail] = b"\xff" * (tail - head - 1)
            data[tail] |= tail_bits
        return ack_set.to_words(int.from_bytes(data, "little"))

    def add_words(self, ledger_id: int, words: Iterable[int]) -> None:
        """Add the entries whose bits are set in the words of one ledger; the reverse of `words`."""
        entry_ids: list[int] = []
        for index, word in enumerate(words):
            number = word & (2**64 - 1)
            base = index * _WORD_BITS
            while number:
                low = number & -number
                entry_ids.append(base + low.bit_length() - 1)
                number ^= low
        if not entry_ids:
            return
        bitmap = self._bitmaps.get(ledger_id)
        if bitmap is None:
            bitmap = self._new_bitmap(ledger_id)
        before = len(bitmap)
        bitmap.update(entry_ids)
        self._count += len(bitmap) - before

    def check(self) -> None:
        """Assert the invariants; for tests."""
        assert self._ledger_ids == sorted(self._bitmaps)
        assert all(self._bitmaps.values())
        assert self._count == sum(len(bitmap) for bitmap in self._bitmaps.values())


def _run_end(bitmap: BitMap | None, entry_id: int) -> int:
    """Last entry of the unbroken run that starts at `entry_id`; `entry_id - 1` if not in it."""
    if bitmap is None or entry_id not in bitmap:
        return entry_id - 1
    # Double the step while the stretch has no gap, then halve it: each test is one count inside
    # the bitmap, so a run of a million entries costs some forty of them.
    whole, step = entry_id, 1
    while bitmap.contains_range(whole + 1, whole + 1 + step):
        whole += step
        step *= 2
    while step > 1:
        step //= 2
        if bitmap.contains_range(whole + 1, whole + 1 + step):
            whole += step
    return whole


def _bitmap_bytes(bitmap: BitMap) -> int:
    numbers = bitmap.get_statistics()
    values_bytes = (
        numbers["n_bytes_array_containers"]
        + numbers["n_bytes_run_containers"]
        + numbers["n_bytes_bitset_containers"]
    )
    return values_bytes + numbers["n_containers"] * _CONTAINER_BYTES + _BITMAP_BYTES
