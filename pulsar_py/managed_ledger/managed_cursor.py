"""ManagedCursor: one subscription's place in a managed ledger (edge).

Carries out what `CursorState` decides: reads runs of entries from the caches or from storage, and
has the state written by a `CursorStore`, a second after an acknowledgement at the latest, idle or
not. A non-durable cursor has no store and is gone with its owner.

What always holds: acknowledgements and moves happen in memory at once, and without waiting; only a
reset is written first. A read that was overtaken by a move of the cursor has no effect.

Source: ManagedCursorImpl, NonDurableCursorImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    CorruptDataError,
    CursorBusyError,
    CursorClosedError,
    EntryNotFoundError,
    LedgerNotFoundError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.position import LATEST, Position
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.cursor_flusher import CursorFlusher
from pulsar_py.managed_ledger.cursor_format import INTERNAL_PREFIX, NO_LEDGER, Encoded
from pulsar_py.managed_ledger.cursor_state import CursorChanges, CursorState, ReadRun
from pulsar_py.managed_ledger.cursor_store import CursorStore, encode_state
from pulsar_py.managed_ledger.entry import Entry
from pulsar_py.managed_ledger.entry_cache import EntryCacheManager
from pulsar_py.managed_ledger.read_ahead import ReadAhead
from pulsar_py.managed_ledger.stats import CursorStats

logger = logging.getLogger(__name__)

_MAX_RANGES_SHOWN = 1000


class CursorOwner(Protocol):
    """What a cursor needs of its ManagedLedger."""

    name: str
    config: ManagedLedgerConfig
    clock: Clock
    tasks: TaskOwner
    flusher: CursorFlusher
    cache_manager: EntryCacheManager

    def read_run_cached(
        self, ledger_id: int, first: int, last: int, max_bytes: int
    ) -> list[Entry] | None:
        """Neighbouring entries that are in memory, at least the first; else None."""

    async def read_run(self, ledger_id: int, first: int, last: int, max_bytes: int) -> list[Entry]:
        """Neighbouring entries, at least the first."""

    def wait(self, cursor: ManagedCursor, callback: Callable[[], None]) -> None:
        """Call back once at the next confirmed group or at the end."""

    def cancel_wait(self, cursor: ManagedCursor) -> None:
        """Forget the callback."""

    def is_waiting(self, cursor: ManagedCursor) -> bool:
        """Whether it has one."""

    def on_activity_changed(self, cursor: ManagedCursor) -> None:
        """Its `is_active` changed."""

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """A durable cursor's written position moved."""

    def on_cursor_closed(self, cursor: ManagedCursor) -> None:
        """It is not in use any more."""

    def fence(self, error: Exception) -> None:
        """Another owner was seen."""


class ManagedCursor:
    """A durable or non-durable cursor. Owned by its ManagedLedger until closed or deleted.

    Invariant: read_position is after mark_delete_position.

    Pulsar's ManagedCursorImpl and NonDurableCursorImpl.
    """

    def __init__(
        self, name: str, owner: CursorOwner, state: CursorState, store: CursorStore | None
    ) -> None:
        self.name = name
        self.is_durable = store is not None
        # Called after the position moved, once a call.
        self.on_mark_delete_moved: Callable[[], None] | None = None
        self._owner = owner
        self._state = state
        self._store = store  # None: non-durable
        self._clock = owner.clock
        self._ahead = ReadAhead(owner.cache_manager)
        self._store_lock = asyncio.Lock()  # held while the record or a new cursor ledger is written
        self._reads_count = 0  # under way
        self._is_active = False
        self._is_closed = False
        self._is_resetting = False
        self._is_scheduled = False  # stands in the flusher
        self._ranges_not_persisted_count = 0  # what did not fit into the last write
        self.last_active_millis = self._clock.wall_time_millis()

    def __repr__(self) -> str:
        return f"ManagedCursor({self.name}, mark-delete {self.mark_delete_position})"

    # What it is

    @property
    def state(self) -> CursorState:
        """The decider, for statistics and tests."""
        return self._state

    @property
    def mark_delete_position(self) -> Position:
        """Everything up to it is acknowledged."""
        return self._state.mark_delete_position

    @property
    def persistent_mark_delete_position(self) -> Position:
        """A mark-delete position that survives a crash, or lies before it after a reset."""
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
        return {} if self._store is None else self._store.cursor_properties

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
        return NO_LEDGER if self._store is None else self._store.ledger_id

    # Reading

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> list[Entry] | None:
        """The next unacknowledged entries up to `max_position`, if they are in memory.

        Moves `read_position` past them. At least one entry whatever `max_bytes`; `[]` means there
        is nothing to read now, None that `read` has to be awaited. Hot path: tailing consume.
        """
        self._raise_if_closed()
        state = self._state
        found: list[Entry] = []
        while len(found) < max_entries:
            run = state.next_run(max_entries - len(found), max_position)
            if run is None:
                return found
            entries = self._ahead.take(run.ledger_id, run.first, run.last, max_bytes)
            if entries is None:
                entries = self._owner.read_run_cached(run.ledger_id, run.first, run.last, max_bytes)
            if entries is None:
                return found or None
            state.read_through(run.ledger_id, entries[-1].entry_id)
            if run.has_acknowledged:
                entries = self._unacknowledged(run, entries)
            found = found + entries if found else entries
            max_bytes -= sum([len(entry.data) for entry in entries])
            if max_bytes <= 0 and found:
                break
        return found

    def _unacknowledged(self, run: ReadRun, entries: list[Entry]) -> list[Entry]:
        waiting = self._state.individual_deleted_messages.missing_in(
            run.ledger_id, run.first, entries[-1].entry_id
        )
        return [entries[entry_id - run.first] for entry_id in waiting]

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> list[Entry]:
        """As `read_cached`, reading from storage. One at a time.

        If the cursor is rewound, moved or reset meanwhile, what was read is dropped and the result
        is empty.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        assert not self._reads_count, "one read at a time"
        self._reads_count += 1
        try:
            while True:
                found = self.read_cached(max_entries, max_bytes, max_position)
                if found is not None:
                    return found
                if not await self._fetch(max_entries, max_bytes, max_position):
                    return []
        finally:
            self._reads_count -= 1

    async def _fetch(self, max_entries: int, max_bytes: int, max_position: Position) -> bool:
        """Read the next run into `_ahead`; False if the cursor was moved meanwhile."""
        state = self._state
        config = self._owner.config
        run = state.next_run(max_entries, max_position)
        assert run is not None, "there was something to read"
        last = run.last
        if config.read_ahead_bytes > max_bytes:
            record = state.ledgers.ledgers[run.ledger_id]
            last = max(last, min(record.entries_count - 1, run.first + _AHEAD_ENTRIES))
            max_bytes = config.read_ahead_bytes
        generation = state.read_generation
        try:
            entries = await self._owner.read_run(run.ledger_id, run.first, last, max_bytes)
        except (LedgerNotFoundError, EntryNotFoundError, CorruptDataError) as error:
            if state.read_generation != generation or run.ledger_id not in state.ledgers.ledgers:
                return False
            if not config.skips_non_recoverable_data:
                raise
            self._skip_lost(run, error)
            return True
        self._raise_if_closed()
        if state.read_generation != generation:
            return False
        self._ahead.keep_at_least(entries, max_entries)
        return True

    def _skip_lost(self, run: ReadRun, error: StorageError) -> None:
        """Acknowledge what can't be read any more: one entry, or the rest of a lost ledger."""
        last = run.first
        if isinstance(error, LedgerNotFoundError):
            last = self._state.ledgers.ledgers[run.ledger_id].entries_count - 1
        logger.error(
            "lost entries skipped",
            extra={
                "topic": self._owner.name,
                "cursor": self.name,
                "ledger_id": run.ledger_id,
                "first_entry_id": run.first,
                "last_entry_id": last,
                "error": str(error),
            },
        )
        lost = [Position(run.ledger_id, entry_id) for entry_id in range(run.first, last + 1)]
        self.acknowledge(lost)

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call back once, soon, when there is an entry to read or the ledger was terminated.

        One callback at a time: a new one replaces the old one.
        """
        self._raise_if_closed()
        self._owner.wait(self, callback)

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""
        self._owner.cancel_wait(self)

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged, if they are in memory.

        In the order asked for; those missing in the result are acknowledged or gone.
        """
        self._raise_if_closed()
        found: list[Entry] = []
        for ledger_id, first, last in self._replay_runs(positions):
            following = first
            while following <= last:
                entries = self._owner.read_run_cached(ledger_id, following, last, _REPLAY_BYTES)
                if entries is None:
                    return None
                found += entries
                following += len(entries)
        return found

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, reading from storage.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        self._raise_if_closed()
        found: list[Entry] = []
        for ledger_id, first, last in self._replay_runs(positions):
            following = first
            while following <= last:
                entries = await self._read_replay_run(ledger_id, following, last)
                self._raise_if_closed()
                found += entries
                following += max(1, len(entries))
        return [entry for entry in found if not self._state.is_acknowledged(entry.position)]

    async def _read_replay_run(self, ledger_id: int, first: int, last: int) -> list[Entry]:
        entries = self._owner.read_run_cached(ledger_id, first, last, _REPLAY_BYTES)
        if entries is not None:
            return entries
        try:
            return await self._owner.read_run(ledger_id, first, last, _REPLAY_BYTES)
        except (LedgerNotFoundError, EntryNotFoundError, CorruptDataError) as error:
            if ledger_id in self._state.ledgers.ledgers:
                if not self._owner.config.skips_non_recoverable_data:
                    raise
                self._skip_lost(ReadRun(ledger_id, first, first, has_acknowledged=True), error)
            return []

    def _replay_runs(self, positions: Sequence[Position]) -> list[tuple[int, int, int]]:
        """Neighbours among the positions that exist and wait, as (ledger, first, last)."""
        state = self._state
        runs: list[tuple[int, int, int]] = []
        for position in positions:
            if state.is_acknowledged(position) or not state.ledgers.contains(position):
                continue
            if runs and runs[-1][0] == position[0] and runs[-1][2] + 1 == position[1]:
                runs[-1] = (position[0], runs[-1][1], position[1])
            else:
                runs.append((position[0], position[1], position[1]))
        return runs

    # Acknowledging

    def acknowledge(
        self,
        positions: Sequence[Position],
        ack_sets: Sequence[Sequence[int] | None] | None = None,
    ) -> None:
        """Acknowledge entries, or with an ack set the indexes whose bits are clear in it.

        In memory; written within a second. Hot path: consume.

        Raises:
            InvalidCursorPositionError: One is past the last entry; those before it are
                acknowledged, those after it are not.
            CursorClosedError: The cursor is closed.
        """
        self._raise_if_closed()
        before = self._state.mark_delete_position
        try:
            self._state.acknowledge(positions, ack_sets, self._clock.monotonic_seconds())
        finally:
            self._after_change(before)

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] | None = None,
        properties: Mapping[str, int] | None = None,
    ) -> None:
        """Acknowledge everything up to `position`, of that one only what `ack_set` leaves clear.

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

    def _after_change(self, before: Position) -> None:
        self.last_active_millis = self._clock.wall_time_millis()
        self._schedule_write()
        if before != self._state.mark_delete_position:
            if self.on_mark_delete_moved is not None:
                self.on_mark_delete_moved()
            if self._store is None:
                return

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""
        return self._state.is_acknowledged(position)

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch indexes still to deliver (bit set); None if all of them are."""
        if not self._state.batch_deleted_indexes:
            return None
        return self._state.batch_ack_set(position)

    # Moving

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""
        self._state.rewind()
        self._ahead.clear()

    def seek(self, position: Position, *, is_forced: bool = False) -> None:
        """Read on from `position`; not before the mark-delete position unless forced."""
        self._state.seek(position, is_forced=is_forced)
        self._ahead.clear()

    async def reset(self, position: Position, ack_set: Sequence[int] | None = None) -> None:
        """Make `position` the next entry to deliver, as if all before it were acknowledged.

        Persists first. EARLIEST and LATEST are understood; others become the next valid position.

        Raises:
            CursorBusyError: Another reset is under way.
            CursorClosedError: The cursor is closed.
            StorageError, MetadataError: It could not be written; nothing has changed.
        """
        self._raise_if_closed()
        if self._is_resetting:
            raise CursorBusyError(f"{self.name}: a reset is under way")
        self._is_resetting = True
        try:
            target = self._state.reset_target(position, ack_set)
            if self._store is not None:
                async with self._store_lock:
                    await self._write_now(self._store, target)
            self._raise_if_closed()
        finally:
            self._is_resetting = False
        before = self._state.mark_delete_position
        self._state.become(target, self._clock.monotonic_seconds())
        self._ahead.clear()
        self._after_change(before)

    async def skip(self, count: int, *, counts_acknowledged: bool = False) -> None:
        """Acknowledge the next `count` entries of the backlog."""
        self.acknowledge_cumulative(
            self._state.position_after_skipping(count, counts_acknowledged=counts_acknowledged)
        )

    async def clear_backlog(self) -> None:
        """Acknowledge everything there is."""
        last = self._state.ledgers.last_confirmed_entry
        if last > self._state.mark_delete_position:
            self.acknowledge_cumulative(last)

    def on_trimmed(self) -> None:
        """Ledgers were deleted: step over them."""
        self._state.settle()

    # Numbers

    def backlog_count(self) -> int:
        """Entries not acknowledged, exactly."""
        return self._state.backlog_count()

    def backlog_bytes(self) -> int:
        """Estimated bytes of the backlog."""
        return self._state.backlog_bytes()

    def entries_to_read_count(self) -> int:
        """Entries from the read position on, acknowledged ones included."""
        return self._state.entries_to_read_count()

    def has_more_entries(self) -> bool:
        """Whether an entry stands at or after the read position."""
        return self._state.has_more_entries()

    def individual_ranges_count(self) -> int:
        """Ranges of individually acknowledged entries above the mark-delete position."""
        return self._state.individual_deleted_messages.ranges_count()

    def stats(self) -> CursorStats:
        """Everything about it."""
        state, store = self._state, self._store
        shown = list(state.individual_deleted_messages.ranges())[:_MAX_RANGES_SHOWN]
        backlog = state.backlog_count()
        return CursorStats(
            mark_delete_position=state.mark_delete_position,
            read_position=state.read_position,
            is_waiting=self._owner.is_waiting(self),
            pending_reads_count=self._reads_count,
            messages_consumed_count=state.ledgers.entries_added_count - backlog,
            cursor_ledger_id=self.cursor_ledger_id,
            cursor_ledger_last_entry_id=-1 if store is None else store.last_entry_id,
            individually_deleted_messages="[" + ",".join(map(str, shown)) + "]",
            last_ledger_switch_millis=0 if store is None else store.last_switch_millis,
            state=self._state_name(),
            backlog_count=backlog,
            entries_to_read_count=state.entries_to_read_count(),
            ranges_not_persisted_count=self._ranges_not_persisted_count,
            properties=dict(state.properties),
        )

    def _state_name(self) -> str:
        if self._is_closed:
            return "Closed"
        return "NoLedger" if self.cursor_ledger_id == NO_LEDGER else "Open"

    # Caching

    def set_active(self) -> None:
        """Cache entries for it while it tails: it has consumers."""
        self._set_activity(is_active=True)

    def set_inactive(self) -> None:
        """Cache nothing for it."""
        self._set_activity(is_active=False)

    def _set_activity(self, *, is_active: bool) -> None:
        if self._is_active != is_active and not (self._is_closed and is_active):
            self._is_active = is_active
            self._owner.on_activity_changed(self)

    # Writing

    def set_properties(self, properties: Mapping[str, int]) -> None:
        """Replace the numbers stored with the position; written with the next change."""
        self._raise_if_closed()
        self._state.set_properties(properties, self._clock.monotonic_seconds())
        self._schedule_write()

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties durably; internal ones stay.

        Raises:
            ValueError: A name begins with `#pulsar.internal.`.
            MetadataError: It could not be stored; nothing has changed.
        """
        for name in properties:
            if name.startswith(INTERNAL_PREFIX):
                raise ValueError(f"property {name!r} is internal")
        internal = {
            name: value
            for name, value in self.cursor_properties.items()
            if name.startswith(INTERNAL_PREFIX)
        }
        await self._store_cursor_properties({**properties, **internal})

    async def set_internal_property(self, name: str, value: str | None) -> None:
        """Set or remove (None) one internal property durably; the name gets the prefix.

        Raises:
            MetadataError: It could not be stored; nothing has changed.
        """
        changed = dict(self.cursor_properties)
        changed.pop(INTERNAL_PREFIX + name, None)
        if value is not None:
            changed[INTERNAL_PREFIX + name] = value
        await self._store_cursor_properties(changed)

    async def _store_cursor_properties(self, properties: dict[str, str]) -> None:
        self._raise_if_closed()
        store = self._store
        if store is None:
            raise ManagedLedgerError(f"{self.name}: a non-durable cursor has no properties")
        async with self._store_lock:
            before, store.cursor_properties = store.cursor_properties, properties
            try:
                await store.write_record(self._state, ledger_id=store.ledger_id)
            except (MetadataError, ManagedLedgerError) as error:
                store.cursor_properties = before
                self._fence_if_lost(error)
                raise

    def _schedule_write(self) -> None:
        if self._store is None or self._is_scheduled or self._is_closed:
            return
        due_at = self._state.due_at()
        if due_at is not None:
            self._is_scheduled = True
            self._owner.flusher.schedule(self, due_at)

    def write_if_due(self) -> None:
        """Begin a write if one is due; called by the flusher."""
        self._is_scheduled = False
        store = self._store
        if store is None or self._is_closed:
            return
        changes = self._state.changes_due(self._clock.monotonic_seconds())
        if changes is None:
            self._schedule_write()
            return
        if not self._store_lock.locked():
            encoded = encode_state(self._state, self._owner.config)
            self._note_left_out(encoded)
            on_written = partial(self._on_written, changes)
            if store.try_append(encoded.data, self._owner.config, on_written):
                return
        self._owner.tasks.spawn(self._write_slowly(store, changes), f"write cursor {self.name}")

    async def _write_slowly(self, store: CursorStore, changes: CursorChanges) -> None:
        """Write to a new cursor ledger, or whatever takes the state."""
        error: Exception | None = None
        try:
            async with self._store_lock:
                if not self._is_closed:
                    await self._write_now(store, self._state)
        except (StorageError, MetadataError, ManagedLedgerError) as failure:
            error = failure
        self._on_written(changes, error)

    async def _write_now(self, store: CursorStore, content: CursorState) -> None:
        """Write a state: to the cursor ledger, to a new one, or to the record.

        The caller holds the lock.
        """
        config = self._owner.config
        encoded = encode_state(content, config)
        self._note_left_out(encoded)
        try:
            if not await store.append_and_wait(encoded.data, config):
                await store.switch_ledger(content, config)
        except (StorageError, MetadataError) as error:
            logger.warning("cursor ledger failed", extra={"cursor": self.name, "error": str(error)})
            old_ledger_id = store.ledger_id
            await store.write_record(
                content, max_ranges=config.max_unacked_ranges_to_persist_in_metadata
            )
            await store.drop_ledger(old_ledger_id)
        except ManagedLedgerFencedError as error:
            self._owner.fence(error)
            raise

    def _on_written(self, changes: CursorChanges, error: Exception | None) -> None:
        before = self._state.persistent_mark_delete_position
        if error is None:
            self._state.persisted(changes)
            self._owner.on_cursor_moved(before, self._state.persistent_mark_delete_position)
        else:
            self._state.failed(changes)
            logger.warning(
                "cursor not written",
                extra={"topic": self._owner.name, "cursor": self.name, "error": str(error)},
            )
            self._fence_if_lost(error)
        self._schedule_write()

    def _fence_if_lost(self, error: Exception) -> None:
        if isinstance(error, ManagedLedgerFencedError):
            self._owner.fence(error)

    def _note_left_out(self, encoded: Encoded) -> None:
        left_out = encoded.ranges_left_out_count + encoded.batches_left_out_count
        if left_out and not self._ranges_not_persisted_count:
            logger.warning(
                "acknowledgements exceed what is persisted",
                extra={"topic": self._owner.name, "cursor": self.name, "left_out": left_out},
            )
        self._ranges_not_persisted_count = left_out

    async def flush(self) -> None:
        """Write what is dirty now.

        Raises:
            StorageError, MetadataError: It could not be written; it will be tried again.
        """
        store = self._store
        if store is None:
            return
        async with self._store_lock:
            changes = self._state.changes_due(self._clock.monotonic_seconds(), is_forced=True)
            if changes is None:
                if self._state.is_write_in_flight:
                    await self._write_now(store, self._state)
                return
            try:
                await self._write_now(store, self._state)
            except (StorageError, MetadataError, ManagedLedgerError) as error:
                self._on_written(changes, error)
                raise
            self._on_written(changes, None)

    # The end

    async def close(self) -> None:
        """Persist and release; waiting reads fail. A non-durable cursor is forgotten.

        Raises:
            StorageError, MetadataError: The state could not be written; it is released all the
                same.
        """
        if self._is_closed:
            return
        self._release()
        try:
            if self._store is not None:
                async with self._store_lock:
                    await self._close_store(self._store)
        finally:
            self._owner.on_cursor_closed(self)

    def _release(self) -> None:
        self.set_inactive()
        self.cancel_wait()
        self._is_closed = True
        self._state.read_generation += 1
        self._ahead.clear()

    def abandon(self) -> None:
        """Stop without writing: the managed ledger is another owner's, or is being deleted."""
        if not self._is_closed:
            self._release()
            self._owner.on_cursor_closed(self)

    async def _close_store(self, store: CursorStore) -> None:
        state, config = self._state, self._owner.config
        is_whole = store.ledger_id == NO_LEDGER or store.last_entry_id < 0
        if is_whole and not state.is_dirty:
            return  # the record, or a cursor ledger of the last time, has it all
        in_metadata = config.max_unacked_ranges_to_persist_in_metadata
        ranges = state.individual_deleted_messages.ranges_count()
        if ranges + len(state.batch_deleted_indexes) > in_metadata:
            await self._write_now(store, state)
            await store.close_ledger()
            return
        old_ledger_id = store.ledger_id
        try:
            await store.write_record(state)
        except ManagedLedgerFencedError as error:
            self._owner.fence(error)
            raise
        await store.drop_ledger(old_ledger_id)

    async def delete(self) -> None:
        """Remove the record and the cursor ledger for good.

        Raises:
            MetadataError: It could not be removed.
        """
        self.abandon()
        if self._store is not None:
            async with self._store_lock:
                await self._store.delete()

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise CursorClosedError(f"{self.name}: the cursor is closed")


_AHEAD_ENTRIES = 100_000  # what one read-ahead asks for at most; its bytes end it before
_REPLAY_BYTES = 5 * 1024 * 1024
