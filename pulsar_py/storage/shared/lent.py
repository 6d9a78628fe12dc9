"""Lent entries: large entries that stay in the appender's memory until they are confirmed.

A caller that appends a view, or several pieces, keeps the memory and must not change it until the
entry is confirmed or failed. Entries below `LENT_BYTES` are copied at once, which is cheaper than
counting the memory that they keep alive. The journal writes the pieces of a larger one without a
copy; when it is confirmed the write cache copies it once, or keeps the view itself if that is
read-only and nearly all of its buffer.

`Pins` counts the memory that lent entries keep alive: a view of a kilobyte keeps its whole buffer.
Each buffer counts once, with its whole size, however many entries are in it. Pure.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.ledgers.store import LentEntry

NEARLY_ALL: Final = 15 / 16
"""A view that is at least this share of its buffer is kept instead of copied. The share is above
one half, so of two disjoint views of one buffer at most one is kept."""


class Lent:
    """A large entry in its owner's memory."""

    __slots__ = ("pieces", "size_bytes")

    def __init__(self, pieces: tuple[EntryBytes, ...], size_bytes: int) -> None:
        self.pieces = pieces
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def owned(self) -> tuple[EntryBytes, int]:
        """The entry in memory that never changes, and the bytes of that memory beyond the entry."""
        if len(self.pieces) == 1:
            (piece,) = self.pieces
            if isinstance(piece, bytes):
                return piece, 0
            buffer_bytes = _buffer(piece)[1]
            if piece.readonly and self.size_bytes >= NEARLY_ALL * buffer_bytes:
                return piece, buffer_bytes - self.size_bytes
        return b"".join(self.pieces), 0


def taken(data: LentEntry) -> bytes | Lent:
    """An entry in the form that waits for the journal: a copy of a small one, else a `Lent`."""
    pieces = data if isinstance(data, tuple) else (data,)
    size_bytes = sum(map(len, pieces))
    if size_bytes < LENT_BYTES:
        return b"".join(pieces)
    return Lent(pieces, size_bytes)


class _Pinned:
    """A buffer that holds lent entries."""

    __slots__ = ("buffer", "buffer_bytes", "entries_bytes", "pieces_count")

    def __init__(self, buffer: object, buffer_bytes: int) -> None:
        self.buffer = buffer  # a reference, so that its `id` is not given to another object
        self.buffer_bytes = buffer_bytes
        self.entries_bytes = 0
        self.pieces_count = 0

    @property
    def rest_bytes(self) -> int:
        """Bytes of the buffer beyond its entries."""
        return max(self.buffer_bytes - self.entries_bytes, 0) if self.pieces_count else 0


class Pins:
    """The buffers that lent entries keep alive.

    The gate counts each entry's own bytes; `rest_bytes` are the buffers' bytes beyond those.
    """

    def __init__(self) -> None:
        self._pinned: dict[int, _Pinned] = {}

    def add(self, lent: Lent) -> int:
        """Count a lent entry; returns by how many bytes the rest grows, negative if it shrinks."""
        change = 0
        for piece in lent.pieces:
            buffer, buffer_bytes = _buffer(piece)
            pinned = self._pinned.get(id(buffer))
            if pinned is None:
                pinned = self._pinned[id(buffer)] = _Pinned(buffer, buffer_bytes)
            change -= pinned.rest_bytes
            pinned.entries_bytes += len(piece)
            pinned.pieces_count += 1
            change += pinned.rest_bytes
        return change

    def remove(self, lent: Lent) -> int:
        """Uncount an entry; returns by how many bytes the rest shrinks, negative if it grows."""
        change = 0
        for piece in lent.pieces:
            buffer, _ = _buffer(piece)
            pinned = self._pinned[id(buffer)]
            change += pinned.rest_bytes
            pinned.entries_bytes -= len(piece)
            pinned.pieces_count -= 1
            change -= pinned.rest_bytes
            if not pinned.pieces_count:
                del self._pinned[id(buffer)]
        return change

    @property
    def rest_bytes(self) -> int:
        """Bytes that all buffers keep alive beyond their entries."""
        return sum(pinned.rest_bytes for pinned in self._pinned.values())


def _buffer(piece: EntryBytes) -> tuple[object, int]:
    """The object that owns a piece's memory, and its size in bytes."""
    if isinstance(piece, bytes):
        return piece, len(piece)
    with memoryview(piece.obj) as whole:
        return piece.obj, whole.nbytes
