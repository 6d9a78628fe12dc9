"""`PackedEntries`: a sequence of entries that stay in the bytes that were read, until used (pure).

A run holds thousands of entries, of which a dispatcher takes some at a time: cutting them out when
they are sent keeps them in the processor's cache. Large entries are not copied at all: they are
views of the bytes that were read.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, overload

from pulsar_py.common.buffer import EntryBytes

LENT_BYTES: Final = 256 * 1024
"""Entries of at least this size are returned as views, smaller ones as copies. A view keeps all the
bytes that were read in memory, up to some megabytes."""

_NO_ENDS = array("I")


class PackedEntries(Sequence[EntryBytes]):
    """Entries that stand one after the other in `data` from `at`; keeps all of `data` in memory.

    A slice shares the data of the whole.
    """

    __slots__ = ("_at", "_count", "_data", "_ends", "_first", "_size")

    def __init__(
        self, data: EntryBytes, at: int, count: int, lengths: int | array[int], first: int = 0
    ) -> None:
        """Callers with a length for each entry use `of`.

        Args:
            data: The bytes that hold the entries.
            at: Where the first entry of the run begins in `data`.
            count: How many entries this sequence has.
            lengths: The length of every entry, if all are equal; else the run's boundaries as
                offsets from `at`, one more than the run has entries.
            first: The index in the run of this sequence's first entry, where `lengths` has
                boundaries.
        """
        self._data = data
        self._at = at
        self._count = count
        self._size, self._ends = (lengths, _NO_ENDS) if isinstance(lengths, int) else (-1, lengths)
        self._first = first

    @classmethod
    def of(cls, data: EntryBytes, at: int, lengths: array[int]) -> PackedEntries:
        """Entries of these lengths; `data` has to hold all of them."""
        count = len(lengths)
        if lengths and lengths.count(lengths[0]) == count:
            return cls(data, at, count, lengths[0])
        return cls(data, at, count, array("I", accumulate(lengths, initial=0)))

    @property
    def size_bytes(self) -> int:
        """The bytes of all entries together."""
        if self._size >= 0:
            return self._size * self._count
        return self._ends[self._first + self._count] - self._ends[self._first]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> EntryBytes: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[EntryBytes]: ...

    def __getitem__(self, index: int | slice) -> EntryBytes | Sequence[EntryBytes]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            return self._part(start, max(start, stop)) if step == 1 else self._cut()[index]
        place = range(self._count)[index]
        (entry,) = self._part(place, place + 1)
        return entry

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._cut() == list(other)

    __hash__ = None  # type: ignore[assignment] # equal to lists, which have no hash

    def __iter__(self) -> Iterator[EntryBytes]:
        return iter(self._cut())

    def up_to(self, place: int, count: int, max_bytes: int) -> PackedEntries:
        """Up to `count` entries from `place`: at least one, then while `max_bytes` allow."""
        if self._size > 0:
            count = min(count, max(max_bytes // self._size, 1))
        elif self._size < 0:
            ends, first = self._ends, self._first + place
            fitting = bisect_right(ends, ends[first] + max_bytes, lo=first) - 1 - first
            count = min(count, max(fitting, 1))
        return self._part(place, min(place + count, self._count))

    def heads(self, length: int) -> list[bytes]:
        """The first `length` bytes of each entry; the whole of an entry that isn't longer."""
        # Hot path: catch-up in `make bench`.
        size = self._size
        if size > length:
            return list(_heads(length, size, self._count).unpack_from(self._data, self._at))
        return [bytes(entry[:length]) for entry in self._cut()]

    def _part(self, start: int, stop: int) -> PackedEntries:
        size = self._size
        if size >= 0:
            return PackedEntries(self._data, self._at + start * size, stop - start, size)
        first = self._first + start
        return PackedEntries(self._data, self._at, stop - start, self._ends, first)

    def _cut(self) -> Sequence[EntryBytes]:
        # Hot path: benchmarks/micro_storage.py, catch-up.
        data, size, at = self._data, self._size, self._at
        if size >= LENT_BYTES:
            view = memoryview(data)
            return [
                view[begin : begin + size] for begin in range(at, at + size * self._count, size)
            ]
        if size >= 0:
            # One call cuts all of them; measured: 0.05 against 0.09 µs an entry.
            return list(_cutter(size, self._count).unpack_from(data, at))
        ends = self._ends[self._first : self._first + self._count + 1]
        if isinstance(data, bytes):
            return [data[at + begin : at + end] for begin, end in pairwise(ends)]
        view = memoryview(data)
        return [
            part if len(part := view[at + begin : at + end]) >= LENT_BYTES else bytes(part)
            for begin, end in pairwise(ends)
        ]


@lru_cache(maxsize=64)
def _cutter(size: int, count: int) -> struct.Struct:
    return struct.Struct(f"{size}s" * count)


@lru_cache(maxsize=64)
def _heads(length: int, size: int, count: int) -> struct.Struct:
    return struct.Struct(f"{length}s{size - length}x" * count)
