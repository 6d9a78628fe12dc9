"""Bytes of an index table: an immutable file of keys and values, sorted, in checksummed pages.

One table holds two kinds of values: for each ledger first its `LedgerRecord`, then the places of
its runs of entries. Newer tables come before older ones; a record that says "deleted" hides all
keys of the ledger in older tables.

All numbers are big-endian. A key has 16 bytes and sorts as bytes:

    u64  ledger id
    u64  0 for the ledger's record, else the id of a run's first entry plus 1

The value of a record is a `LedgerRecord`, that of a run has 20 bytes:

    u32  entry log id       u64  offset in it
    u32  bytes of the run   u32  count of entries

`index/<id>` is a row of pages, then the sparse index, the set of ledgers and the footer. A page,
normally of up to 4096 bytes (more if one value needs it):

    u32  CRC32C of everything that follows in the page
    u32  count n
    u64  offset of this page in the file
    n times 16 bytes key; n times u32 end of the value, counted from the values' start; the values

The sparse index has for each page its first key and u64 its offset. The set of ledgers has the ids
of all ledgers with keys in the table, so that a look-up of another ledger does not read it:

    u32  CRC32C of everything that follows in the set
    a roaring bitmap of 64-bit numbers in its portable format: ids of ledgers

The footer has 56 bytes:

    8s   magic b"PLSRINDX"      u32  version, 1
    u32  CRC32C of the sparse index
    u64  the table's id         u64  offset of the sparse index
    u64  count of pages         u64  count of keys
    u32  CRC32C of the footer before it
    u32  bytes of the set of ledgers; 0 in a table without one, which may have any ledger

A table becomes part of the index when the manifest names it, after it was synced. So a torn one
that is named is damage, and one that is not named is left over from a crash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from msgspec import Struct
from pyroaring import BitMap64

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.hashing import crc32c

PAGE_BYTES = 4096
TABLE_MAGIC = b"PLSRINDX"
VERSION = 1

KEY_BYTES = 16
_KEY = struct.Struct(">QQ")
_PAGE = struct.Struct(">IIQ")
_OFFSET = struct.Struct(">Q")
SPARSE_BYTES = KEY_BYTES + _OFFSET.size
_FOOTER = struct.Struct(">8sIIQQQQ")
_FOOTER_END = struct.Struct(">II")
FOOTER_BYTES = _FOOTER.size + _FOOTER_END.size

Item = tuple[bytes, bytes]


def record_key(ledger_id: int) -> bytes:
    """Key of a ledger's record: the first of all its keys."""
    return _KEY.pack(ledger_id, 0)


def run_key(ledger_id: int, first_entry_id: int) -> bytes:
    """Key of a run; also the upper bound of the runs that may hold that entry."""
    return _KEY.pack(ledger_id, first_entry_id + 1)


def split_key(key: bytes) -> tuple[int, int]:
    """Ledger id, and a run's first entry id or -1 for the record."""
    ledger_id, place = _KEY.unpack(key)
    return ledger_id, place - 1


def ledger_of(key: bytes) -> int:
    """Ledger id of a key."""
    return int.from_bytes(key[:8], "big")


def floor(keys: bytes, stride: int, count: int, key: bytes, start: int = 0) -> int:
    """Index of the last of `count` sorted keys that is not above `key`; -1 if there is none.

    The keys stand every `stride` bytes in `keys`, the first at `start`.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        at = start + stride * middle
        if keys[at : at + KEY_BYTES] <= key:
            low = middle + 1
        else:
            high = middle
    return low - 1


class Page:
    """One page as it is on disk, searched without being taken apart."""

    __slots__ = ("_data", "_values_at", "count")

    def __init__(self, data: bytes, path: str, offset: int) -> None:
        """Check the bytes of the page at `offset` of `path`.

        Raises:
            CorruptDataError: They are not that page, or damaged.
        """
        if len(data) < _PAGE.size:
            raise CorruptDataError(f"{path}: offset {offset}: the page ends early")
        checksum, count, own_offset = _PAGE.unpack_from(data)
        if crc32c(memoryview(data)[4:]) != checksum or own_offset != offset:
            raise CorruptDataError(f"{path}: offset {offset}: the checksum does not match")
        self._data = data
        self.count = count
        self._values_at = _PAGE.size + (KEY_BYTES + 4) * count

    @property
    def size_bytes(self) -> int:
        """Bytes of the page."""
        return len(self._data)

    def floor(self, key: bytes) -> int:
        """Index of the last key that is not above `key`, -1 if there is none."""
        return floor(self._data, KEY_BYTES, self.count, key, _PAGE.size)

    def key(self, index: int) -> bytes:
        """The key at an index."""
        at = _PAGE.size + KEY_BYTES * index
        return self._data[at : at + KEY_BYTES]

    def value(self, index: int) -> bytes:
        """The value at an index."""
        ends_at = _PAGE.size + KEY_BYTES * self.count
        start = self._end(ends_at, index - 1) if index else 0
        end = self._end(ends_at, index)
        return self._data[self._values_at + start : self._values_at + end]

    def items(self, start: int = 0) -> Iterator[Item]:
        """Keys and values in order, from an index on."""
        data, count = self._data, self.count
        ends = struct.unpack_from(f">{count}I", data, _PAGE.size + KEY_BYTES * count)
        at = _PAGE.size + KEY_BYTES * start
        value_at = self._values_at + (ends[start - 1] if start else 0)
        for end in ends[start:]:
            value_end = self._values_at + end
            yield data[at : at + KEY_BYTES], data[value_at:value_end]
            at += KEY_BYTES
            value_at = value_end

    def _end(self, ends_at: int, index: int) -> int:
        at = ends_at + 4 * index
        return int.from_bytes(self._data[at : at + 4], "big")


def cut_pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Sorted items in portions of one page each."""
    start, size = 0, _PAGE.size
    for index, (_, value) in enumerate(items):
        needed = KEY_BYTES + 4 + len(value)
        if size + needed > PAGE_BYTES and index > start:
            yield items[start:index]
            start, size = index, _PAGE.size
        size += needed
    if start < len(items):
        yield items[start:]


def encode_page(items: Sequence[Item], offset: int) -> bytes:
    """The page that stands at `offset`."""
    ends = []
    end = 0
    for _, value in items:
        end += len(value)
        ends.append(end)
    body = b"".join(
        (
            _PAGE.pack(0, len(items), offset)[4:],
            *(key for key, _ in items),
            struct.pack(f">{len(ends)}I", *ends),
            *(value for _, value in items),
        )
    )
    return crc32c(body).to_bytes(4, "big") + body


def sparse_entry(first_key: bytes, offset: int) -> bytes:
    """One page's part of the sparse index."""
    return first_key + _OFFSET.pack(offset)


def encode_ledger_set(ledger_ids: BitMap64) -> bytes:
    """The stored form of the ids of all ledgers that a table has keys of."""
    data = ledger_ids.serialize()
    return crc32c(data).to_bytes(4, "big") + data


def decode_ledger_set(data: bytes, path: str, offset: int) -> BitMap64:
    """Decode the set of ledgers at `offset` of `path`.

    Raises:
        CorruptDataError: The bytes are not a set of ledgers, or damaged.
    """
    # A set without any bytes is refused first: its checksum, 0, would match bytes never written.
    if not data[4:] or int.from_bytes(data[:4], "big") != crc32c(memoryview(data)[4:]):
        raise CorruptDataError(f"{path}: offset {offset}: the set of ledgers does not match")
    return BitMap64.deserialize(data[4:])


class Footer(Struct, frozen=True):
    """Last bytes of a table."""

    table_id: int
    sparse_offset: int
    pages_count: int
    keys_count: int
    sparse_checksum: int
    ledger_set_bytes: int = 0

    @property
    def ledger_set_offset(self) -> int:
        """Offset of the set of ledgers, if there is one."""
        return self.sparse_offset + SPARSE_BYTES * self.pages_count

    def encode(self) -> bytes:
        """The stored form."""
        data = _FOOTER.pack(
            TABLE_MAGIC,
            VERSION,
            self.sparse_checksum,
            self.table_id,
            self.sparse_offset,
            self.pages_count,
            self.keys_count,
        )
        return data + _FOOTER_END.pack(crc32c(data), self.ledger_set_bytes)

    @classmethod
    def decode(cls, data: bytes, path: str) -> Footer:
        """Read the last bytes of `path`.

        Raises:
            CorruptDataError: They are not a footer; of another version it is a FormatVersionError.
        """
        if len(data) != FOOTER_BYTES or data[:8] != TABLE_MAGIC:
            raise CorruptDataError(f"{path}: no index table, or its end is missing")
        _, version, sparse, table_id, offset, pages, keys = _FOOTER.unpack_from(data)
        if version != VERSION:
            raise FormatVersionError(path, "index table", version, VERSION)
        checksum, ledger_set_bytes = _FOOTER_END.unpack_from(data, _FOOTER.size)
        if checksum != crc32c(data[: _FOOTER.size]):
            raise CorruptDataError(f"{path}: the footer's checksum does not match")
        return cls(table_id, offset, pages, keys, sparse, ledger_set_bytes)


class SparseIndex:
    """First key and offset of each page: the 24 bytes of a page that stay in memory."""

    __slots__ = ("_data", "_end", "pages_count")

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        # Offset behind the last page.
        self._end = end
        self.pages_count = len(data) // SPARSE_BYTES

    def page_for(self, key: bytes) -> int:
        """Number of the page that holds the last key not above `key`; -1 if none does."""
        return floor(self._data, SPARSE_BYTES, self.pages_count, key)

    def extent(self, page_number: int) -> tuple[int, int]:
        """Offset and bytes of a page."""
        offset = self._offset(page_number)
        is_last = page_number + 1 == self.pages_count
        return offset, (self._end if is_last else self._offset(page_number + 1)) - offset

    def _offset(self, page_number: int) -> int:
        at = SPARSE_BYTES * page_number + KEY_BYTES
        return int.from_bytes(self._data[at : at + 8], "big")
