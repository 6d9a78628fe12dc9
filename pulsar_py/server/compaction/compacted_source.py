"""`CompactedSource`: reads a compacted topic for one subscription (edge).

Up to the horizon of the last compaction entries come from the compacted ledger, with their
positions in the topic; after it from the cursor. A compaction that ends meanwhile takes effect with
the next read: the place is a position, which means the same in both ledgers.

A cursor can't stand before the topic's first entry that still exists, but compacted messages may be
older. So the place in the compacted ledger is kept here, and where a reader starts is told by it.

Source: CompactedTopicImpl.asyncReadEntriesOrWait in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_py.common.errors import LedgerNotFoundError, StorageError
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.server.dispatch.entry_source import EntrySource


class SourceCursor(EntrySource, Protocol):
    """The part of a cursor that `CompactedSource` uses beside reading."""

    @property
    def mark_delete_position(self) -> Position:
        """The position up to which every entry is acknowledged."""

    @property
    def read_position(self) -> Position:
        """The next entry to read."""


class CompactedSource:
    """The entries of a subscription with `readCompacted`; owned by it. An `EntrySource`."""

    def __init__(
        self,
        cursor: SourceCursor,
        compacted: Callable[[], CompactedLedger | None],
        on_missing: Callable[[CompactedLedger], None],
        *,
        start: Position | None = None,
    ) -> None:
        """`start` is where a new reader begins, which may be before the topic's first entry.

        `on_missing` is told of a compacted ledger that is gone; `compacted` is None after that.
        """
        self._cursor = cursor
        self._compacted = compacted
        self._on_missing = on_missing
        self._start = start
        self._untouched = cursor.mark_delete_position  # nothing was acknowledged while it is this
        self._position = start  # the next one in the compacted ledger; None: the cursor's
        self._moves_count = 0  # a read during which it changed has no effect
        self._next: tuple[CompactedLedger, Position, int] | None = None  # the index of a position

    @property
    def is_durable(self) -> bool:
        """Whether the subscription is durable."""
        return self._cursor.is_durable

    # Reading

    def _to_read(self) -> tuple[CompactedLedger, Position] | None:
        """The compacted ledger to read from, and from where; None: the cursor's turn."""
        compacted = self._compacted()
        if compacted is None:
            return None
        position = self._cursor.read_position if self._position is None else self._position
        return None if position > compacted.horizon else (compacted, position)

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        """The next entries in memory; None while the compacted ledger is read."""
        if self._to_read() is not None:
            return None
        entries = self._cursor.read_cached(max_entries, max_bytes, max_position)
        if entries:
            self._position = None  # a later compaction must not bring them again
        return entries

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        """The next entries, from the compacted ledger up to its horizon."""
        while (found := self._to_read()) is not None:
            compacted, position = found
            moves_count = self._moves_count
            try:
                entries = await self._read_compacted(compacted, position, max_entries, max_bytes)
            except StorageError as error:
                if self._compacted() is not compacted:
                    continue  # a newer one took its place
                if not isinstance(error, LedgerNotFoundError):
                    raise
                self._on_missing(compacted)
                continue
            if moves_count != self._moves_count:
                return ()
            if entries is None:
                self._leave(compacted)
            elif entries:
                return entries
        moves_count = self._moves_count
        entries = await self._cursor.read(max_entries, max_bytes, max_position)
        if entries and moves_count == self._moves_count:
            self._position = None  # a later compaction must not bring them again
        return entries

    async def _read_compacted(
        self, compacted: CompactedLedger, position: Position, max_entries: int, max_bytes: int
    ) -> Sequence[Entry] | None:
        """Entries that are not acknowledged, maybe none of those read; None behind the last one."""
        moves_count = self._moves_count
        known = self._next
        if known is not None and known[0] is compacted and known[1] == position:
            index = known[2]
        else:
            index = await compacted.index_of(position)
        entries = await compacted.read(index, max_entries, max_bytes)
        if not entries:
            return None
        if moves_count == self._moves_count:
            last = entries[-1].position
            self._position = after = Position(last.ledger_id, last.entry_id + 1)
            self._next = (compacted, after, index + len(entries))
            self._cursor.seek(after)
        return [entry for entry in entries if not self._is_done(entry.position)]

    def _is_done(self, position: Position) -> bool:
        """Whether it was acknowledged by itself.

        What is before mark-delete is read on purpose: the topic's own entries are gone there.
        """
        cursor = self._cursor
        return position > cursor.mark_delete_position and cursor.is_acknowledged(position)

    def _leave(self, compacted: CompactedLedger) -> None:
        """Go on behind the horizon."""
        self._position = None
        horizon = compacted.horizon
        self._cursor.seek(Position(horizon.ledger_id, horizon.entry_id + 1))

    def has_more_entries(self) -> bool:
        """Whether there may be an entry to read."""
        return self._to_read() is not None or self._cursor.has_more_entries()

    def backlog_count(self) -> int:
        """The number of the topic's unacknowledged entries, compacted away or not."""
        return self._cursor.backlog_count()

    # Moving

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""
        self._moves_count += 1
        self._cursor.rewind()
        is_untouched = self._cursor.mark_delete_position == self._untouched
        self._position = self._start if is_untouched else None

    def seek(self, position: Position) -> None:
        """Read on from `position`."""
        self._moves_count += 1
        self._cursor.seek(position)
        compacted = self._compacted()
        is_inside = compacted is not None and position <= compacted.horizon
        self._position = position if is_inside else None

    def on_reset(self, position: Position) -> None:
        """The cursor was reset to `position`, which may be before the topic's first entry."""
        self._moves_count += 1
        self._untouched = self._cursor.mark_delete_position
        self._start = self._position = None if position == LATEST else position

    # The cursor's own

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The topic's entries at `positions`, if they are in memory."""
        return self._cursor.read_replay_cached(positions)

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """The topic's entries at `positions`."""
        return await self._cursor.read_replay(positions)

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, soon after there is an entry to read."""
        self._cursor.wait_for_entries(callback)

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""
        self._cursor.cancel_wait()

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""
        return self._cursor.is_acknowledged(position)

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch's unacknowledged indexes; None if they are all of them."""
        return self._cursor.batch_ack_set(position)
