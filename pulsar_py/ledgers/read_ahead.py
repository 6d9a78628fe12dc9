"""`ReadAhead`: decides which entries to fetch ahead of a sequential reader of a ledger (pure).

Every ledger store has one, and fetches in its own way: stretches of a log from the disk, or entries
from bookies. A reader whose read begins where its last one ended reads in order, so the entries
that follow are fetched while it is busy: a *window* of pieces. Each time the reader begins with a
piece, the window moves on by one; so there is always enough under way to cover a round trip, and
the turns that a busy loop and threads take. Of several readers each gets half of the room left.

What always holds: what was fetched ahead and not yet wanted, and what is coming, is within the room
that the store gives, or a piece more; windows are of a bounded number of pieces and ledgers.

Source: the read-ahead of DbLedgerStorage and LedgerHandle's batches in Apache BookKeeper.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from pulsar_py.common.recent import remember

PIECE_BYTES: Final = 2 * 1024 * 1024
"""The most bytes of a piece; at most a quarter of a window, save where one run is larger."""

READERS_COUNT: Final = 4
"""Ledgers for which something is fetched ahead at a time."""

PIECES_COUNT: Final = 32
"""Most pieces of a window: where topics take turns, each run lies by itself."""

LEDGERS_COUNT: Final = 256
"""Ledgers of which it is known where their last miss ended, and their window."""

SMALLEST_PART: Final = 4
"""A read of less than this part of a piece costs more turns of the loop than it saves."""


class AheadPiece(Protocol):
    """Entries that are fetched together, as a store has them."""

    @property
    def first(self) -> int:
        """Id of its first entry."""

    @property
    def end(self) -> int:
        """Id of the entry behind its last one."""

    @property
    def size_bytes(self) -> int:
        """Its bytes, or what they were taken for."""


P = TypeVar("P", bound=AheadPiece)


class AheadWindow(Generic[P]):
    """The pieces fetched ahead of one ledger's reader, in order; it has begun none of them."""

    __slots__ = ("coming_count", "end", "is_finding", "pieces", "size_bytes")

    def __init__(self, entry_id: int) -> None:
        self.end = entry_id
        self.pieces: deque[P] = deque()
        self.size_bytes = 0
        self.is_finding = False  # its next piece is being looked for
        self.coming_count = 0  # pieces that are not here

    @property
    def first(self) -> int:
        """Id of its first entry; of an empty window, of the next entry to fetch."""
        return self.pieces[0].first if self.pieces else self.end

    def add(self, piece: P) -> None:
        """Append the piece that follows."""
        self.pieces.append(piece)
        self.size_bytes += piece.size_bytes
        self.end = piece.end

    def slide(self, entry_id: int) -> bool:
        """Drop the pieces before `entry_id`; False if that entry is not of this window."""
        if not self.first <= entry_id <= self.end:
            return False
        while self.pieces and self.pieces[0].end <= entry_id:
            self.size_bytes -= self.pieces.popleft().size_bytes
        return True

    def piece_with(self, entry_id: int) -> P | None:
        """The piece that brings an entry; None if none does."""
        for piece in self.pieces:
            if piece.first <= entry_id < piece.end:
                return piece
        return None


class ReadAhead(Generic[P]):
    """The windows of one store."""

    def __init__(self, window_bytes: int) -> None:
        """`window_bytes` are fetched ahead of one reader at most; 0 fetches nothing."""
        self._window_bytes = window_bytes
        self._piece_bytes = min(PIECE_BYTES, window_bytes // 4)
        self._smallest_bytes = self._piece_bytes // SMALLEST_PART
        # By ledger, the entry behind what the last miss brought: who wants that reads in order.
        self._ends: OrderedDict[int, int] = OrderedDict()
        self._windows: OrderedDict[int, AheadWindow[P]] = OrderedDict()
        self._coming_windows_count = 0
        self.coming_bytes = 0
        """What is under way will bring."""

    def is_in_order(self, ledger_id: int, entry_id: int) -> bool:
        """Whether a read that begins there goes on where the last miss ended."""
        return self._ends.get(ledger_id) == entry_id

    def on_miss(self, ledger_id: int, end: int) -> None:
        """A read that nothing was fetched for brought the entries before `end`."""
        remember(self._ends, ledger_id, end, LEDGERS_COUNT)

    def window(self, ledger_id: int) -> AheadWindow[P] | None:
        """The window of a ledger's reader."""
        return self._windows.get(ledger_id)

    def forget(self, ledger_id: int) -> None:
        """Drop a ledger's window: it is not what its reader wants."""
        self._windows.pop(ledger_id, None)

    @property
    def held_bytes(self) -> int:
        """Of all windows, whether it is here or coming."""
        return sum(window.size_bytes for window in self._windows.values())

    def oldest_but(self, ledger_id: int) -> int | None:
        """The ledger whose window was not moved for longest, except one; None without others."""
        return next((each for each in self._windows if each != ledger_id), None)

    def move(self, ledger_id: int, entry_id: int, held_end: Callable[[], int]) -> AheadWindow[P]:
        """A reader in order will soon want `entry_id`: its window from there on.

        Everything from there up to what `held_end` says is in memory.
        """
        window = self._windows.get(ledger_id)
        if window is None or not window.slide(entry_id):
            end = held_end()
            # With all of it here up to another reader's window, that one is its window, too.
            if window is None or not entry_id < window.first <= end:
                window = AheadWindow(end)
        remember(self._windows, ledger_id, window, LEDGERS_COUNT)
        return window

    def next_bytes(self, ledger_id: int, window: AheadWindow[P], room_bytes: int) -> int:
        """Bytes of the piece that its window grows by, which count as coming; 0 for none now.

        `room_bytes` is what the store has room for, without what is coming.
        """
        room_bytes -= self.coming_bytes
        size_bytes = min(self._piece_bytes, self._window_bytes - window.size_bytes, room_bytes // 2)
        if (
            window.is_finding
            or self._windows.get(ledger_id) is not window
            or len(window.pieces) >= PIECES_COUNT
            or size_bytes <= self._smallest_bytes
            or not (window.coming_count or self._coming_windows_count < READERS_COUNT)
        ):
            return 0
        # From now on, not when it is fetched: many may come here in one turn of the loop.
        self._coming_windows_count += not window.coming_count
        window.coming_count += 1
        window.is_finding = True
        self.coming_bytes += size_bytes
        return size_bytes

    def on_found(self, window: AheadWindow[P], piece: P, planned_bytes: int) -> int:
        """What the next piece is; returns what counts as coming for it."""
        window.is_finding = False
        window.add(piece)
        self.coming_bytes += piece.size_bytes - planned_bytes
        return piece.size_bytes

    def on_nothing_found(self, window: AheadWindow[P]) -> None:
        """Nothing follows, or that could not be found out."""
        window.is_finding = False

    def on_ended(self, window: AheadWindow[P], coming_bytes: int) -> None:
        """A piece is here, or will not come."""
        self.coming_bytes -= coming_bytes
        window.coming_count -= 1
        self._coming_windows_count -= not window.coming_count
