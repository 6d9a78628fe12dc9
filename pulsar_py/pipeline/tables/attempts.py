"""Whose files are whose, until a table's log has them (edge).

    table/_staging/<application>-<batch>-<chance>.lock      held by a running attempt
    table/_staging/<application>-<batch>-<chance>/...       what it writes
    table/date=2026-01-31/<application>-<batch>-<chance>-00000.parquet

Each attempt to write has a name of its own, so two at the same batch share no file: the log alone
decides which of them counts. The system lets go of a lock when its process dies. Who gets the lock
of another attempt therefore knows that it ended midway, and takes away what the log does not have.
Where the file system has no locks, what is left stays.

Attempts of older versions have no locks. What is left of one is taken away after a day in which
nothing of it changed.

Table: `unlogged` reads the log after the lock was taken, and nobody but the owner of a name commits
files of that name; so what is not in the log then never will be.
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

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.table import STAGING, SUFFIX

logger = logging.getLogger(__name__)

_LOCK: Final = ".lock"
_UNLOCKED_SECONDS: Final = 24 * 3600
"""How long nothing changes until an attempt without a lock is taken for dead."""


class LoggedTable(Protocol):
    """What is asked of a table here."""

    path: Path

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those files, of some below the table, that its log never had, or has no more."""


@dataclass(slots=True)
class Attempt:
    """One attempt at a commit; lives as long as its lock."""

    table: Path
    name: str
    """What the names of its files begin with."""
    is_logged: bool = False
    """Set once the log has its files; otherwise they are taken away at the end."""

    @property
    def staging(self) -> Path:
        """Where its files are written."""
        return self.table / STAGING / self.name

    @property
    def lock(self) -> Path:
        """What tells that it is under way."""
        return _lock_of(self.table, self.name)


@contextmanager
def attempt(table: LoggedTable, prefix: str) -> Iterator[Attempt]:
    """A name below which files can be written; what did not get into the log goes at the end."""
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
    """Take away what attempts have left whose processes have died."""
    staging = table.path / STAGING
    for lock in staging.glob(f"*{_LOCK}"):
        if (held := _held(lock, waits=False)) is not None:
            name = lock.name.removesuffix(_LOCK)
            with held, _failure_told(table, name):
                _take_away(table, name, is_logged=False)
                lock.unlink(missing_ok=True)
    for each in staging.glob("*"):
        # The lock comes before the directory, and goes after it.
        if each.is_dir() and not _lock_of(table.path, each.name).exists():
            with _failure_told(table, each.name):
                if _is_still(table.path, each.name):
                    _take_away(table, each.name, is_logged=False)


@contextmanager
def exclusively(table: Path, purpose: str, *, waits: bool) -> Iterator[bool]:
    """Do what one process may do at a time; False if it is another's turn, and nobody waits.

    Raises:
        ConfigurationError: Who waits may not open the lock, which is another user's.
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
    """The lock's file, locked as long as it is open; None if it is another's, or was taken away.

    Raises:
        ConfigurationError: Who waits may not open it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = lock.open("a")
    except PermissionError as error:
        # Another user's: whether it is held can't be told.
        if not waits:
            return None
        raise ConfigurationError(
            f"{lock}: {error.strerror}; all users who write a table need to write to the files"
            f" in {STAGING}"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        # Held, or there are no locks here: who waits goes on without one, the others stay away.
        if not waits:
            file.close()
            return None
    if os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


@contextmanager
def _failure_told(table: LoggedTable, name: str) -> Iterator[None]:
    """Files that can't be taken away harm nobody; an error would hide why there are any."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of any log, and of any file system
        about = {"table": str(table.path), "attempt": name, "reason": str(error)}
        logger.warning("files are left", extra=about)


def _take_away(table: LoggedTable, name: str, *, is_logged: bool) -> None:
    if not is_logged:
        left = _placed(table.path, name)
        for path in table.unlogged(left) if left else ():
            (table.path / path).unlink(missing_ok=True)
    shutil.rmtree(table.path / STAGING / name, ignore_errors=True)


def _is_still(table: Path, name: str) -> bool:
    """Whether nothing of an attempt has changed for so long that it must be dead."""
    staging = table / STAGING / name
    latest = SystemClock().wall_time_millis() / 1000 - _UNLOCKED_SECONDS
    try:
        paths = [staging, *staging.rglob("*"), *(table / each for each in _placed(table, name))]
        return all(each.lstat().st_mtime < latest for each in paths)
    except FileNotFoundError:
        return False  # something has just changed


def _placed(table: Path, name: str) -> list[str]:
    """The files of an attempt that are where they are read; directories may vanish meanwhile."""
    is_own = re.compile(rf"{re.escape(name)}-[0-9]{{5}}{re.escape(SUFFIX)}").fullmatch
    found = []
    for directory, below, files in os.walk(table):
        # What others write at the moment, and logs; directories of partitions have a "=".
        below[:] = [each for each in below if each[0] != "_" or "=" in each]
        found += [Path(directory, each) for each in files if is_own(each)]
    return [each.relative_to(table).as_posix() for each in found]
