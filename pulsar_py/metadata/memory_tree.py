"""`MemoryTree`: versioned keys as a tree of nodes, for stores in memory (pure).

Each part of a path is a node, with a value or only with children; a node with neither is removed,
but the next number of its sequential children stays known. Every change is returned as a
`KeyChange`, which another tree can `apply`: so a copy follows the original.

Invariant: `_owned` names exactly the paths whose values have an owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotEmptyError,
    MetadataNotFoundError,
)
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MUST_NOT_EXIST, Notification, NotificationType, Versioned


class KeyChange(NamedTuple):
    """The change of one key: its new value, None if it is gone."""

    type: NotificationType
    path: str
    versioned: Versioned | None

    @property
    def notification(self) -> Notification:
        """The change as watchers get it."""
        return Notification(self.type, self.path)


class _Node:
    __slots__ = ("children", "versioned")

    def __init__(self) -> None:
        self.versioned: Versioned | None = None
        self.children: dict[str, _Node] = {}


class MemoryTree:
    """The keys of one store, for the clients that share it."""

    def __init__(self) -> None:
        self._root = _Node()
        self._sequences: dict[str, int] = {}  # by parent: the next number
        self._owned: dict[str, set[str]] = {}  # paths of ephemeral keys, by session id

    def get(self, path: str) -> Versioned | None:
        """The value at `path`, None if the key has none."""
        node = self._find(path)
        return node.versioned if node else None

    def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves."""
        node = self._find(path)
        return sorted(node.children) if node else []

    def put(
        self,
        path: str,
        value: bytes,
        *,
        now_millis: int,
        expected_version: int | None = None,
        owner: str | None = None,
    ) -> KeyChange:
        """Store a value; `owner` is the session id of a new ephemeral key.

        Raises:
            MetadataExistsError, MetadataBadVersionError: As of the store.
        """
        old = self.get(path)
        if expected_version == MUST_NOT_EXIST and old is not None:
            raise MetadataExistsError(f"{path} exists")
        if expected_version not in {None, MUST_NOT_EXIST}:
            _check_version(path, old, expected_version)
        assert owner is None or old is None, f"{path}: the owner of what exists can't change"
        new = Versioned(
            value=bytes(value),
            version=old.version + 1 if old else 0,
            created_millis=old.created_millis if old else now_millis,
            modified_millis=now_millis,
            owner=old.owner if old else owner,
        )
        kind = NotificationType.MODIFIED if old else NotificationType.CREATED
        change = KeyChange(kind, path, new)
        self.apply(change)
        return change

    def create_sequential(
        self, prefix: str, value: bytes, *, now_millis: int, owner: str | None = None
    ) -> KeyChange:
        """Create a key `prefix` plus its parent's next number; numbers that exist are skipped."""
        above = prefix[: prefix.rindex("/")] or "/"
        while True:
            number = self._sequences.get(above, 0)
            self._sequences[above] = number + 1
            path = f"{prefix}{number:010d}"
            if self.get(path) is None:
                return self.put(path, value, now_millis=now_millis, owner=owner)

    def delete(self, path: str, *, expected_version: int | None = None) -> KeyChange:
        """Delete a key that has no children.

        Raises:
            MetadataNotFoundError, MetadataBadVersionError, MetadataNotEmptyError: As of the store.
        """
        node = self._find(path)
        if node is None or (node.versioned is None and not node.children):
            raise MetadataNotFoundError(f"{path} does not exist")
        if expected_version is not None:
            _check_version(path, node.versioned, expected_version)
        if node.children:
            raise MetadataNotEmptyError(f"{path} has {len(node.children)} children")
        change = KeyChange(NotificationType.DELETED, path, None)
        self.apply(change)
        return change

    def delete_recursive(self, path: str) -> list[KeyChange]:
        """Delete all below a key, then the key, children before their parents."""
        node = self._find(path)
        doomed = sorted(_paths_with_values(path, node), reverse=True) if node else []
        return self._delete_all(doomed)

    def delete_owned(self, owner: str) -> list[KeyChange]:
        """Delete the ephemeral keys of a session."""
        return self._delete_all(sorted(self._owned.get(owner, ()), reverse=True))

    def _delete_all(self, doomed: list[str]) -> list[KeyChange]:
        changes = [KeyChange(NotificationType.DELETED, path, None) for path in doomed]
        for change in changes:
            self.apply(change)
        return changes

    def apply(self, change: KeyChange) -> None:
        """Put the key into the state after `change`, whatever state it has."""
        path = change.path
        node = self._find(path)
        if node is not None and node.versioned is not None and node.versioned.owner is not None:
            self._disown(path, node.versioned.owner)
        if change.versioned is None:
            if node is not None:
                node.versioned = None
                self._prune(path)
            return
        node = node or self._make(path)
        node.versioned = change.versioned
        if change.versioned.owner is not None:
            self._owned.setdefault(change.versioned.owner, set()).add(path)

    def _disown(self, path: str, owner: str) -> None:
        owned = self._owned[owner]
        owned.remove(path)
        if not owned:
            del self._owned[owner]

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
