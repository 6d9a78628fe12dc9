"""Tells damage in SQLite's write-ahead log from a torn end, which SQLite does not (pure).

SQLite takes the first frame whose checksum is wrong as the end of the log: after a crash that is
right, but after a flipped bit all transactions behind it are lost silently. All numbers are
big-endian, offsets in bytes:

    header   0 magic 0x377F0682, or ...83: checksums are over big-endian words
             4 version   8 page size   12 count of checkpoints   16 salts (8)
             24 checksum of the 24 bytes before (8)
    frame    0 page number   4 pages of the file, if it ends a transaction, else 0
             8 salts of the header (8)
             16 checksum of the 8 bytes at 0 and of the page (8), going on from the one before
             24 the page

Frames with other salts are leftovers from before the last checkpoint. As each checksum goes on
from the one before, a frame also proves which frame it was written behind.

A commit returns once the log is synced, and the header is synced before its first frame. So a crash
can only tear the last transaction, though its frames may be left in any order. A frame that was
provably written after the end of a transaction shows that this transaction was once whole: a bad
frame at that end or before it is damage. Frames that were rolled back, or torn in an earlier crash,
may follow the end; their checksums do not go on from the frames before them. Damage to the last
transaction, and a file that was cut, look the same as a crash.

The frames behind the damage can often be used: if every page on a bad frame was written again by a
whole transaction further on, the log without the bad frames gives the same database.

Source: "The WAL File Format" in SQLite's Database File Format.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

WAL_SUFFIX: Final = "-wal"
"""Suffix of the log's file."""
HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24
_BIG_ENDIAN_MAGIC: Final = 0x377F0683
_MAGICS: Final = (0x377F0682, _BIG_ENDIAN_MAGIC)
_PAGE_SIZES: Final = frozenset(1 << power for power in range(9, 17))
_USUAL_PAGE_BYTES: Final = 4096
_HEADER: Final = struct.Struct(">4IQ2I")
_FRAME_HEADER: Final = struct.Struct(">2IQ2I")
_CHECKSUM: Final = struct.Struct(">2I")
_VERSION: Final = 3007000
_WORD_MASK: Final = 0xFFFFFFFF

_Order = Literal["little", "big"]
_Checksum = tuple[int, int]


class WalDamage(Struct, frozen=True):
    """The place where the log breaks off, and the transactions lost behind it."""

    offset: int
    lost_transactions_count: int
    """Counted by the frames that end one; an end on a bad frame may be missed."""
    lost_frames_count: int
    is_header: bool
    repaired: bytes | None = None
    """A log with every transaction that is not lost; None if all of those precede the damage."""

    def __str__(self) -> str:
        """The problem, without the place."""
        what = "the header" if self.is_header else "a frame"
        if self.repaired and not self.lost_frames_count:
            return f"{what} is damaged; nothing is lost, later transactions replaced its pages"
        return (
            f"{what} is damaged; {self.lost_transactions_count} transactions "
            f"in {self.lost_frames_count} frames can't be read any more"
        )


def find_damage(wal: bytes) -> WalDamage | None:
    """The damage in the bytes of a log; None if it is whole, empty, or torn by a crash."""
    if len(wal) <= HEADER_BYTES + FRAME_HEADER_BYTES:
        return None
    magic, _, page_bytes, _, salts, *stored = _HEADER.unpack_from(wal)
    is_page_size = page_bytes in _PAGE_SIZES
    page_bytes = page_bytes if is_page_size else _USUAL_PAGE_BYTES
    order: _Order = "big" if magic == _BIG_ENDIAN_MAGIC else "little"
    start = _checksum(wal[: HEADER_BYTES - 8], (0, 0), order)
    if magic in _MAGICS and is_page_size and start == tuple(stored):
        return _Log.read(wal, page_bytes, order, start).damage(salts)
    for maybe in ("little", "big"):
        for state in (start, (stored[0], stored[1])):
            if damage := _Log.read(wal, page_bytes, maybe, state).damage_of_header():
                return damage
    return None


class _Log(Struct, frozen=True):
    """All frames of a file, whatever their salts."""

    wal: bytes
    order: _Order
    frame_bytes: int
    pages: Sequence[int]
    commits: Sequence[int]
    salts: Sequence[int]
    states: Sequence[_Checksum]
    """For each frame the checksum stored before it, from which its own goes on; then the last
    frame's own."""
    continues: Sequence[bool]
    """Whether each frame was written behind the one before it, as its checksum proves."""

    @classmethod
    def read(cls, wal: bytes, page_bytes: int, order: _Order, start: _Checksum) -> _Log:
        frame_bytes = FRAME_HEADER_BYTES + page_bytes
        count = (len(wal) - HEADER_BYTES) // frame_bytes
        places = range(HEADER_BYTES, HEADER_BYTES + count * frame_bytes, frame_bytes)
        headers = [_FRAME_HEADER.unpack_from(wal, place) for place in places]
        states = [start, *((header[3], header[4]) for header in headers)]
        computed = _checksums(wal, frame_bytes, order, states[:-1])
        continues = [
            header[0] != 0 and own == found
            for header, own, found in zip(headers, states[1:], computed, strict=True)
        ]
        return cls(
            wal,
            order,
            frame_bytes,
            pages=[header[0] for header in headers],
            commits=[header[1] for header in headers],
            salts=[header[2] for header in headers],
            states=states,
            continues=continues,
        )

    def damage(self, salts: int) -> WalDamage | None:
        """The damage, if the header is whole."""
        count = len(self.salts)
        bad = next((at for at in range(count) if not self._is_whole(at, salts)), count)
        for at in range(bad, count - 1):
            is_end = self.commits[at] and self.salts[at] == salts == self.salts[at + 1]
            if is_end and (self.continues[at + 1] or (at == bad and self._has_bad_checksum(at))):
                return self._damage(bad, salts)
        return None

    def _is_whole(self, at: int, salts: int) -> bool:
        return self.continues[at] and self.salts[at] == salts

    def _has_bad_checksum(self, at: int) -> bool:
        """Whether the next frame goes on from what this one's checksum should be."""
        state = self.states[at]
        for each in (at, at + 1):
            place = HEADER_BYTES + each * self.frame_bytes
            frame = self.wal[place : place + self.frame_bytes]
            state = _checksum(frame[:8] + frame[FRAME_HEADER_BYTES:], state, self.order)
        return state == self.states[at + 2]

    def damage_of_header(self) -> WalDamage | None:
        """The damage, if the header is bad: there is some if any frames belong together."""
        for at, does_continue in enumerate(self.continues):
            if does_continue and (at == 0 or self.salts[at] == self.salts[at - 1]):
                return self._damage(0, self.salts[at], is_header=True)
        return None

    def _damage(self, bad: int, salts: int, *, is_header: bool = False) -> WalDamage:
        last_of_use = self._last_of_use(bad, salts)
        first = bad if last_of_use is None else last_of_use + 1
        while first and not self.commits[first - 1]:
            first -= 1  # SQLite drops the whole transaction
        last = max(at for at, each in enumerate(self.salts) if each == salts)
        found = range(first, last + 1)
        ends = sum(self.commits[at] > 0 and self.salts[at] == salts for at in found)
        offset = 0 if is_header else HEADER_BYTES + bad * self.frame_bytes
        lost = len(found) if ends else 0  # a transaction without an end never was confirmed
        repaired = None if last_of_use is None else self._repaired(last_of_use, salts)
        return WalDamage(offset, ends, lost, is_header, repaired)

    def _last_of_use(self, bad: int, salts: int) -> int | None:
        """The end of the last usable transaction behind the bad frames; None if pages are lost.

        The transactions behind them are usable if they wrote every page of the bad frames again.
        """
        count = len(self.salts)
        good = next((at for at in range(bad, count) if self._is_whole(at, salts)), count)
        stop = next((at for at in range(good, count) if not self._is_whole(at, salts)), count)
        last = next((at for at in reversed(range(good, stop)) if self.commits[at]), None)
        if last is None or not {*self.pages[bad:good]} <= {*self.pages[good : last + 1]}:
            return None
        return last

    def _repaired(self, last: int, salts: int) -> bytes:
        """A log of the frames up to `last`, all with checksums that fit."""
        magic = _BIG_ENDIAN_MAGIC if self.order == "big" else _MAGICS[0]
        page_bytes = self.frame_bytes - FRAME_HEADER_BYTES
        log = bytearray(_HEADER.pack(magic, _VERSION, page_bytes, 0, salts, 0, 0))
        state = _checksum(log[: HEADER_BYTES - 8], (0, 0), self.order)
        log[HEADER_BYTES - 8 :] = _CHECKSUM.pack(*state)
        for at in range(last + 1):
            place = HEADER_BYTES + at * self.frame_bytes
            page = self.wal[place + FRAME_HEADER_BYTES : place + self.frame_bytes]
            start = self.wal[place : place + 8]
            state = _checksum(start + page, state, self.order)
            log += _FRAME_HEADER.pack(self.pages[at], self.commits[at], salts, *state) + page
        return bytes(log)


def _checksum(data: bytes | bytearray, state: _Checksum, order: _Order) -> _Checksum:
    """SQLite's checksum of the data, going on from the checksum `state`."""
    first, second = state
    form = "<" if order == "little" else ">"
    for even, odd in struct.iter_unpack(f"{form}2I", data):
        first = (first + even + second) & _WORD_MASK
        second = (second + odd + first) & _WORD_MASK
    return first, second


def _checksums(
    wal: bytes, frame_bytes: int, order: _Order, states: Sequence[_Checksum]
) -> list[_Checksum]:
    """The checksum of each frame, going on from its state.

    All frames at once: each is a lane of 64 bits in integers as long as there are frames, of which
    one step takes in the next two words of every frame. That is several times as fast as a loop
    over the words, which takes 80 ms for the usual 4 MB.
    """
    count = len(states)
    units = array("Q", wal[HEADER_BYTES : HEADER_BYTES + count * frame_bytes])
    if order != sys.byteorder:
        units.byteswap()
    even_shift, odd_shift = (0, 32) if order == "little" else (32, 0)
    stride = frame_bytes // units.itemsize
    low = _joined([_WORD_MASK] * count)
    first = _joined([state[0] for state in states])
    second = _joined([state[1] for state in states])
    for column in (0, *range(FRAME_HEADER_BYTES // units.itemsize, stride)):
        pairs = int.from_bytes(units[column::stride].tobytes(), sys.byteorder)
        first = (first + (pairs >> even_shift & low) + second) & low
        second = (second + (pairs >> odd_shift & low) + first) & low
    return list(zip(_lanes(first, count), _lanes(second, count), strict=True))


def _joined(values: list[int]) -> int:
    return int.from_bytes(array("Q", values).tobytes(), sys.byteorder)


def _lanes(joined: int, count: int) -> Sequence[int]:
    return array("Q", joined.to_bytes(8 * count, sys.byteorder))
