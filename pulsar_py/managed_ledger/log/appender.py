"""`Appender`: appends entries to one ledger after the other, in order (edge).

One queue has all unanswered appends, in order: first those pushed to the current ledger, then those
that wait for the next one. A confirmation by the ledger takes a whole group off the front. When a
ledger is full, its pushed entries are awaited, it is closed, and the next one is created and named
in metadata; only then is the rest of the queue pushed to it. When a ledger fails, it is recovered,
and all entries after its recovered end are pushed again to the next one: the ids of the failed
attempt are never reported. When no ledger can be created, all waiting appends fail, and so do new
ones for a while.

A fenced ledger counts as failed, with one more step: repair of a lost replica fences the writers of
topics in use, so a fence does not say who owns the topic. The bundle's ownership and the version of
the list do; both are checked before the ledger is recovered.

If the store takes no appends now (it is busy, its disk is full) an append fails, but the ledger
stays in use. Appends made before that failure is reported fail, too: a later entry must not be
stored when an earlier one, which its producer will send again, was not.

What always holds: listener calls come in the order of the appends that succeed; no entry is both
answered and kept in the queue; nothing calls the listener from inside `append`.

Source: OpAddEntry, internalAsyncAddEntry, createComplete and ledgerClosed in ManagedLedgerImpl.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pulsar_py.common.errors import (
    EntryTooBigError,
    LedgerFencedError,
    ManagedLedgerClosedError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    MetadataError,
    MetadataUnavailableError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.log.ledger_state import LedgerState, State
from pulsar_py.managed_ledger.log.write_figures import WriteFigures

logger = logging.getLogger(__name__)

C = TypeVar("C")

_NEVER = sys.maxsize
_ANSWER_GRACE = 1.5  # times the store's own time limit; a ledger without an answer by then failed


class AppenderOwner(Protocol[C]):
    """The part of the ManagedLedger that the appender uses."""

    name: str
    config: ManagedLedgerConfig

    def on_confirmed_group(
        self, ledger_id: int, first_entry_id: int, contexts: list[C], datas: list[bytes]
    ) -> None:
        """Called with entries that are durable."""

    def on_failed_group(self, contexts: list[C], error: Exception) -> None:
        """Called with entries that are not stored."""

    def may_roll(self) -> bool:
        """Whether a full ledger can be followed by another one now; else it grows on."""

    async def prove_ownership(self) -> None:
        """Return if the managed ledger is still ours, although a ledger of it was fenced.

        Raises:
            ManagedLedgerFencedError: Another owner has it; the managed ledger is fenced now.
            MetadataError: That can't be found out now.
        """

    def on_ledger_created(self, placeholders: list[int]) -> None:
        """Called when the next ledger is in the list, and these empty ones no longer are."""


class Appender(Generic[C]):
    """The queue of appends of one managed ledger, and its current ledger. Owned by it."""

    def __init__(
        self,
        owner: AppenderOwner[C],
        ledgers: LedgerState,
        *,
        ledger_list: LedgerListStore,
        store: LedgerStore,
        clock: Clock,
        tasks: TaskOwner,
        chance: random.Random,
    ) -> None:
        self._owner = owner
        self._ledgers = ledgers
        self._ledger_list = ledger_list
        self._store = store
        self._clock = clock
        self._now = clock.monotonic_seconds
        self._tasks = tasks
        self._jitter = chance.random()
        self._writer: LedgerWriter | None = None  # set while appends go straight to a ledger
        self._ending: LedgerWriter | None = None  # the one being closed, or to be closed next
        self._ledger_id = -1  # of the writer or the ending ledger
        self._next_entry_id = 0  # first one of that ledger that is not confirmed
        self._full_entry_id = _NEVER  # the last entry that the ledger may take
        self._has_failed = False  # whether that ledger takes no more
        self._was_fenced = False  # ... because another process recovered it
        self._contexts: list[C] = []  # all unanswered appends
        self._datas: list[bytes] = []  # their bytes
        self._times: list[float] = []  # when they were pushed to a ledger, or began to wait for it
        self._waited_since: list[float] = []  # of the first ones: when they began to wait for it
        self.figures = WriteFigures()
        self._pushed_count = 0  # appends at the front that were pushed to _ending
        self._waiting_bytes = 0  # of the appends after those, while there is no writer
        self._drained: asyncio.Event = asyncio.Event()  # _ending has nothing unconfirmed
        self._is_going_on = False  # a task that creates the next ledger runs
        self._refused: list[C] = []  # contexts that are answered with _refusal soon
        self._refusal: Exception | None = None
        self._fail_until = float("-inf")  # appends fail at once before this time
        self.last_failure_millis = 0  # when creating a ledger failed last; 0 never

    @property
    def pending_count(self) -> int:
        """Appends not answered yet."""
        return len(self._contexts)

    @property
    def pending(self) -> Sequence[C]:
        """Their contexts, in order."""
        return self._contexts

    @property
    def writer(self) -> LedgerWriter | None:
        """The ledger that can be read through its writer: open, or just being closed."""
        return self._writer or self._ending

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger to end."""
        return self.writer is not None

    def append(self, data: bytes, context: C) -> None:
        """Queue one entry; see ManagedLedger. Hot path: publish."""
        writer = self._writer
        if self._refused:
            assert self._refusal is not None, "set with the first refused one"
            self._refuse(context, self._refusal)
            return
        if writer is None:
            self._append_waiting(data, context)
            return
        try:
            entry_id = writer.append(data)
        except StorageError as error:
            self._on_append_error(data, context, error)
            return
        self._contexts.append(context)
        self._datas.append(data)
        self._times.append(self._now())
        if entry_id >= self._full_entry_id and self._owner.may_roll():
            self.begin_rollover()

    def append_run(self, datas: list[bytes], contexts: Sequence[C]) -> int:
        """Queue the first entries of a run; returns how many.

        Fewer than all are queued where something has to be done for the next one: the caller
        passes it to `append`. Hot path: publish, once a run of SENDs.
        """
        writer = self._writer
        # The last entry that the ledger may take is left to `append`, which begins the next one.
        if (
            writer is None
            or self._refused
            or writer.last_add_pushed + len(datas) >= self._full_entry_id
        ):
            return 0
        queued_count = writer.append_run(datas)
        if queued_count < len(datas):
            datas, contexts = datas[:queued_count], contexts[:queued_count]
        self._contexts += contexts
        self._datas += datas
        self._times += [self._now()] * queued_count
        return queued_count

    def _append_waiting(self, data: bytes, context: C) -> None:
        self.raise_if_ended()
        config = self._owner.config
        if (
            self._ledgers.state is State.FAILED
            and self._refusal is not None
            and self._clock.monotonic_seconds() < self._fail_until
        ):
            self._refuse(context, self._refusal)
            return
        if self._waiting_bytes + len(data) > config.max_queued_bytes:
            limit = config.max_queued_bytes
            waiting = f"{self._owner.name}: {limit} bytes wait for the next ledger already"
            self._refuse(context, StorageError(waiting))
            return
        self._contexts.append(context)
        self._datas.append(data)
        self._times.append(self._now())
        self._waiting_bytes += len(data)
        self._go_on()

    def raise_if_ended(self) -> None:
        """Raise if no append can succeed: fenced, terminated or closed."""
        state = self._ledgers.state
        if state is State.FENCED:
            raise ManagedLedgerFencedError(f"{self._owner.name}: another owner has it")
        if state is State.TERMINATED:
            raise ManagedLedgerTerminatedError(f"{self._owner.name}: the topic is terminated")
        if state is State.CLOSED:
            raise ManagedLedgerClosedError(f"{self._owner.name}: closed")

    def _on_append_error(self, data: bytes, context: C, error: StorageError) -> None:
        """Handle the error of an append to the current ledger."""
        if isinstance(error, (StoreUnavailableError, EntryTooBigError)):
            self._refuse(context, error)
            return
        self._on_writer_failed(error)
        self._append_waiting(data, context)

    def _refuse(self, context: C, error: Exception) -> None:
        """Answer one append with an error, soon and together with others."""
        if not self._refused:
            asyncio.get_running_loop().call_soon(self._tell_refused)
        self._refused.append(context)
        self._refusal = error

    def _tell_refused(self) -> None:
        refused, self._refused = self._refused, []
        assert self._refusal is not None, "set with the first refused one"
        self._owner.on_failed_group(refused, self._refusal)

    # Called when the open ledger confirms entries or fails

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Report the entries up to this one as durable. Hot path: publish, once a group."""
        if ledger_id != self._ledger_id or last_add_confirmed < self._next_entry_id:
            return
        self._confirm_through(last_add_confirmed)
        if self._writer is not None:
            record = self._ledgers.last_ledger
            if (
                self._ledgers.is_rollover_due(
                    self._owner.config,
                    entries_count=record.entries_count,
                    size_bytes=record.size_bytes,
                    now_millis=self._clock.wall_time_millis(),
                    jitter=self._jitter,
                )
                and self._owner.may_roll()
            ):
                self.begin_rollover()

    def _confirm_through(self, last_add_confirmed: int) -> None:
        count = last_add_confirmed + 1 - self._next_entry_id
        if self._writer is None:
            count = min(count, self._pushed_count)
            self._pushed_count -= count
            if not self._pushed_count:
                self._drained.set()
        if not count:
            return
        waited_since: list[float] = []
        if self._waited_since:
            waited_since = self._waited_since[:count]
            del self._waited_since[:count]
        contexts, datas, times = self._take(count)
        self.figures.add(datas, times, self._now(), waited_since)
        first = self._next_entry_id
        self._next_entry_id += count
        self._owner.on_confirmed_group(self._ledger_id, first, contexts, datas)

    def _take(self, count: int) -> tuple[list[C], list[bytes], list[float]]:
        """Take the first contexts off the queue, with their bytes and times."""
        contexts, datas, times = self._contexts, self._datas, self._times
        assert count <= len(contexts) == len(datas) == len(times), (
            "more was confirmed than appended"
        )
        if count == len(contexts):
            self._contexts, self._datas, self._times = [], [], []
            return contexts, datas, times
        taken = contexts[:count], datas[:count], times[:count]
        del contexts[:count], datas[:count], times[:count]
        return taken

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Note that the ledger confirms no more entries."""
        if ledger_id == self._ledger_id:
            self._on_writer_failed(error)

    def _on_writer_failed(self, error: StorageError) -> None:
        self._was_fenced |= isinstance(error, LedgerFencedError)
        if self._has_failed:
            return
        self._has_failed = True
        logger.warning(
            "ledger failed",
            extra={"topic": self._owner.name, "ledger_id": self._ledger_id, "error": str(error)},
        )
        self._drained.set()
        # Where it is being closed, terminated or fenced, that call ends the ledger.
        if self._ledgers.state is State.OPENED:
            self.begin_rollover()

    # From one ledger to the next

    def begin_rollover(self) -> None:
        """Stop appending to the current ledger and go on in a new one. Needs a current ledger."""
        assert self._writer is not None, "only an open ledger can be rolled"
        self._stop_writer()
        self._ledgers.move_to(State.CLOSING)
        self._go_on()

    def _stop_writer(self) -> None:
        self._ending, self._writer = self._writer, None
        self._pushed_count = len(self._contexts)
        self._waiting_bytes = 0
        if not self._pushed_count:
            self._drained.set()

    def _go_on(self) -> None:
        if not self._is_going_on:
            self._is_going_on = True
            self._tasks.spawn(self._bring_next_ledger(), "next ledger")

    async def _bring_next_ledger(self) -> None:
        try:
            async with self._ledger_list.lock:
                if self._writer is None:
                    await self.open_next_ledger()
        finally:
            self._is_going_on = False
        if self._ledgers.state is State.CLOSING:
            self._go_on()  # the waiting entries have filled the new ledger already

    async def roll(self) -> None:
        """Go on in a new ledger if the current one has entries. The caller holds the lock."""
        if self._writer is not None and self._ledgers.last_ledger.entries_count:
            self._stop_writer()
            self._ledgers.move_to(State.CLOSING)
            await self.open_next_ledger()

    async def create_first(self) -> None:
        """Create a ledger when there is none, and wait for it. The caller holds the lock.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: There is still none.
        """
        await self._create()

    async def open_next_ledger(self) -> None:
        """End the current ledger and create the next one. The caller holds the lock.

        Waiting appends fail if that can't be done.
        """
        try:
            await self.end_ledger()
            if self._ledgers.state not in (State.TERMINATED, State.FENCED, State.CLOSED):
                await self._create()
        except (StorageError, MetadataError, ManagedLedgerError) as error:
            self._on_creation_failed(error)

    async def end_ledger(self) -> None:
        """Wait for pushed entries, and close the ledger at its last confirmed entry.

        Does nothing without a ledger. The caller holds the lock and writes the list.

        Raises:
            StorageError: Its end could not be determined.
        """
        if self._writer is not None:
            self._stop_writer()
        writer = self._ending
        if writer is None:
            return
        await self._wait_drained()
        if self._ledgers.state is State.FENCED:
            return
        ledger_id = writer.ledger_id
        last, length = await self._end_of(writer)
        self._confirm_through(last)
        count = self._next_entry_id
        if count <= last:
            # The ledger has more entries than were confirmed here: they were reported as failed,
            # so no reader may ever get them.
            length = self._ledgers.last_ledger.size_bytes
        self._ending = None
        self._ledger_id = -1
        self._pushed_count = 0
        self._waiting_bytes = sum(map(len, self._datas))
        self._ledgers.ledger_closed(count, length, self._clock.wall_time_millis())
        logger.info(
            "ledger closed",
            extra={"topic": self._owner.name, "ledger_id": ledger_id, "entries": count},
        )

    async def _wait_drained(self) -> None:
        """Wait until pushed entries are answered; a ledger that does not answer has failed."""
        limit_seconds = self._store.limits.answer_timeout_seconds
        try:
            async with asyncio.timeout(_ANSWER_GRACE * limit_seconds):
                await self._drained.wait()
        except TimeoutError:
            self._on_writer_failed(
                StorageError(
                    f"ledger {self._ledger_id} has not answered {self._pushed_count} appends "
                    f"within {_ANSWER_GRACE * limit_seconds:g} s, and counts as failed"
                )
            )

    async def _end_of(self, writer: LedgerWriter) -> tuple[int, int]:
        """Close a ledger, by recovery if its writer can't; returns its last entry and length.

        Raises:
            ManagedLedgerFencedError: Another owner has the managed ledger.
            StorageError, MetadataError: Its end could not be determined.
        """
        if not self._was_fenced:
            try:
                await writer.close()
            except LedgerFencedError:
                self._was_fenced = True
            except StorageError:
                pass  # Whether the close was written is unknown: recovery finds the end.
            else:
                return writer.last_add_confirmed, writer.length_bytes
        if self._was_fenced:
            await self._owner.prove_ownership()
        # Entries that recovery finds beyond our count are stored, and count as confirmed.
        return await self._recover_own(writer.ledger_id)

    async def _recover_own(self, ledger_id: int) -> tuple[int, int]:
        """Let the store recover our own ledger; returns its last entry and length.

        Recovery fences our own writer, which here does not mean another owner.
        """
        self._ledger_id = -1
        try:
            reader = await self._store.recover(
                ledger_id, password=self._owner.config.ledger_options.password
            )
        finally:
            self._ledger_id = ledger_id
        last, length = reader.last_add_confirmed, reader.length_bytes
        await reader.close()
        return last, length

    async def _create(self) -> None:
        self._ledgers.move_to(State.CREATING)
        config = self._owner.config
        writer = await create_ledger(
            self._store,
            self,
            config.data_ledger_options(self._owner.name),
            timeout_seconds=config.ledger_creation_timeout_seconds,
        )
        try:
            await self._ledger_list.write(self._ledgers.with_next_ledger(writer.ledger_id))
        except ManagedLedgerFencedError:
            await self._discard(writer)
            raise
        self.adopt(writer)

    async def _discard(self, writer: LedgerWriter) -> None:
        """Delete a ledger that no metadata names."""
        try:
            await writer.close()
            await self._store.delete(writer.ledger_id)
        except StorageError:
            logger.warning("ledger left over", extra={"ledger_id": writer.ledger_id})

    def adopt(self, writer: LedgerWriter) -> None:
        """Make a ledger that metadata names the current one, and push the waiting entries."""
        placeholders = self._ledgers.ledger_created(
            writer.ledger_id, self._clock.wall_time_millis()
        )
        config = self._owner.config
        self._ledger_id = writer.ledger_id
        self._next_entry_id = 0
        self._has_failed = False
        self._was_fenced = False
        self._drained.clear()
        self._refusal = None
        self._full_entry_id = _NEVER
        if not config.minimum_rollover_seconds:
            self._full_entry_id = config.max_entries_per_ledger - 1
        self._owner.on_ledger_created(placeholders)
        if self._ledgers.state is not State.CREATING:
            # The managed ledger was closed, terminated or fenced meanwhile: that call ends this
            # ledger.
            self._ending = writer
            self._drained.set()
            return
        self._writer = writer
        self._ledgers.move_to(State.OPENED)
        self._push_waiting()

    def _push_waiting(self) -> None:
        self._waiting_bytes = 0
        contexts, datas, since = self._take(len(self._contexts))
        since[: len(self._waited_since)] = self._waited_since
        for place, (data, context) in enumerate(zip(datas, contexts, strict=True)):
            try:
                self.append(data, context)
            except ManagedLedgerError as error:
                self._owner.on_failed_group(contexts[place:], error)
                break
        self._waited_since = since[: len(self._contexts)]

    def _on_creation_failed(self, error: Exception) -> None:
        if self._ledgers.state in (State.TERMINATED, State.FENCED, State.CLOSED):
            return  # the call that closed, terminated or fenced it answers pending appends
        config = self._owner.config
        backoff = config.creation_failure_backoff_seconds
        if isinstance(error, (StoreUnavailableError, MetadataUnavailableError)):
            backoff = config.unavailable_backoff_seconds
        logger.warning(
            "no new ledger",
            extra={"topic": self._owner.name, "error": f"{type(error).__name__}: {error}"},
        )
        self._ledgers.move_to(State.FAILED)
        self.last_failure_millis = self._clock.wall_time_millis()
        self._fail_until = self._clock.monotonic_seconds() + backoff
        self._refusal = error
        self.fail_pending(error)

    def fail_pending(self, error: Exception) -> None:
        """Fail all appends in the queue."""
        self._pushed_count = 0
        self._waiting_bytes = 0
        self._drained.set()
        self._waited_since.clear()
        contexts, _, _ = self._take(len(self._contexts))
        if contexts:
            self._owner.on_failed_group(contexts, error)

    def release(self) -> None:
        """Stop using the current ledger without closing it: it belongs to another owner."""
        if self._writer is not None:
            self._stop_writer()
        self._ledger_id = -1
        self._drained.set()

    def fail_waiting(self, error: Exception) -> None:
        """Fail appends that wait for a ledger; those pushed to one still wait for its answer."""
        pushed = len(self._contexts) if self._writer is not None else self._pushed_count
        contexts = self._contexts[pushed:]
        del self._contexts[pushed:], self._datas[pushed:], self._times[pushed:]
        del self._waited_since[pushed:]
        self._waiting_bytes = 0
        if contexts:
            self._owner.on_failed_group(contexts, error)


async def create_ledger(
    store: LedgerStore,
    listener: LedgerListener,
    options: LedgerOptions,
    *,
    timeout_seconds: float,
) -> LedgerWriter:
    """A new ledger, created within `timeout_seconds`.

    Raises:
        StoreUnavailableError: The time is over; a ledger that no metadata names may be left over.
        StorageError, MetadataError: As `LedgerStore.create`.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            return await store.create(listener, options)
    except TimeoutError as error:
        raise StoreUnavailableError(f"no new ledger within {timeout_seconds:g} s") from error
