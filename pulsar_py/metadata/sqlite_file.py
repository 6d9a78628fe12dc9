"""`SqliteFile`: reads and changes the SQLite file of `sqlite_store`, on one thread (edge).

Tables:

    keys       path TEXT unique, value BLOB, version, created and modified (ms since 1970),
               session TEXT: the owner of an ephemeral key, else NULL
    sequences  path TEXT, next INTEGER: the next number of a sequential child of this key

Version 1 of the format gave a ledger the number *after* the one that it took from the sequence;
opening such a file raises that sequence by one and makes it version 2.

Paths sort by their UTF-8 bytes, so the keys below `/a` are those greater than `/a/` and less than
`/a0` (`0` follows `/`). The file is in WAL mode with `synchronous=FULL`: a commit is one append and
one sync of `<file>-wal`. The connection locks the file exclusively, so that a second process, or a
second store of this one, is refused; the lock ends with the process, and the next start replays
what was committed. A value as long as the one before it is written only where both differ, a few
pages of 4 KB; of a longer or shorter one all pages are written. SQLite would silently drop
everything after a damaged place of the WAL, so opening checks for damage first (`sqlite_wal`).

Invariant: every method that changes something either raises before its first change, or makes all
its changes; so a group of them can share a transaction, and each can fail alone.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pulsar_py.common.errors import (
    CorruptDataError,
    DirectoryLockedError,
    FormatVersionError,
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotEmptyError,
    MetadataNotFoundError,
    MetadataUnavailableError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.metadata import paths
from pulsar_py.metadata.sqlite_wal import WAL_SUFFIX, find_damage
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    Notification,
    NotificationType,
    Versioned,
)

APPLICATION_ID: Final = 0x50756C50  # "PulP", in the file's header
FORMAT_VERSION: Final = 2
FIRST_FORMAT_VERSION: Final = 1
"""The oldest version that can be opened, which makes the file one of `FORMAT_VERSION`."""
BACKUP_PAGES: Final = 256
"""Pages of a backup that are copied before others have their turn: 1 MB, some milliseconds."""
_BELOW: Final = "0"  # the character after "/"

_SCHEMA: Final = (
    """CREATE TABLE keys (
        path TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL,
        created INTEGER NOT NULL, modified INTEGER NOT NULL, session TEXT)""",
    "CREATE INDEX ephemeral_keys ON keys (session) WHERE session IS NOT NULL",
    "CREATE TABLE sequences (path TEXT NOT NULL PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
)
_GET: Final = "SELECT value, version, created, modified, session FROM keys WHERE path = ?"
_INSERT: Final = (
    "INSERT INTO keys (path, value, version, created, modified, session)"
    " VALUES (?1, ?2, 0, ?3, ?3, ?4) ON CONFLICT (path) "
)
_PUT: Final = _INSERT + (
    "DO UPDATE SET value = excluded.value, version = version + 1,"
    " modified = excluded.modified RETURNING version"
)
_CREATE: Final = _INSERT + "DO NOTHING RETURNING version"
_REPLACE: Final = (
    "UPDATE keys SET value = ?, version = version + 1, modified = ?"
    " WHERE path = ? AND version = ? RETURNING version"
)
_HAS_CHILDREN: Final = "SELECT 1 FROM keys WHERE path > ? AND path < ? LIMIT 1"
_CHILDREN: Final = (
    "SELECT DISTINCT substr(path, ?1, instr(substr(path, ?1) || '/', '/') - 1) AS name"
    " FROM keys WHERE path > ?2 AND path < ?3 ORDER BY name"
)
_BELOW_OR_AT: Final = "path = ?1 OR (path > ?2 AND path < ?3)"
_TAKE: Final = (
    "INSERT INTO sequences (path, next) VALUES (?, 1)"
    " ON CONFLICT (path) DO UPDATE SET next = next + 1 RETURNING next"
)
_RAISE: Final = (
    "INSERT INTO sequences (path, next) VALUES (?, ?)"
    " ON CONFLICT (path) DO UPDATE SET next = max(next, excluded.next)"
)
_MIGRATE: Final = "UPDATE sequences SET next = next + 1 WHERE path = ?"


class SqliteFile:
    """The open file; used by one thread alone."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, and drop the ephemeral keys that a crash left.

        Raises:
            DirectoryLockedError: Another process, or another store, has it open.
            CorruptDataError: It is not a file of this store, or unreadable, or its WAL is damaged.
            FormatVersionError: It comes from a newer or older version.
            MetadataError: It can't be opened.
        """
        self.path = path
        self.notifications: list[Notification] = []  # of the changes since `begin`
        _refuse_damaged_wal(path)
        try:
            if not path.exists():
                _create(path)
            self._connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            with OnFailure(self._connection.close):
                self._prepare()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        version = execute("PRAGMA user_version").fetchone()[0]
        if execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise CorruptDataError(
                f"{self.path} is not pulsar_py's metadata: it is empty, or another application's "
                "SQLite file; move it away, or choose another data directory"
            )
        if not FIRST_FORMAT_VERSION <= version <= FORMAT_VERSION:
            raise FormatVersionError(str(self.path), "metadata", version, FORMAT_VERSION)
        if version == FIRST_FORMAT_VERSION:
            self._migrate()
        if execute("SELECT 1 FROM keys WHERE session IS NOT NULL LIMIT 1").fetchone():
            execute("DELETE FROM keys WHERE session IS NOT NULL")

    def _migrate(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(_MIGRATE, (paths.LEDGER_ID_COUNTER,))
        execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        execute("COMMIT")

    def _explain(self, error: sqlite3.Error) -> Exception:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return DirectoryLockedError(
                f"{self.path}: the data directory is in use by another process; stop that one first"
            )
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return CorruptDataError(f"{self.path}: {error}")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return MetadataUnavailableError(f"{self.path}: {error}")
        if name.startswith("SQLITE_CANTOPEN") and (reason := _why_unwritable(self.path.parent)):
            return MetadataError(reason)
        return MetadataError(f"{self.path}: {error}")

    def close(self) -> None:
        """Release the file; committed changes move from the WAL into it."""
        self._connection.close()

    def back_up(self, path: Path, between: Callable[[], None]) -> None:
        """Copy the file as it is when the last page is copied; `path` must not exist.

        `between` is called after every few pages, and may change the file: SQLite puts the changes
        into the copy as well. The copy is a file in its own right, without `-wal`, and not synced.

        Raises:
            MetadataError: It can't be written.
        """
        try:
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                copy.execute("PRAGMA synchronous = OFF")
                copy.execute("PRAGMA journal_mode = OFF")  # a copy that failed is of no use
                self._connection.backup(
                    copy,
                    pages=BACKUP_PAGES,
                    progress=lambda _status, remaining, _total: between() if remaining else None,
                )
                copy.execute("PRAGMA journal_mode = DELETE")
            finally:
                copy.close()
        except sqlite3.Error as error:
            raise MetadataError(f"{path}: {error}") from error

    def begin(self) -> None:
        """Start the transaction of a group of changes."""
        self.notifications = []
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make the group durable.

        Raises:
            MetadataError: Nothing of the group was written; the disk may be full.
        """
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def roll_back(self) -> None:
        """Undo the group; fine if SQLite did so already."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def get(self, path: str) -> Versioned | None:
        """The value at `path`."""
        row = self._connection.execute(_GET, (path,)).fetchone()
        if row is None:
            return None
        value, version, created_millis, modified_millis, session = row
        return Versioned(value, version, created_millis, modified_millis, session)

    def children(self, path: str) -> list[str]:
        """Sorted names of the direct children."""
        prefix = path.rstrip("/")
        rows = self._connection.execute(_CHILDREN, (len(prefix) + 2, prefix + "/", prefix + _BELOW))
        return [name for (name,) in rows]

    def put(
        self,
        path: str,
        value: bytes,
        expected_version: int | None,
        session_id: str | None,
        now_millis: int,
    ) -> int:
        """Store a value; returns its version."""
        if expected_version is None or expected_version == MUST_NOT_EXIST:
            statement = _PUT if expected_version is None else _CREATE
            row = self._connection.execute(
                statement, (path, value, now_millis, session_id)
            ).fetchone()
            if row is None:
                raise MetadataExistsError(f"{path} exists")
        else:
            row = self._connection.execute(
                _REPLACE, (value, now_millis, path, expected_version)
            ).fetchone()
            if row is None:
                raise MetadataBadVersionError(self._version_message(path, expected_version))
        version: int = row[0]
        kind = NotificationType.MODIFIED if version else NotificationType.CREATED
        self.notifications.append(Notification(kind, path))
        return version

    def _version_message(self, path: str, expected_version: int) -> str:
        old = self.get(path)
        found = f"it has {old.version}" if old else "it is missing"
        return f"{path}: expected version {expected_version}, {found}"

    def create_sequential(
        self, prefix: str, value: bytes, session_id: str | None, now_millis: int
    ) -> str:
        """Create a key with its parent's next number; returns its path."""
        above = prefix[: prefix.rindex("/")] or "/"
        while True:
            following: int = self._connection.execute(_TAKE, (above,)).fetchone()[0]
            path = f"{prefix}{following - 1:010d}"
            if self.get(path) is None:  # else: a plain `put` created a key of this name
                self.put(path, value, MUST_NOT_EXIST, session_id, now_millis)
                return path

    def delete(self, path: str, expected_version: int | None) -> None:
        """Delete a key that has no children."""
        old = self.get(path)
        has_children = self._has_children(path)
        if old is None and not has_children:
            raise MetadataNotFoundError(f"{path} does not exist")
        if expected_version is not None and (old is None or old.version != expected_version):
            raise MetadataBadVersionError(self._version_message(path, expected_version))
        if has_children:
            raise MetadataNotEmptyError(f"{path} has children")
        self._connection.execute("DELETE FROM keys WHERE path = ?", (path,))
        self.notifications.append(Notification(NotificationType.DELETED, path))

    def _has_children(self, path: str) -> bool:
        prefix = path.rstrip("/")
        found = self._connection.execute(_HAS_CHILDREN, (prefix + "/", prefix + _BELOW))
        return found.fetchone() is not None

    def delete_recursive(self, path: str) -> None:
        """Delete a key and all below it."""
        prefix = path.rstrip("/")
        self._delete_where(_BELOW_OR_AT, (path, prefix + "/", prefix + _BELOW))

    def delete_session(self, session_id: str) -> None:
        """Delete the keys of a session."""
        self._delete_where("session = ?", (session_id,))

    def _delete_where(self, condition: str, arguments: tuple[str, ...]) -> None:
        # The condition is one of the two above.
        rows = self._connection.execute(
            f"DELETE FROM keys WHERE {condition} RETURNING path",  # noqa: S608
            arguments,
        ).fetchall()
        for path in sorted((path for (path,) in rows), reverse=True):
            self.notifications.append(Notification(NotificationType.DELETED, path))

    def raise_sequence(self, parent: str, following: int) -> None:
        """Make `following` the lowest number that a later sequential child of `parent` can get."""
        self._connection.execute(_RAISE, (parent, following))


def _refuse_damaged_wal(path: Path) -> None:
    wal = path.with_name(path.name + WAL_SUFFIX)
    try:
        damage = find_damage(wal.read_bytes())
    except FileNotFoundError:
        return
    except OSError as error:
        raise MetadataError(f"{wal}: {error.strerror}") from error
    if damage is not None:
        raise CorruptDataError(
            f"{wal}: offset {damage.offset}: {damage};"
            f" `pulsar-py storage recover {path.parent}` keeps what is undamaged"
        )


def _create(path: Path) -> None:
    """Make an empty file in one piece: under another name, synced once, then put in place.

    (SQLite itself, creating it in place, syncs seven times, each some milliseconds.) The new name
    is durable with the first commit, for which SQLite syncs the directory. If another process
    creates the file first, that file is used.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("COMMIT")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        _put_in_place(draft, path)
    finally:
        with suppress(OSError):  # where nothing can be written there is none
            draft.unlink(missing_ok=True)


def _why_unwritable(directory: Path) -> str:
    """Why this process can't make files there; empty if it can, or nobody knows."""
    if os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        return ""
    try:
        status = directory.stat()
    except OSError:
        return ""
    return (
        f"{directory}: user {os.geteuid()} can't write there (owner {status.st_uid}, group "
        f"{status.st_gid}, mode {stat.S_IMODE(status.st_mode):o}, or a read-only file system): "
        "give the directory to that user, mount it writable, or choose another data directory"
    )


def _put_in_place(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return
    except OSError:
        draft.rename(path)  # a file system without links
