"""ManagedLedger: an append-only log of ledgers with cursors (edge).

Carries out what `LedgerState` decides about positions, trimming and ends, and keeps the list of
ledgers in metadata by compare-and-set: losing that means another owner, and fences. Appending is
the `Appender`'s, which reports whole groups; here a group is counted, cached if a cursor tails,
told to the listener in one call, and waiting cursors are woken once.

What always holds: a ledger takes entries only after metadata names it, and is deleted only after
metadata does not. Changes of the list happen one at a time, under `change_lock`.

Source: ManagedLedgerImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    CursorNotFoundError,
    EntryNotFoundError,
    LedgerNotFoundError,
    ManagedLedgerClosedError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    StorageError,
)
from pulsar_py.common.position import Position
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.managed_ledger.appender import Appender
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.cursor_flusher import CursorFlusher
from pulsar_py.managed_ledger.cursor_state import CursorState
from pulsar_py.managed_ledger.cursor_store import CursorStore
from pulsar_py.managed_ledger.entry import Entry
from pulsar_py.managed_ledger.entry_cache import EntryCache, EntryCacheManager
from pulsar_py.managed_ledger.ledger_format import (
    LedgerList,
    cursor_path,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.ledger_readers import LedgerReaders
from pulsar_py.managed_ledger.ledger_state import LedgerState, State
from pulsar_py.managed_ledger.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.stats import CursorStats, LedgerStats, ManagedLedgerStats
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.ledger_store import LedgerStore

__all__ = [
    "AppendListener",
    "CursorStats",
    "InitialPosition",
    "LedgerStats",
    "ManagedLedger",
    "ManagedLedgerStats",
]

logger = logging.getLogger(__name__)

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)

_READ_ENTRY_BYTES = 1  # reads give at least one entry whatever the bytes


class InitialPosition(Enum):
    """Where a new cursor starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


class AppendListener(Protocol[C_contra]):
    """Who hears what became of appended entries; the topic.

    Called on the loop, never from inside `append`.
    """

    def on_appended(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[C_contra]
    ) -> None:
        """These entries are durable, with consecutive ids; once a group, in order of appending."""

    def on_append_failed(self, contexts: Sequence[C_contra], error: Exception) -> None:
        """These entries are not stored and never will be; others may still come."""

    def on_fenced(self, error: Exception) -> None:
        """Another owner has the managed ledger; what was pending has failed before this. Once."""


class _Waiter:
    """The context of an `append_and_wait`."""

    __slots__ = ("done",)

    def __init__(self, done: asyncio.Future[Position]) -> None:
        self.done = done


class SharedParts(Protocol):
    """What all managed ledgers of an opener share; the opener."""

    ledger_store: LedgerStore
    metadata: MetadataStore
    clock: Clock
    chance: random.Random
    flusher: CursorFlusher
    cache_manager: EntryCacheManager

    def on_ledger_closed(self, ledger: ManagedLedger[Any]) -> None:  # Any: whatever its contexts
        """It is closed or deleted, and may be opened anew."""


class ManagedLedger(Generic[C]):
    """One topic's entries and cursors. Owned by a `ManagedLedgerOpener` until closed or deleted.

    Pulsar's ManagedLedgerImpl.
    """

    # append(data, context) queues one entry; `context` comes back in the listener's news. Groups
    # are completed in the order of the calls. While there is no ledger, entries wait for it in
    # order; if it can't be created, or the disk is full, `on_append_failed` tells. Raises
    # ManagedLedgerFencedError (another owner has it; reopening does not help),
    # ManagedLedgerTerminatedError and ManagedLedgerClosedError. It is the appender's own method,
    # which saves a call an entry. Source: ManagedLedger.asyncAddEntry in Pulsar.
    append: Callable[[bytes, C], None]

    def __init__(
        self,
        name: str,
        config: ManagedLedgerConfig,
        shared: SharedParts,
        stored: LedgerList,
        *,
        version: int,
    ) -> None:
        """`stored` is the list in metadata, at `version`; MUST_NOT_EXIST for a new one."""
        self.name = name
        self.config = config
        self.listener: AppendListener[C] | None = None  # set by the topic
        self.clock = shared.clock
        self.flusher = shared.flusher
        self.cache_manager = shared.cache_manager
        self.tasks = TaskOwner(f"managed-ledger {name}")
        self.change_lock = asyncio.Lock()  # held while the list of ledgers changes
        self._shared = shared
        self._store = shared.ledger_store
        self._metadata = shared.metadata
        self._version = version  # of the list in metadata
        self._ledgers = LedgerState(stored)
        self._appender: Appender[C | _Waiter] = Appender(
            self,
            self._ledgers,
            store=shared.ledger_store,
            clock=shared.clock,
            tasks=self.tasks,
            chance=shared.chance,
        )
        self.append = self._appender.append
        self._readers = LedgerReaders(shared.ledger_store, config.ledger_options.password)
        self._cache = EntryCache(shared.cache_manager)
        self._cursors: dict[str, ManagedCursor] = {}  # durable or not
        self._active: set[ManagedCursor] = set()  # cursors to cache for
        self._waiting: dict[ManagedCursor, Callable[[], None]] = {}  # to wake at the next group
        self._waiters_count = 0  # _Waiters among the pending contexts
        self._cursor_lock = asyncio.Lock()  # held while a durable cursor is made or deleted
        self._idle_mark = (-1, 0)  # entries added as of when, for periodic calls
        self._is_trimming = False  # a task that trims runs
        self._is_closing = False
        self._closed = asyncio.Event()

    # What it is

    def set_config(self, config: ManagedLedgerConfig) -> None:
        """Replace the settings; takes effect with the next decision."""
        self.config = config

    @property
    def ledgers(self) -> LedgerState:
        """The decider, for cursors and tests."""
        return self._ledgers

    @property
    def last_confirmed_entry(self) -> Position:
        """The last durable entry; `(ledger, -1)` while there is none. May be trimmed already."""
        return self._ledgers.last_confirmed_entry

    @property
    def first_position(self) -> Position:
        """Where the first entry that still exists stands, or the next one will."""
        return self._ledgers.first_position

    @property
    def is_terminated(self) -> bool:
        """Nothing can be appended any more, by request."""
        return self._ledgers.terminated_position is not None

    @property
    def is_fenced(self) -> bool:
        """Another owner has it."""
        return self._ledgers.state is State.FENCED

    @property
    def is_closed(self) -> bool:
        """It was closed or deleted, or is being closed."""
        return self._is_closing

    @property
    def terminated_position(self) -> Position | None:
        """The last entry of a terminated managed ledger."""
        return self._ledgers.terminated_position

    @property
    def entries_count(self) -> int:
        """Entries that exist."""
        return self._ledgers.entries_count

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries that exist."""
        return self._ledgers.size_bytes

    @property
    def entries_added_count(self) -> int:
        """Entries appended since it was opened."""
        return self._ledgers.entries_added_count

    @property
    def pending_appends_count(self) -> int:
        """Entries appended and neither durable nor failed yet."""
        return self._appender.pending_count

    @property
    def properties(self) -> Mapping[str, str]:
        """Stored with the list of ledgers."""
        return self._ledgers.properties

    @property
    def cursors(self) -> Mapping[str, ManagedCursor]:
        """All cursors, durable or not, by name."""
        return self._cursors

    # Appending

    async def append_and_wait(self, data: bytes) -> Position:
        """Append one entry and return its position once it is durable; for rare writes.

        Its context does not reach the listener.

        Raises:
            ManagedLedgerError, StorageError: It is not stored.
        """
        done: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self._appender.append(data, _Waiter(done))
        self._waiters_count += 1
        return await done

    def on_confirmed_group(
        self,
        ledger_id: int,
        first_entry_id: int,
        contexts: list[C | _Waiter],
        datas: list[bytes],
    ) -> None:
        """Count a durable group, cache it, answer it, wake who waits. Hot path: publish."""
        self._ledgers.confirmed(len(datas), sum(map(len, datas)))
        if self._active and self._has_tailing_cursor(ledger_id, first_entry_id):
            self._cache.insert(ledger_id, first_entry_id, datas)
        if self._waiters_count:
            self._answer_waiters(ledger_id, first_entry_id, contexts)
        elif self.listener is not None:
            self.listener.on_appended(ledger_id, first_entry_id, contexts)  # type: ignore[arg-type]  # no waiter is among them
        if self._waiting:
            self._wake()

    def _has_tailing_cursor(self, ledger_id: int, first_entry_id: int) -> bool:
        """Whether an active cursor is near the end; drops what all of them have read."""
        slowest = min(cursor.read_position for cursor in self._active)
        self._cache.evict_below(slowest)
        threshold = self.config.cursor_backlogged_threshold_entries
        first = Position(ledger_id, first_entry_id)
        return any(
            self._ledgers.count_between(cursor.read_position, first) < threshold
            for cursor in self._active
        )

    def _answer_waiters(
        self, ledger_id: int, first_entry_id: int, contexts: list[C | _Waiter]
    ) -> None:
        run: list[C] = []
        for entry_id, context in enumerate(contexts, first_entry_id):
            if not isinstance(context, _Waiter):
                run.append(context)
                continue
            self._tell_appended(ledger_id, entry_id - len(run), run)
            run = []
            self._waiters_count -= 1
            if not context.done.done():
                context.done.set_result(Position(ledger_id, entry_id))
        self._tell_appended(ledger_id, first_entry_id + len(contexts) - len(run), run)

    def _tell_appended(self, ledger_id: int, first_entry_id: int, contexts: list[C]) -> None:
        if contexts and self.listener is not None:
            self.listener.on_appended(ledger_id, first_entry_id, contexts)

    def on_failed_group(self, contexts: list[C | _Waiter], error: Exception) -> None:
        """Answer appends that are not stored."""
        others: list[C] = []
        for context in contexts:
            if not isinstance(context, _Waiter):
                others.append(context)
                continue
            self._waiters_count -= 1
            if not context.done.done():
                context.done.set_exception(error)
        if others and self.listener is not None:
            self.listener.on_append_failed(others, error)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for callback in waiting.values():
            callback()

    # The list of ledgers

    async def write_ledger_list(self, stored: LedgerList) -> None:
        """Compare and set the list in metadata. Under the change lock.

        Raises:
            ManagedLedgerFencedError: Someone else changed it; this one is fenced now.
            MetadataError: It could not be stored.
        """
        try:
            self._version = await self._metadata.put(
                ledger_path(self.name), encode_ledger_list(stored), expected_version=self._version
            )
        except (MetadataBadVersionError, MetadataExistsError) as error:
            self.fence(error)
            raise ManagedLedgerFencedError(f"{self.name}: {error}") from error

    def fence(self, error: Exception) -> None:
        """Another owner was seen: fail what is pending and tell the listener, soon. Once."""
        if self._ledgers.state in (State.FENCED, State.CLOSED):
            return
        logger.warning("managed ledger fenced", extra={"topic": self.name, "error": str(error)})
        self._ledgers.move_to(State.FENCED)
        self._appender.release()
        asyncio.get_running_loop().call_soon(self._tell_fenced, error)

    def _tell_fenced(self, error: Exception) -> None:
        self._appender.fail_pending(ManagedLedgerFencedError(f"{self.name}: {error}"))
        if self.listener is not None:
            self.listener.on_fenced(error)

    def on_ledger_created(self, placeholders: list[int]) -> None:
        """The appender has a new ledger; delete the empty ones, and see what can go."""
        if placeholders:
            self.tasks.spawn(self._delete_ledgers(placeholders), "delete placeholders")
        for cursor in self._cursors.values():
            cursor.on_trimmed()
        self._maybe_trim()

    async def create_first_ledger(self) -> None:
        """Make the first ledger of a managed ledger that has none, in metadata too.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It could not be made.
        """
        async with self.change_lock:
            await self._appender.create_first()

    async def set_property(self, name: str, value: str) -> None:
        """Store one property durably.

        Raises:
            ManagedLedgerError, MetadataError: It is not stored.
        """
        await self._set_properties({**self._ledgers.properties, name: value})

    async def delete_property(self, name: str) -> None:
        """Remove one property durably; fine if it is not there.

        Raises:
            ManagedLedgerError, MetadataError: It is still stored.
        """
        kept = {key: value for key, value in self._ledgers.properties.items() if key != name}
        await self._set_properties(kept)

    async def _set_properties(self, properties: dict[str, str]) -> None:
        async with self.change_lock:
            self._raise_if_unusable()
            stored = self._ledgers.stored()
            stored.properties = properties
            await self.write_ledger_list(stored)
            self._ledgers.properties = properties

    async def roll_ledger(self) -> None:
        """Close the current ledger if it has entries, and go on in a new one."""
        async with self.change_lock:
            self._raise_if_unusable()
            await self._appender.roll()

    async def roll_if_due(self) -> None:
        """Roll a ledger that is too old, or has been idle for long; for periodic calls."""
        if self._ledgers.state is not State.OPENED:
            return
        now_millis = self.clock.wall_time_millis()
        record = self._ledgers.last_ledger
        if self._idle_mark[0] != self._ledgers.entries_added_count:
            self._idle_mark = (self._ledgers.entries_added_count, now_millis)
        idle_limit = self.config.inactive_ledger_rollover_seconds
        idle_seconds = (now_millis - self._idle_mark[1]) / 1000
        if self._ledgers.is_rollover_due(
            self.config,
            entries_count=record.entries_count,
            size_bytes=record.size_bytes,
            now_millis=now_millis,
        ) or (idle_limit and record.entries_count and idle_seconds > idle_limit):
            await self.roll_ledger()

    async def trim(self) -> None:
        """Delete the ledgers that retention and durable cursors let go.

        Raises:
            ManagedLedgerError, MetadataError, StorageError: Nothing was deleted.
        """
        self._raise_if_unusable()
        for cursor in list(self._cursors.values()):
            if not cursor.is_closed:
                await cursor.flush()
        await self._trim()

    def _maybe_trim(self) -> None:
        if not self._is_trimming and not self._is_closing and self._trimmable():
            self._is_trimming = True
            self.tasks.spawn(self._trim_soon(), "trim")

    def _trimmable(self) -> list[int]:
        slowest = self.slowest_durable_cursor()
        position = None if slowest is None else slowest.persistent_mark_delete_position
        return self._ledgers.trimmable(self.config, position, self.clock.wall_time_millis())

    async def _trim_soon(self) -> None:
        try:
            await self._trim()
        except (ManagedLedgerError, MetadataError) as error:
            logger.warning("not trimmed", extra={"topic": self.name, "error": str(error)})
        finally:
            self._is_trimming = False

    async def _trim(self) -> None:
        async with self.change_lock:
            if self._ledgers.state in (State.FENCED, State.CLOSED):
                return
            ledger_ids = self._trimmable()
            if not ledger_ids:
                return
            await self.write_ledger_list(self._ledgers.without(ledger_ids))
            self._ledgers.ledgers_trimmed(ledger_ids)
            for cursor in self._cursors.values():
                cursor.on_trimmed()
        self._cache.evict_below(self._ledgers.first_position)
        logger.info("ledgers trimmed", extra={"topic": self.name, "ledgers": ledger_ids})
        await self._delete_ledgers(ledger_ids)

    async def _delete_ledgers(self, ledger_ids: Sequence[int]) -> None:
        """Delete ledgers that metadata does not name; what fails is left to the collector."""
        await self._readers.forget(ledger_ids)
        for ledger_id in ledger_ids:
            try:
                await self._store.delete(ledger_id)
            except StorageError as error:
                logger.warning(
                    "ledger left over", extra={"ledger_id": ledger_id, "error": str(error)}
                )

    # Cursors

    async def open_cursor(
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
        async with self._cursor_lock:
            self._raise_if_unusable()
            cursor = self._cursors.get(name)
            if cursor is not None:
                if not cursor.is_durable:
                    raise ManagedLedgerError(f"{self.name}: cursor {name} is not durable")
                return cursor
            state = self._new_state(self._mark_delete_for(initial), properties)
            store = self._cursor_store(name)
            store.cursor_properties = dict(cursor_properties or {})
            try:
                await store.create(state)
            except ManagedLedgerFencedError as error:
                self.fence(error)
                raise
            self._raise_if_unusable()
            state.settle()
            cursor = self._cursors[name] = ManagedCursor(name, self, state, store)
            return cursor

    def _cursor_store(self, name: str) -> CursorStore:
        path = cursor_path(self.name, name)
        return CursorStore(path, self._metadata, self._store, self.clock)

    def _new_state(
        self, mark_delete: Position, properties: Mapping[str, int] | None = None
    ) -> CursorState:
        return CursorState(
            self._ledgers,
            mark_delete,
            properties=properties,
            is_batch_index_ack_enabled=self.config.is_batch_index_ack_enabled,
            persist_interval_seconds=self.config.cursor_persist_interval_seconds,
        )

    def _mark_delete_for(self, initial: InitialPosition) -> Position:
        if initial is InitialPosition.LATEST:
            return self._ledgers.last_confirmed_or_gap
        return self._ledgers.previous_position(self._ledgers.first_position)

    async def recover_cursor(self, name: str) -> None:
        """Bring back a cursor that metadata has; called while opening.

        Raises:
            MetadataError, StorageError: It can't be read now.
        """
        store = self._cursor_store(name)
        snapshot = await store.recover(self.config)
        state = self._new_state(snapshot.mark_delete_position, snapshot.properties)
        state.individual_deleted_messages = snapshot.individual_deleted_messages
        if self.config.is_batch_index_ack_enabled:
            state.batch_deleted_indexes = snapshot.batch_deleted_indexes
        state.settle()
        self._cursors[name] = ManagedCursor(name, self, state, store)

    def new_non_durable_cursor(
        self,
        name: str,
        start: Position | InitialPosition,
        *,
        initial: InitialPosition | None = None,
    ) -> ManagedCursor:
        """A cursor in memory only; the first entry it reads is the one at `start`.

        A start past the end becomes `initial` (LATEST if None), one in a deleted ledger the next
        entry there is. Never holds trimming back.

        Raises:
            ManagedLedgerError: Closed or fenced, or the name is taken.
        """
        self._raise_if_unusable()
        if name in self._cursors:
            raise ManagedLedgerError(f"{self.name}: there is a cursor {name}")
        if isinstance(start, InitialPosition):
            mark_delete = self._mark_delete_for(start)
        elif start > self._ledgers.last_confirmed_entry and not self._is_next(start):
            mark_delete = self._mark_delete_for(initial or InitialPosition.LATEST)
        else:
            before = Position(start.ledger_id, max(start.entry_id, 0) - 1)
            following = self._ledgers.next_valid_position(before)
            mark_delete = Position(following.ledger_id, following.entry_id - 1)
        state = self._new_state(mark_delete)
        cursor = self._cursors[name] = ManagedCursor(name, self, state, None)
        return cursor

    def _is_next(self, start: Position) -> bool:
        return start == self._ledgers.next_valid_position(self._ledgers.last_confirmed_entry)

    async def delete_cursor(self, name: str) -> None:
        """Remove a cursor with its record and cursor ledger.

        Raises:
            CursorNotFoundError: There is none.
            MetadataError: Its record could not be removed; it is closed all the same.
        """
        async with self._cursor_lock:
            cursor = self._cursors.get(name)
            if cursor is None:
                raise CursorNotFoundError(f"{self.name}: no cursor {name}")
            try:
                await cursor.delete()
            except ManagedLedgerFencedError as error:
                self.fence(error)
                raise
        self._maybe_trim()

    def slowest_durable_cursor(self) -> ManagedCursor | None:
        """The durable cursor with the oldest mark-delete position that survives a crash."""
        durable = [cursor for cursor in self._cursors.values() if cursor.is_durable]
        return min(durable, key=lambda cursor: cursor.persistent_mark_delete_position, default=None)

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """A durable cursor's written position moved: its ledgers may go now."""
        if (
            before.ledger_id != after.ledger_id
            or self._ledgers.next_valid_position(after).ledger_id != after.ledger_id
        ):
            self._maybe_trim()

    def on_cursor_closed(self, cursor: ManagedCursor) -> None:
        """Forget a cursor that was closed or deleted."""
        if self._cursors.get(cursor.name) is cursor:
            del self._cursors[cursor.name]

    def on_activity_changed(self, cursor: ManagedCursor) -> None:
        """Cache for it, or no longer."""
        if cursor.is_active:
            self._active.add(cursor)
            return
        self._active.discard(cursor)
        if not self._active:
            self._cache.clear()

    def wait(self, cursor: ManagedCursor, callback: Callable[[], None]) -> None:
        """Call back once when a group is confirmed or at the end; soon if it could read now."""
        if cursor.has_more_entries() or self.is_terminated:
            self.cancel_wait(cursor)
            asyncio.get_running_loop().call_soon(callback)
        else:
            self._waiting[cursor] = callback

    def cancel_wait(self, cursor: ManagedCursor) -> None:
        """Forget a waiting cursor's callback."""
        self._waiting.pop(cursor, None)

    def is_waiting(self, cursor: ManagedCursor) -> bool:
        """Whether it waits."""
        return cursor in self._waiting

    # Reading

    def read_run_cached(
        self, ledger_id: int, first: int, last: int, max_bytes: int
    ) -> list[Entry] | None:
        """Neighbouring entries that are in memory, at least the first; else None.

        Hot path: tailing consume.
        """
        entries = self._cache.read(ledger_id, first, last, max_bytes)
        if entries is not None:
            return entries
        writer = self._appender.writer
        if writer is not None and writer.ledger_id == ledger_id:
            datas = writer.read_cached(first, last, max_bytes)
        else:
            datas = self._readers.read_cached(ledger_id, first, last, max_bytes)
        return None if not datas else _entries(ledger_id, first, datas)

    async def read_run(self, ledger_id: int, first: int, last: int, max_bytes: int) -> list[Entry]:
        """Neighbouring entries from storage, at least the first.

        Raises:
            StorageError: It can't be read.
        """
        writer = self._appender.writer
        if writer is not None and writer.ledger_id == ledger_id:
            datas = await writer.read(first, last, max_bytes)
        else:
            datas = await self._readers.read(ledger_id, first, last, max_bytes)
        return _entries(ledger_id, first, datas)

    async def read_entry(self, position: Position) -> Entry:
        """One entry.

        Raises:
            EntryNotFoundError, LedgerNotFoundError: There is none.
            CorruptDataError: What is stored fails its checksum.
        """
        ledger_id, entry_id = position
        if not self._ledgers.contains(position):
            if ledger_id not in self._ledgers.ledgers:
                raise LedgerNotFoundError(f"{self.name}: no ledger {ledger_id}")
            raise EntryNotFoundError(f"{self.name}: no entry {position}")
        cached = self.read_run_cached(ledger_id, entry_id, entry_id, _READ_ENTRY_BYTES)
        if cached is not None:
            return cached[0]
        return (await self.read_run(ledger_id, entry_id, entry_id, _READ_ENTRY_BYTES))[0]

    async def find_newest(
        self, predicate: Callable[[Entry], bool], *, after: Position | None = None
    ) -> Position | None:
        """The newest entry (after `after`) for which `predicate` holds; None if there is none.

        A binary search: the predicate has to hold up to some entry and for none behind it.
        """
        ledgers = self._ledgers
        start = after or ledgers.previous_position(ledgers.first_position)
        low, high = 0, ledgers.count_between(start, ledgers.last_confirmed_entry)
        found: Position | None = None
        while low < high:
            middle = (low + high + 1) // 2
            position = ledgers.position_after_entries(start, middle)
            if predicate(await self.read_entry(position)):
                low, found = middle, position
            else:
                high = middle - 1
        return found

    # Positions

    def contains(self, position: Position) -> bool:
        """Whether there is a durable entry at `position`."""
        return self._ledgers.contains(position)

    def next_valid_position(self, position: Position) -> Position:
        """Where the first entry after `position` stands, or the next one will."""
        return self._ledgers.next_valid_position(position)

    def previous_position(self, position: Position) -> Position:
        """Where the last entry before `position` stands; `(ledger, -1)` if there is none."""
        return self._ledgers.previous_position(position)

    def count_entries_between(self, lower_exclusive: Position, upper_inclusive: Position) -> int:
        """How many entries exist after the first and up to the second; 0 if they are reversed."""
        return self._ledgers.count_between(lower_exclusive, upper_inclusive)

    def position_after_entries(self, start: Position, count: int) -> Position:
        """The `count`-th entry after `start`, at most the last one; `start` if there is none."""
        return self._ledgers.position_after_entries(start, count)

    def size_after(self, position: Position) -> int:
        """Estimated bytes of the entries after `position`."""
        return self._ledgers.size_after(position)

    def backlog_size_bytes(self) -> int:
        """Estimated bytes after the slowest durable cursor's mark-delete position."""
        durable = [cursor for cursor in self._cursors.values() if cursor.is_durable]
        slowest = min((cursor.mark_delete_position for cursor in durable), default=None)
        return 0 if slowest is None else self._ledgers.size_after(slowest)

    # Statistics

    def ledgers_info(self) -> Sequence[LedgerStats]:
        """All ledgers, oldest first."""
        return [
            LedgerStats(
                record.ledger_id, record.entries_count, record.size_bytes, record.closed_millis
            )
            for record in self._ledgers.ledgers.values()
        ]

    def internal_stats(self) -> ManagedLedgerStats:
        """Everything about ledgers and cursors."""
        ledgers = self._ledgers
        last = ledgers.last_ledger
        is_open = not last.is_closed
        return ManagedLedgerStats(
            entries_added_count=ledgers.entries_added_count,
            entries_count=ledgers.entries_count,
            size_bytes=ledgers.size_bytes,
            current_ledger_entries_count=last.entries_count if is_open else 0,
            current_ledger_size_bytes=last.size_bytes if is_open else 0,
            last_ledger_created_millis=ledgers.opened_millis,
            last_ledger_creation_failure_millis=self._appender.last_failure_millis,
            waiting_cursors_count=len(self._waiting),
            pending_appends_count=self._appender.pending_count,
            last_confirmed_entry=ledgers.last_confirmed_entry,
            state=ledgers.state.value,
            ledgers=self.ledgers_info(),
            cursors={name: cursor.stats() for name, cursor in self._cursors.items()},
            properties=dict(ledgers.properties),
        )

    # The end

    async def terminate(self) -> Position:
        """Let nothing follow the last entry; returns its position. Fine if done already.

        Appends that still wait for a ledger fail; those that have one are waited for.

        Raises:
            ManagedLedgerError, MetadataError, StorageError: It may not be terminated.
        """
        if self._ledgers.terminated_position is not None:
            return self._ledgers.terminated_position
        self._raise_if_unusable()
        self._ledgers.move_to(State.TERMINATED)
        error = ManagedLedgerTerminatedError(f"{self.name}: terminated")
        self._appender.fail_waiting(error)
        async with self.change_lock:
            await self._appender.end_ledger()
            self._appender.fail_pending(error)
            end = self._ledgers.last_confirmed_or_gap
            stored = self._ledgers.stored()
            stored.terminated_position = end
            await self.write_ledger_list(stored)
            self._ledgers.terminated_position = end
        self._wake()
        return end

    async def close(self) -> None:
        """Persist all cursors and close the current ledger. May be called again.

        Raises:
            StorageError, MetadataError: Something could not be written; it is closed all the same,
                and what is durable will be found.
        """
        if self._is_closing:
            await self._closed.wait()
            return
        self._is_closing = True
        failures: list[Exception] = []
        try:
            failures += await self._close_cursors()
            failures += await self._close_ledger()
        finally:
            await self._release()
        if failures:
            raise failures[0]

    async def _close_cursors(self) -> list[Exception]:
        cursors = list(self._cursors.values())
        if self.is_fenced:
            for cursor in cursors:
                cursor.abandon()
            return []
        results = await asyncio.gather(
            *(cursor.close() for cursor in cursors), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
        return [result for result in results if isinstance(result, Exception)]

    async def _close_ledger(self) -> list[Exception]:
        """End the current ledger and write that down, unless another owner has it."""
        is_fenced = self.is_fenced
        if self._ledgers.state is not State.CLOSED:
            self._ledgers.move_to(State.CLOSED)
        error = ManagedLedgerClosedError(f"{self.name}: closed")
        self._appender.fail_waiting(error)
        try:
            async with self.change_lock:
                if not is_fenced and self._appender.has_ledger:
                    await self._appender.end_ledger()
                    await self.write_ledger_list(self._ledgers.stored())
        except (StorageError, MetadataError, ManagedLedgerError) as failure:
            return [failure]
        finally:
            self._appender.fail_pending(error)
        return []

    async def _release(self) -> None:
        if self._ledgers.state is not State.CLOSED:
            self._ledgers.move_to(State.CLOSED)
        self._wake()
        self._cache.clear()
        await self._readers.close()
        await self.tasks.close()
        self._closed.set()
        self._shared.on_ledger_closed(self)

    async def wait_closed(self) -> None:
        """Return when a `close` under way has ended."""
        await self._closed.wait()

    async def delete(self) -> None:
        """Delete cursors, metadata and ledgers for good; closes first.

        Metadata goes at once and before the ledgers, so that a crash leaves all of it or ledgers
        that nobody names.

        Raises:
            ManagedLedgerFencedError: Another owner has it; nothing was deleted.
            MetadataError, StorageError: It could not be deleted, but it is closed.
        """
        if not self._is_closing:
            self._is_closing = True
            try:
                ledger_ids = await self._delete_metadata()
            finally:
                await self._release()
            await self._delete_ledgers(ledger_ids)

    async def _delete_metadata(self) -> list[int]:
        """Remove the record and all cursors'; returns the ledgers they named."""
        ledger_ids = [cursor.cursor_ledger_id for cursor in self._cursors.values()]
        for cursor in list(self._cursors.values()):
            cursor.abandon()
        is_fenced = self.is_fenced
        self._ledgers.move_to(State.CLOSED)
        self._appender.fail_waiting(ManagedLedgerClosedError(f"{self.name}: deleted"))
        async with self.change_lock:
            if is_fenced:
                raise ManagedLedgerFencedError(f"{self.name}: another owner has it")
            await self._appender.end_ledger()
            self._appender.fail_pending(ManagedLedgerClosedError(f"{self.name}: deleted"))
            # A last compare-and-set proves that it is still ours to delete.
            await self.write_ledger_list(self._ledgers.stored())
            await self._metadata.delete_recursive(ledger_path(self.name))
        return [*self._ledgers.ledger_ids, *(each for each in ledger_ids if each >= 0)]

    def _raise_if_unusable(self) -> None:
        if self._is_closing or self._ledgers.state is State.CLOSED:
            raise ManagedLedgerClosedError(f"{self.name}: closed")
        if self._ledgers.state is State.FENCED:
            raise ManagedLedgerFencedError(f"{self.name}: another owner has it")


def _entries(ledger_id: int, first: int, datas: Sequence[bytes]) -> list[Entry]:
    return [Entry(ledger_id, entry_id, data) for entry_id, data in enumerate(datas, first)]
