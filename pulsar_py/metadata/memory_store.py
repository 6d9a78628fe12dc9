"""MemoryMetadataStore: a tree of nodes, for tests and brokers that keep nothing.

Each part of a path is a node, with a value or only with children; a node with neither goes. All
methods finish without waiting, and watchers are told before the caller that made the change goes
on, as with the durable store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
)
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataStore,
    Notification,
    NotificationType,
    Session,
    Versioned,
    Watcher,
)
from pulsar_py.metadata.watches import Watches


class _Node:
    __slots__ = ("children", "session", "versioned")

    def __init__(self) -> None:
        self.versioned: Versioned | None = None
        self.session: _MemorySession | None = None  # the owner of an ephemeral value
        self.children: dict[str, _Node] = {}


class _MemorySession(Session):
    def __init__(self, store: MemoryMetadataStore, session_id: str) -> None:
        self.session_id = session_id
        self.is_open = True
        self.paths: set[str] = set()  # of the keys it owns
        self._store = store

    async def close(self) -> None:
        """Delete its ephemeral keys."""
        self._store.end_session(self)


class MemoryMetadataStore(MetadataStore):
    """A MetadataStore that lives as long as its object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._root = _Node()
        self._sequences: dict[str, int] = {}  # the next number of each
        self._watches = Watches()
        self._sessions: set[_MemorySession] = set()
        self._session_numbers = count(1)
        self._is_closed = False

    async def get(self, path: str) -> Versioned | None:
        """The value at `path`, None if the key has none."""
        self._check(path)
        node = self._find(path)
        return node.versioned if node else None

    async def exists(self, path: str) -> bool:
        """Whether the key has a value."""
        return await self.get(path) is not None

    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves."""
        self._check(path)
        node = self._find(path)
        return sorted(node.children) if node else []

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
        if session is not None:
            self._check_session(session)
        node = self._find(path)
        old = node.versioned if node else None
        if expected_version == MUST_NOT_EXIST and old is not None:
            raise MetadataExistsError(f"{path} exists")
        if expected_version not in {None, MUST_NOT_EXIST}:
            _check_version(path, old, expected_version)
        node = node or self._make(path)
        self._take_owner(node, path, session)
        now = self._clock.wall_time_millis()
        node.versioned = Versioned(
            value=bytes(value),
            version=old.version + 1 if old else 0,
            created_millis=old.created_millis if old else now,
            modified_millis=now,
            is_ephemeral=node.session is not None,
        )
        kind = NotificationType.MODIFIED if old else NotificationType.CREATED
        self._watches.notify([Notification(kind, path)])
        return node.versioned.version

    def _take_owner(self, node: _Node, path: str, session: Session | None) -> None:
        """A session given becomes the owner; without one, the owner stays."""
        if session is None:
            return
        assert isinstance(session, _MemorySession)
        if node.session is not None:
            node.session.paths.discard(path)
        node.session = session
        session.paths.add(path)

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key (not its children)."""
        self._check(path)
        node = self._find(path)
        if node is None or node.versioned is None:
            raise MetadataNotFoundError(f"{path} does not exist")
        if expected_version is not None:
            _check_version(path, node.versioned, expected_version)
        self._remove([path])

    async def delete_recursive(self, path: str) -> None:
        """Delete a key and all below it; fine if there is nothing."""
        self._check(path)
        node = self._find(path)
        if node is not None:
            self._remove(sorted(_paths_with_values(path, node), reverse=True))

    def _remove(self, doomed: list[str]) -> None:
        for path in doomed:
            node = self._find(path)
            assert node is not None, path
            if node.session is not None:
                node.session.paths.discard(path)
            node.versioned = None
            node.session = None
            self._prune(path)
        self._watches.notify([Notification(NotificationType.DELETED, path) for path in doomed])

    async def next_in_sequence(self, path: str, count: int = 1) -> int:
        """Take `count` numbers of the sequence at `path`; returns the first."""
        self._check(path)
        assert count > 0, f"{path}: {count} numbers"
        first = self._sequences.get(path, 0)
        self._sequences[path] = first + count
        return first

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for every change at or below `prefix`."""
        return self._watches.add(prefix, watcher)

    async def open_session(self) -> Session:
        """A new owner for ephemeral keys."""
        self._check_open()
        session = _MemorySession(self, f"0-{next(self._session_numbers)}")
        self._sessions.add(session)
        return session

    def end_session(self, session: _MemorySession) -> None:
        """Delete a session's keys; called by the session."""
        session.is_open = False
        self._sessions.discard(session)
        if session.paths:
            self._remove(sorted(session.paths, reverse=True))

    async def close(self) -> None:
        """End all sessions; afterwards everything raises MetadataError."""
        for session in tuple(self._sessions):
            self.end_session(session)
        self._is_closed = True

    def _check(self, path: str) -> None:
        paths.check(path)
        self._check_open()

    def _check_open(self) -> None:
        if self._is_closed:
            raise MetadataError("the metadata store is closed")

    def _check_session(self, session: Session) -> None:
        if not isinstance(session, _MemorySession) or not session.is_open:
            raise MetadataError(f"session {session.session_id} is closed")

    def _find(self, path: str) -> _Node | None:
        node = self._root
        if path != "/":
            for name in path[1:].split("/"):
                found = node.children.get(name)
                if found is None:
                    return None
                node = found
        return node

    def _make(self, path: str) -> _Node:
        node = self._root
        if path != "/":
            for name in path[1:].split("/"):
                node = node.children.setdefault(name, _Node())
        return node

    def _prune(self, path: str) -> None:
        """Remove the nodes from `path` upwards that have neither a value nor children."""
        while path != "/":
            node = self._find(path)
            if node is None or node.children or node.versioned is not None:
                return
            above = self._find(paths.parent(path))
            assert above is not None, path
            del above.children[path[path.rindex("/") + 1 :]]
            path = paths.parent(path)


def _check_version(path: str, old: Versioned | None, expected_version: int | None) -> None:
    if old is None:
        raise MetadataBadVersionError(f"{path}: expected version {expected_version}, it is missing")
    if old.version != expected_version:
        raise MetadataBadVersionError(
            f"{path}: expected version {expected_version}, it has {old.version}"
        )


def _paths_with_values(path: str, node: _Node) -> Iterator[str]:
    if node.versioned is not None:
        yield path
    for name, child in node.children.items():
        yield from _paths_with_values(f"{path.rstrip('/')}/{name}", child)
