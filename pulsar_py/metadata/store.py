"""The MetadataStore: versioned keys with watches, sessions and sequences; an interface.

Keys are absolute paths as in ZooKeeper (`/managed-ledgers/public/default/persistent/t`); a key may
have both a value and children. Each value has a version that starts at 0 and grows by one with
every put; compare-and-set on it is how owners notice that they lost. Ephemeral keys belong to a
`Session` for as long as they exist and vanish with it.

The contract is what a store behind a network can keep, and the embedded ones keep it too:

- A change either was made, was not made, or nobody knows (`MetadataOutcomeUnknownError`). A change
  of unknown outcome is never repeated by the store; its owner reads back what is there, after a
  `sync` (`settling` does).
- Reads may lag behind what other clients wrote; `sync` waits for what was written before it. A
  client's reads see its own changes, except those of unknown outcome. Compare-and-set always
  decides by the newest value.
- Every call ends within `limits.operation_timeout_seconds`.
- A session is in doubt from 5/6 of its time-out without news on, by this process's own clock, also
  when the process slept: before the server can have given its keys to others. Nothing is written
  then.
- Watches may miss changes while the connection is away; then they say that anything may have
  changed.
- Deleting a subtree is a walk from the leaves up, that may stop in the middle.
- A parent made on demand may look like a key with an empty value: an empty value says nothing.
- Values, lists of children and names have limits.

Implementations: `memory_store`, `sqlite_store`, and `pulsar_py.testing.hostile_metadata`, which
uses every freedom that the contract gives; all pass one contract suite.

Source: MetadataStoreExtended, SessionEvent in Pulsar's pulsar-metadata; ZooKeeper's guarantees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pulsar_py.common.errors import MetadataTooLargeError

MUST_NOT_EXIST: Final = -1
"""As `expected_version`: the put must create the key."""

IN_DOUBT_SHARE: Final = 5 / 6
"""Of a session's time-out without news from the server: then it is in doubt."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value as stored; `owner` is the session id of an ephemeral key's session, else None."""

    value: bytes
    version: int
    created_millis: int
    modified_millis: int
    owner: str | None = None

    @property
    def is_ephemeral(self) -> bool:
        """Whether it goes with a session."""
        return self.owner is not None


class NotificationType(Enum):
    """The kinds of change of a key."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    ANYTHING = "anything"
    """Changes were missed: whatever is at or below the path may be different now."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One change of one key, told after it is durable; or the news that some were missed."""

    type: NotificationType
    path: str


Watcher = Callable[[Notification], None]


class SessionEvent(Enum):
    """A change of a session's state; reported on the loop, in the order in which it is learnt."""

    CONNECTION_LOST = "connection lost"
    """The server can't be reached; the session may live on. Writing goes on as far as it can."""
    IN_DOUBT = "in doubt"
    """No news for 5/6 of the time-out: nothing may be written, nor said with success."""
    RECONNECTED = "reconnected"
    """The same session is back; its keys are still there. Watches may have missed something."""
    NEW_SESSION = "new session"
    """The old one has ended, and with it its keys; `session_id` is another one from now on."""


SessionListener = Callable[[SessionEvent], None]


class Session(ABC):
    """The owner of ephemeral keys.

    A store behind a network has one, which every `open_session` returns; when it expires it goes on
    under a new id.
    """

    session_id: str

    @property
    @abstractmethod
    def is_good(self) -> bool:
        """Whether it is known, by the clock at this moment, that nobody else can have its keys.

        Never waits. It turns False by itself with time, before any event tells.
        """

    @property
    def has_overslept(self) -> bool:
        """Whether its whole time-out passed before the doubt could be told.

        The process stood still: others may have had its keys for a while, and nothing here knew.
        Never waits; it turns True by the clock, in the first moment after the process woke. False
        again with good news.
        """
        return False

    @abstractmethod
    def listen(self, listener: SessionListener) -> Callable[[], None]:
        """Tell `listener` of every event; returns what ends that."""

    @abstractmethod
    async def close(self) -> None:
        """Delete its ephemeral keys. A crash does the same, after the time-out at the latest.

        Where all of a client share one session this ends it for all of them: who only gives up
        what is its own deletes its keys. May be called again.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLimits:
    """The bounds a store works within."""

    max_value_bytes: int
    """Of one value; a larger one is refused with MetadataTooLargeError."""
    max_children_bytes: int
    """Of all names in one answer of `children`; beyond, MetadataTooLargeError."""
    operation_timeout_seconds: float
    """After so long a call raises; a change's outcome is unknown then."""

    def check_value(self, path: str, value: bytes) -> None:
        """Refuse a value that is over the limit.

        Raises:
            MetadataTooLargeError: It is.
        """
        if len(value) > self.max_value_bytes:
            raise MetadataTooLargeError(
                f"{path}: a value of {len(value)} bytes, the store takes {self.max_value_bytes}"
            )

    def check_children(self, path: str, names: Sequence[str]) -> None:
        """Refuse a list of children that one answer does not hold.

        Raises:
            MetadataTooLargeError: They are more.
        """
        size_bytes = sum(map(len, names))  # characters: a lower bound that costs nothing
        if size_bytes > self.max_children_bytes // 4:
            size_bytes = sum(len(name.encode()) for name in names)
        if size_bytes > self.max_children_bytes:
            raise MetadataTooLargeError(
                f"{path}: {len(names)} children with names of {size_bytes} bytes, "
                f"one answer holds {self.max_children_bytes}"
            )


EMBEDDED_LIMITS: Final = MetadataLimits(
    max_value_bytes=64 * 1024 * 1024,
    max_children_bytes=64 * 1024 * 1024,
    operation_timeout_seconds=60.0,
)
"""Of the stores within this process: far beyond what a broker needs, and an end all the same."""


def check_creates(path: str, expected_version: int | None) -> None:
    """Refuse a put with a session that might change what exists.

    Raises:
        ValueError: It is not said that the key must not exist.
    """
    if expected_version != MUST_NOT_EXIST:
        raise ValueError(f"{path}: an ephemeral key is only created, its owner can't change")


class MetadataStore(ABC):
    """Versioned keys, as one client sees them.

    Every method raises MetadataUnavailableError where the store could not be asked, every change
    SessionInDoubtError where this client's session is in doubt, and MetadataOutcomeUnknownError
    where the answer is missing. What is no path raises ValueError (`paths.check`).
    """

    limits: MetadataLimits

    @abstractmethod
    async def get(self, path: str) -> Versioned | None:
        """The value at `path`; None, or an empty value, if the key has only children."""

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

        `expected_version` None overwrites whatever is there, `MUST_NOT_EXIST` only creates. With a
        `session` the key is ephemeral and its: only together with `MUST_NOT_EXIST`. A put without
        session changes the value of an ephemeral key, never its owner. Nothing may be put below an
        ephemeral key.

        Raises:
            ValueError: A session without `MUST_NOT_EXIST`.
            MetadataBadVersionError: The key is missing or has another version.
            MetadataExistsError: It exists, and must not; also a parent made on demand may.
            MetadataTooLargeError: The value is over the limit.
        """

    @abstractmethod
    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key `prefix` plus a number of ten digits or more; returns its whole path.

        The numbers of one parent start at 0 or above, grow and never repeat, although its children
        go, whoever takes them, and also after a crash; deleting the parent itself may begin anew.

        Raises:
            MetadataOutcomeUnknownError: There may be one more, and nobody knows its name.
        """

    @abstractmethod
    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children.

        Raises:
            MetadataNotFoundError: There is none.
            MetadataBadVersionError: It has another version.
            MetadataNotEmptyError: It has children.
        """

    @abstractmethod
    async def delete_recursive(self, path: str) -> None:
        """Delete all below a key, then the key; fine if there is nothing.

        Not one change: children go before their parents, one after the other, and where it fails or
        the process ends some are left. Asked again, it goes on.

        Raises:
            MetadataOutcomeUnknownError: Some of it may be left.
        """

    @abstractmethod
    async def exists(self, path: str) -> bool:
        """Whether the key has a value; a parent made on demand may count as one."""

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves.

        Raises:
            MetadataTooLargeError: There are more than one answer holds.
        """

    @abstractmethod
    async def sync(self, path: str) -> None:
        """Return when reads at or below `path` see everything that was written before this call.

        Also a boundary for this client's own changes of unknown outcome: those sent before are made
        by then, or never. (Versions begin at 0 with each new key: a deletion that came later could
        hit the key of the next owner.)
        """

    @abstractmethod
    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on the loop for changes at or below `prefix`, in order of commit.

        It begins with this client's next call: what others change once that has returned is told.
        One's own change is told before, or soon after, the one who made it goes on. Changes may be
        told together as `ANYTHING` at `prefix`. Returns what ends the watch.
        """

    def labelled_figures(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """What operators should see of it: a name of its own, labels, and the value now."""
        return ()

    @abstractmethod
    async def open_session(self) -> Session:
        """An owner for ephemeral keys: a new one, or the one that this client has."""

    @abstractmethod
    async def close(self) -> None:
        """Write what is queued, end this client's sessions, release what it holds."""
