"""`MemoryMetadataStore`: a metadata store in memory, for tests and brokers that keep nothing.

Several clients can share one tree: `connect` gives another one, with sessions and watches of its
own. All methods finish without waiting, and the watchers of all clients are called before the
caller that made the change goes on. Sessions are good until they are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_tree import KeyChange, MemoryTree
from pulsar_py.metadata.store import (
    EMBEDDED_LIMITS,
    MUST_NOT_EXIST,
    MetadataLimits,
    MetadataStore,
    Session,
    SessionListener,
    Versioned,
    Watcher,
    check_creates,
)
from pulsar_py.metadata.watches import Watches


class _MemorySession(Session):
    def __init__(self, store: MemoryMetadataStore, session_id: str) -> None:
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
        self._store.end_session(self)


class _Shared:
    """The state that the clients of one tree share."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.watches: list[Watches] = []  # of every client
        self.session_numbers = count(1)


class MemoryMetadataStore(MetadataStore):
    """A MetadataStore that lives as long as the last object that shares its tree."""

    def __init__(self, clock: Clock, *, limits: MetadataLimits = EMBEDDED_LIMITS) -> None:
        self.limits = limits
        self._clock = clock
        self._watches = Watches()
        self._sessions: dict[_MemorySession, None] = {}
        self._is_closed = False
        self._shared = _Shared()
        self._shared.watches.append(self._watches)

    def connect(self) -> MemoryMetadataStore:
        """Another client of the same keys, as a second broker in this process has it."""
        other = MemoryMetadataStore(self._clock, limits=self.limits)
        other._shared = self._shared
        self._shared.watches.append(other._watches)
        return other

    async def get(self, path: str) -> Versioned | None:
        """The value at `path`, None if the key has none."""
        self._check(path)
        return self._shared.tree.get(path)

    async def exists(self, path: str) -> bool:
        """Whether the key has a value."""
        return await self.get(path) is not None

    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves."""
        self._check(path)
        names = self._shared.tree.children(path)
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
        """Store a value; returns its new version."""
        self._check(path)
        self.limits.check_value(path, value)
        change = self._shared.tree.put(
            path,
            value,
            now_millis=self._clock.wall_time_millis(),
            expected_version=expected_version,
            owner=self._owner_of(path, session, expected_version),
        )
        self._notify([change])
        assert change.versioned is not None, path
        return change.versioned.version

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key `prefix` plus a number that its parent never gave before."""
        paths.check_sequential(prefix)
        self._check_open()
        self.limits.check_value(prefix, value)
        change = self._shared.tree.create_sequential(
            prefix,
            value,
            now_millis=self._clock.wall_time_millis(),
            owner=self._owner_of(prefix, session, MUST_NOT_EXIST),
        )
        self._notify([change])
        return change.path

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children."""
        self._check(path)
        self._notify([self._shared.tree.delete(path, expected_version=expected_version)])

    async def delete_recursive(self, path: str) -> None:
        """Delete a key and all below it, at once; fine if there is nothing."""
        self._check(path)
        self._notify(self._shared.tree.delete_recursive(path))

    async def sync(self, path: str) -> None:
        """Nothing to do: every read sees the newest value."""
        self._check(path)

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for every change at or below `prefix`."""
        return self._watches.add(prefix, watcher)

    async def open_session(self) -> Session:
        """A new owner for ephemeral keys."""
        self._check_open()
        session = _MemorySession(self, f"0-{next(self._shared.session_numbers)}")
        self._sessions[session] = None
        return session

    def end_session(self, session: _MemorySession) -> None:
        """Delete a session's keys; called by the session."""
        session.is_open = False
        self._sessions.pop(session, None)
        self._notify(self._shared.tree.delete_owned(session.session_id))

    async def close(self) -> None:
        """End this client's sessions; afterwards everything raises MetadataError."""
        for session in tuple(self._sessions):
            self.end_session(session)
        self._is_closed = True
        if self._watches in self._shared.watches:
            self._shared.watches.remove(self._watches)

    def _notify(self, changes: Sequence[KeyChange]) -> None:
        notifications = [change.notification for change in changes]
        for watches in tuple(self._shared.watches):
            watches.notify(notifications)

    def _check(self, path: str) -> None:
        paths.check(path)
        self._check_open()

    def _check_open(self) -> None:
        if self._is_closed:
            raise MetadataError("the metadata store is closed; open another one")

    def _owner_of(
        self, path: str, session: Session | None, expected_version: int | None
    ) -> str | None:
        if session is None:
            return None
        check_creates(path, expected_version)
        if session not in self._sessions:
            raise MetadataError(f"session {session.session_id} is closed")
        return session.session_id
