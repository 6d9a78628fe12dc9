"""Reads a metadata file that nobody has open, and writes a new one (edge).

Only a copy of the file and of its `-wal` is opened, so that the original never changes. SQLite has
no checksums in the file: it detects a broken structure only, and callers check the values. A
damaged WAL is reported, and read as far as its transactions can be used. A table that can't be read
with one statement is read row by row, and rows on broken pages are lost.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_py.common.errors import FormatVersionError, MetadataError
from pulsar_py.common.findings import Finding
from pulsar_py.metadata import paths
from pulsar_py.metadata.sqlite_file import (
    APPLICATION_ID,
    FIRST_FORMAT_VERSION,
    FORMAT_VERSION,
    SqliteFile,
)
from pulsar_py.metadata.sqlite_wal import WAL_SUFFIX, find_damage

_PAGE = re.compile(r"page (\d+)", re.IGNORECASE)
_COLUMNS = "path, value, version, created, modified"
_MAX_ROWS_TRIED = 5_000_000
SIDE_FILES = ("", WAL_SUFFIX, "-shm")
"""Suffixes of the files that belong to a file of SQLite."""


@dataclass(slots=True)
class MetadataContents:
    """The keys that could be read; ephemeral ones are left out."""

    keys: dict[str, bytes] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    """The next number of each sequence, by the path of the sequential children's parent."""
    findings: list[Finding] = field(default_factory=list)


def read_metadata(path: Path, scratch: Path) -> MetadataContents:
    """Read a file through a copy in the directory `scratch`.

    Raises:
        FormatVersionError: It is of another version.
    """
    contents = MetadataContents()
    if not path.exists():
        contents.findings.append(Finding(path.name, None, "missing"))
        return contents
    copy = scratch / path.name
    shutil.copyfile(path, copy)
    wal = path.with_name(path.name + WAL_SUFFIX)
    if wal.exists():
        data = wal.read_bytes()
        if damage := find_damage(data):
            contents.findings.append(Finding(wal.name, damage.offset, str(damage)))
            data = damage.repaired or data
        copy.with_name(copy.name + WAL_SUFFIX).write_bytes(data)
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            _read(connection, contents, path)
    except sqlite3.DatabaseError as error:
        contents.findings.append(Finding(path.name, None, str(error)))
    return contents


def _read(connection: sqlite3.Connection, contents: MetadataContents, path: Path) -> None:
    execute = connection.execute
    version = execute("PRAGMA user_version").fetchone()[0]
    if execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        contents.findings.append(Finding(path.name, 68, "not the metadata of pulsar_py"))
    elif not FIRST_FORMAT_VERSION <= version <= FORMAT_VERSION:
        raise FormatVersionError(str(path), "metadata", version, FORMAT_VERSION)
    contents.findings += _broken_pages(connection, path.name)
    try:
        rows = execute(f"SELECT {_COLUMNS} FROM keys WHERE session IS NULL").fetchall()  # noqa: S608
    except sqlite3.DatabaseError as error:
        contents.findings.append(Finding(path.name, None, f"table keys: {error}"))
        rows = list(_rows_one_by_one(connection))
    for key, value, *_ in rows:
        if isinstance(key, str) and isinstance(value, bytes):
            contents.keys[key] = value
        else:
            contents.findings.append(Finding(path.name, None, f"key {key!r} has no bytes"))
    try:
        rows = execute("SELECT path, next FROM sequences").fetchall()
    except sqlite3.DatabaseError as error:
        contents.findings.append(Finding(path.name, None, f"table sequences: {error}"))
        return
    for name, following in rows:  # a broken page may hold anything, whatever the columns allow
        if isinstance(name, str) and isinstance(following, int) and following >= 0:
            contents.sequences[name] = following
        else:
            problem = f"sequence {name!r} is lost, its next number is {following!r}"
            contents.findings.append(Finding(path.name, None, problem))
    if version == FIRST_FORMAT_VERSION and paths.LEDGER_ID_COUNTER in contents.sequences:
        # Version 1 gave a ledger the number after the one that it took from the sequence.
        contents.sequences[paths.LEDGER_ID_COUNTER] += 1


def _broken_pages(connection: sqlite3.Connection, name: str) -> Iterator[Finding]:
    try:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        problems = [text for (text,) in connection.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        yield Finding(name, None, str(error))
        return
    for text in problems:
        if text != "ok":
            page = _PAGE.search(text)
            offset = (int(page[1]) - 1) * page_bytes if page else None
            yield Finding(name, offset, " ".join(text.split()))


def _rows_one_by_one(connection: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    """Rows in the order of their numbers, without those that can't be read."""
    query = f"SELECT {_COLUMNS} FROM keys WHERE rowid = ? AND session IS NULL"  # noqa: S608
    for number in range(1, _last_row(connection) + 1):
        try:
            row = connection.execute(query, (number,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield row


def _last_row(connection: sqlite3.Connection) -> int:
    for query in ("SELECT max(rowid) FROM keys", "SELECT count(path) FROM keys"):
        try:
            (last,) = connection.execute(query).fetchone()
        except sqlite3.DatabaseError:
            continue
        return min(int(last or 0) + 1, _MAX_ROWS_TRIED)
    return 100_000


def write_metadata(path: Path, contents: MetadataContents, *, now_millis: int) -> None:
    """Write a new file; each key has version 0, and `now_millis` as its times.

    Raises:
        MetadataError: It can't be written.
    """
    file = SqliteFile(path)
    try:
        file.begin()
        for key, value in contents.keys.items():
            file.put(key, value, None, None, now_millis)
        for name, following in contents.sequences.items():
            file.raise_sequence(name, following)
        file.commit()
    except sqlite3.Error as error:
        raise MetadataError(f"{path}: {error}") from error
    finally:
        file.close()
