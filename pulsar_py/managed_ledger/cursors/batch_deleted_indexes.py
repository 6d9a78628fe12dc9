"""`BatchDeletedIndexes`: the unacknowledged messages of partly acknowledged batches (pure).

Each entry has a bit set in which a set bit is an unacknowledged message. An entry without any set
bit is removed at once: the cursor acknowledges it as a whole.

There can be millions, so they are packed: the entries of a ledger are cut into pages of 4,096,
and a page has a column for each width that its bit sets need (1, 2, 4, 8 ... bytes): sorted entry
ids within the page, two bytes each, and beside them the bit sets one after the other. A batch of
ten messages costs four bytes, and a change moves at most one column's bytes.

A page is stored as one segment: its columns as `encode_page` writes them, narrowest
first, all numbers little endian:

    2 bytes   width of this column's bit sets in bytes
    2 bytes   how many there are, less 1
    2 bytes   for each of them: its entry id within the page, ascending
    width     for each of them: its bits, bit i of the number is index i of the batch

Source: batchDeletedIndexes in ManagedCursorImpl.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from pulsar_py.common.ack_set import MAX_WORDS
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet

PAGE_SHIFT = 12
PAGE_ENTRIES = 1 << PAGE_SHIFT
_HEADER = struct.Struct("<HH")
_MAX_BITS = 64 * MAX_WORDS
_COLUMNS_BYTES = 2 * PAGE_ENTRIES + 32 * _HEADER.size  # the most for ids and headers of a page

PageKey = tuple[int, int]
"""Ledger id, and number of the page in it."""


class _Column:
    """Bit sets of one width. Owned by its page; never empty there."""

    __slots__ = ("data", "ids", "width")

    def __init__(self, width: int) -> None:
        self.width = width  # bytes a bit set
        self.ids = array("H")  # entry ids within the page, ascending
        self.data = bytearray()  # their bit sets, in the same order

    def find(self, offset: int) -> int:
        """The place of the entry in the column, -1 if it has none."""
        place = bisect_left(self.ids, offset)
        return place if place < len(self.ids) and self.ids[place] == offset else -1

    def bits_at(self, place: int) -> int:
        """The bit set at a place."""
        start = place * self.width
        return int.from_bytes(self.data[start : start + self.width], "little")

    def set_at(self, place: int, bits: int) -> None:
        """Replace the bit set at a place; it has to fit the column's width."""
        start = place * self.width
        self.data[start : start + self.width] = bits.to_bytes(self.width, "little")

    def insert(self, offset: int, bits: int) -> None:
        """Add an entry that the column does not have."""
        place = bisect_left(self.ids, offset)
        self.ids.insert(place, offset)
        start = place * self.width
        self.data[start:start] = bits.to_bytes(self.width, "little")

    def remove(self, first_place: int, end_place: int) -> None:
        """Take out the entries from one place to before another."""
        del self.ids[first_place:end_place]
        del self.data[first_place * self.width : end_place * self.width]


_Page = list[_Column]  # by width, ascending


def _width_for(bits: int) -> int:
    """The narrowest column that takes `bits`: a power of two, in bytes."""
    needed = (bits.bit_length() + 7) >> 3
    return 1 << max(needed - 1, 0).bit_length()


class BatchDeletedIndexes:
    """Bit sets of unacknowledged batch indexes by position."""

    __slots__ = ("_count", "_keys", "_pages")

    def __init__(self) -> None:
        self._pages: dict[PageKey, _Page] = {}  # none without entries
        self._keys: list[PageKey] = []  # sorted keys of _pages
        self._count = 0  # entries in all pages

    def __len__(self) -> int:
        """Entries with a bit set."""
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, position: Position) -> bool:
        return self.get(position) is not None

    def _find(self, position: Position) -> tuple[_Column, int] | None:
        page = self._pages.get((position[0], position[1] >> PAGE_SHIFT))
        if page is None:
            return None
        offset = position[1] & (PAGE_ENTRIES - 1)
        for column in page:
            place = column.find(offset)
            if place >= 0:
                return column, place
        return None

    def get(self, position: Position) -> int | None:
        """The bits of one entry, None if it has none."""
        found = self._find(position)
        return None if found is None else found[0].bits_at(found[1])

    def put(self, position: Position, bits: int) -> None:
        """Store the bits of one entry; at least one is set, and they fit `ack_set.MAX_WORDS`."""
        assert 0 < bits.bit_length() <= _MAX_BITS, (position, bits.bit_length())
        assert bits > 0, (position, bits.bit_length())
        found = self._find(position)
        if found is not None:
            column, place = found
            if bits.bit_length() <= column.width * 8:
                column.set_at(place, bits)
                return
            self.discard(position)
        width = _width_for(bits)
        key = (position[0], position[1] >> PAGE_SHIFT)
        page = self._pages.get(key)
        if page is None:
            page = self._new_page(key)
        self._column(page, width).insert(position[1] & (PAGE_ENTRIES - 1), bits)
        self._count += 1

    def _new_page(self, key: PageKey) -> _Page:
        page: _Page = []
        self._pages[key] = page
        insort(self._keys, key)
        return page

    @staticmethod
    def _column(page: _Page, width: int) -> _Column:
        """The page's column of that width, made if missing."""
        place = bisect_left(page, width, key=lambda column: column.width)
        if place == len(page) or page[place].width != width:
            page.insert(place, _Column(width))
        return page[place]

    def discard(self, position: Position) -> bool:
        """Forget one entry; False if it was not there."""
        found = self._find(position)
        if found is None:
            return False
        column, place = found
        column.remove(place, place + 1)
        self._count -= 1
        if not column.ids:
            self._drop_empty((position[0], position[1] >> PAGE_SHIFT))
        return True

    def _drop_empty(self, key: PageKey) -> None:
        page = self._pages[key]
        page[:] = [column for column in page if column.ids]
        if not page:
            self._drop_between(bisect_left(self._keys, key), bisect_right(self._keys, key))

    def _drop_between(self, first: int, end: int) -> None:
        """Forget the pages with these places in `_keys`."""
        for key in self._keys[first:end]:
            self._count -= sum(len(column.ids) for column in self._pages.pop(key))
        del self._keys[first:end]

    def remove_through(self, upper: Position) -> None:
        """Forget all entries at or below `upper`."""
        if not self._count:
            return
        key = (upper[0], max(upper[1] + 1, 0) >> PAGE_SHIFT)
        self._drop_between(0, bisect_left(self._keys, key))
        if key in self._pages:
            self._cut(key, 0, (upper[1] + 1) & (PAGE_ENTRIES - 1))

    def _cut(self, key: PageKey, first: int, end: int) -> None:
        """Forget a page's entries from `first` to before `end`, as ids within it."""
        for column in self._pages[key]:
            start, stop = bisect_left(column.ids, first), bisect_left(column.ids, end)
            column.remove(start, stop)
            self._count -= stop - start
        self._drop_empty(key)

    def truncate_ledger(self, ledger_id: int, entries_count: int) -> None:
        """Forget a ledger's entries from `entries_count` on."""
        key = (ledger_id, entries_count >> PAGE_SHIFT)
        following = bisect_right(self._keys, key)
        self._drop_between(following, bisect_left(self._keys, (ledger_id + 1, 0)))
        if key in self._pages:
            self._cut(key, entries_count & (PAGE_ENTRIES - 1), PAGE_ENTRIES)

    def remove_ledger(self, ledger_id: int) -> None:
        """Forget all entries of one ledger."""
        self.truncate_ledger(ledger_id, 0)

    def discard_members_of(self, positions: PositionRangeSet, ledger_id: int | None = None) -> None:
        """Forget the entries that are in the set, too; of one ledger only if it is given."""
        keys = self._keys[:]
        if ledger_id is not None:
            first = bisect_left(keys, (ledger_id, 0))
            keys = keys[first : bisect_left(keys, (ledger_id + 1, 0))]
        for owner_id, number in keys:
            base = number << PAGE_SHIFT
            for entry_id in positions.present_in(owner_id, base, base + PAGE_ENTRIES - 1):
                self.discard(Position(owner_id, entry_id))

    def ledger_ids(self) -> list[int]:
        """Ledgers with entries, ascending."""
        return sorted({ledger_id for ledger_id, _ in self._keys})

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether any entry of the ledger has a bit set."""
        place = bisect_left(self._keys, (ledger_id, 0))
        return place < len(self._keys) and self._keys[place][0] == ledger_id

    def clear(self) -> None:
        """Forget everything."""
        self._pages.clear()
        self._keys.clear()
        self._count = 0

    def items(self) -> Iterator[tuple[Position, int]]:
        """All entries and their bits, ascending. They must not change while iterating."""
        for ledger_id, number in self._keys:
            base = number << PAGE_SHIFT
            places = sorted(
                (offset, index, place)
                for index, column in enumerate(self._pages[ledger_id, number])
                for place, offset in enumerate(column.ids)
            )
            for offset, index, place in places:
                bits = self._pages[ledger_id, number][index].bits_at(place)
                yield Position(ledger_id, base + offset), bits

    # Pages as they are stored

    def page_keys(self) -> list[PageKey]:
        """The pages that have entries, ascending."""
        return list(self._keys)

    def page_entries_count(self, key: PageKey) -> int:
        """Entries of one page."""
        return sum(len(column.ids) for column in self._pages.get(key, ()))

    def size_bytes(self) -> int:
        """Bytes of all bit sets."""
        return sum(len(column.data) for page in self._pages.values() for column in page)

    def page_size_bytes(self, key: PageKey) -> int:
        """Bytes of the bit sets of one page."""
        return sum(len(column.data) for column in self._pages.get(key, ()))

    def encode_page(self, key: PageKey, max_bytes: int | None = None) -> tuple[bytes, int]:
        """The stored form of one page and the number of entries in it; empty if there are none.

        With `max_bytes` the highest entries are left out until the others fit.
        """
        end = PAGE_ENTRIES
        if max_bytes is not None and self.page_size_bytes(key) > max_bytes - _COLUMNS_BYTES:
            end = self._end_that_fits(key, max_bytes - _COLUMNS_BYTES)
        parts: list[bytes] = []
        entries_count = 0
        for column in self._pages.get(key, ()):
            count = bisect_left(column.ids, end)
            if count:
                entries_count += count
                parts.append(_HEADER.pack(column.width, count - 1))
                parts.append(_little_endian(column.ids[:count]).tobytes())
                parts.append(bytes(memoryview(column.data)[: count * column.width]))
        return b"".join(parts), entries_count

    def _end_that_fits(self, key: PageKey, room_bytes: int) -> int:
        """The lowest id within the page that does not fit any more."""
        widths = sorted(
            (offset, column.width) for column in self._pages[key] for offset in column.ids
        )
        for offset, width in widths:
            room_bytes -= width
            if room_bytes < 0:
                return offset
        return PAGE_ENTRIES

    def merge_page(self, key: PageKey, data: bytes) -> list[Position]:
        """Add an encoded page; an entry that exists already keeps the bits that are set in both.

        Returns the entries without any set bit left; they are removed.

        Raises:
            CorruptDataError: The page is malformed.
        """
        columns = _decode_columns(key, data)
        if key not in self._pages:
            if columns:
                self._new_page(key).extend(columns)
                self._count += sum(len(column.ids) for column in columns)
            return []
        finished: list[Position] = []
        base = key[1] << PAGE_SHIFT
        for column in columns:
            for place, offset in enumerate(column.ids):
                position = Position(key[0], base + offset)
                known = self.get(position)
                waiting = column.bits_at(place) & (-1 if known is None else known)
                if waiting:
                    self.put(position, waiting)
                else:
                    self.discard(position)
                    finished.append(position)
        return finished

    def check(self) -> None:
        """Assert the invariants; for tests."""
        assert self._keys == sorted(self._pages)
        columns = [column for page in self._pages.values() for column in page]
        assert all(self._pages.values())
        assert self._count == sum(len(column.ids) for column in columns)
        for page in self._pages.values():
            widths = [column.width for column in page]
            assert widths == sorted(set(widths))
        for column in columns:
            ids = list(column.ids)
            assert ids
            assert ids == sorted(set(ids))
            assert len(column.data) == len(ids) * column.width
        assert all(bits > 0 for _, bits in self.items())


def _little_endian(ids: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return ids
    swapped = array("H", ids)
    swapped.byteswap()
    return swapped


def _decode_columns(key: PageKey, data: bytes) -> list[_Column]:
    """The columns of a stored page."""
    columns: list[_Column] = []
    place = 0
    while place < len(data):
        if len(data) - place < _HEADER.size:
            raise CorruptDataError(f"batches of page {key}: the data ends early, at byte {place}")
        width, count = _HEADER.unpack_from(data, place)
        count += 1
        column = _Column(width)
        ids_end = place + _HEADER.size + 2 * count
        end = ids_end + width * count
        if not width or width & (width - 1) or end > len(data):
            raise CorruptDataError(
                f"batches of page {key}: the column at byte {place} is malformed"
            )
        column.ids.frombytes(data[place + _HEADER.size : ids_end])
        column.ids = _little_endian(column.ids)
        column.data += data[ids_end:end]
        if column.ids[-1] >= PAGE_ENTRIES:
            raise CorruptDataError(
                f"batches of page {key}: entry {column.ids[-1]} is outside of the page, "
                f"which has {PAGE_ENTRIES} entries"
            )
        columns.append(column)
        place = end
    return columns
