"""`ManagedCursor`: one subscription's place in a managed ledger (edge).

It carries out the decisions of `CursorState`: it reads runs of entries from the caches or from
storage, and has a `CursorStore` write the state, by default within a second of an acknowledgement,
whether or not others follow. A non-durable cursor has no store, and ends with its owner.

What always holds: acknowledgements and moves happen in memory at once, and without waiting; only a
reset is written first. A read during which the cursor was moved has no effect.

Source: ManagedCursorImpl, NonDurableCursorImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Protocol

from pulsar_py.common.errors import (
    CursorBusyError,
    CursorClosedError,
    ManagedLedgerError,
)
from pulsar_py.common.position import LATEST, Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors.format import NO_LEDGER, owned_ledgers
from pulsar_py.managed_ledger.cursors.persister import CursorPersister, PersisterOwner
from pulsar_py.managed_ledger.cursors.reading import CursorReading, ReadingOwner
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.stats import CursorStats

_MAX_RANGES_SHOWN = 1000


class CursorOwner(ReadingOwner, PersisterOwner, Protocol):
    """The part of the ManagedLedger that a cursor uses."""

    def ledgers_kept(self) -> AbstractAsyncContextManager[None]:
        """A context during which no ledger is trimmed."""


class CursorWatch(Protocol):
    """The part of the `CursorRegistry` that a cursor uses."""

    def wait(self, cursor: ManagedCursor, callback: Callable[[], None]) -> None:
        """Call `callback` once: at the next confirmed group, or when the ledger is terminated."""

    def cancel_wait(self, cursor: ManagedCursor) -> None:
        """Forget the callback."""

    def is_waiting(self, cursor: ManagedCursor) -> bool:
        """Whether a callback is registered."""

    def on_activity_changed(self, cursor: ManagedCursor) -> None:
        """The cursor's `is_active` changed."""

    def on_cursor_closed(self, cursor: ManagedCursor) -> None:
        """The cursor is not in use any more; its record stays."""

    def on_cursor_abandoned(self, cursor: ManagedCursor) -> None:
        """The cursor is being deleted, or belongs to another owner now."""


class ManagedCursor:
    """A durable or non-durable cursor. Owned by its ManagedLedger until closed or deleted.

    Invariant: read_position is after mark_delete_position.

    Pulsar's ManagedCursorImpl and NonDurableCursorImpl.
    """

    def __init__(
        self,
        name: str,
        owner: CursorOwner,
        watch: CursorWatch,
        state: CursorState,
        store: CursorStore | None,
    ) -> None:
        """`store` is None for a non-durable cursor."""
        self.name = name
        self.is_durable = store is not None
        # Called after the mark-delete position moved, once for each call that moved it.
        self.on_mark_delete_moved: Callable[[], None] | None = None
        # Called with batches that turn out to be acknowledged as a whole when their ledger, which
        # was not in memory at the last acknowledgement, has been loaded.
        self.on_acknowledged_late: Callable[[list[Position]], None] | None = None
        self._watch = watch
        self._state = state
        self._clock = owner.clock
        self._ledgers_kept = owner.ledgers_kept
        self._reading = CursorReading(name, owner, state, self.acknowledge, self._load)
        self._persister = (
            None
            if store is None
            else CursorPersister(name, owner, state, store, on_loaded=self._on_loaded)
        )
        self._is_active = False
        self._is_closed = False
        self._is_resetting = False
        self.last_active_millis = self._clock.wall_time_millis()
        if self._persister is not None:
            self._persister.load_soon()

    def __repr__(self) -> str:
        return f"ManagedCursor({self.name}, mark-delete {self.mark_delete_position})"

    # Its state

    @property
    def state(self) -> CursorState:
        """The `CursorState` that decides for this cursor; for statistics and tests."""
        return self._state

    @property
    def mark_delete_position(self) -> Position:
        """The position up to which every entry is acknowledged."""
        return self._state.mark_delete_position

    @property
    def persistent_mark_delete_position(self) -> Position:
        """The last mark-delete position that is durable, or the current one if that is before it.

        A crash moves the cursor back to it at most; ledgers before it may be trimmed.
        """
        return min(self._state.persistent_mark_delete_position, self._state.mark_delete_position)

    @property
    def read_position(self) -> Position:
        """The next entry to read."""
        return self._state.read_position

    @property
    def properties(self) -> Mapping[str, int]:
        """Numbers stored together with the mark-delete position."""
        return self._state.properties

    @property
    def cursor_properties(self) -> Mapping[str, str]:
        """Texts of users and of the broker (`#pulsar.internal.`), in the metadata store."""
        return {} if self._persister is None else self._persister.store.cursor_properties

    @property
    def is_active(self) -> bool:
        """Whether entries are cached for it while it tails."""
        return self._is_active

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or deleted."""
        return self._is_closed

    @property
    def cursor_ledger_id(self) -> int:
        """The cursor ledger that the record names, -1 if none."""
        return NO_LEDGER if self._persister is None else self._persister.store.ledger_id

    def owned_ledger_ids(self) -> list[int]:
        """Ids of the ledgers that its properties name, and that are deleted with it."""
        return owned_ledgers(self.properties, self.cursor_properties)

    # Reading

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        """The next unacknowledged entries up to `max_position`, if they are in memory.

        Moves `read_position` past them. They are of one ledger, and at least one whatever
        `max_bytes`; there may be more to read. `[]` means that there is nothing to read now, None
        that `read` has to be awaited.

        Raises:
            CursorClosedError: The cursor was closed.
        """
        return self._reading.read_cached(max_entries, max_bytes, max_position)

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        """As `read_cached`, but reads from storage if need be. One call at a time.

        If the cursor is rewound, moved or reset meanwhile, the result is empty.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        return await self._reading.read(max_entries, max_bytes, max_position)

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged, if they are in memory.

        In the order of `positions`; entries missing in the result are acknowledged or deleted.

        Raises:
            CursorClosedError: The cursor was closed.
        """
        return self._reading.read_replay_cached(positions)

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, but reads from storage if need be.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        return await self._reading.read_replay(positions)

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, soon after there is an entry to read or the ledger is terminated.

        One callback at a time: a new one replaces the old one.
        """
        self._raise_if_closed()
        self._watch.wait(self, callback)

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""
        self._watch.cancel_wait(self)

    # Acknowledging

    def acknowledge(
        self,
        positions: Sequence[Position],
        ack_sets: Sequence[Sequence[int] | None] | None = None,
    ) -> int:
        """Acknowledge entries, or with an ack set the indexes whose bits are clear in it.

        It takes effect in memory, and is written within the persist interval. Hot path: consume.

        Returns how many positions were taken: all, or those before the first that is past the last
        entry.

        Raises:
            CursorClosedError: The cursor is closed.
        """
        self._raise_if_closed()
        before = self._state.mark_delete_position
        try:
            return self._state.acknowledge(positions, ack_sets, self._clock.monotonic_seconds())
        finally:
            self._after_change(before)

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] | None = None,
        properties: Mapping[str, int] | None = None,
    ) -> None:
        """Acknowledge everything up to `position`; of a batch there only what `ack_set` clears.

        `properties` replace the cursor's if given.

        Raises:
            InvalidCursorPositionError: Past the last entry, or before the mark-delete position.
            CursorBusyError: A reset is under way.
            CursorClosedError: The cursor is closed.
        """
        self._raise_if_closed()
        if self._is_resetting:
            raise CursorBusyError(f"{self.name}: a reset is under way")
        before = self._state.mark_delete_position
        now = self._clock.monotonic_seconds()
        self._state.acknowledge_cumulative(position, ack_set, properties, now)
        self._after_change(before)

    def when_durable(self, on_durable: OnDurable, number: int = 0) -> None:
        """Call `on_durable` when all that was acknowledged so far is durable, or never will be.

        It gets `number`, perhaps together with those of other calls, and None or the error. For a
        non-durable cursor that is at once.
        """
        if self._persister is None:
            on_durable((number,), None)
        else:
            self._persister.when_durable(on_durable, number)

    def _after_change(self, before: Position) -> None:
        self.last_active_millis = self._clock.wall_time_millis()
        if self._persister is not None:
            self._persister.schedule()
            if self._state.pages.wanted:
                self._persister.load_soon()
        if self.on_mark_delete_moved is not None and before != self._state.mark_delete_position:
            self.on_mark_delete_moved()

    async def _load(self, ledger_id: int) -> None:
        """Load one ledger's acknowledgements into memory; the mark-delete position may move."""
        assert self._persister is not None, "only what is stored leaves memory"
        await self._persister.load(ledger_id)

    def _on_loaded(self, before: Position, finished: list[Position]) -> None:
        self._state.note(finished)
        if finished and self.on_acknowledged_late is not None:
            self.on_acknowledged_late(finished)
        if before != self._state.mark_delete_position:
            self._after_change(before)

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""
        return self._state.is_acknowledged(position)

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch's unacknowledged indexes (bit set); None if they are all of them."""
        if not self._state.batch_deleted_indexes:
            return None
        return self._state.batch_ack_set(position)

    async def unacknowledged_at(self, number: int) -> Position | None:
        """The position of the `number`-th entry, from 1, that is not acknowledged; None beyond.

        Raises:
            StorageError: Acknowledgements are not in memory, and can't be read now.

        Source: ManagedCursor.asyncGetNthEntry.
        """
        assert number >= 1, f"entry number {number}"
        await self.load_acknowledgements()
        if number > self._state.backlog_count():
            return None
        return self._state.position_after_skipping(number, counts_acknowledged=False)

    async def load_acknowledgements(self) -> None:
        """Read all acknowledgements into memory, so that `is_acknowledged` knows each of them.

        Raises:
            StorageError: They can't be read now.
        """
        if self._persister is not None:
            await self._persister.load_all()

    # Moving

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""
        self._state.rewind()
        self._reading.forget_ahead()

    def pass_over(self, positions: PositionRangeSet | None) -> None:
        """Read none of `positions` from now on; the set may change. None: read all again.

        It spares reading; some of them may be returned all the same, among others.
        """
        self._state.passed_over = positions

    def unacknowledged_of(self, positions: PositionRangeSet) -> PositionRangeSet:
        """Those of `positions` that are not acknowledged, as far as that is in memory."""
        return self._state.unacknowledged_of(positions)

    def seek(self, position: Position, *, is_forced: bool = False) -> None:
        """Read on from `position`; not before the mark-delete position unless forced."""
        self._state.seek(position, is_forced=is_forced)
        self._reading.forget_ahead()

    async def reset(self, position: Position, ack_set: Sequence[int] | None = None) -> None:
        """Make `position` the next entry to deliver, as if all before it were acknowledged.

        The new state is stored first. EARLIEST and LATEST mean the ends of the topic; any other
        position that does not exist becomes the next one that does.

        Raises:
            CursorBusyError: Another reset is under way.
            CursorClosedError: The cursor is closed.
            ManagedLedgerFencedError: Another owner has the ledger.
            StorageError, MetadataError: It could not be written; nothing has changed.
        """
        self._raise_if_closed()
        if self._is_resetting:
            raise CursorBusyError(f"{self.name}: a reset is under way")
        self._is_resetting = True
        try:
            # This waits for a trim that is under way: it might delete the entries to deliver next.
            async with self._ledgers_kept():
                await self._reset(position, ack_set)
        finally:
            self._is_resetting = False

    async def _reset(self, position: Position, ack_set: Sequence[int] | None) -> None:
        target = self._state.reset_target(position, ack_set)
        if self._persister is not None:
            await self._persister.write_reset(target)
        self._raise_if_closed()
        before = self._state.mark_delete_position
        self._state.become(target, self._clock.monotonic_seconds())
        self._reading.forget_ahead()
        self._after_change(before)

    async def skip(
        self, count: int, *, counts_acknowledged: bool = False, up_to: Position = LATEST
    ) -> None:
        """Acknowledge the next `count` entries of the backlog, none of them after `up_to`.

        Raises:
            StorageError: Acknowledgements are not in memory, and can't be read now.
        """
        if not counts_acknowledged:
            await self.load_acknowledgements()
        end = self._state.position_after_skipping(count, counts_acknowledged=counts_acknowledged)
        self._acknowledge_through(min(end, self._state.ledgers.last_entry_up_to(up_to)))

    async def clear_backlog(self, *, up_to: Position = LATEST) -> None:
        """Acknowledge all entries up to the last one or `up_to`, whichever comes first."""
        self._acknowledge_through(self._state.ledgers.last_entry_up_to(up_to))

    def _acknowledge_through(self, position: Position) -> None:
        if position > self._state.mark_delete_position:
            self.acknowledge_cumulative(position)

    def on_trimmed(self) -> None:
        """Move the positions over ledgers that were deleted."""
        self._state.settle()

    def set_persist_interval(self, seconds: float) -> None:
        """Begin writes at most once in `seconds` from now on, pending ones included."""
        self._state.set_persist_interval(seconds)
        if self._persister is not None:
            self._persister.reschedule()

    # Numbers

    def backlog_count(self) -> int:
        """The exact number of entries that are not acknowledged."""
        return self._state.backlog_count()

    def backlog_bytes(self) -> int:
        """Estimated bytes after the mark-delete position, acknowledged ones too."""
        return self._state.backlog_bytes()

    def entries_to_read_count(self) -> int:
        """Entries from the read position on, acknowledged ones included."""
        return self._state.entries_to_read_count()

    def has_more_entries(self) -> bool:
        """Whether there is an entry at or after the read position."""
        return self._state.has_more_entries()

    @property
    def ranges_not_persisted_count(self) -> int:
        """Ranges and batches that the last write had to leave out."""
        return 0 if self._persister is None else self._persister.ranges_not_persisted_count

    @property
    def ranges_over_limit_count(self) -> int:
        """Ranges and batches beyond the limits of the settings; they are stored all the same."""
        return 0 if self._persister is None else self._persister.ranges_over_limit_count

    def individual_ranges_count(self) -> int:
        """Ranges of individually acknowledged entries above the mark-delete position."""
        return self._state.ranges_count()

    def stats(self) -> CursorStats:
        """A snapshot of the cursor's statistics."""
        state, persister = self._state, self._persister
        store = None if persister is None else persister.store
        shown = islice(state.individual_deleted_messages.ranges(), _MAX_RANGES_SHOWN)
        backlog = state.backlog_count()
        return CursorStats(
            mark_delete_position=state.mark_delete_position,
            read_position=state.read_position,
            is_waiting=self._watch.is_waiting(self),
            pending_reads_count=self._reading.reads_count,
            pending_replay_reads_count=self._reading.replay_reads_count,
            messages_consumed_count=state.ledgers.entries_added_count - backlog,
            cursor_ledger_id=self.cursor_ledger_id,
            cursor_ledger_last_entry_id=-1 if store is None else store.last_entry_id,
            individually_deleted_messages="[" + ",".join(map(str, shown)) + "]",
            last_ledger_switch_millis=0 if store is None else store.last_switch_millis,
            state=self._state_name(),
            backlog_count=backlog,
            entries_to_read_count=state.entries_to_read_count(),
            ranges_not_persisted_count=self.ranges_not_persisted_count,
            ranges_over_limit_count=self.ranges_over_limit_count,
            properties=dict(state.properties),
        )

    def _state_name(self) -> str:
        if self._is_closed:
            return "Closed"
        return "NoLedger" if self.cursor_ledger_id == NO_LEDGER else "Open"

    # Caching

    def set_active(self) -> None:
        """Cache entries for this cursor while it tails; called when it gets consumers."""
        self._set_activity(is_active=True)

    def set_inactive(self) -> None:
        """Cache no more entries for this cursor; called when it has no consumers."""
        self._set_activity(is_active=False)

    def _set_activity(self, *, is_active: bool) -> None:
        if self._is_active != is_active and not (self._is_closed and is_active):
            self._is_active = is_active
            self._watch.on_activity_changed(self)

    # Writing

    def set_properties(self, properties: Mapping[str, int]) -> None:
        """Replace the numbers stored with the position; written with the next change."""
        self._raise_if_closed()
        self._state.set_properties(properties, self._clock.monotonic_seconds())
        if self._persister is not None:
            self._persister.schedule()

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties durably; internal ones stay.

        Raises:
            ValueError: A name begins with `#pulsar.internal.`.
            ManagedLedgerError: It is not durable, or closed.
            MetadataError: It could not be stored; nothing has changed.
        """
        await self._durable().set_cursor_properties(properties)

    async def set_internal_property(self, name: str, value: str | None) -> None:
        """Set or remove (None) one internal property durably; the name gets the prefix.

        Raises:
            ManagedLedgerError: It is not durable, or closed.
            MetadataError: It could not be stored; nothing has changed.
        """
        await self._durable().set_internal_property(name, value)

    async def change_internal_properties(self, changes: Mapping[str, str | None]) -> None:
        """Set or remove (None) internal properties in one durable write; names get the prefix.

        Raises:
            ManagedLedgerError: It is not durable, or closed.
            MetadataError: It could not be stored; nothing has changed.
        """
        await self._durable().change_internal_properties(changes)

    async def mark_delete_in_record(
        self, position: Position, properties: Mapping[str, int], *, without: str
    ) -> None:
        """Acknowledge everything up to `position`, and store that in the metadata store at once.

        One write moves the cursor, replaces its properties and removes the internal property
        `without`, so that the record itself names the ledgers in `properties`.

        Raises:
            InvalidCursorPositionError: Past the last entry, or before the mark-delete position.
            ManagedLedgerError: It is not durable, or closed.
            MetadataError: It is not stored, or the outcome is unknown; the cursor has moved in
                memory, and the state is written later.
        """
        persister = self._durable()
        self.acknowledge_cumulative(position, properties=properties)
        await persister.write_into_record(without=without)

    def _durable(self) -> CursorPersister:
        self._raise_if_closed()
        if self._persister is None:
            raise ManagedLedgerError(f"{self.name}: the cursor is not durable")
        return self._persister

    async def flush(self) -> None:
        """Write the state now if it is dirty.

        Raises:
            StorageError, MetadataError: It could not be written; it will be tried again.
        """
        if self._persister is not None:
            await self._persister.flush()

    # The end

    async def close(self) -> None:
        """Write the state and release the cursor; reads under way fail.

        Raises:
            StorageError, MetadataError: The state could not be written; it is released all the
                same.
        """
        if self._is_closed:
            return
        self._release()
        try:
            if self._persister is not None:
                await self._persister.close()
        finally:
            self._watch.on_cursor_closed(self)

    def _release(self) -> None:
        self.set_inactive()
        self.cancel_wait()
        self._is_closed = True
        self._reading.close()

    def abandon(self) -> None:
        """Stop without writing: the managed ledger is another owner's, or is being deleted."""
        if not self._is_closed:
            self._release()
            if self._persister is not None:
                self._persister.abandon()
            self._watch.on_cursor_abandoned(self)

    async def delete(self) -> None:
        """Remove the record and the cursor ledger for good.

        Raises:
            MetadataError: It could not be removed; the cursor goes on.
            ManagedLedgerFencedError: Another owner changed it.
        """
        if self._persister is not None:
            await self._persister.delete(self.owned_ledger_ids())
        self.abandon()

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise CursorClosedError(f"{self.name}: the cursor is closed")
