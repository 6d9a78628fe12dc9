"""`ManagedLedger`: an append-only log of ledgers with cursors (edge).

It carries out the decisions of `LedgerState` about positions, trimming and ends. A
`LedgerListStore` keeps the list of ledgers in metadata; if another owner changes that list, the
managed ledger is fenced.
The `Appender` appends, and reports whole groups: each is counted, cached if a cursor tails, handed
to the listener in one call, and wakes waiting cursors once.

What always holds: a ledger takes entries only after metadata names it, and is deleted only after
metadata does not. Changes of the list happen one at a time, under `change_lock`.

Source: ManagedLedgerImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from pulsar_py.common.errors import (
    ManagedLedgerClosedError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.flusher import CursorFlusher
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.cursors.memory import CursorMemory
from pulsar_py.managed_ledger.cursors.registry import (
    CursorRegistry,
    InitialPosition,
    StoredCursor,
)
from pulsar_py.managed_ledger.ledger_trimmer import LedgerTrimmer
from pulsar_py.managed_ledger.log.append_news import AppendListener, AppendNews, Waiter
from pulsar_py.managed_ledger.log.appender import Appender
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_cache import EntryCache, EntryCacheManager
from pulsar_py.managed_ledger.log.ledger_format import LedgerList
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.log.ledger_readers import LedgerReaders
from pulsar_py.managed_ledger.log.ledger_reading import LedgerReading
from pulsar_py.managed_ledger.log.ledger_state import LedgerState, State
from pulsar_py.managed_ledger.log.stats import CursorStats, LedgerStats, ManagedLedgerStats
from pulsar_py.managed_ledger.log.write_figures import WriteWindow
from pulsar_py.metadata.store import MetadataStore

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

CURSOR_UNITS: Final = 20
"""Units of work that the statistics of a cursor are."""

MARK_BITS = 64  # no two owners of a topic draw the same


class SharedParts(Protocol):
    """Shared by all managed ledgers of an opener; the opener implements it."""

    ledger_store: LedgerStore
    metadata: MetadataStore
    clock: Clock
    chance: random.Random
    flusher: CursorFlusher
    cursor_memory: CursorMemory
    cache_manager: EntryCacheManager
    owns: Callable[[str], Awaitable[bool]]
    check_owner: Callable[[str], None]
    may_change: Callable[[], bool]

    def on_ledger_closed(self, ledger: ManagedLedger[Any]) -> None:  # Any: whatever its contexts
        """Called when a managed ledger is closed or deleted, and may be opened again."""


class ManagedLedger(Generic[C]):
    """One topic's entries and cursors. Owned by a `ManagedLedgerOpener` until closed or deleted.

    Pulsar's ManagedLedgerImpl.
    """

    # append(data, context) queues one entry; the listener's calls have its `context`. Groups are
    # completed in the order of the calls. While there is no ledger, entries wait for it in
    # order; if it can't be created, or the disk is full, `on_append_failed` is called. Raises
    # ManagedLedgerFencedError (another owner has it; reopening does not help),
    # ManagedLedgerTerminatedError and ManagedLedgerClosedError. It is the appender's own method,
    # which saves a call an entry. Source: ManagedLedger.asyncAddEntry in Pulsar.
    append: Callable[[bytes, C], None]
    # append_run(datas, contexts) does the same for the first entries of a run, and returns how many
    # it took; what is left goes through `append`, one by one. It never raises.
    append_run: Callable[[list[bytes], Sequence[C]], int]

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
        self._shared = shared
        self.clock = shared.clock
        self.flusher = shared.flusher
        self.cursor_memory = shared.cursor_memory
        self.cache_manager = shared.cache_manager
        self.tasks = TaskOwner(f"managed-ledger {name}")
        self._ledgers = LedgerState(stored)
        self.ledger_list = LedgerListStore(
            name,
            shared.metadata,
            version=version,
            owner_mark=f"{version:x}-{shared.chance.getrandbits(MARK_BITS):x}",
            current=self._ledgers.stored,
            on_lost=self.fence,
            check_owner=self.check_owner,
            # The configuration may be replaced.
            written=lambda plain: self.config.ledger_list_compression.written(plain),  # noqa: PLW0108
        )
        self.change_lock = self.ledger_list.lock
        self.confirm_newest = self.ledger_list.confirm
        self.ledgers_kept = self.ledger_list.settled
        self._appender: Appender[C | Waiter] = Appender(
            self,
            self._ledgers,
            ledger_list=self.ledger_list,
            store=shared.ledger_store,
            clock=shared.clock,
            tasks=self.tasks,
            chance=shared.chance,
        )
        self.append = self._appender.append
        self.append_run = self._appender.append_run
        self._news: AppendNews[C] = AppendNews()
        self._cache = EntryCache(shared.cache_manager)
        self.ledger_store = shared.ledger_store
        self._readers = LedgerReaders(shared.ledger_store, config.ledger_options.password)
        self.reading = LedgerReading(
            self._ledgers, self._cache, self._readers, lambda: self._appender.writer
        )
        self._registry = CursorRegistry(
            self,
            self._ledgers,
            metadata=shared.metadata,
            ledger_store=shared.ledger_store,
            cache=self._cache,
        )
        self._trimmer = LedgerTrimmer(
            self,
            self._ledgers,
            ledger_list=self.ledger_list,
            ledger_store=shared.ledger_store,
            registry=self._registry,
            readers=self._readers,
            cache=self._cache,
        )
        self._is_lost = False  # it was fenced; stays True once it is closed
        self._is_closing = False
        self._closed = asyncio.Event()

    # Settings and state

    def set_config(self, config: ManagedLedgerConfig) -> None:
        """Replace the settings; takes effect with the next decision."""
        is_paced_otherwise = (
            config.cursor_persist_interval_seconds != self.config.cursor_persist_interval_seconds
        )
        self.config = config
        if is_paced_otherwise:
            for cursor in self.cursors.values():
                cursor.set_persist_interval(config.cursor_persist_interval_seconds)

    @property
    def ledgers(self) -> LedgerState:
        """The `LedgerState` that decides for it; for cursors and tests."""
        return self._ledgers

    @property
    def last_confirmed_entry(self) -> Position:
        """The last durable entry; `(ledger, -1)` while there is none. May be trimmed already."""
        return self._ledgers.last_confirmed_entry

    @property
    def first_position(self) -> Position:
        """The position of the first existing entry, or of the next one to come."""
        return self._ledgers.first_position

    @property
    def is_terminated(self) -> bool:
        """Whether it was terminated: nothing can be appended any more."""
        return self._ledgers.terminated_position is not None

    @property
    def is_fenced(self) -> bool:
        """Whether it was fenced: another owner has it."""
        return self._ledgers.state is State.FENCED

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or deleted, or is being closed."""
        return self._is_closing

    @property
    def terminated_position(self) -> Position | None:
        """The position of a terminated managed ledger's last entry; None if it isn't terminated."""
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

    def pending_contexts(self) -> list[C]:
        """The contexts of unanswered appends that will be reported to the listener, in order.

        It copies them all, so it is for rare calls.
        """
        return [each for each in self._appender.pending if not isinstance(each, Waiter)]

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that are stored with the list of ledgers."""
        return self._ledgers.properties

    @property
    def cursors(self) -> Mapping[str, ManagedCursor]:
        """All cursors, durable or not, by name."""
        return self._registry.cursors

    @property
    def listener(self) -> AppendListener[C] | None:
        """The callbacks for the outcome of appends; set by the topic."""
        return self._news.listener

    @listener.setter
    def listener(self, listener: AppendListener[C] | None) -> None:
        self._news.listener = listener

    # Appending

    async def append_and_wait(self, data: bytes) -> Position:
        """Append one entry and return its position once it is durable; for rare writes.

        The listener is not called for it.

        Raises:
            ManagedLedgerError, StorageError: It is not stored.
        """
        waiter = Waiter()
        self._appender.append(data, waiter)
        self._news.waiters_count += 1
        return await waiter.done

    def on_confirmed_group(
        self,
        ledger_id: int,
        first_entry_id: int,
        contexts: list[C | Waiter],
        datas: list[bytes],
    ) -> None:
        """Count a durable group, cache it, report it, wake waiting cursors. Hot path: publish."""
        open_ledger = self._ledgers.last_ledger
        assert (open_ledger.ledger_id, open_ledger.entries_count) == (ledger_id, first_entry_id)
        self._ledgers.confirmed(len(datas), sum(map(len, datas)))
        if self._registry.has_tailing_cursor(ledger_id, first_entry_id):
            self._cache.insert(ledger_id, first_entry_id, datas)
        self._news.appended(ledger_id, first_entry_id, contexts)
        self._registry.wake()

    def on_failed_group(self, contexts: list[C | Waiter], error: Exception) -> None:
        """Report appends that are not stored."""
        self._news.failed(contexts, error)

    # The list of ledgers

    def fence(self, error: Exception) -> None:
        """Fail pending appends and call the listener, soon and once: another owner has it.

        If it is being closed, the close changes no metadata after this.
        """
        self._is_lost = True
        if self._ledgers.state in (State.FENCED, State.CLOSED):
            return
        logger.warning("managed ledger fenced", extra={"topic": self.name, "error": str(error)})
        self._ledgers.move_to(State.FENCED)
        self._appender.release()
        asyncio.get_running_loop().call_soon(self._tell_fenced, error)

    async def prove_ownership(self) -> None:
        """Return if it is still ours, although one of its ledgers was fenced.

        Repair of a lost replica fences ledgers, too. The managed ledger is ours while this broker
        owns its bundle in a session that is not in doubt, and no other broker has changed the list
        of ledgers.

        Raises:
            ManagedLedgerFencedError: Another owner has it.
            MetadataError: That can't be found out now.
        """
        if not await self._shared.owns(self.name):
            error = ManagedLedgerFencedError(f"{self.name}: this broker does not own it any more")
            self.fence(error)
            raise error
        await self.ledger_list.confirm()

    def may_roll(self) -> bool:
        """Whether the metadata can be changed now, as far as is known; else ledgers grow on."""
        return not self._is_lost and self._shared.may_change()

    def check_owner(self) -> None:
        """Return if it is certainly ours at this moment; called before metadata is written.

        Raises:
            ManagedLedgerFencedError: Another owner has it.
            MetadataUnavailableError: Another owner may have it.
        """
        if self._is_lost:
            raise ManagedLedgerFencedError(f"{self.name}: another owner has it")
        self._shared.check_owner(self.name)

    def _tell_fenced(self, error: Exception) -> None:
        self._appender.fail_pending(ManagedLedgerFencedError(f"{self.name}: {error}"))
        self._news.fenced(error)

    def on_ledger_created(self, placeholders: list[int]) -> None:
        """Delete empty ledgers that left the list when a new one joined it, and trim."""
        if placeholders:
            self.tasks.spawn(self._trimmer.delete_ledgers(placeholders), "delete placeholders")
        self._registry.on_ledgers_changed()
        self._trimmer.maybe_trim()

    async def create_first_ledger(self) -> None:
        """Create the first ledger of a managed ledger that has none, and name it in metadata.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: It could not be created.
        """
        async with self.change_lock:
            await self._appender.create_first()

    async def set_property(self, name: str, value: str) -> None:
        """Store one property durably.

        Raises:
            ManagedLedgerError, MetadataError: It is not stored.
        """
        await self.change_properties(lambda before: {**before, name: value})

    async def delete_property(self, name: str) -> None:
        """Remove one property durably; fine if it is not there.

        Raises:
            ManagedLedgerError, MetadataError: It is still stored.
        """
        await self.change_properties(
            lambda before: {key: value for key, value in before.items() if key != name}
        )

    async def change_properties(
        self, change: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        """Store changed properties durably, all at once.

        Raises:
            ManagedLedgerError, MetadataError: They are as before.
        """
        async with self.change_lock:
            self.raise_if_unusable()
            properties = change(self._ledgers.properties)
            stored = self._ledgers.stored()
            stored.properties = properties
            await self.ledger_list.write(stored)
            self._ledgers.properties = properties

    async def roll_ledger(self) -> None:
        """Close the current ledger if it has entries, and go on in a new one."""
        async with self.change_lock:
            self.raise_if_unusable()
            await self._appender.roll()

    async def roll_if_due(self) -> None:
        """Roll a ledger that is too old, or has been idle for long; for periodic calls."""
        if self.may_roll() and self._ledgers.is_rollover_due_by_time(
            self.config, self.clock.wall_time_millis()
        ):
            await self.roll_ledger()

    async def trim(self) -> None:
        """Delete the ledgers that neither retention nor durable cursors need.

        Raises:
            ManagedLedgerError, MetadataError, StorageError: Nothing was deleted.
        """
        self.raise_if_unusable()
        await self._registry.flush()
        await self._trimmer.trim()

    async def truncate(self) -> None:
        """Delete all ledgers that no durable cursor needs, the current one included.

        Raises:
            ManagedLedgerError, MetadataError, StorageError: Nothing was deleted.
        """
        self.raise_if_unusable()
        await self._registry.flush()
        await self.roll_ledger()
        await self._trimmer.trim(keeps_retained=False)

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
        if name in self.cursors:
            return await self._registry.open(name)
        # This waits for a trim under way, which does not know of the new cursor: otherwise the
        # cursor could start in a ledger that is being deleted.
        async with self.ledgers_kept():
            return await self._registry.open(
                name, initial, properties=properties, cursor_properties=cursor_properties
            )

    async def read_cursor(self, name: str) -> StoredCursor:
        """What is stored of a cursor; for `restore_cursor`, while the managed ledger is opened.

        Raises:
            MetadataError, StorageError: It can't be read now.
        """
        return await self._registry.read(name)

    def restore_cursor(self, stored: StoredCursor) -> None:
        """Have a stored cursor; where the last ledger ends is known by now."""
        self._registry.restore(stored)

    def new_non_durable_cursor(
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
        return self._registry.new_non_durable(name, start, initial=initial)

    async def delete_cursor(self, name: str) -> None:
        """Remove a cursor with its record and cursor ledger.

        Raises:
            CursorNotFoundError: There is none.
            MetadataError: Its record could not be removed; the cursor stays in use.
        """
        await self._registry.delete(name)
        self._trimmer.maybe_trim()

    def slowest_durable_cursor(self, *, without: str | None = None) -> ManagedCursor | None:
        """The durable cursor with the oldest mark-delete position that survives a crash.

        The one of the name `without` does not count.
        """
        return self._registry.slowest_durable(without=without)

    def on_cursor_moved(self, before: Position, after: Position) -> None:
        """Trim after the durable mark-delete position of a cursor has moved to another ledger."""
        following = self._ledgers.next_valid_position(after)
        if before.ledger_id != following.ledger_id:
            self._trimmer.maybe_trim()

    # Reading

    async def read_entry(self, position: Position) -> Entry:
        """One entry.

        Raises:
            EntryNotFoundError, LedgerNotFoundError: There is none.
            CorruptDataError: The stored entry fails its checksum.
        """
        return await self.reading.read_entry(position)

    async def find_newest(
        self, predicate: Callable[[Entry], bool], *, after: Position | None = None
    ) -> Position | None:
        """The newest entry (after `after`) for which `predicate` holds; None if there is none.

        It is a binary search: the predicate must hold for all entries up to some entry, and for
        none after it.
        """
        return await self.reading.find_newest(predicate, after=after)

    # Positions

    def contains(self, position: Position) -> bool:
        """Whether there is a durable entry at `position`."""
        return self._ledgers.contains(position)

    def next_valid_position(self, position: Position) -> Position:
        """The first entry after `position`, or the next one to come."""
        return self._ledgers.next_valid_position(position)

    def previous_position(self, position: Position) -> Position:
        """The last entry before `position`; `(ledger, -1)` if there is none."""
        return self._ledgers.previous_position(position)

    def last_entry_up_to(self, position: Position) -> Position:
        """The last entry at or before `position`; `(ledger, -1)` if there is none."""
        return self._ledgers.last_entry_up_to(position)

    def count_entries_between(self, lower_exclusive: Position, upper_inclusive: Position) -> int:
        """Count of entries after the first and up to the second; 0 if they are reversed."""
        return self._ledgers.count_between(lower_exclusive, upper_inclusive)

    def backlog_size_bytes(self, *, without: str | None = None) -> int:
        """Estimated bytes after the slowest durable cursor's mark-delete position.

        The cursor of the name `without` does not count.
        """
        durable = [each for each in self._registry.durable() if each.name != without]
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

    def roll_write_figures(self) -> WriteWindow:
        """What was written since the last call."""
        return self._appender.figures.roll()

    async def internal_stats_in_turns(self, turns: Turns) -> ManagedLedgerStats:
        """As `internal_stats`; others have turns, so that cursors may be of different moments."""
        cursors: dict[str, CursorStats] = {}
        for name, cursor in list(self.cursors.items()):
            await turns.take(CURSOR_UNITS)
            cursors[name] = cursor.stats()
        return self._internal_stats(cursors)

    def internal_stats(self) -> ManagedLedgerStats:
        """A snapshot of all ledgers and cursors, in one go."""
        return self._internal_stats({name: cursor.stats() for name, cursor in self.cursors.items()})

    def _internal_stats(self, cursors: Mapping[str, CursorStats]) -> ManagedLedgerStats:
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
            waiting_cursors_count=self._registry.waiting_count,
            pending_appends_count=self._appender.pending_count,
            last_confirmed_entry=ledgers.last_confirmed_entry,
            state=ledgers.state.value,
            ledgers=self.ledgers_info(),
            cursors=cursors,
            properties=dict(ledgers.properties),
        )

    # The end

    async def terminate(self) -> Position:
        """End the managed ledger after its last entry, whose position is returned; idempotent.

        Appends that wait for a ledger fail; it waits for the others' answers.

        Raises:
            ManagedLedgerError, MetadataError, StorageError: It may not be terminated.
        """
        if self._ledgers.terminated_position is not None:
            return self._ledgers.terminated_position
        self.raise_if_unusable()
        self._ledgers.move_to(State.TERMINATED)
        error = ManagedLedgerTerminatedError(f"{self.name}: terminated")
        self._appender.fail_waiting(error)
        async with self.change_lock:
            await self._appender.end_ledger()
            self._appender.fail_pending(error)
            end = self._ledgers.last_confirmed_or_gap
            stored = self._ledgers.stored()
            stored.terminated_position = end
            await self.ledger_list.write(stored)
            self._ledgers.terminated_position = end
        self._registry.wake()
        return end

    async def close(self) -> None:
        """Write all cursors and close the current ledger. May be called again.

        Raises:
            StorageError, MetadataError: A cursor or the list could not be written; it is closed all
                the same, and the next opening recovers all durable entries.
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
        if self.is_fenced:
            self._registry.abandon()
            return []
        return await self._registry.close()

    async def _close_ledger(self) -> list[Exception]:
        """End the current ledger and write the list, unless another owner has it."""
        is_fenced = self.is_fenced
        if self._ledgers.state is not State.CLOSED:
            self._ledgers.move_to(State.CLOSED)
        error = ManagedLedgerClosedError(f"{self.name}: closed")
        self._appender.fail_waiting(error)
        try:
            async with self.change_lock:
                has_end = self._appender.has_ledger or self.ledger_list.names_open_ledger
                if not is_fenced and has_end:
                    await self._appender.end_ledger()
                    await self.ledger_list.write(self._ledgers.stored())
        except (StorageError, MetadataError, ManagedLedgerError) as failure:
            return [failure]
        finally:
            self._appender.fail_pending(error)
        return []

    async def _release(self) -> None:
        if self._ledgers.state is not State.CLOSED:
            self._ledgers.move_to(State.CLOSED)
        self._registry.wake()
        self._cache.clear()
        await self._readers.close()
        await self.tasks.close()
        self._closed.set()
        self._shared.on_ledger_closed(self)

    async def wait_closed(self) -> None:
        """Return when a `close` under way has ended."""
        await self._closed.wait()

    async def delete(self) -> None:
        """Close it, then delete cursors, metadata and ledgers for good.

        Metadata is marked and deleted before the ledgers, so that a crash leaves a deletion that
        the next opening finishes, or ledgers that no metadata names.

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
            await self._trimmer.delete_ledgers(ledger_ids)

    async def _delete_metadata(self) -> list[int]:
        """Remove the list and all cursors' records; returns the ids of their ledgers."""
        cursor_ledger_ids = self._registry.abandon()
        is_fenced = self.is_fenced
        self._ledgers.move_to(State.CLOSED)
        self._appender.fail_waiting(ManagedLedgerClosedError(f"{self.name}: deleted"))
        async with self.change_lock:
            if is_fenced:
                raise ManagedLedgerFencedError(f"{self.name}: another owner has it")
            await self._appender.end_ledger()
            self._appender.fail_pending(ManagedLedgerClosedError(f"{self.name}: deleted"))
            await self.ledger_list.delete(self._ledgers.stored())
        return [*self._ledgers.ledger_ids, *cursor_ledger_ids]

    def raise_if_unusable(self) -> None:
        """Raise if it can't be changed any more.

        Raises:
            ManagedLedgerClosedError, ManagedLedgerFencedError: It is closed or another owner's.
        """
        if self._is_closing or self._ledgers.state is State.CLOSED:
            raise ManagedLedgerClosedError(f"{self.name}: closed")
        if self._ledgers.state is State.FENCED:
            raise ManagedLedgerFencedError(f"{self.name}: another owner has it")
