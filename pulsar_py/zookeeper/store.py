"""ZooKeeperMetadataStore: the contract of `metadata.store` on an Apache ZooKeeper cluster (edge).

Nodes are made as Apache Pulsar makes them: parents on demand as container nodes, which the server
deletes some time after their last child went, so a parent may vanish between any two requests; only
parents of sequential nodes stay, because their numbers would begin anew.

Source: ZKMetadataStore and AbstractMetadataStore in Pulsar's pulsar-metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Final, NoReturn

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotEmptyError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataTooLargeError,
    MetadataUnavailableError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.fresh import Fresh
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataLimits,
    MetadataStore,
    Notification,
    NotificationType,
    Session,
    Versioned,
    Watcher,
    check_creates,
)
from pulsar_py.metadata.watches import Watches
from pulsar_py.zookeeper import messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperClient, ZooKeeperSettings
from pulsar_py.zookeeper.connection import MAX_ANSWER_BYTES, Answer
from pulsar_py.zookeeper.messages import (
    CreateMode,
    ErrorCode,
    EventType,
    Operation,
    Stat,
    WatchEvent,
)
from pulsar_py.zookeeper.statistics import ZooKeeperStatistics

_REQUEST_OVERHEAD_BYTES: Final = 1024
"""For what stands in a request beside the value: a long path is refused by its request's size."""
_REQUEST_HEAD_BYTES: Final = 8

_ATTEMPTS_COUNT: Final = 20
"""Of a request whose parents or key others make and delete meanwhile."""

_LISTS_AT_ONCE: Final = 100
_BATCHES_AT_ONCE: Final = 4
_BATCH_COUNT: Final = 1_000
"""Keys that are deleted by one request."""
_BATCH_BYTES: Final = 128 * 1024
"""Of their paths."""
_SERVERS_OWN: Final = "zookeeper"
"""A child of the root that belongs to ZooKeeper itself."""

_CONTAINER_OWNER: Final = 1 << 63
_TTL_MARK: Final = 0xFF  # the highest byte of the owner of a node that lives for a time

_TYPES: Final = {
    EventType.NODE_CREATED: NotificationType.CREATED,
    EventType.NODE_DELETED: NotificationType.DELETED,
    EventType.NODE_DATA_CHANGED: NotificationType.MODIFIED,
}

_UNAVAILABLE: Final = frozenset(
    (
        ErrorCode.SESSION_EXPIRED,
        ErrorCode.SESSION_MOVED,
        ErrorCode.THROTTLED,
        ErrorCode.NOT_READ_ONLY,
    )
)
_NOT_ALLOWED: Final = frozenset(
    (ErrorCode.NO_AUTH, ErrorCode.AUTH_FAILED, ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH)
)
_UNKNOWN: Final = frozenset((ErrorCode.CONNECTION_LOSS, ErrorCode.OPERATION_TIMEOUT))


class ZooKeeperMetadataStore(MetadataStore):
    """One client of a ZooKeeper cluster; `open` makes it."""

    def __init__(
        self, address: ZooKeeperAddress, clock: Clock, chance: Random, settings: ZooKeeperSettings
    ) -> None:
        self.limits = MetadataLimits(
            max_value_bytes=settings.max_request_bytes - _REQUEST_OVERHEAD_BYTES,
            max_children_bytes=MAX_ANSWER_BYTES,
            operation_timeout_seconds=settings.operation_timeout_seconds,
        )
        self._chroot = address.chroot
        self._acls = settings.acls
        self._max_request_bytes = settings.max_request_bytes
        self._watches = Watches()
        self._watched_counts: dict[str, int] = {}
        self._client = ZooKeeperClient(address, clock, chance, settings, self._on_watch_event)
        self._client.on_connected = self._watches.tell_anything
        self._synced: Fresh[None] = Fresh()
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        address: ZooKeeperAddress,
        clock: Clock,
        *,
        chance: Random | None = None,
        settings: ZooKeeperSettings | None = None,
        makes_chroot: bool = True,
    ) -> ZooKeeperMetadataStore:
        """Connect, and make the chroot if it is missing, unless `makes_chroot` is False.

        Raises:
            MetadataUnavailableError: No server answered within an operation's time.
            InvalidConfigurationError: The TLS options name what can't be used.
        """
        chance = chance or Random()  # noqa: S311  # spreads clients over servers
        store = cls(address, clock, chance, settings or ZooKeeperSettings())
        store._client.start()
        async with OnFailureAwait(store.close):
            if address.chroot and makes_chroot:
                await store._have(address.chroot, CreateMode.PERSISTENT)
            else:
                await store.exists("/")
        return store

    # Requests and what they say

    def _real(self, path: str) -> str:
        paths.check(path)
        return f"{self._chroot}{path}".rstrip("/") or "/"

    async def _ask(
        self,
        operation: Operation,
        record: bytes,
        *,
        is_change: bool = False,
        is_synced: bool = False,
    ) -> Answer:
        self._check_open()
        if len(record) > self._max_request_bytes - _REQUEST_HEAD_BYTES:
            raise MetadataTooLargeError(
                f"a request of {len(record)} bytes, the servers take {self._max_request_bytes} "
                "(max_request_bytes, which has to be their jute.maxbuffer)"
            )
        return await self._client.request(
            operation, record, is_change=is_change, is_synced=is_synced
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise MetadataError("the metadata store is closed")

    @staticmethod
    def _refuse(path: str, answer: Answer, *, is_change: bool) -> NoReturn:
        """Raise what an error stands for that no request handles by itself."""
        code = answer.error
        name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
        text = f"{path}: ZooKeeper answered {name}"
        if code in _UNAVAILABLE:
            raise MetadataUnavailableError(text)
        if code in _UNKNOWN:
            raise MetadataOutcomeUnknownError(text) if is_change else MetadataUnavailableError(text)
        if code == ErrorCode.NO_CHILDREN_FOR_EPHEMERALS:
            raise MetadataError(f"{path}: what stands above it is ephemeral and has no children")
        if code in _NOT_ALLOWED:
            raise MetadataError(f"{path}: this client is not allowed to do that ({name})")
        raise MetadataError(text)

    # Reading

    async def get(self, path: str) -> Versioned | None:
        """The value at `path`; None if there is no node."""
        return await self._get(path, is_synced=False)

    async def get_newest(self, path: str) -> Versioned | None:
        """As `get` after `sync`, with one wait for both.

        Where this client's server leads, it does not wait for changes that a follower has told
        about and it has not applied yet, which is a matter of milliseconds (so it is with `sync`).
        Changes of this client, and all before them, are there. So what is read is no proof that
        nothing newer is there at this moment: who changes it compares versions.
        """
        return await self._get(path, is_synced=True)

    async def _get(self, path: str, *, is_synced: bool) -> Versioned | None:
        record = messages.unwatched(self._real(path))
        answer = await self._ask(Operation.GET_DATA, record, is_synced=is_synced)
        if answer.error == ErrorCode.NO_NODE:
            return None
        if answer.error:
            self._refuse(path, answer, is_change=False)
        value = answer.record.buffer()
        stat = messages.decode_stat(answer.record)
        return Versioned(
            value, stat.version, stat.created_millis, stat.modified_millis, _owner(stat)
        )

    async def exists(self, path: str) -> bool:
        """Whether there is a node."""
        return await self._stat(path) is not None

    async def _stat(self, path: str) -> Stat | None:
        answer = await self._ask(Operation.EXISTS, messages.unwatched(self._real(path)))
        if answer.error == ErrorCode.NO_NODE:
            return None
        if answer.error:
            self._refuse(path, answer, is_change=False)
        return messages.decode_stat(answer.record)

    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children."""
        names = await self._names(path)
        self.limits.check_children(path, names)
        return names

    async def _names(self, path: str) -> list[str]:
        answer = await self._ask(Operation.GET_CHILDREN_2, messages.unwatched(self._real(path)))
        if answer.error == ErrorCode.NO_NODE:
            return []
        if answer.error:
            self._refuse(path, answer, is_change=False)
        names = sorted(answer.record.texts())
        if self._real(path) == "/":
            names = [name for name in names if name != _SERVERS_OWN]
        return names

    async def sync(self, path: str) -> None:
        """Return when reads see everything that was written before this call.

        The server that is asked passes this on to the leader behind everything that was sent to it
        before; what another server was sent is refused once the session has moved here. The path
        has no effect there, so one request serves all who call this while another one is under way.
        """

        async def ask() -> None:
            answer = await self._ask(Operation.SYNC, messages.sync(self._real(path)))
            if answer.error and answer.error != ErrorCode.NO_NODE:
                self._refuse(path, answer, is_change=False)

        await self._synced.get(ask)

    # Changing

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        """Store a value durably; returns its new version. See `MetadataStore.put`."""
        real = self._real(path)
        self.limits.check_value(path, value)
        if session is not None:
            check_creates(path, expected_version)
            self._check_session(session)
        if expected_version == MUST_NOT_EXIST:
            mode = CreateMode.PERSISTENT if session is None else CreateMode.EPHEMERAL
            if await self._create(real, value, mode) is None:
                raise MetadataExistsError(f"{path} exists already")
            return 0
        for _ in range(_ATTEMPTS_COUNT):
            version = await self._set(path, real, value, expected_version)
            if version is not None:
                return version
            if await self._create(real, value, CreateMode.PERSISTENT) is not None:
                return 0
        raise MetadataUnavailableError(
            f"{path}: others made and deleted it {_ATTEMPTS_COUNT} times meanwhile"
        )

    def _check_session(self, session: Session) -> None:
        if session is not self._client.session or not self._client.session.is_open:
            raise MetadataError(f"the session {session.session_id} is closed")

    async def _set(
        self, path: str, real: str, value: bytes, expected_version: int | None
    ) -> int | None:
        """Change a value; returns its new version, None if there is no node and none is expected.

        Raises:
            MetadataBadVersionError: It is missing or has another version.
        """
        version = -1 if expected_version is None else expected_version
        record = messages.set_data(real, value, version)
        answer = await self._ask(Operation.SET_DATA, record, is_change=True)
        if not answer.error:
            return messages.decode_stat(answer.record).version
        if answer.error == ErrorCode.NO_NODE:
            if expected_version is None:
                return None
            raise MetadataBadVersionError(
                f"{path}: expected version {expected_version}, it is missing"
            )
        if answer.error == ErrorCode.BAD_VERSION:
            await self._raise_bad_version(path, expected_version)
        return self._refuse(path, answer, is_change=True)

    async def _raise_bad_version(self, path: str, expected_version: int | None) -> NoReturn:
        stat = await self._stat(path)
        has = "is missing by now" if stat is None else f"has {stat.version}"
        raise MetadataBadVersionError(f"{path}: expected version {expected_version}, it {has}")

    async def _create(self, real: str, value: bytes, mode: CreateMode) -> str | None:
        """Make a node and the parents that are missing; returns its path, None if it exists."""
        operation = (
            Operation.CREATE_CONTAINER if mode is CreateMode.CONTAINER else Operation.CREATE_2
        )
        record = messages.create(real, value, self._acls, mode)
        for _ in range(_ATTEMPTS_COUNT):
            answer = await self._ask(operation, record, is_change=True)
            if not answer.error:
                return answer.record.text()
            if answer.error == ErrorCode.NODE_EXISTS:
                return None
            if answer.error != ErrorCode.NO_NODE:
                self._refuse(real, answer, is_change=True)
            await self._make_parents(real, mode)
        raise MetadataUnavailableError(f"{real}: its parents vanish whenever they are made")

    async def _make_parents(self, real: str, mode: CreateMode) -> None:
        """Make what is above a node, whose own creation was refused.

        Raises:
            MetadataUnavailableError: That failed; the node itself was not made.
        """
        is_sequential = mode in (CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL)
        kind = CreateMode.PERSISTENT if is_sequential else CreateMode.CONTAINER
        await self._have(paths.parent(real), kind)

    async def _have(self, real: str, kind: CreateMode) -> None:
        """Make a node, or leave the one that is there as it is.

        Raises:
            MetadataUnavailableError: It is not known to be there.
        """
        try:
            await self._create(real, b"", kind)
        except MetadataOutcomeUnknownError as error:
            raise MetadataUnavailableError(f"{real}: {error}") from error

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key `prefix` plus a number; returns its whole path."""
        paths.check_sequential(prefix)
        self.limits.check_value(prefix, value)
        mode = CreateMode.PERSISTENT_SEQUENTIAL
        if session is not None:
            self._check_session(session)
            mode = CreateMode.EPHEMERAL_SEQUENTIAL
        made = await self._create(f"{self._chroot}{prefix}", value, mode)
        if made is None:
            raise MetadataUnavailableError(f"{prefix}: a number was given twice")
        return made.removeprefix(self._chroot)

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children."""
        version = -1 if expected_version is None else expected_version
        record = messages.with_version(self._real(path), version)
        answer = await self._ask(Operation.DELETE, record, is_change=True)
        match answer.error:
            case 0:
                return
            case ErrorCode.NO_NODE:
                raise MetadataNotFoundError(f"{path} does not exist")
            case ErrorCode.BAD_VERSION:
                await self._raise_bad_version(path, expected_version)
            case ErrorCode.NOT_EMPTY:
                raise MetadataNotEmptyError(f"{path} has children")
        self._refuse(path, answer, is_change=True)

    async def delete_each(self, keys: Collection[str]) -> None:
        """Delete keys that have no children, by one request for many."""
        batches = messages.parts(list(keys), _BATCH_BYTES, _BATCH_COUNT)
        await each_result(self._delete_batch, batches, at_once=_BATCHES_AT_ONCE)

    async def delete_recursive(self, path: str) -> None:
        """Delete all below a key, then the key; fine if there is nothing."""
        paths.check(path)
        has_begun = False
        try:
            for _ in range(_ATTEMPTS_COUNT):
                levels = await self._levels(path)
                has_begun = True
                if await self._delete_levels(levels):
                    return
        except MetadataUnavailableError as error:
            if not has_begun:
                raise
            raise MetadataOutcomeUnknownError(f"{path}: deleted in part: {error}") from error
        raise MetadataOutcomeUnknownError(f"{path}: others make keys below it all the time")

    async def _levels(self, path: str) -> list[list[str]]:
        """Everything at or below `path`, level by level, the root itself left out."""
        levels = [[path]]
        while levels[-1]:
            lists = await each_result(self._names, levels[-1], at_once=_LISTS_AT_ONCE)
            levels.append(
                [
                    f"{parent.rstrip('/')}/{name}"
                    for parent, names in zip(levels[-1], lists, strict=True)
                    for name in names
                ]
            )
        return levels if path != "/" else levels[1:]

    async def _delete_levels(self, levels: list[list[str]]) -> bool:
        """Delete the deepest first; False if somebody made a key in between."""
        for level in reversed(levels):
            batches = messages.parts(level, _BATCH_BYTES, _BATCH_COUNT)
            if not all(await each_result(self._delete_batch, batches, at_once=_BATCHES_AT_ONCE)):
                return False
        return True

    async def _delete_batch(self, batch: list[str]) -> bool:
        """Delete keys of one level by one request, which does all or nothing; else one by one.

        False if one of them has children by now.
        """
        if len(batch) > 1:
            record = messages.multi(
                (Operation.DELETE, messages.with_version(self._real(path), -1)) for path in batch
            )
            answer = await self._ask(Operation.MULTI, record, is_change=True)
            if not answer.error and messages.multi_parts(answer.record) is not None:
                return True
        return all(await each_result(self._delete_if_there, batch, at_once=_LISTS_AT_ONCE))

    async def _delete_if_there(self, path: str) -> bool:
        try:
            await self.delete(path)
        except MetadataNotFoundError:
            return True
        except MetadataNotEmptyError:
            return False
        return True

    # Watches

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` on the loop for changes at or below `prefix`, in order of commit."""
        remove = self._watches.add(prefix, watcher)
        real = self._real(prefix)
        count = self._watched_counts.get(real, 0)
        self._watched_counts[real] = count + 1
        if count == 0:
            self._client.watched[real] = None
            self._client.send_if_connected(Operation.ADD_WATCH, messages.add_watch(real))
        is_over = False

        def stop() -> None:
            nonlocal is_over
            remove()
            if not is_over:
                is_over = True
                self._unwatch(real)

        return stop

    def _unwatch(self, real: str) -> None:
        self._watched_counts[real] -= 1
        if self._watched_counts[real] == 0:
            del self._watched_counts[real]
            self._client.watched.pop(real, None)
            self._client.send_if_connected(Operation.REMOVE_WATCHES, messages.remove_watches(real))

    def _on_watch_event(self, event: WatchEvent) -> None:
        kind = _TYPES.get(EventType(event.type)) if event.type in _TYPES else None
        if kind is None or not event.path.startswith(self._chroot):
            return  # the end of a watch, or a list of children that changed
        path = event.path.removeprefix(self._chroot) or "/"
        self._watches.notify([Notification(kind, path)])

    # Sessions and ends

    def statistics(self) -> ZooKeeperStatistics:
        """Latencies, the session, connections and gaps of watches, for operators."""
        return self._client.statistics()

    def labelled_figures(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """The statistics by name, label and value."""
        return self.statistics().figures()

    async def open_session(self) -> Session:
        """The session of this client, once a server has granted it."""
        self._check_open()
        while self._client.session.number == 0:
            await self.exists("/")
        return self._client.session

    async def close(self) -> None:
        """End the session and the connection. May be called again."""
        self._is_closed = True
        await self._client.close()


def _owner(stat: Stat) -> str | None:
    """The id of the session an ephemeral node belongs to, as `Session.session_id` has it.

    Nodes that live for a time, and containers, bear numbers there that are no session's.
    """
    number = stat.ephemeral_owner & 0xFFFFFFFFFFFFFFFF
    if number == 0 or number >> 56 == _TTL_MARK or number == _CONTAINER_OWNER:
        return None
    return f"0x{number:x}"
