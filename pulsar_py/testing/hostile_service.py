"""`HostileService`: the server of `hostile_metadata`: keys, sessions that expire, views that lag.

Each client has a `View`, from which it reads and is notified of changes. With a lag a view is a
copy that follows the keys late, change by change; without one it is the keys themselves.

Everything happens at the running loop's time; all chance is drawn from one generator.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_tree import KeyChange, MemoryTree
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataLimits, Notification

LIMITS: Final = MetadataLimits(
    max_value_bytes=1024 * 1024, max_children_bytes=1024 * 1024, operation_timeout_seconds=30.0
)
"""The default limits of ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileSettings:
    """The rates of a service's faults; a share or mean of 0 is never. Ranges are least and most."""

    session_timeout_seconds: float = 10.0
    limits: MetadataLimits = LIMITS
    are_parents_keys: bool = False
    """Whether parents that are created on demand are keys with an empty value, and stay."""
    delay_seconds: tuple[float, float] = (0.0, 0.0)
    """Delay of each request and each answer; those of one client never overtake each other."""
    unavailable_share: float = 0.0
    """Calls that are not sent at all."""
    unknown_share: float = 0.0
    """Changes that get no answer: a third each is made, not made, or made late."""
    silent_share: float = 0.0
    """Calls that only the time limit ends, although the connection is there; half are done."""
    late_seconds: tuple[float, float] = (0.1, 5.0)
    """Delay of changes that are made late, if their client does not `sync` before."""
    lost_watch_share: float = 0.0
    """Changes without a notification; `lost_watch_seconds` later comes one of `ANYTHING`."""
    lost_watch_seconds: tuple[float, float] = (0.0, 2.0)
    lag_seconds: float = 0.0
    """The longest time that a view is behind other clients' writes."""
    partial_delete_share: float = 0.0
    """Deletions of subtrees that stop in the middle."""
    outage_every_seconds: float = 0.0
    """Mean time of a client between two cuts of its connection."""
    outage_seconds: tuple[float, float] = (0.1, 3.0)
    expire_every_seconds: float = 0.0
    """Mean time of a client between two outages that its session does not survive."""
    freeze_every_seconds: float = 0.0
    """Mean time of a client between two times in which it is frozen."""
    freeze_seconds: tuple[float, float] = (0.5, 15.0)


class View:
    """The keys as one client sees them."""

    def __init__(self, tree: MemoryTree, on_change: Callable[[Notification], None]) -> None:
        self.tree = tree
        self.on_change = on_change
        self.behind: deque[KeyChange] = deque()
        self.seen_count = 0  # of all changes of the service

    def catch_up(self, until_count: int) -> None:
        """Apply the service's first `until_count` changes."""
        while self.behind and self.seen_count < until_count:
            change = self.behind.popleft()
            self.tree.apply(change)
            self.seen_count += 1
            self.on_change(change.notification)


class HostileService:
    """The keys and sessions that all clients share."""

    def __init__(self, chance: Random, clock: Clock, settings: HostileSettings) -> None:
        self.chance = chance
        self.settings = settings
        self.changes_count = 0
        self.expired_count = 0
        self.unknown_count = 0  # changes that got no answer
        self._tree = MemoryTree()
        self._clock = clock
        self._views: list[View] = []
        self._session_numbers = count(1)
        self._heard_seconds: dict[str, float] = {}  # by session: the loop's time of the last news
        self._expiries: dict[str, asyncio.TimerHandle] = {}

    # Sessions

    def open_session(self) -> str:
        """A new session's id."""
        session_id = f"{next(self._session_numbers):#x}"
        loop = asyncio.get_running_loop()
        self._heard_seconds[session_id] = loop.time()
        self._expire_at(session_id, loop.time() + self.settings.session_timeout_seconds)
        return session_id

    def is_alive(self, session_id: str) -> bool:
        """Whether the session has not ended; it does not prolong it."""
        return session_id in self._heard_seconds

    def touch(self, session_id: str) -> bool:
        """Prolong a session; returns False if it has ended."""
        if not self.is_alive(session_id):
            return False
        self._heard_seconds[session_id] = asyncio.get_running_loop().time()
        return True

    def end_session(self, session_id: str) -> None:
        """Delete a session and its ephemeral keys; it may be gone already."""
        if self._heard_seconds.pop(session_id, None) is not None:
            self._expiries.pop(session_id).cancel()
            self._commit(self._tree.delete_owned(session_id))

    def _expire_at(self, session_id: str, when_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._expiries[session_id] = loop.call_at(when_seconds, self._expire, session_id)

    def _expire(self, session_id: str) -> None:
        due = self._heard_seconds[session_id] + self.settings.session_timeout_seconds
        if due > asyncio.get_running_loop().time():
            self._expire_at(session_id, due)
            return
        self.expired_count += 1
        self.end_session(session_id)

    # Views

    def add_view(self, on_change: Callable[[Notification], None]) -> View:
        """The view of a new client, which begins with all current keys."""
        tree = copy.deepcopy(self._tree) if self.settings.lag_seconds else self._tree
        view = View(tree, on_change)
        view.seen_count = self.changes_count
        self._views.append(view)
        return view

    def remove_view(self, view: View) -> None:
        """Stop updating a view; it may be removed already."""
        if view in self._views:
            self._views.remove(view)

    def _commit(self, changes: Sequence[KeyChange]) -> None:
        if not changes:
            return
        self.changes_count += len(changes)
        for view in tuple(self._views):
            if view.tree is self._tree:
                view.seen_count = self.changes_count
                for change in changes:
                    view.on_change(change.notification)
            else:
                view.behind.extend(changes)
                lag_seconds = self.chance.uniform(0, self.settings.lag_seconds)
                loop = asyncio.get_running_loop()
                loop.call_later(lag_seconds, view.catch_up, self.changes_count)

    # Changes, decided by the newest state of the keys

    def put(self, path: str, value: bytes, expected_version: int | None, owner: str | None) -> int:
        """Store a value; returns its version.

        Raises:
            MetadataError: As `MetadataStore.put`; also if a parent is ephemeral.
        """
        self._check_above(path)
        change = self._tree.put(
            path,
            value,
            now_millis=self._clock.wall_time_millis(),
            expected_version=expected_version,
            owner=owner,
        )
        self._commit([*self._make_parents(path), change])
        assert change.versioned is not None, path
        return change.versioned.version

    def create_sequential(self, prefix: str, value: bytes, owner: str | None) -> str:
        """Create a key with its parent's next number; returns its path."""
        self._check_above(f"{prefix}0")
        change = self._tree.create_sequential(
            prefix, value, now_millis=self._clock.wall_time_millis(), owner=owner
        )
        self._commit([*self._make_parents(change.path), change])
        return change.path

    def delete(self, path: str, expected_version: int | None) -> None:
        """Delete a key that has no children."""
        self._commit([self._tree.delete(path, expected_version=expected_version)])

    def below(self, path: str) -> list[str]:
        """All paths with a value at or below `path`, children before their parents."""
        found = [] if self._tree.get(path) is None else [path]
        pending = [path]
        while pending:
            above = pending.pop()
            for name in self._tree.children(above):
                child = f"{above.rstrip('/')}/{name}"
                pending.append(child)
                if self._tree.get(child) is not None:
                    found.append(child)
        return sorted(found, reverse=True)

    def _check_above(self, path: str) -> None:
        for above in paths.ancestors(paths.parent(path)):
            found = self._tree.get(above)
            if found is not None and found.is_ephemeral and above != path:
                raise MetadataError(f"{path}: {above} is ephemeral, it can't have children")

    def _make_parents(self, path: str) -> list[KeyChange]:
        if not self.settings.are_parents_keys:
            return []
        missing = [
            above
            for above in paths.ancestors(paths.parent(path))
            if above != "/" and self._tree.get(above) is None
        ]
        now_millis = self._clock.wall_time_millis()
        return [
            self._tree.put(above, b"", now_millis=now_millis, expected_version=MUST_NOT_EXIST)
            for above in reversed(missing)
        ]
