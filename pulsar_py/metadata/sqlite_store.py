"""`SqliteMetadataStore`: the durable metadata store, one SQLite file.

All SQL runs on one thread of the store's own. The operations of one turn of the loop go to it
as one batch, and while it commits further batches gather: it answers the reads among them, then
makes all changes in *one* transaction, so that ten thousand puts at once cost a handful of syncs.
Each caller gets the result or error of its own operation, once the group is durable; if the commit
fails, all callers of the group get that error. Watchers are called after the commit, in order of
commit, before any of the callers goes on.

    loop     put put get │ put …      (batches of one turn)
    thread               └ answer get │ BEGIN put put put COMMIT │
    loop                                                         └ tell watchers, wake callers

A caller that is cancelled does not learn the result of its operation, which is carried out all the
same. An operation that takes longer than `limits.operation_timeout_seconds` fails, a read with
MetadataUnavailableError, a change with MetadataOutcomeUnknownError. Sessions are good until they
are closed.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    PulsarError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.store import (
    EMBEDDED_LIMITS,
    MetadataLimits,
    MetadataStore,
    Notification,
    Session,
    SessionListener,
    Versioned,
    Watcher,
    check_creates,
)
from pulsar_py.metadata.watches import Watches

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_OPERATIONS_PER_COMMIT: Final = 4096
"""The most changes that share a transaction, so that none waits for a very long one."""


_REFUSED_ALONE: Final = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
"""Errors of one statement that leave the transaction as it was."""


class _Operation(NamedTuple):
    """One call on its way to the thread, and the future of its caller."""

    work: Callable[[SqliteFile], Any]  # Any: the future's type, which `_submit` checks
    future: asyncio.Future[Any]
    is_change: bool


class _Backup(NamedTuple):
    """A copy to be made, and the future of its caller."""

    path: Path
    future: asyncio.Future[None]


class _Outcome(NamedTuple):
    future: asyncio.Future[Any]
    result: Any
    error: Exception | None


class _SqliteSession(Session):
    def __init__(self, store: SqliteMetadataStore, session_id: str) -> None:
        self.session_id = session_id
        self.is_open = True
        self._store = store

    @property
    def is_good(self) -> bool:
        """True until it is closed."""
        return self.is_open

    def listen(self, listener: SessionListener) -> Callable[[], None]:
        """Never calls `listener`: the session ends only when it is closed."""
        del listener
        return lambda: None

    async def close(self) -> None:
        """Delete its ephemeral keys."""
        if self.is_open:
            self.is_open = False
            await self._store.end_session(self)


class SqliteMetadataStore(MetadataStore):
    """A MetadataStore in one SQLite file. The caller of `open` has to call `close`."""

    def __init__(
        self, path: Path, clock: Clock, *, limits: MetadataLimits = EMBEDDED_LIMITS
    ) -> None:
        """Use `open`."""
        self.limits = limits
        self._path = path
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._watches = Watches()
        self._sessions: dict[_SqliteSession, None] = {}
        self._session_numbers = count(1)
        self._opened_millis = clock.wall_time_millis()  # makes session ids unique over restarts
        self._batch: list[_Operation] = []  # of this turn of the loop
        # None ends the thread.
        self._batches: SimpleQueue[list[_Operation] | _Backup | None] = SimpleQueue()
        # Unanswered operations, the oldest first, each with the loop time at which it fails.
        self._waiting: dict[asyncio.Future[Any], tuple[float, _Operation]] = {}
        self._deadline: asyncio.TimerHandle | None = None  # of the oldest of them
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="metadata", daemon=True)
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def open(
        cls, path: str | Path, clock: Clock, *, limits: MetadataLimits = EMBEDDED_LIMITS
    ) -> SqliteMetadataStore:
        """Open or create the file.

        Raises:
            DirectoryLockedError: Another process, or another store, has it open.
            CorruptDataError: It is not a file of this store, or unreadable.
            MetadataError: It can't be opened.
        """
        store = cls(Path(path), clock, limits=limits)
        store._thread.start()
        # A cancelled `open` has no store that could be closed: the thread has to end by itself.
        with OnFailure(lambda: store._batches.put(None)):
            await store._opened
        return store

    async def get(self, path: str) -> Versioned | None:
        """The value at `path`, None if the key has none."""
        paths.check(path)
        return await self._submit(lambda file: file.get(path), is_change=False)

    async def exists(self, path: str) -> bool:
        """Whether the key has a value."""
        return await self.get(path) is not None

    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves."""
        paths.check(path)
        names = await self._submit(lambda file: file.children(path), is_change=False)
        self.limits.check_children(path, names)
        return names

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        """Store a value durably; returns its new version."""
        paths.check(path)
        self.limits.check_value(path, value)
        session_id = None
        if session is not None:
            check_creates(path, expected_version)
            session_id = self._id_of(session)
        now_millis = self._clock.wall_time_millis()
        return await self._submit(
            lambda file: file.put(path, value, expected_version, session_id, now_millis)
        )

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key `prefix` plus a number that its parent never gave before."""
        paths.check_sequential(prefix)
        self.limits.check_value(prefix, value)
        session_id = None if session is None else self._id_of(session)
        now_millis = self._clock.wall_time_millis()
        return await self._submit(
            lambda file: file.create_sequential(prefix, value, session_id, now_millis)
        )

    def _id_of(self, session: Session) -> str:
        if session not in self._sessions:
            raise MetadataError(f"session {session.session_id} is closed")
        return session.session_id

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children."""
        paths.check(path)
        await self._submit(lambda file: file.delete(path, expected_version))

    async def delete_recursive(self, path: str) -> None:
        """Delete a key and all below it, in one transaction; fine if there is nothing."""
        paths.check(path)
        await self._submit(lambda file: file.delete_recursive(path))

    async def sync(self, path: str) -> None:
        """Wait for earlier operations; reads see the newest value anyway."""
        paths.check(path)
        await self._submit(lambda _: None)

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on the loop for every change at or below `prefix`."""
        return self._watches.add(prefix, watcher)

    async def open_session(self) -> Session:
        """A new owner for ephemeral keys."""
        if self._is_closing:
            raise MetadataError("the metadata store is closed")
        session = _SqliteSession(self, f"{self._opened_millis:x}-{next(self._session_numbers)}")
        self._sessions[session] = None
        return session

    async def end_session(self, session: _SqliteSession) -> None:
        """Delete a session's keys; called by the session."""
        self._sessions.pop(session, None)
        await self._submit(lambda file: file.delete_session(session.session_id))

    async def back_up(self, path: Path) -> None:
        """Copy everything into a new file, without a sync; other operations go on meanwhile.

        The copy has what the store has when this returns, but for operations that began later.

        Raises:
            MetadataError: It can't be written.
        """
        if self._is_closing:
            raise MetadataError("the metadata store is closed")
        future: asyncio.Future[None] = self._loop.create_future()
        self._flush()
        self._batches.put(_Backup(path, future))
        await future

    async def close(self) -> None:
        """Write what is queued, end all sessions, release the file. May be called again."""
        if not self._is_closing:
            try:
                await asyncio.gather(*(session.close() for session in tuple(self._sessions)))
            finally:
                self._is_closing = True
                self._flush()
                self._batches.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _submit(
        self, work: Callable[[SqliteFile], T], *, is_change: bool = True
    ) -> asyncio.Future[T]:
        """Queue an operation; all of one turn of the loop go to the thread together."""
        if self._is_closing:
            raise MetadataError("the metadata store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._batch:
            self._loop.call_soon(self._flush)
        self._batch.append(_Operation(work, future, is_change))
        return future

    def _flush(self) -> None:
        if self._batch:
            due_seconds = self._loop.time() + self.limits.operation_timeout_seconds
            self._waiting.update((each.future, (due_seconds, each)) for each in self._batch)
            if self._deadline is None:
                self._deadline = self._loop.call_at(due_seconds, self._give_up_late_ones)
            self._batches.put(self._batch)
            self._batch = []

    def _give_up_late_ones(self) -> None:
        """Fail operations whose time is over; the thread may still carry them out."""
        self._deadline = None
        now_seconds = self._loop.time()
        while self._waiting:
            future, (due_seconds, operation) = next(iter(self._waiting.items()))
            if due_seconds > now_seconds:
                self._deadline = self._loop.call_at(due_seconds, self._give_up_late_ones)
                return
            del self._waiting[future]
            if not future.done():
                kind = (
                    MetadataOutcomeUnknownError if operation.is_change else MetadataUnavailableError
                )
                seconds = self.limits.operation_timeout_seconds
                future.set_exception(kind(f"{self._path}: no answer within {seconds:g} s"))

    def _deliver(self, outcomes: list[_Outcome], notifications: list[Notification]) -> None:
        self._watches.notify(notifications)
        for future, result, error in outcomes:
            self._waiting.pop(future, None)
            if future.done():
                continue  # its caller was cancelled, or got an error after the time-out
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if self._deadline is not None and not self._waiting:
            self._deadline.cancel()
            self._deadline = None

    # What follows runs on the thread.

    def _run(self) -> None:
        try:
            file = SqliteFile(self._path)
        except Exception as error:  # noqa: BLE001 - `open` raises it
            self._call_loop(partial(self._deliver, [_Outcome(self._opened, None, error)], []))
            return
        self._call_loop(partial(self._deliver, [_Outcome(self._opened, None, None)], []))
        try:
            while (operations := self._next_operations()) is not None:
                if isinstance(operations, _Backup):
                    self._back_up(file, operations)
                    continue
                self._carry_out_or_fail(file, operations)
        finally:
            file.close()
            self._fail_backups()
            self._call_loop(partial(self._deliver, [_Outcome(self._ended, None, None)], []))

    def _carry_out_or_fail(self, file: SqliteFile, operations: list[_Operation]) -> None:
        try:
            self._carry_out(file, operations)
        except Exception as error:
            # The thread has to live on, or the callers of this batch and of all later ones would
            # wait for ever.
            logger.exception("metadata operations failed")
            failure = MetadataError(f"{self._path}: {error}")
            outcomes = [_Outcome(each.future, None, failure) for each in operations]
            self._call_loop(partial(self._deliver, outcomes, []))

    def _fail_backups(self) -> None:
        failure = MetadataError("the metadata store is closed")
        while not self._batches.empty():
            left = self._batches.get()
            if isinstance(left, _Backup):
                self._call_loop(partial(self._deliver, [_Outcome(left.future, None, failure)], []))

    def _next_operations(self) -> list[_Operation] | _Backup | None:
        """Wait for operations and take all that are queued; None when the store is closed."""
        operations = self._batches.get()
        if not isinstance(operations, list):
            return operations
        while not self._batches.empty():
            more = self._batches.get()
            if not isinstance(more, list):
                self._batches.put(more)  # backups come after all that is queued now
                break
            operations += more
        return operations

    def _back_up(self, file: SqliteFile, backup: _Backup) -> None:
        error: Exception | None = None
        try:
            file.back_up(backup.path, lambda: self._carry_out_queued(file))
        except Exception as failure:  # noqa: BLE001 - handed to the caller
            error = failure
        self._call_loop(partial(self._deliver, [_Outcome(backup.future, None, error)], []))

    def _carry_out_queued(self, file: SqliteFile) -> None:
        """Carry out what came during a backup, but no other backup and no end."""
        operations: list[_Operation] = []
        for _ in range(self._batches.qsize()):
            more = self._batches.get()
            if isinstance(more, list):
                operations += more
            else:
                self._batches.put(more)
        if operations:
            self._carry_out_or_fail(file, operations)

    def _carry_out(self, file: SqliteFile, operations: list[_Operation]) -> None:
        reads = [operation for operation in operations if not operation.is_change]
        if reads:
            outcomes = [_carry_out_one(file, operation) for operation in reads]
            self._call_loop(partial(self._deliver, outcomes, []))
        changes = [operation for operation in operations if operation.is_change]
        for start in range(0, len(changes), MAX_OPERATIONS_PER_COMMIT):
            group = changes[start : start + MAX_OPERATIONS_PER_COMMIT]
            self._call_loop(partial(self._deliver, *_commit(file, group)))

    def _call_loop(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop was closed without closing the store: nobody waits any more.
            logger.warning("metadata store outlived its loop", extra={"path": str(self._path)})


def _commit(file: SqliteFile, group: list[_Operation]) -> tuple[list[_Outcome], list[Notification]]:
    try:
        file.begin()
        outcomes = [_carry_out_one(file, operation) for operation in group]
        if any(outcome.error is None for outcome in outcomes):
            file.commit()
        else:
            file.roll_back()
    except (sqlite3.Error, PulsarError) as error:
        logger.exception("metadata not written", extra={"operations": len(group)})
        file.roll_back()
        failure = error if isinstance(error, PulsarError) else MetadataError(str(error))
        return [_Outcome(operation.future, None, failure) for operation in group], []
    return outcomes, file.notifications


def _carry_out_one(file: SqliteFile, operation: _Operation) -> _Outcome:
    try:
        return _Outcome(operation.future, operation.work(file), None)
    except sqlite3.Error as error:
        if operation.is_change and not isinstance(error, _REFUSED_ALONE):
            raise  # SQLite may have rolled back: the whole group fails
        return _Outcome(operation.future, None, MetadataError(str(error)))
    except Exception as error:  # noqa: BLE001 - handed to this operation's caller
        return _Outcome(operation.future, None, error)
