"""The MetadataStore: versioned keys with watches, leases and sequences; a seam of the design.

Keys are absolute paths as in ZooKeeper (`/managed-ledgers/public/default/persistent/t`); a key may
have both a value and children. Each value has a version that starts at 0 and grows by one with
every put; compare-and-set on it is how owners notice that they lost. Ephemeral keys belong to a
`Session` and vanish with it. Implementations: `memory_store`, `sqlite_store`; one contract suite.

Source: MetadataStoreExtended in Pulsar's pulsar-metadata.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

MUST_NOT_EXIST: Final = -1
"""As `expected_version`: the put must create the key."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value as stored."""

    value: bytes
    version: int
    created_millis: int
    modified_millis: int
    is_ephemeral: bool


class NotificationType(Enum):
    """What happened to a key."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Notification:
    """One change of one key, told after it is durable."""

    type: NotificationType
    path: str


Watcher = Callable[[Notification], None]


class Session(ABC):
    """The owner of ephemeral keys."""

    session_id: str

    @abstractmethod
    async def close(self) -> None:
        """Delete its ephemeral keys. A crash does the same, at the latest at the next start."""


class MetadataStore(ABC):
    """Versioned keys."""

    @abstractmethod
    async def get(self, path: str) -> Versioned | None:
        """The value at `path`, None if the key has none."""

    @abstractmethod
    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        """Store a value durably; returns its new version. Parents need not exist.

        `expected_version` None overwrites whatever is there, `MUST_NOT_EXIST` only creates.

        Raises:
            MetadataBadVersionError: The key is missing or has another version.
            MetadataExistsError: It exists, and must not.
        """

    @abstractmethod
    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key (not its children).

        Raises:
            MetadataNotFoundError: There is none.
            MetadataBadVersionError: It has another version.
        """

    @abstractmethod
    async def delete_recursive(self, path: str) -> None:
        """Delete a key and all below it; fine if there is nothing."""

    @abstractmethod
    async def exists(self, path: str) -> bool:
        """Whether the key has a value."""

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves."""

    @abstractmethod
    async def next_in_sequence(self, path: str, count: int = 1) -> int:
        """Take `count` numbers of the sequence at `path`; returns the first. Starts at 0.

        Numbers are never given out twice, also not after a crash.
        """

    @abstractmethod
    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on the loop for every change at or below `prefix`, in order of commit.

        Returns what ends the watch.
        """

    @abstractmethod
    async def open_session(self) -> Session:
        """A new owner for ephemeral keys."""

    @abstractmethod
    async def close(self) -> None:
        """Write what is queued, end all sessions, release the files."""
