"""The requests and answers of ZooKeeper's protocol that a metadata store needs.

Pure. A request is its number (`xid`), its operation and a record; an answer is that number, the
newest change the server had made (`zxid`), an error or 0, and a record.

Source: ZooDefs, KeeperException.Code and zookeeper.jute in ZooKeeper 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from pulsar_py.zookeeper import jute

PERSISTENT_RECURSIVE: Final = 1
"""Of `add_watch`: tells of everything at or below, until it is removed."""

ANY_WATCH: Final = 3
"""Of `remove_watches`: whatever kind it is."""

WATCH_EVENT_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4
SET_WATCHES_XID: Final = -8
"""Answers to requests with these numbers come outside of the order of the others."""


class Operation(IntEnum):
    """The operations of ZooKeeper's servers that are used here."""

    CREATE = 1
    """Only in answers to several changes, where a server leaves figures out."""
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    MULTI = 14
    CREATE_2 = 15
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    AUTH = 100
    SASL = 102
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    CLOSE_SESSION = -11


class CreateMode(IntEnum):
    """What kind of node is made."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    """The server deletes it some time after its last child went; made by CREATE_CONTAINER."""


class ErrorCode(IntEnum):
    """Errors that a store tells apart."""

    CONNECTION_LOSS = -4
    OPERATION_TIMEOUT = -7
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READ_ONLY = -119
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124
    QUOTA_EXCEEDED = -125
    THROTTLED = -127


class EventType(IntEnum):
    """The kinds of changes that a watch reports."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3


@dataclass(frozen=True, slots=True)
class Stat:
    """What a server knows of a node beside its value."""

    created_zxid: int
    modified_zxid: int
    created_millis: int
    modified_millis: int
    version: int
    children_version: int
    acl_version: int
    ephemeral_owner: int
    """The session's number, 0 for a node that stays."""
    data_length: int
    children_count: int
    children_zxid: int


@dataclass(frozen=True, slots=True)
class ConnectAnswer:
    """The session that a server gives or gives again."""

    timeout_millis: int
    """0 or less: the session that was asked for has ended."""
    session_id: int
    password: bytes
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The header before each answer's record."""

    xid: int
    zxid: int
    error: int


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change that a watch tells, or something else that only the server needs to name."""

    type: int
    path: str


@dataclass(frozen=True, slots=True)
class Acl:
    """One entry of an access control list: permissions, scheme and id."""

    permissions: int
    scheme: str
    identity: str

    def encode(self) -> bytes:
        """The form in which a request carries it."""
        return jute.int32(self.permissions) + jute.text(self.scheme) + jute.text(self.identity)


ALL_PERMISSIONS: Final = 31
OPEN_ACL: Final = (Acl(ALL_PERMISSIONS, "world", "anyone"),)
"""Everybody may do everything: what Apache Pulsar sets."""
CREATOR_ALL_ACL: Final = (Acl(ALL_PERMISSIONS, "auth", ""),)
"""Who proved to be the one who made a node may do everything with it, all others nothing."""


def request(xid: int, operation: Operation, record: bytes = b"") -> bytes:
    """A request behind its length, ready to be sent."""
    return jute.buffer(jute.int32(xid) + jute.int32(operation) + record)


def connect(
    *, last_zxid: int, timeout_millis: int, session_id: int, password: bytes, may_read_only: bool
) -> bytes:
    """The first frame of a connection; `session_id` 0 asks for a new session."""
    return jute.buffer(
        jute.int32(0)
        + jute.int64(last_zxid)
        + jute.int32(timeout_millis)
        + jute.int64(session_id)
        + jute.buffer(password)
        + jute.boolean(may_read_only)
    )


def decode_connect(frame: bytes) -> ConnectAnswer:
    """Read the first answer; old servers leave out the last field.

    Raises:
        JuteError: It is no such answer.
    """
    reader = jute.RecordReader(frame)
    reader.int32()  # the protocol's version, always 0
    timeout_millis, session_id, password = reader.int32(), reader.int64(), reader.buffer()
    is_read_only = reader.boolean() if reader.remaining_count else False
    return ConnectAnswer(timeout_millis, session_id, password, is_read_only)


def decode_head(reader: jute.RecordReader) -> AnswerHead:
    """Take what stands before an answer's record."""
    return AnswerHead(reader.int32(), reader.int64(), reader.int32())


def decode_stat(reader: jute.RecordReader) -> Stat:
    """Take a node's figures."""
    long, number = reader.int64, reader.int32
    return Stat(
        created_zxid=long(),
        modified_zxid=long(),
        created_millis=long(),
        modified_millis=long(),
        version=number(),
        children_version=number(),
        acl_version=number(),
        ephemeral_owner=long(),
        data_length=number(),
        children_count=number(),
        children_zxid=long(),
    )


def decode_watch_event(reader: jute.RecordReader) -> WatchEvent:
    """Take what a watch tells."""
    event_type = reader.int32()
    reader.int32()  # the session's state, which the connection tells better
    return WatchEvent(event_type, reader.text())


def create(path: str, value: bytes, acls: Iterable[Acl], mode: CreateMode) -> bytes:
    """The record that makes a node; the answer is its path, then its `Stat`."""
    return (
        jute.text(path)
        + jute.buffer(value)
        + jute.vector(acl.encode() for acl in acls)
        + jute.int32(mode)
    )


def with_version(path: str, version: int) -> bytes:
    """The record that deletes a node; a version of -1 stands for any."""
    return jute.text(path) + jute.int32(version)


def set_data(path: str, value: bytes, version: int) -> bytes:
    """The record that changes a node's value; the answer is its `Stat`."""
    return jute.text(path) + jute.buffer(value) + jute.int32(version)


def multi(changes: Iterable[tuple[Operation, bytes]]) -> bytes:
    """The record that makes several changes, each an operation with its record: all or none."""
    some = (_multi_head(operation, is_end=False) + record for operation, record in changes)
    return b"".join(some) + _multi_head(_NO_OPERATION, is_end=True)


def multi_parts(reader: jute.RecordReader) -> list[jute.RecordReader] | None:
    """Take the answer to `multi`: a record for each change; None if one was refused, so all were.

    Raises:
        JuteError: It is no such answer.
    """
    parts: list[jute.RecordReader] = []
    while True:
        operation, is_end, _ = reader.int32(), reader.boolean(), reader.int32()
        if is_end:
            return parts
        if operation == _NO_OPERATION:  # an error stands there, of this one or another
            return None
        parts.append(reader.fork())
        if operation in (Operation.CREATE, Operation.CREATE_2):
            reader.text()
        if operation in (Operation.CREATE_2, Operation.SET_DATA):
            decode_stat(reader)
        elif operation not in (Operation.CREATE, Operation.DELETE):
            raise jute.JuteError(f"an answer to operation {operation}, which was not asked for")


_NO_OPERATION: Final = -1


def _multi_head(operation: int, *, is_end: bool) -> bytes:
    return jute.int32(operation) + jute.boolean(is_end) + jute.int32(-1)


def unwatched(path: str) -> bytes:
    """The record that reads a node or its children without setting a one-time watch."""
    return jute.text(path) + jute.boolean(False)  # the field "watch"


def sync(path: str) -> bytes:
    """The record that waits for what was written before."""
    return jute.text(path)


def add_watch(path: str) -> bytes:
    """The record that watches everything at or below a path."""
    return jute.text(path) + jute.int32(PERSISTENT_RECURSIVE)


def remove_watches(path: str) -> bytes:
    """The record that ends the watch of a path."""
    return jute.text(path) + jute.int32(ANY_WATCH)


def set_watches(last_zxid: int, recursive_paths: Iterable[str]) -> bytes:
    """The record that sets watches again on another connection of the session."""
    nothing = jute.vector(())
    return (
        jute.int64(last_zxid)
        + nothing * 4  # of data, existence and children, and persistent ones of one node
        + jute.vector(map(jute.text, recursive_paths))
    )


def sasl(token: bytes) -> bytes:
    """The record of one step of SASL; the answer is the server's next token."""
    return jute.buffer(token)


def parts(paths: Sequence[str], max_bytes: int, max_count: int = 10_000) -> list[list[str]]:
    """Paths in parts, in their order, each for one request; a longer one is a part of its own."""
    found: list[list[str]] = []
    size_bytes = 0
    for path in paths:
        path_bytes = 4 + len(path.encode())
        if not found or len(found[-1]) == max_count or size_bytes + path_bytes > max_bytes:
            found.append([])
            size_bytes = 0
        found[-1].append(path)
        size_bytes += path_bytes
    return found


def auth(scheme: str, credentials: bytes) -> bytes:
    """The record that authenticates this client, by a scheme such as `digest`."""
    return jute.int32(0) + jute.text(scheme) + jute.buffer(credentials)
