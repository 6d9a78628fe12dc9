"""`MetadataCache`: decoded values of one kind, read through and kept fresh by a watch.

`get_cached` returns, without waiting, a value that was read before. When its key changes it is read
again, and then listeners are called; until then `get_cached` returns the old value, while `get`
reads the store. Where the watch may have missed changes, every key counts as changed. Where the
store is unavailable, reading is repeated until it succeeds. A key with an empty value, as a parent
made on demand has, counts as having none. The owner of the cache notes at once what it writes
(`note_written`). That a key does not exist is remembered, too. At most `max_entries` are kept, and
the oldest is dropped.

Invariant: a path in `_entries` is either not in `_stale`, or being read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from pulsar_py.common.errors import MetadataError, MetadataUnavailableError
from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata.store import MetadataStore, Notification, NotificationType

V = TypeVar("V")

logger = logging.getLogger(__name__)

MAX_ENTRIES: Final = 100_000
RETRY_SECONDS: Final = 0.5
"""Seconds between two attempts to read, while the store is unavailable."""
MISSING: Final = -1
"""The version of a key that does not exist."""


class Cached(NamedTuple, Generic[V]):
    """A value as it was read; None if there is none."""

    value: V | None
    version: int


class MetadataCache(Generic[V]):
    """The values at or below one prefix; its owner closes it."""

    def __init__(
        self,
        store: MetadataStore,
        prefix: str,
        decode: Callable[[bytes], V],
        *,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._decode = decode
        self._max_entries = max_entries
        self._entries: dict[str, Cached[V]] = {}  # by path, the oldest first
        self._stale: dict[str, int] = {}  # paths to read again: the change that made them so
        self._changes_count = 0  # notifications so far
        self._listeners: list[Callable[[str, V | None], None]] = []
        self._tasks = TaskOwner(f"cache of {prefix}")
        self._is_refreshing = False
        self._has_missed_changes = False  # the watch reported ANYTHING: all keys have to be read
        self._is_closed = False
        self._stop_watching = store.watch(prefix, self._on_change)

    def get_cached(self, path: str) -> V | None:
        """The value at `path` as last read; None if there is none, or it was never read."""
        entry = self._entries.get(path)
        return entry.value if entry else None

    async def get(self, path: str) -> V | None:
        """The value at `path`, from the store if need be.

        Raises:
            MetadataError: It can't be read.
        """
        return (await self.get_versioned(path)).value

    async def get_versioned(self, path: str) -> Cached[V]:
        """The value at `path` with its version, `MISSING` if there is none.

        Raises:
            MetadataError: It can't be read.
        """
        entry = self._entries.get(path)
        if entry is not None and path not in self._stale:
            return entry
        changes_count = self._changes_count
        entry = await self._read(path)
        if changes_count == self._changes_count and not self._is_closed:
            self._keep(path, entry)
        return entry

    def note_written(self, path: str, value: V, version: int) -> None:
        """Take over a value that the owner has put, with the version that it got."""
        known = self._entries.get(path)
        if known is None or known.version < version:
            self._keep(path, Cached(value, version))

    def note_deleted(self, path: str) -> None:
        """Note that the owner has deleted `path`."""
        self._keep(path, Cached(None, MISSING))

    def forget(self, path: str) -> None:
        """Read `path` again the next time."""
        self._entries.pop(path, None)

    def listen(self, listener: Callable[[str, V | None], None]) -> Callable[[], None]:
        """Call `listener` with the path and new value of each change; returns what ends that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    async def close(self) -> None:
        """Stop watching; cached values stay as they are."""
        self._is_closed = True
        self._stop_watching()
        await self._tasks.close()

    def _on_change(self, notification: Notification) -> None:
        self._changes_count += 1
        if notification.type is NotificationType.ANYTHING:
            self._stale.update(dict.fromkeys(self._entries, self._changes_count))
            if self._listeners:
                self._has_missed_changes = True
        elif notification.path in self._entries or self._listeners:
            self._stale[notification.path] = self._changes_count
        if not self._stale and not self._has_missed_changes:
            return
        if not self._is_refreshing and not self._is_closed:
            self._is_refreshing = True
            self._tasks.spawn(self._refresh(), "refresh")

    async def _refresh(self) -> None:
        try:
            while self._stale or self._has_missed_changes:
                try:
                    await self._refresh_next()
                except MetadataUnavailableError as error:
                    logger.info("metadata not read yet", extra={"error": str(error)})
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._is_refreshing = False

    async def _refresh_next(self) -> None:
        """Read one stale value again; MetadataUnavailableError means that it has to be repeated."""
        if self._has_missed_changes:
            await self._find_missed()
            return
        path, change = next(iter(self._stale.items()))
        entry: Cached[V] | None
        try:
            entry = await self._read(path)
        except MetadataUnavailableError:
            raise
        except MetadataError:
            logger.exception("metadata not read", extra={"path": path})
            entry = None
        if self._stale.get(path) == change:  # not changed again meanwhile
            del self._stale[path]
            self._replace(path, entry)

    async def _find_missed(self) -> None:
        """Mark every existing key as stale, those that were created meanwhile, too."""
        self._has_missed_changes = False
        change = self._changes_count
        try:
            await self._store.sync(self._prefix)
            found = await self._paths_below(self._prefix)
        except MetadataUnavailableError:
            self._has_missed_changes = True
            raise
        except MetadataError:
            logger.exception("metadata not listed", extra={"path": self._prefix})
            return
        for path in found:
            self._stale.setdefault(path, change)

    async def _paths_below(self, path: str) -> list[str]:
        found = [path]
        waiting = [path]
        while waiting:
            lists = await each_result(self._store.children, waiting)
            waiting = [
                f"{parent}/{name}"
                for parent, names in zip(waiting, lists, strict=True)
                for name in names
            ]
            found += waiting
        return found

    def _replace(self, path: str, entry: Cached[V] | None) -> None:
        if entry is None:
            self._entries.pop(path, None)
            return
        self._keep(path, entry)
        for listener in tuple(self._listeners):
            # An error of one listener must not keep the change from the others.
            with ErrorsLogged(logger, "listener failed", extra={"path": path}):
                listener(path, entry.value)

    def _keep(self, path: str, entry: Cached[V]) -> None:
        self._entries[path] = entry
        if len(self._entries) > self._max_entries:
            del self._entries[next(iter(self._entries))]

    async def _read(self, path: str) -> Cached[V]:
        versioned = await self._store.get(path)
        if versioned is None:
            return Cached(None, MISSING)
        if not versioned.value:
            return Cached(None, versioned.version)
        try:
            return Cached(self._decode(versioned.value), versioned.version)
        except MetadataError as error:
            raise MetadataError(f"{path}: {error}") from error
