"""`CursorRegistry`: the cursors of one managed ledger; wakes those that wait for entries (edge).

Durable cursors are made and deleted one at a time, with their records; non-durable ones exist only
here. Cursors that wait for entries are woken once by each confirmed group; after that they have to
wait again.

Source: ManagedCursorContainer, asyncOpenCursor, newNonDurableCursor in ManagedLedgerImpl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pulsar_py.common.errors import (
    CursorNotFoundError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.position import LATEST, Position
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.managed_cursor import CursorOwner, ManagedCursor
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.log.entry_cache import EntryCache
from pulsar_py.managed_ledger.log.ledger_format import cursor_path
from pulsar_py.managed_ledger.log.ledger_state import LedgerState
from pulsar_py.metadata.store import MetadataStore


class InitialPosition(Enum):
    """The end of the topic at which a new cursor starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


class RegistryOwner(CursorOwner, Protocol):
    """The part of the ManagedLedger that the cursors use."""

    @property
    def is_terminated(self) -> bool:
        """Whether no more entries will come."""

    def raise_if_unusable(self) -> None:
        """Raise if no cursors can be made: closed, fenced or deleted."""

    async def prove_ownership(self) -> None:
        """Return if the managed ledger is still ours, although a ledger of it was fenced.

        Raises:
            ManagedLedgerFencedError: Another owner has it; the managed ledger is fenced now.
            MetadataError: That can't be found out now.
        """

    def check_owner(self) -> None:
        """Return if the managed ledger is certainly ours at this moment; does not wait.

        Raises:
            MetadataUnavailableError: Another owner may have it.
        """

    async def confirm_newest(self) -> None:
        """Return if no other owner has opened or changed the managed ledger since we opened it.

        Raises:
            ManagedLedgerFencedError: Another owner has; the managed ledger is fenced now.
            MetadataError: That can't be found out now.
        """


FLUSHES_AT_ONCE = 100
"""Cursors of one topic that are written at the same time."""


@dataclass(frozen=True, slots=True)
class StoredCursor:
    """A durable cursor as it was read, before positions could be compared with its ledgers."""

    name: str
    store: CursorStore
    snapshot: CursorSnapshot


class CursorRegistry:
    """All cursors of one managed ledger, durable or not. Owned by it."""

    def __init__(
        self,
        owner: RegistryOwner,
        ledgers: LedgerState,
        *,
        metadata: MetadataStore,
        ledger_store: LedgerStore,
        cache: EntryCache,
    ) -> None:
        self._owner = owner
        self._ledgers = ledgers
        self._metadata = metadata
        self._ledger_store = ledger_store
        self._cache = cache
        self._lock = asyncio.Lock()  # held while a durable cursor is made or deleted
        self._active: dict[ManagedCursor, None] = {}  # cursors to cache for
        self._waiting: dict[ManagedCursor, Callable[[], None]] = {}  # to wake at the next group
        # Closed and not deleted: their records still need ledgers, which must not be trimmed.
        self._closed: list[ManagedCursor] = []
        # Stores of creations with unknown outcome: a record that is found later may be our own.
        self._in_doubt: dict[str, CursorStore] = {}
        self.cursors: dict[str, ManagedCursor] = {}

    async def open(
        self,
        name: str,
        initial: InitialPosition = InitialPosition.LATEST,
        *,
        properties: Mapping[str, int] | None = None,
        cursor_properties: Mapping[str, str] | None = None,
    ) -> ManagedCursor:
        """The durable cursor of that name, created durably if missing.

        `initial` and the properties only matter to a new one.

        Raises:
            ManagedLedgerError: Closed or fenced, or the name is a non-durable cursor's.
            MetadataError: It could not be stored.
        """
        async with self._lock:
            self._owner.raise_if_unusable()
            cursor = self.cursors.get(name)
            if cursor is not None:
                if not cursor.is_durable:
                    raise ManagedLedgerError(
                        f"{self._owner.name}: cursor {name} exists and is not durable"
                    )
                return cursor
            state = self._new_state(self._mark_delete_for(initial), properties)
            store = self._in_doubt.pop(name, None) or self._cursor_store(name)
            store.cursor_properties = dict(cursor_properties or {})
            try:
                await store.create(state)
            except ManagedLedgerFencedError as error:
                self._owner.fence(error)
                raise
            except MetadataError:
                if store.may_be_stored:
                    self._in_doubt[name] = store
                raise
            self._owner.raise_if_unusable()
            state.settle()
            cursor = self.cursors[name] = ManagedCursor(name, self._owner, self, state, store)
            return cursor

    def _cursor_store(self, name: str) -> CursorStore:
        path = cursor_path(self._owner.name, name)
        return CursorStore(
            path,
            self._metadata,
            self._ledger_store,
            self._owner.clock,
            prove_ownership=self._owner.prove_ownership,
            check_owner=self._owner.check_owner,
            confirm_newest=self._owner.confirm_newest,
            # The configuration may be replaced.
            written=lambda plain: self._owner.config.cursor_compression.written(plain),  # noqa: PLW0108
        )

    def _new_state(
        self, mark_delete: Position, properties: Mapping[str, int] | None = None
    ) -> CursorState:
        return CursorState(
            self._ledgers,
            mark_delete,
            properties=properties,
            is_batch_index_ack_enabled=self._owner.config.is_batch_index_ack_enabled,
            persist_interval_seconds=self._owner.config.cursor_persist_interval_seconds,
        )

    def _mark_delete_for(self, initial: InitialPosition) -> Position:
        if initial is InitialPosition.LATEST:
            return self._ledgers.last_confirmed_or_gap
        return self._ledgers.previous_position(self._ledgers.first_position)

    async def read(self, name: str) -> StoredCursor:
        """Read what is stored of a cursor, while the managed ledger is opened.

        Raises:
            MetadataError, StorageError: It can't be read now.
        """
        store = self._cursor_store(name)
        snapshot = await store.recover(
            self._owner.config, room_bytes=self._owner.cursor_memory.room_bytes
        )
        return StoredCursor(name, store, snapshot)

    def restore(self, stored: StoredCursor) -> None:
        """Make a cursor of what was read; all ledgers of the managed ledger have their ends."""
        snapshot = stored.snapshot
        state = self._new_state(snapshot.mark_delete_position, snapshot.properties)
        state.restore(snapshot)
        self.cursors[stored.name] = ManagedCursor(
            stored.name, self._owner, self, state, stored.store
        )

    def new_non_durable(
        self,
        name: str,
        start: Position | InitialPosition,
        *,
        initial: InitialPosition | None = None,
    ) -> ManagedCursor:
        """A cursor in memory only; the first entry it reads is the one at `start`.

        A start past the end becomes `initial` (LATEST if None), a start in a deleted ledger becomes
        the next existing entry. The cursor keeps no ledger from being trimmed.

        Raises:
            ManagedLedgerError: Closed or fenced, or the name is taken.
        """
        self._owner.raise_if_unusable()
        if name in self.cursors:
            raise ManagedLedgerError(f"{self._owner.name}: cursor {name} exists already")
        if isinstance(start, InitialPosition):
            mark_delete = self._mark_delete_for(start)
        elif start > self._ledgers.last_confirmed_entry and not self._is_next(start):
            mark_delete = self._mark_delete_for(initial or InitialPosition.LATEST)
        else:
            before = Position(start.ledger_id, max(start.entry_id, 0) - 1)
            following = self._ledgers.next_valid_position(before)
            mark_delete = Position(following.ledger_id, following.entry_id - 1)
        state = self._new_state(mark_delete)
        cursor = self.cursors[name] = ManagedCursor(name, self._owner, self, state, None)
        return cursor

    def _is_next(self, start: Position) -> bool:
        return start == self._ledgers.next_valid_position(self._ledgers.last_confirmed_entry)

    async def delete(self, name: str) -> None:
        """Remove a cursor with its record and cursor ledger.

        Raises:
            CursorNotFoundError: There is none.
            MetadataError: Its record could not be removed; the cursor stays in use.
        """
        async with self._lock:
            cursor = self.cursors.get(name)
            if cursor is None:
                raise CursorNotFoundError(f"{self._owner.name}: there is no cursor {name}")
            try:
                await cursor.delete()
            except ManagedLedgerFencedError as error:
                self._owner.fence(error)
                raise

    def slowest_durable(self, *, without: str | None = None) -> ManagedCursor | None:
        """The durable cursor with the oldest mark-delete position that survives a crash.

        Closed ones count: they are recovered when the managed ledger is opened again. The one of
        the name `without` does not.
        """
        durable = [each for each in self.durable() + self._closed if each.name != without]
        return min(durable, key=lambda cursor: cursor.persistent_mark_delete_position, default=None)

    def on_cursor_closed(self, cursor: ManagedCursor) -> None:
        """Note that a cursor was closed; a durable one still keeps its ledgers from trimming."""
        self.on_cursor_abandoned(cursor)
        if cursor.is_durable:
            self._closed.append(cursor)

    def on_cursor_abandoned(self, cursor: ManagedCursor) -> None:
        """Forget a cursor that is being deleted, or belongs to another owner now."""
        if self.cursors.get(cursor.name) is cursor:
            del self.cursors[cursor.name]

    def on_activity_changed(self, cursor: ManagedCursor) -> None:
        """Begin or stop caching entries for the cursor."""
        if cursor.is_active:
            self._active[cursor] = None
            return
        self._active.pop(cursor, None)
        if not self._active:
            self._cache.clear()

    def wait(self, cursor: ManagedCursor, callback: Callable[[], None]) -> None:
        """Call `callback` once: at the next group or termination; soon if there is an entry now."""
        if cursor.has_more_entries() or self._owner.is_terminated:
            self.cancel_wait(cursor)
            asyncio.get_running_loop().call_soon(callback)
        else:
            self._waiting[cursor] = callback

    def cancel_wait(self, cursor: ManagedCursor) -> None:
        """Forget a waiting cursor's callback."""
        self._waiting.pop(cursor, None)

    def is_waiting(self, cursor: ManagedCursor) -> bool:
        """Whether the cursor has a waiting callback."""
        return cursor in self._waiting

    # Groups of entries

    @property
    def waiting_count(self) -> int:
        """Cursors that wait for entries."""
        return len(self._waiting)

    def wake(self) -> None:
        """Wake all cursors that wait. Hot path: publish, once a group."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for callback in waiting.values():
                callback()

    def has_tailing_cursor(self, ledger_id: int, first_entry_id: int) -> bool:
        """Whether an active cursor will soon read a group; evicts entries that all have read.

        Hot path: publish, once a group.
        """
        if not self._active:
            return False
        threshold = self._owner.config.cursor_backlogged_threshold_entries
        first = Position(ledger_id, first_entry_id)
        slowest = LATEST
        is_tailing = False
        for cursor in self._active:
            position = cursor.read_position
            slowest = position if position < slowest else slowest  # noqa: FURB136 - hot path
            # Most have read all before the group.
            behind = self._ledgers.count_between(position, first) if position < first else 0
            is_tailing = is_tailing or behind < threshold
        self._cache.evict_below(slowest)
        return is_tailing

    def on_ledgers_changed(self) -> None:
        """Move all cursors over deleted ledgers, after ledgers were added or deleted."""
        for cursor in self.cursors.values():
            cursor.on_trimmed()

    # The end

    def durable(self) -> list[ManagedCursor]:
        """The durable cursors."""
        return [cursor for cursor in self.cursors.values() if cursor.is_durable]

    async def flush(self) -> None:
        """Write all dirty cursors.

        Raises:
            StorageError, MetadataError: One could not be written.
        """
        await each_result(ManagedCursor.flush, self.durable(), at_once=FLUSHES_AT_ONCE)

    async def close(self) -> list[Exception]:
        """Write and close all cursors; returns their errors."""
        results = await asyncio.gather(
            *(cursor.close() for cursor in list(self.cursors.values())), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
        return [result for result in results if isinstance(result, Exception)]

    def abandon(self) -> list[int]:
        """Stop all cursors without writing; returns the ids of the ledgers that end with them."""
        cursors = list(self.cursors.values())
        owned = [ledger_id for cursor in cursors for ledger_id in cursor.owned_ledger_ids()]
        for cursor in cursors:
            cursor.abandon()
        own = [cursor.cursor_ledger_id for cursor in cursors if cursor.cursor_ledger_id >= 0]
        return own + owned
