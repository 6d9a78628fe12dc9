"""`CursorPersister`: writes a durable cursor's state when it is due or requested (edge).

The common write is one append to the cursor ledger, without a task: the flusher begins it when it
is due, the ledger's confirmation ends it. Everything else (a first or a new cursor ledger, a reset,
properties, closing) changes the record too and happens one at a time, under a lock; a due write
waits for that lock. If no cursor ledger can be created, the record takes the state.

A state too large for one entry is written in segments by a CursorSegmentSaver, a small change of
it without a task, too. Limits of the settings never drop an acknowledgement: those beyond them are
counted, and those that could not be written anywhere stay dirty. If the bit sets of batches make a
segment larger than an entry may be, the highest batches are left out, counted, and stay in memory.

While clients ask for receipts of acknowledgements, a write begins when the one before has ended,
in the same turn of the loop, and has only what changed since (`CursorChangeLog`), unless the whole
state is as short. At most a second later an entry has the ranges that fit, too. A receipt waits for
the write that covers it; a failed write is tried once more, in a new cursor ledger, before the
receipt becomes an error.

What always holds: `CursorState.persisted` is called only for a state that recovery will find.

Source: internalMarkDelete, internalFlushPendingMarkDeletes in ManagedCursorImpl.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from pulsar_py.common.errors import (
    CursorClosedError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.change_log import CursorChangeLog
from pulsar_py.managed_ledger.cursors.flusher import CursorFlusher
from pulsar_py.managed_ledger.cursors.format import INTERNAL_PREFIX, NO_LEDGER
from pulsar_py.managed_ledger.cursors.memory import CursorMemory
from pulsar_py.managed_ledger.cursors.paging import MAX_BATCHES_BYTES, fits_one_entry
from pulsar_py.managed_ledger.cursors.segment_saver import (
    CursorSegmentSaver,
    OnLoaded,
    ignore_loaded,
)
from pulsar_py.managed_ledger.cursors.segments import (
    SHOWN_RANGES,
    SegmentKey,
    SegmentRef,
    changed_content,
    encode_changes,
    segment_keys,
)
from pulsar_py.managed_ledger.cursors.state import CursorChanges, CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore, OnWritten, encode_state
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable, WaitingReceipts
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig

logger = logging.getLogger(__name__)

_FEW_RANGES = 32
"""A state with at most so many is written as a whole: an entry with its changes isn't shorter. So
what is acknowledged after it need not be noted either."""


class PersisterOwner(Protocol):
    """The part of the ManagedLedger that persisting a cursor uses."""

    name: str
    config: ManagedLedgerConfig
    clock: Clock
    tasks: TaskOwner
    flusher: CursorFlusher

    cursor_memory: CursorMemory

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """Called when the durable mark-delete position of a cursor has moved."""

    @property
    def is_fenced(self) -> bool:
        """Whether another owner has the managed ledger."""

    def fence(self, error: Exception) -> None:
        """Stop the managed ledger: another owner has it."""


class CursorPersister:
    """The writes of one durable cursor. Owned by it."""

    def __init__(
        self,
        name: str,
        owner: PersisterOwner,
        state: CursorState,
        store: CursorStore,
        *,
        on_loaded: OnLoaded = ignore_loaded,
    ) -> None:
        self._name = name
        self._owner = owner
        self._state = state
        self._clock = owner.clock
        self._lock = asyncio.Lock()  # held while the record or a new cursor ledger is written
        self._is_closed = False  # or is being deleted
        self._is_ended = False  # closed or abandoned: a failed deletion does not bring it back
        self._is_deleted = False  # there is no record any more: nothing may write one
        self._is_scheduled = False  # the flusher has a due time of it
        self._is_loading = False  # a task for wanted ledgers is under way
        self._saver = CursorSegmentSaver(
            name, state, store, owner.cursor_memory, owner.clock, on_loaded=on_loaded
        )
        self._receipts = WaitingReceipts()
        self._is_soon = False  # the flusher will call `write_for_receipts`
        self._were_receipts_asked = False  # since the last whole state
        self._ranges_shown_at = float("-inf")  # when an entry had all ranges, or those that fit
        # What was acknowledged since the last write; None as long as nobody asks for receipts.
        self.changes: CursorChangeLog | None = None
        self.store = store
        self.ranges_not_persisted_count = 0  # ranges and batches that the last write left out
        self.ranges_over_limit_count = 0  # those that it wrote beyond the settings' limits
        if state.pages.is_tracking:
            self._saver.restored()

    def schedule(self) -> None:
        """Let the flusher write the state when it is due."""
        if self._is_scheduled or self._is_closed or self._owner.is_fenced:
            return
        due_at = self._state.due_at()
        if due_at is not None:
            self._is_scheduled = True
            self._owner.flusher.schedule(self, due_at)

    def reschedule(self) -> None:
        """Tell the flusher that the due time changed; a call at the old time does nothing."""
        self._is_scheduled = False
        self.schedule()

    def write_if_due(self) -> None:
        """Begin a write if one is due; called by the flusher."""
        self._is_scheduled = False
        if self._is_closed or self._owner.is_fenced:
            return
        changes = self._state.changes_due(self._clock.monotonic_seconds())
        if changes is None:
            self.schedule()
            return
        self._begin(changes)

    def when_durable(self, on_durable: OnDurable, number: int = 0) -> None:
        """Call `on_durable` when all that was acknowledged so far is durable, or never will be.

        That may be at once. It gets `number`, together with those of its other calls that the same
        write covers. Errors are a StorageError, a MetadataError or a ManagedLedgerError.
        """
        # Hot path: acknowledge with a receipt. While receipts wait, a write for them will begin.
        numbers = self._receipts.waiting.get(on_durable)
        if numbers is not None:
            numbers.append(number)
            return
        state = self._state
        if self._is_closed or not (state.is_dirty or state.is_write_in_flight):
            is_lost = self._is_closed and state.is_dirty
            on_durable((number,), self._closed_error() if is_lost else None)
            return
        self._were_receipts_asked = True
        if self.changes is None:
            self.changes = CursorChangeLog(self._state)
        self._receipts.add(on_durable, number)
        self._write_soon()

    def _write_soon(self) -> None:
        if not self._is_soon:
            self._is_soon = True
            self._owner.flusher.soon(self)

    def write_for_receipts(self) -> None:
        """Begin a write if receipts wait for one and none is under way; called by the flusher."""
        self._is_soon = False
        self._begin_for_receipts()

    def _begin_for_receipts(self) -> None:
        if not self._receipts or self._is_closed:
            return
        if self._owner.is_fenced:
            self._receipts.end(self._fenced_error())
            return
        changes = self._state.changes_due(self._clock.monotonic_seconds(), is_forced=True)
        if changes is not None:
            self._begin(changes)
        elif not self._state.is_write_in_flight:
            self._receipts.end(None)

    def _begin(self, changes: CursorChanges) -> None:
        """Write the state, without a task if possible."""
        self._receipts.begin()
        if not self._lock.locked() and self._try_write(partial(self._on_written, changes)):
            return
        self._owner.tasks.spawn(self._write_slowly(changes), f"write cursor {self._name}")

    def _try_write(self, on_written: OnWritten) -> bool:
        """Append the state without waiting; False without a cursor ledger, or if it is large."""
        if self.changes is not None and self._try_write_changes(self.changes, on_written):
            return True
        self._begin_whole_state()
        state, config = self._state, self._owner.config
        if not fits_one_entry(state, config.max_ranges_in_cursor_entry):
            if not self._saver.try_save(config, on_written):
                return False
            self._note_left_out(self._saver.left_out_count)
            return True
        if not self.store.can_append(config):
            return False
        if not self.store.try_append([encode_state(state, config)], config, on_written):
            return False
        self._is_small()
        return True

    def _begin_whole_state(self) -> None:
        """A whole state is encoded from now on: changes are counted from here."""
        self._ranges_shown_at = self._clock.monotonic_seconds()
        if self.changes is not None:
            if not self._were_receipts_asked:
                self.changes.rest()
                self.changes = None
            elif self._has_few_ranges():
                # The next write is a whole state, too; if it has many ranges, they are new.
                self.changes.rest()
            else:
                self.changes.begin()

    def _has_few_ranges(self) -> bool:
        """Whether the whole state is as short as its changes."""
        most = min(_FEW_RANGES, self._owner.config.max_ranges_in_cursor_entry)
        return fits_one_entry(self._state, most)

    def _try_write_changes(self, log: CursorChangeLog, on_written: OnWritten) -> bool:
        """Append what changed without waiting; False if the whole state has to be written."""
        state, store, config = self._state, self.store, self._owner.config
        if not log.is_complete or log.is_long or not store.can_append(config):
            return False
        now = self._clock.monotonic_seconds()
        shows_ranges = now - self._ranges_shown_at >= config.cursor_persist_interval_seconds
        max_ranges = SHOWN_RANGES if shows_ranges else _FEW_RANGES
        if fits_one_entry(state, min(max_ranges, config.max_ranges_in_cursor_entry)):
            return False
        data = encode_changes(log.take(), state, shows_ranges=shows_ranges)
        log.written(len(data))
        if shows_ranges:
            self._ranges_shown_at = now

        def on_appended(error: Exception | None) -> None:
            if error is None and not shows_ranges:
                # Still dirty: an entry with the ranges that fit is due an interval from now.
                self._state.doubt_stored(self._clock.monotonic_seconds())
            on_written(error)

        return store.try_append([data], config, on_appended)

    def _is_small(self) -> None:
        """Note that the state was appended as one entry."""
        if self._state.pages.is_tracking:
            self._state.pages.stop_tracking()
            self._saver.close()

    async def _write_slowly(self, changes: CursorChanges) -> None:
        """Write in a task: to a new cursor ledger, or else to the record."""
        error: Exception | None = None
        await self._owner.flusher.until_few_openings()
        try:
            async with self._lock:
                if self._is_closed:
                    return
                await self._write_now(self._state)
        except (StorageError, MetadataError, ManagedLedgerError) as failure:
            error = failure
        self._on_written(changes, error)
        if error is not None:
            self._receipts.end(error)

    async def _write_now(self, content: CursorState) -> None:
        """Write a state: to the cursor ledger, to a new one, or to the record.

        The caller holds the lock.
        """
        self._raise_if_fenced()
        self._begin_whole_state()
        config = self._owner.config
        try:
            if fits_one_entry(content, config.max_ranges_in_cursor_entry):
                await self._write_small(content)
            else:
                assert content is self._state, "what a cursor is reset to is small"
                await self._saver.save(config)
        except (StorageError, MetadataError) as error:
            self._changes_lost()
            logger.warning(
                "cursor ledger failed", extra={"cursor": self._name, "error": str(error)}
            )
            await self._write_record(content, error)
        except ManagedLedgerFencedError as error:
            self._owner.fence(error)
            raise
        else:
            is_small = not content.pages.is_tracking
            self._note_left_out(0 if is_small else self._saver.left_out_count)

    async def _write_small(self, content: CursorState) -> None:
        store, config = self.store, self._owner.config
        # Encoded before the ledger is made: meanwhile the state may grow beyond one entry.
        entries = [encode_state(content, config)]

        async def write_state() -> dict[SegmentKey, SegmentRef]:
            await store.append_new(entries)
            return {}

        if content is self._state:
            self._is_small()
        if not await store.append_and_wait(entries, config):
            await store.switch_ledger(content, config, write_state)

    async def _write_record(self, content: CursorState, error: Exception) -> None:
        """Store as much of a state in the record as fits, for lack of a cursor ledger.

        Raises:
            StorageError, MetadataError: Not all of the state is durable.
        """
        store, pages = self.store, content.pages
        limit = self._owner.config.max_unacked_ranges_to_persist_in_metadata
        try:
            if fits_record(content, limit):
                old_ledger_id = store.ledger_id
                await store.write_record(content)
                await store.drop_ledger(old_ledger_id)
                self.ranges_not_persisted_count = 0
                return
            if store.ledger_id == NO_LEDGER:
                left_out_count = await store.write_part(content, limit)
            else:
                # The old ledger has all pages that are not dirty: only those go into the record.
                keys = segment_keys(content) if pages.dirty is None else pages.dirty
                changed = changed_content(content, sorted(SegmentKey(*key) for key in keys))
                left_out_count = await store.write_part(changed, limit)
        except ManagedLedgerFencedError as lost:
            self._owner.fence(lost)
            raise
        self._note_left_out(left_out_count)
        if self.ranges_not_persisted_count:
            raise error

    def _on_written(self, changes: CursorChanges, error: Exception | None) -> None:
        before = self._state.persistent_mark_delete_position
        if error is None:
            self._state.persisted(changes)
            self._note_stored()
            self._owner.on_cursor_moved(before, self._state.persistent_mark_delete_position)
            self._receipts.ended()
        else:
            self._state.failed(changes)
            self._changes_lost()
            self._receipts.put_back()
            logger.warning(
                "cursor not written",
                extra={"topic": self._owner.name, "cursor": self._name, "error": str(error)},
            )
            self._fence_if_lost(error)
        self.schedule()
        if not self._receipts:
            return
        if error is None and not self._lock.locked():
            self._begin_for_receipts()  # the disk is idle: each turn of the loop counts
        else:
            self._write_soon()

    def _note_stored(self) -> None:
        """Count what a whole state that was written has; changes alone alter none of it."""
        if self.changes is not None:
            if self.changes.has_entries:
                return
            self._were_receipts_asked = bool(self._receipts)
            self.changes.stored(sum(ref.size_bytes for ref in self.store.refs.values()))
        self._note_limits()
        if self._state.pages.is_tracking:
            self._saver.tell_memory()

    def _changes_lost(self) -> None:
        """A write failed: the next one has the whole state."""
        if self.changes is not None:
            self.changes.fail()

    def _fence_if_lost(self, error: Exception) -> None:
        if isinstance(error, ManagedLedgerFencedError):
            self._owner.fence(error)

    def _note_left_out(self, left_out: int) -> None:
        if left_out and not self.ranges_not_persisted_count:
            logger.warning(
                "acknowledgements exceed what can be stored",
                extra={"topic": self._owner.name, "cursor": self._name, "left_out": left_out},
            )
        self.ranges_not_persisted_count = left_out

    def _note_limits(self) -> None:
        """Count the ranges and batches beyond the settings' limits, and warn when that begins."""
        state, config = self._state, self._owner.config
        max_ranges = config.max_unacked_ranges_to_persist
        max_batches = config.max_batch_deleted_indexes_to_persist
        over = max(state.batches_count() - max_batches, 0)
        if state.acknowledged_above_count() > max_ranges:
            over += max(state.ranges_count() - max_ranges, 0)
        if over and not self.ranges_over_limit_count:
            logger.warning(
                "acknowledgements exceed the limits; all are persisted",
                extra={"topic": self._owner.name, "cursor": self._name, "over_limit": over},
            )
        self.ranges_over_limit_count = over

    async def load(self, ledger_id: int | None = None) -> None:
        """Load cold ledgers: one, or all that are wanted.

        Raises:
            StorageError: It can't be read now.
        """
        async with self._lock:
            if ledger_id is not None:
                await self._saver.load(ledger_id, self._owner.config)
            await self._saver.load_wanted(self._owner.config)

    async def load_all(self) -> None:
        """Load all cold ledgers.

        Raises:
            StorageError: It can't be read now.
        """
        async with self._lock:
            await self._saver.load_all(self._owner.config)

    def load_soon(self) -> None:
        """Load wanted ledgers in the background."""
        if self._state.pages.wanted and not self._is_loading and not self._is_closed:
            self._is_loading = True
            self._owner.tasks.spawn(self._load_wanted(), f"load cursor {self._name}")

    async def _load_wanted(self) -> None:
        try:
            await self.load()
        except StorageError as error:
            logger.warning(
                "cursor state can't be loaded now",
                extra={"topic": self._owner.name, "cursor": self._name, "error": str(error)},
            )
        finally:
            self._is_loading = False
        self.schedule()

    async def flush(self) -> None:
        """Write the state now if it is dirty.

        Raises:
            StorageError, MetadataError: It could not be written; it will be tried again.
            CursorClosedError: The cursor was closed or abandoned before.
        """
        async with self._lock:
            if self._is_deleted:
                return
            if self._is_closed and self._state.is_dirty:
                raise self._closed_error()
            changes = self._state.changes_due(self._clock.monotonic_seconds(), is_forced=True)
            if changes is None:
                if self._state.is_write_in_flight:
                    await self._write_now(self._state)
                return
            try:
                await self._write_now(self._state)
            except (StorageError, MetadataError, ManagedLedgerError) as error:
                self._on_written(changes, error)
                raise
            self._on_written(changes, None)

    async def write_reset(self, target: CursorState) -> None:
        """Make the state of a reset durable before the cursor takes it over.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It may not be durable.
        """
        async with self._lock:
            self._raise_if_deleted()
            try:
                await self._write_now(target)
            except (StorageError, MetadataError, ManagedLedgerError):
                self._state.doubt_stored(self._clock.monotonic_seconds())
                self.schedule()
                raise

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties durably; internal ones stay.

        Raises:
            ValueError: A name begins with `#pulsar.internal.`.
            MetadataError: It could not be stored; nothing has changed.
        """
        for name in properties:
            if name.startswith(INTERNAL_PREFIX):
                raise ValueError(
                    f"property {name!r}: names with the prefix {INTERNAL_PREFIX!r} belong to the "
                    "broker, choose another name"
                )
        internal = {
            name: value
            for name, value in self.store.cursor_properties.items()
            if name.startswith(INTERNAL_PREFIX)
        }
        await self._store_cursor_properties({**properties, **internal})

    async def set_internal_property(self, name: str, value: str | None) -> None:
        """Set or remove (None) one internal property durably; the name gets the prefix.

        Raises:
            MetadataError: It could not be stored; nothing has changed.
        """
        await self.change_internal_properties({name: value})

    async def change_internal_properties(self, changes: Mapping[str, str | None]) -> None:
        """Set or remove (None) internal properties in one durable write; names get the prefix.

        Raises:
            MetadataError: It could not be stored; nothing has changed.
        """
        changed = dict(self.store.cursor_properties)
        for name, value in changes.items():
            changed.pop(INTERNAL_PREFIX + name, None)
            if value is not None:
                changed[INTERNAL_PREFIX + name] = value
        await self._store_cursor_properties(changed)

    async def write_into_record(self, *, without: str) -> None:
        """Store the whole state in the record, without a cursor ledger and one internal property.

        Raises:
            MetadataError, ManagedLedgerFencedError: It is not stored, or the outcome is unknown.
        """
        store = self.store
        async with self._lock:
            self._raise_if_deleted()
            self._raise_if_fenced()
            before, old_ledger_id = store.cursor_properties, store.ledger_id
            store.cursor_properties = {
                name: value for name, value in before.items() if name != INTERNAL_PREFIX + without
            }
            try:
                await store.write_record(self._state)
            except (MetadataError, ManagedLedgerError) as error:
                store.cursor_properties = before
                self._fence_if_lost(error)
                raise
            await store.drop_ledger(old_ledger_id)

    async def _store_cursor_properties(self, properties: dict[str, str]) -> None:
        store = self.store
        async with self._lock:
            self._raise_if_deleted()
            self._raise_if_fenced()
            before, store.cursor_properties = store.cursor_properties, properties
            try:
                await store.write_record(self._state, ledger_id=store.ledger_id)
            except (MetadataError, ManagedLedgerError) as error:
                store.cursor_properties = before
                self._fence_if_lost(error)
                raise

    async def close(self) -> None:
        """Write a dirty state, a small one into the record; nothing is written afterwards.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It could not be written.
        """
        self._is_closed = self._is_ended = True
        async with self._lock:
            try:
                if not (self._is_deleted or self._owner.is_fenced):
                    await self._close_store()
            except (StorageError, MetadataError, ManagedLedgerError) as error:
                self._receipts.end(error)
                raise
            finally:
                self._saver.close()
        self._receipts.end(self._fenced_error() if self._owner.is_fenced else None)

    async def _close_store(self) -> None:
        store, state, config = self.store, self._state, self._owner.config
        is_whole = store.ledger_id == NO_LEDGER or store.last_entry_id < 0
        if is_whole and not state.is_dirty:
            await store.close_ledger()
            return  # the record, or a cursor ledger of an earlier broker, has the whole state
        if not fits_record(state, config.max_unacked_ranges_to_persist_in_metadata):
            await self._write_now(state)
            await store.close_ledger()
            return
        old_ledger_id = store.ledger_id
        try:
            await store.write_record(state)
        except ManagedLedgerFencedError as error:
            self._owner.fence(error)
            raise
        await store.drop_ledger(old_ledger_id)

    def abandon(self) -> None:
        """Write nothing any more."""
        self._is_closed = self._is_ended = True
        self._saver.close()
        self._receipts.end(self._closed_error())

    async def delete(self, owned_ledger_ids: Sequence[int] = ()) -> None:
        """Remove the record, the cursor ledger and the ledgers that end with it for good.

        Raises:
            MetadataError: It could not be removed, or the outcome is unknown; the cursor goes on.
            ManagedLedgerFencedError: Another owner changed it.
        """
        self._is_closed = True
        with OnFailure(self._go_on):
            async with self._lock:
                await self.store.delete(owned_ledger_ids)
                self._is_deleted = True

    def _go_on(self) -> None:
        self._is_closed = self._is_ended
        self.schedule()

    def _raise_if_fenced(self) -> None:
        """Raise if another owner has the managed ledger: only that one may write these keys."""
        if self._owner.is_fenced:
            raise self._fenced_error()

    def _fenced_error(self) -> ManagedLedgerFencedError:
        return ManagedLedgerFencedError(f"{self._name}: another owner has the managed ledger")

    def _closed_error(self) -> CursorClosedError:
        return CursorClosedError(f"{self._name}: the cursor was closed before it was written")

    def _raise_if_deleted(self) -> None:
        if self._is_deleted:
            raise CursorClosedError(f"{self._name}: the cursor was deleted")


def fits_record(state: CursorState, limit: int) -> bool:
    """Whether the whole state is small enough for the metadata store."""
    batches_count = len(state.batch_deleted_indexes)
    if state.pages.cold or batches_count > limit:
        return False
    if state.batch_deleted_indexes.size_bytes() > MAX_BATCHES_BYTES:
        return False
    return state.individual_deleted_messages.ranges_count() + batches_count <= limit
