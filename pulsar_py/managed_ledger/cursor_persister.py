"""CursorPersister: gets a durable cursor's state written, when it is due or has to be (edge).

The common write is one append to the cursor ledger, without a task: the flusher calls when it is
due, the ledger's news end it. Everything else (a first or a new cursor ledger, a reset, properties,
closing) changes the record too and happens one at a time, under a lock; while that is held, a due
write waits for it. Where a cursor ledger can't be had, the record takes the state.

What always holds: `CursorState.persisted` is called only for a state that recovery will find.

Source: internalMarkDelete, internalFlushPendingMarkDeletes in ManagedCursorImpl.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.position import Position
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.cursor_flusher import CursorFlusher
from pulsar_py.managed_ledger.cursor_format import INTERNAL_PREFIX, NO_LEDGER, Encoded
from pulsar_py.managed_ledger.cursor_state import CursorChanges, CursorState
from pulsar_py.managed_ledger.cursor_store import CursorStore, encode_state

logger = logging.getLogger(__name__)


class PersisterOwner(Protocol):
    """What persisting a cursor needs of its managed ledger."""

    name: str
    config: ManagedLedgerConfig
    clock: Clock
    tasks: TaskOwner
    flusher: CursorFlusher

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """A durable cursor's written position moved."""

    def fence(self, error: Exception) -> None:
        """Another owner was seen."""


class CursorPersister:
    """The writes of one durable cursor. Owned by it."""

    def __init__(
        self, name: str, owner: PersisterOwner, state: CursorState, store: CursorStore
    ) -> None:
        self._name = name
        self._owner = owner
        self._state = state
        self._clock = owner.clock
        self._lock = asyncio.Lock()  # held while the record or a new cursor ledger is written
        self._is_closed = False
        self._is_scheduled = False  # stands in the flusher
        self.store = store
        self.ranges_not_persisted_count = 0  # what did not fit into the last write

    def schedule(self) -> None:
        """Have the state written when it is due."""
        if self._is_scheduled or self._is_closed:
            return
        due_at = self._state.due_at()
        if due_at is not None:
            self._is_scheduled = True
            self._owner.flusher.schedule(self, due_at)

    def write_if_due(self) -> None:
        """Begin a write if one is due; called by the flusher."""
        self._is_scheduled = False
        if self._is_closed:
            return
        changes = self._state.changes_due(self._clock.monotonic_seconds())
        if changes is None:
            self.schedule()
            return
        if not self._lock.locked():
            encoded = encode_state(self._state, self._owner.config)
            self._note_left_out(encoded)
            on_written = partial(self._on_written, changes)
            if self.store.try_append(encoded.data, self._owner.config, on_written):
                return
        self._owner.tasks.spawn(self._write_slowly(changes), f"write cursor {self._name}")

    async def _write_slowly(self, changes: CursorChanges) -> None:
        """Write to a new cursor ledger, or whatever takes the state."""
        error: Exception | None = None
        try:
            async with self._lock:
                if self._is_closed:
                    return
                await self._write_now(self._state)
        except (StorageError, MetadataError, ManagedLedgerError) as failure:
            error = failure
        self._on_written(changes, error)

    async def _write_now(self, content: CursorState) -> None:
        """Write a state: to the cursor ledger, to a new one, or to the record.

        The caller holds the lock.
        """
        store, config = self.store, self._owner.config
        encoded = encode_state(content, config)
        self._note_left_out(encoded)
        try:
            if not await store.append_and_wait(encoded.data, config):
                await store.switch_ledger(content, config)
        except (StorageError, MetadataError) as error:
            logger.warning(
                "cursor ledger failed", extra={"cursor": self._name, "error": str(error)}
            )
            old_ledger_id = store.ledger_id
            limit = config.max_unacked_ranges_to_persist_in_metadata
            if old_ledger_id != NO_LEDGER and _records_count(content) > limit:
                raise  # what the old ledger has and the record would not must not be lost
            self._note_left_out(
                await store.write_record(content, max_ranges=limit, max_batches=limit)
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
                extra={"topic": self._owner.name, "cursor": self._name, "error": str(error)},
            )
            self._fence_if_lost(error)
        self.schedule()

    def _fence_if_lost(self, error: Exception) -> None:
        if isinstance(error, ManagedLedgerFencedError):
            self._owner.fence(error)

    def _note_left_out(self, encoded: Encoded) -> None:
        left_out = encoded.ranges_left_out_count + encoded.batches_left_out_count
        if left_out and not self.ranges_not_persisted_count:
            logger.warning(
                "acknowledgements exceed what is persisted",
                extra={"topic": self._owner.name, "cursor": self._name, "left_out": left_out},
            )
        self.ranges_not_persisted_count = left_out

    async def flush(self) -> None:
        """Write what is dirty now.

        Raises:
            StorageError, MetadataError: It could not be written; it will be tried again.
        """
        async with self._lock:
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
        """Make a state durable that the cursor is about to take.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It may not be.
        """
        async with self._lock:
            await self._write_now(target)

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
            for name, value in self.store.cursor_properties.items()
            if name.startswith(INTERNAL_PREFIX)
        }
        await self._store_cursor_properties({**properties, **internal})

    async def set_internal_property(self, name: str, value: str | None) -> None:
        """Set or remove (None) one internal property durably; the name gets the prefix.

        Raises:
            MetadataError: It could not be stored; nothing has changed.
        """
        changed = dict(self.store.cursor_properties)
        changed.pop(INTERNAL_PREFIX + name, None)
        if value is not None:
            changed[INTERNAL_PREFIX + name] = value
        await self._store_cursor_properties(changed)

    async def _store_cursor_properties(self, properties: dict[str, str]) -> None:
        store = self.store
        async with self._lock:
            before, store.cursor_properties = store.cursor_properties, properties
            try:
                await store.write_record(self._state, ledger_id=store.ledger_id)
            except (MetadataError, ManagedLedgerError) as error:
                store.cursor_properties = before
                self._fence_if_lost(error)
                raise

    async def close(self) -> None:
        """Write what is dirty, a small state into the record; nothing is written afterwards.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It could not be written.
        """
        self._is_closed = True
        async with self._lock:
            await self._close_store()

    async def _close_store(self) -> None:
        store, state, config = self.store, self._state, self._owner.config
        is_whole = store.ledger_id == NO_LEDGER or store.last_entry_id < 0
        if is_whole and not state.is_dirty:
            return  # the record, or a cursor ledger of the last time, has it all
        if _records_count(state) > config.max_unacked_ranges_to_persist_in_metadata:
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
        self._is_closed = True

    async def delete(self) -> None:
        """Remove the record and the cursor ledger for good.

        Raises:
            MetadataError, ManagedLedgerFencedError: It could not be removed.
        """
        self._is_closed = True
        async with self._lock:
            await self.store.delete()


def _records_count(state: CursorState) -> int:
    """Ranges and batches that are written for a state."""
    ranges_count = state.individual_deleted_messages.ranges_count()
    return ranges_count + len(state.batch_deleted_indexes)
