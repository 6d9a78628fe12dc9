"""`AheadReads`: reads ahead of a sequential reader of a ledger, and keeps the entries (edge).

`ReadAhead` decides what and how much; a piece is a run of entries that is asked of bookies at once.
A reader takes entries from the piece that it has begun, and then the pieces behind it are fetched.
If a piece can't be fetched, the reader that needs it reads the entries itself, and gets the error.

What always holds: the bytes that all windows hold or wait for exceed the bound by one piece at
most; if there is no room, the least recently read window is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.protocol.entry_format import BookieEntry
from pulsar_py.bookkeeper.reading.fetching import EntryFetch
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.recent import remember
from pulsar_py.ledgers.read_ahead import LEDGERS_COUNT, AheadWindow, ReadAhead
from pulsar_py.ledgers.store import LedgerReader

logger = logging.getLogger(__name__)

MAX_PIECE_ENTRIES: Final = 256
"""The most entries of a piece."""
WINDOWS_COUNT: Final = 16
"""The number of windows that may be full at a time."""


class _Piece:
    """Entries that are asked for together."""

    __slots__ = ("done", "end", "entries", "first", "size_bytes")

    def __init__(self, first: int, end: int, size_bytes: int) -> None:
        self.first = first
        self.end = end
        self.size_bytes = size_bytes  # about
        self.entries: list[BookieEntry] = []  # those that could be had, once it is done
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def part(self, first: int, last: int) -> list[BookieEntry]:
        return self.entries[first - self.first : last + 1 - self.first]


class AheadReads:
    """The read-ahead of one store. Its tasks are the store's."""

    def __init__(self, cluster: LedgerCluster, tasks: TaskOwner) -> None:
        self._cluster = cluster
        self._tasks = tasks
        self._window_bytes = cluster.settings.read_ahead_bytes
        self._limit_bytes = WINDOWS_COUNT * self._window_bytes
        self._ahead: ReadAhead[_Piece] = ReadAhead(self._window_bytes)
        self._begun: OrderedDict[int, _Piece] = OrderedDict()  # by ledger: where its reader is

    @property
    def held_bytes(self) -> int:
        """The approximate bytes that were fetched ahead, or are being fetched."""
        return self._ahead.held_bytes + sum(piece.size_bytes for piece in self._begun.values())

    def cached(self, ledger_id: int, first: int, last: int) -> list[BookieEntry]:
        """The entries from `first` on that are in memory, perhaps none."""
        piece = self._piece_with(ledger_id, first)
        return piece.part(first, last) if piece is not None and piece.done.done() else []

    def _piece_with(self, ledger_id: int, entry_id: int) -> _Piece | None:
        begun = self._begun.get(ledger_id)
        if begun is not None and begun.first <= entry_id < begun.end:
            return begun
        window = self._ahead.window(ledger_id)
        return None if window is None else window.piece_with(entry_id)

    async def wanted(self, ledger_id: int, first: int, last: int) -> list[BookieEntry]:
        """Entries from `first` on that were fetched, waiting for those that are coming."""
        piece = self._piece_with(ledger_id, first)
        if piece is None:
            return []
        await asyncio.shield(piece.done)
        found = piece.part(first, last)
        if not found:
            self.forget(ledger_id)
        return found

    def taken(self, ledger: LedgerInUse, first: int, end: int, reader: LedgerReader) -> None:
        """A reader got the entries from `first` up to before `end`: fetch what it wants next."""
        ledger_id = ledger.ledger_id
        piece = self._piece_with(ledger_id, first)
        if piece is None:
            is_in_order = self._ahead.is_in_order(ledger_id, first)
            self._ahead.on_miss(ledger_id, end)
            if not is_in_order:
                return
        elif self._begun.get(ledger_id) is not piece:
            remember(self._begun, ledger_id, piece, LEDGERS_COUNT)
            end = piece.end
        else:
            return
        window = self._ahead.move(ledger_id, end, lambda: end)
        self._extend(ledger, window, reader)

    def forget(self, ledger_id: int) -> None:
        """Drop the entries that were fetched ahead of a ledger's reader."""
        self._begun.pop(ledger_id, None)
        self._ahead.forget(ledger_id)

    def _extend(
        self, ledger: LedgerInUse, window: AheadWindow[_Piece], reader: LedgerReader
    ) -> None:
        """Fetch pieces while there is room, up to the end of the ledger."""
        ledger_id = ledger.ledger_id
        while True:
            while self.held_bytes > self._limit_bytes - self._window_bytes and (
                (oldest := self._ahead.oldest_but(ledger_id)) is not None
            ):
                self.forget(oldest)
            room_bytes = self._limit_bytes - self.held_bytes + self._ahead.coming_bytes
            size_bytes = self._ahead.next_bytes(ledger_id, window, room_bytes)
            if not size_bytes:
                return
            piece = _planned(window.end, size_bytes, reader)
            if piece is None:
                self._ahead.on_nothing_found(window)
                self._ahead.on_ended(window, size_bytes)
                return
            coming_bytes = self._ahead.on_found(window, piece, size_bytes)
            try:
                self._tasks.spawn(
                    self._fetch(ledger, window, piece, coming_bytes, reader), "read ahead"
                )
            except RuntimeError:
                piece.done.set_result(None)  # the store is closed
                return

    async def _fetch(
        self,
        ledger: LedgerInUse,
        window: AheadWindow[_Piece],
        piece: _Piece,
        coming_bytes: int,
        reader: LedgerReader,
    ) -> None:
        try:
            fetch = EntryFetch(self._cluster, ledger, piece.first, piece.end - 1)
            async with asyncio.timeout(self._cluster.limits.answer_timeout_seconds):
                piece.entries = await fetch.run()
        except (StorageError, TimeoutError):
            logger.debug("reading ahead failed", exc_info=True)
        finally:
            self._ahead.on_ended(window, coming_bytes)
            piece.done.set_result(None)
        self._extend(ledger, window, reader)


def _planned(first: int, size_bytes: int, reader: LedgerReader) -> _Piece | None:
    """The next piece of about this size from an entry on; None at the end of the ledger."""
    end = reader.last_add_confirmed
    average_bytes = reader.length_bytes // (end + 1) if end >= 0 else 0
    count = min(max(size_bytes // max(average_bytes, 1), 1), MAX_PIECE_ENTRIES, end + 1 - first)
    if count <= 0:
        return None
    return _Piece(first, first + count, count * average_bytes)
