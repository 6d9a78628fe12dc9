"""Attempts to write a batch: names and locks of their files, until a table's log has them (edge).

    table/_staging/<application>-<batch>-<chance>.lock      held by a running attempt
    table/_staging/<application>-<batch>-<chance>/...       files that it writes
    table/date=2026-01-31/<application>-<batch>-<chance>-00000.parquet

Each attempt has a name of its own, so two attempts at one batch share no file, and the log alone
decides which of them counts. The system releases a lock when its process dies. So a process that
gets the lock of another attempt knows that this one has died, and deletes those of its files that
the log does not have. On a file system without locks they stay.

Attempts of versions before these locks have none. Their files are deleted when nothing of the
attempt has changed for a day.

Why this deletes no file that counts: `unlogged` reads the log after the lock was taken, and only
the owner of a name commits files of that name. A file that is not in the log then never will be.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.tables.table import STAGING, SUFFIX

logger = logging.getLogger(__name__)

_LOCK: Final = ".lock"
_UNLOCKED_SECONDS: Final = 24 * 3600
"""After this long without a change an attempt without a lock is taken for dead."""


class LoggedTable(Protocol):
    """The part of a table's interface that attempts use."""

    path: Path

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of the given files that no reader of the log can reach: they may be deleted."""


@dataclass(slots=True)
class Attempt:
    """One attempt at a commit; it lives as long as its lock is held."""

    table: Path
    name: str
    """The prefix of the names of its files."""
    is_logged: bool = False
    """Set once the log has its files; otherwise they are deleted at the end."""

    @property
    def staging(self) -> Path:
        """The directory in which its files are written."""
        return self.table / STAGING / self.name

    @property
    def lock(self) -> Path:
        """The file whose lock says that the attempt is running."""
        return _lock_of(self.table, self.name)


@contextmanager
def attempt(table: LoggedTable, prefix: str) -> Iterator[Attempt]:
    """Hold the lock of a new attempt; at the end its files that are not in the log are deleted."""
    own = Attempt(table.path, f"{prefix}-{uuid.uuid4().hex[:8]}")
    with _waited_for(own.lock):
        try:
            yield own
        finally:
            with _failure_told(table, own.name):
                try:
                    _take_away(table, own.name, is_logged=own.is_logged)
                finally:
                    own.lock.unlink(missing_ok=True)


def clean(table: LoggedTable) -> None:
    """Delete the files of attempts whose processes have died."""
    staging = table.path / STAGING
    for lock in staging.glob(f"*{_LOCK}"):
        if (held := _held(lock, waits=False)) is not None:
            name = lock.name.removesuffix(_LOCK)
            with held, _failure_told(table, name):
                _take_away(table, name, is_logged=False)
                lock.unlink(missing_ok=True)
    for each in staging.glob("*"):
        # A lock file is made before its directory and deleted after it. So a directory without one
        # was made by a version that had no locks.
        if each.is_dir() and not _lock_of(table.path, each.name).exists():
            with _failure_told(table, each.name):
                if _is_still(table.path, each.name):
                    _take_away(table, each.name, is_logged=False)


@contextmanager
def exclusively(table: Path, purpose: str, *, waits: bool) -> Iterator[bool]:
    """Hold a table's lock for a purpose; False if another process holds it and `waits` is false.

    Args:
        table: The table's directory.
        purpose: The name of the lock.
        waits: Whether to wait until the lock is free.

    Raises:
        ConfigurationError: The lock belongs to another user, and `waits` is true.
    """
    lock = _lock_of(table, purpose)
    held = _waited_for(lock) if waits else _held(lock, waits=False)
    if held is None:
        yield False
        return
    with held:
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)


def _lock_of(table: Path, name: str) -> Path:
    return table / STAGING / f"{name}{_LOCK}"


def _waited_for(lock: Path) -> IO[str]:
    while (held := _held(lock, waits=True)) is None:
        continue
    return held


def _held(lock: Path, *, waits: bool) -> IO[str] | None:
    """Lock a file, for as long as the result stays open.

    None if another process holds the lock, or has deleted the file meanwhile.

    Raises:
        ConfigurationError: The file belongs to another user, and `waits` is true.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = lock.open("a")
    except PermissionError as error:
        # The file belongs to another user: whether its lock is held can't be found out.
        if not waits:
            return None
        raise ConfigurationError(
            f"{lock}: {error.strerror}; all users who write to a table need write permission for"
            f" the files in {STAGING}"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        # The lock is held, or the file system has no locks. A waiting caller gets an error only
        # for the latter, and goes on without a lock; the others leave the files alone.
        if not waits:
            file.close()
            return None
    if os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


@contextmanager
def _failure_told(table: LoggedTable, name: str) -> Iterator[None]:
    """Log a failure to delete files instead of raising it.

    Leftover files do no harm, and the error would hide the one that made the attempt fail.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - any log or file system may fail here
        about = {"table": str(table.path), "attempt": name, "reason": str(error)}
        logger.warning("files of a failed attempt are left", extra=about)


def _take_away(table: LoggedTable, name: str, *, is_logged: bool) -> None:
    if not is_logged:
        left = _placed(table.path, name)
        for path in table.unlogged(left) if left else ():
            (table.path / path).unlink(missing_ok=True)
    shutil.rmtree(table.path / STAGING / name, ignore_errors=True)


def _is_still(table: Path, name: str) -> bool:
    """Whether nothing of an attempt has changed for `_UNLOCKED_SECONDS`."""
    staging = table / STAGING / name
    latest = SystemClock().wall_time_millis() / 1000 - _UNLOCKED_SECONDS
    try:
        paths = [staging, *staging.rglob("*"), *(table / each for each in _placed(table, name))]
        return all(each.lstat().st_mtime < latest for each in paths)
    except FileNotFoundError:
        return False  # a file was deleted just now, so somebody is at work


def _placed(table: Path, name: str) -> list[str]:
    """The files of an attempt that are in the table's directories, relative to the table."""
    is_own = re.compile(rf"{re.escape(name)}-[0-9]{{5}}{re.escape(SUFFIX)}").fullmatch
    found = []
    for directory, below, files in os.walk(table):
        # Leave out staging directories and logs; only directories of partitions have a "=".
        below[:] = [each for each in below if each[0] != "_" or "=" in each]
        found += [Path(directory, each) for each in files if is_own(each)]
    return [each.relative_to(table).as_posix() for each in found]
