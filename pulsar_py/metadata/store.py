"""`MetadataStore`: the interface to versioned keys with watches, sessions and sequences.

Keys are absolute paths as in ZooKeeper (`/managed-ledgers/public/default/persistent/t`); a key may
have both a value and children. Each value has a version that starts at 0 and grows by one with
every put; compare-and-set on it is how owners notice that they lost. Ephemeral keys belong to a
`Session` for as long as they exist and vanish with it.

The contract is what a store behind a network can keep, and the embedded ones keep it too:

- A change was made, was not made, or its outcome is unknown (`MetadataOutcomeUnknownError`). The
  store never repeats a change of unknown outcome; the caller calls `sync` and reads the key back
  (`settling` does).
- Reads may lag behind what other clients wrote; `sync` waits for what was written before it. A
  client's reads see its own changes, except those of unknown outcome. Compare-and-set always
  decides by the newest value.
- Every call ends within `limits.operation_timeout_seconds`.
- A session is in doubt once 5/6 of its time-out have passed without an answer of the server, by
  this process's own clock, also when the process slept: that is before the server can give its
  keys to others. No change is sent while it is in doubt.
- Watches may miss changes while there is no connection; then they report `ANYTHING`.
- Deleting a subtree is a walk from the leaves up, that may stop in the middle.
- A parent made on demand may look like a key with an empty value, so callers store no empty values
  that mean something.
- Values, lists of children and names have limits.

Implementations: `memory_store`, `sqlite_store`, the package `zookeeper`, and
`pulsar_py.testing.hostile_metadata`, which uses every freedom that the contract gives; all pass one
contract suite.

Source: MetadataStoreExtended, SessionEvent in Pulsar's pulsar-metadata; ZooKeeper's guarantees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import MetadataNotFoundError, MetadataTooLargeError
from pulsar_py.common.loops.concurrently import each_result

MUST_NOT_EXIST: Final = -1
"""As `expected_version`: the put must create the key."""

IN_DOUBT_SHARE: Final = 5 / 6
"""The part of a session's time-out after which it is in doubt, if the server does not answer."""


DELETES_AT_ONCE: Final = 1000
"""Keys of one call that are deleted at the same time, where each is a change of its own."""


class Versioned(Struct, frozen=True):
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


class Notification(Struct, frozen=True):
    """One change of one key, reported after it is durable; or that some changes were missed."""

    type: NotificationType
    path: str


Watcher = Callable[[Notification], None]


class SessionEvent(Enum):
    """A change of a session's state; reported on the loop, in the order in which it is learnt."""

    CONNECTION_LOST = "connection lost"
    """The server can't be reached; the session may live on. Changes are still attempted."""
    IN_DOUBT = "in doubt"
    """No answer for 5/6 of the time-out: no change may be made, nor ownership be relied on."""
    RECONNECTED = "reconnected"
    """The same session is connected again and has its keys; watches may have missed changes."""
    NEW_SESSION = "new session"
    """The session has ended and its keys are gone; from now on `session_id` is a new session's."""


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
        """Whether, by this process's clock, no other session can have its keys by now.

        Never waits. It turns False as time passes, before `IN_DOUBT` is reported.
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
        """Call `listener` for every event, until the returned function is called."""

    @abstractmethod
    async def close(self) -> None:
        """Delete its ephemeral keys. A crash does the same, after the time-out at the latest.

        Where all users of a client share one session, this ends it for all of them: a user that
        gives up only its own keys deletes those instead. May be called again.
        """


class MetadataLimits(Struct, frozen=True, kw_only=True):
    """The bounds a store works within."""

    max_value_bytes: int
    """The largest value; a larger one is refused with MetadataTooLargeError."""
    max_children_bytes: int
    """All names in one answer of `children`; more raise MetadataTooLargeError."""
    operation_timeout_seconds: float
    """The time after which a call raises; a change's outcome is unknown then."""
    writes_only_what_differs: bool = False
    """Whether a value as long as the one before it costs only writes where both differ."""

    def check_value(self, path: str, value: bytes) -> None:
        """Refuse a value that is over the limit.

        Raises:
            MetadataTooLargeError: The value has more bytes than `max_value_bytes`.
        """
        if len(value) > self.max_value_bytes:
            raise MetadataTooLargeError(
                f"{path}: the value has {len(value)} bytes, the store takes "
                f"at most {self.max_value_bytes}"
            )

    def check_children(self, path: str, names: Sequence[str]) -> None:
        """Refuse a list of children that is too long for one answer.

        Raises:
            MetadataTooLargeError: The names have more bytes than `max_children_bytes`.
        """
        size_bytes = sum(map(len, names))  # characters: a lower bound that costs nothing
        if size_bytes > self.max_children_bytes // 4:
            size_bytes = sum(len(name.encode()) for name in names)
        if size_bytes > self.max_children_bytes:
            raise MetadataTooLargeError(
                f"{path}: {len(names)} children with names of {size_bytes} bytes, "
                f"one answer holds at most {self.max_children_bytes}"
            )


EMBEDDED_LIMITS: Final = MetadataLimits(
    max_value_bytes=64 * 1024 * 1024,
    max_children_bytes=64 * 1024 * 1024,
    operation_timeout_seconds=60.0,
    writes_only_what_differs=True,
)
"""The limits of the stores within this process, far beyond what a broker needs."""


def check_creates(path: str, expected_version: int | None) -> None:
    """Refuse a put with a session that might change an existing key.

    Raises:
        ValueError: `expected_version` is not `MUST_NOT_EXIST`.
    """
    if expected_version != MUST_NOT_EXIST:
        raise ValueError(f"{path}: an ephemeral key is only created, its owner can't change")


class MetadataStore(ABC):
    """Versioned keys, as one client sees them.

    Every method raises MetadataUnavailableError if the store could not be asked. Every change
    raises SessionInDoubtError if this client's session is in doubt, and MetadataOutcomeUnknownError
    if the answer is missing. A text that is not a path raises ValueError (`paths.check`).
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

        `expected_version` None overwrites any value, `MUST_NOT_EXIST` only creates. With a
        `session`, which needs `MUST_NOT_EXIST`, the key is ephemeral and owned by it. A put without
        a session changes the value of an ephemeral key, never its owner. Nothing may be put below
        an ephemeral key.

        Raises:
            ValueError: A session without `MUST_NOT_EXIST`.
            MetadataBadVersionError: The key is missing or has another version.
            MetadataExistsError: It exists and must not, which may be a parent made on demand.
            MetadataTooLargeError: The value is over the limit.
        """

    @abstractmethod
    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key `prefix` plus a number of ten digits or more; returns its whole path.

        The numbers of one parent start at 0 or above, grow and never repeat, for all clients
        together, also after children were deleted and after a crash. Deleting the parent itself may
        start them again.

        Raises:
            MetadataOutcomeUnknownError: A key may have been created, under an unknown name.
        """

    @abstractmethod
    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children.

        Raises:
            MetadataNotFoundError: There is none.
            MetadataBadVersionError: It has another version.
            MetadataNotEmptyError: It has children.
        """

    async def delete_each(self, keys: Collection[str]) -> None:
        """Delete keys that have no children, many by one change where that is possible.

        Those that are gone already are passed over.

        Raises:
            MetadataError: Some may still be there.
        """

        async def delete(path: str) -> None:
            with suppress(MetadataNotFoundError):
                await self.delete(path)

        await each_result(delete, keys, at_once=DELETES_AT_ONCE)

    @abstractmethod
    async def delete_recursive(self, path: str) -> None:
        """Delete all below a key, then the key; fine if there is nothing.

        It is not one change: keys are deleted one by one, children before their parents, and an
        error or a crash leaves some of them. Calling it again deletes the rest.

        Raises:
            MetadataOutcomeUnknownError: Some keys may be left.
        """

    @abstractmethod
    async def exists(self, path: str) -> bool:
        """Whether the key has a value; a parent made on demand may count as one."""

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, also of those that only have children themselves.

        Raises:
            MetadataTooLargeError: The names have more bytes than one answer holds.
        """

    @abstractmethod
    async def sync(self, path: str) -> None:
        """Return when reads at or below `path` see everything that was written before this call.

        It also settles this client's own changes of unknown outcome: those sent before have been
        made by then, or never will be. (Without that, a late deletion could hit the key of the next
        owner, since versions start at 0 with each new key.)
        """

    async def get_newest(self, path: str) -> Versioned | None:
        """As `get` after `sync`, which some stores do in one go."""
        await self.sync(path)
        return await self.get(path)

    @abstractmethod
    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on the loop for changes at or below `prefix`, in order of commit.

        It is in force once this client's next call has returned: later changes by others are
        reported. A change by this client is reported before its caller goes on, or soon after.
        Changes may be reported together as `ANYTHING` at `prefix`. Calling the returned function
        ends the watch.
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
