"""Parquet tables with a log of pulsar_py's own, which lists files and batches (edge).

    table/_manifest/00000007-<chance>.tmp     a commit while it is written
    table/_manifest/00000007.json             the commit
    {"version": 1, "commit": 7, "transaction": ["<application>", 12], "added": [[path, bytes,
     rows], ...], "removed": [path, ...], "schema": {...}, "partitionBy": [...]}

A commit takes the next number by a hard link, which fails if the number is taken. So two writers
can't overwrite each other: the second one reads the log again and decides by what it has then. A
batch that the log has is not added again. A merge counts only if the log still has all its sources.

Every 50th commit also has the whole state (`files`, `applications`). Reading begins at the newest
of these, and commits before the last but one of them are deleted. No path is ever used twice, so a
removed file can be deleted at any later time.

A reader that knows only the directory sees the same rows while no writer is at work, and after a
killed one once the next has deleted its leftovers. One that reads the files of the log while they
are merged finds some deleted, and fails. `docs/adr/0025-parquet-tables-keep-a-log.md` says why this
log exists.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_py.common.disks.local_disk import sync_file
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.attempts import Attempt, attempt
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.schemas import Schema, merged_schema
from pulsar_py.pipeline.tables.staging import put_in_place
from pulsar_py.pipeline.tables.table import (
    SUFFIX,
    Commit,
    CompactionResult,
    TableConflictError,
    TableFile,
    Transaction,
    small_file_groups,
)

DIRECTORY: Final = "_manifest"
VERSION: Final = 1
WHOLE_EVERY: Final = 50
_ATTEMPTS: Final = 20


@dataclass(slots=True)
class ManifestState:
    """The state of a table after the commits that were applied (pure)."""

    number: int = -1
    """The number of the newest commit; -1 before the first."""
    files: dict[str, TableFile] = field(default_factory=dict)
    applications: dict[str, int] = field(default_factory=dict)
    schema: Schema | None = None
    partition_by: list[str] = field(default_factory=list)

    def has_batch(self, transaction: Transaction | None) -> bool:
        """Whether the log has this batch, or a later one of its application."""
        if transaction is None:
            return False
        return self.applications.get(transaction.application, -1) >= transaction.batch_id

    def apply(self, record: dict[str, Any]) -> None:  # Any: JSON
        """Apply the next commit; the first one may be any that has the whole state.

        Raises:
            ConfigurationError: Another version of this package wrote it.
        """
        if record.get("version") != VERSION:
            raise ConfigurationError(
                f"manifest: a commit has version {record.get('version')!r}, and this pulsar_py"
                f" reads {VERSION}: use the pulsar_py that wrote the table"
            )
        self.number = record["commit"]
        if "files" in record:
            self.files = {path: TableFile(path, *rest) for path, *rest in record["files"]}
            self.applications = dict(record["applications"])
        else:
            for path in record["removed"]:
                self.files.pop(path, None)
            self.files |= {path: TableFile(path, *rest) for path, *rest in record["added"]}
            if record["transaction"] is not None:
                application, batch_id = record["transaction"]
                self.applications[application] = batch_id
        self.schema = record["schema"]
        self.partition_by = record["partitionBy"]

    def next_record(
        self,
        *,
        added: Sequence[TableFile],
        removed: Sequence[str],
        schema: Schema,
        partition_by: Sequence[str],
        transaction: Transaction | None,
    ) -> dict[str, Any]:  # Any: JSON
        """The JSON of the next commit, which adds and removes these files.

        Raises:
            ConfigurationError: The table is partitioned by other columns.
            TableSchemaError: The rows don't fit the table's columns.
        """
        if self.schema is not None and list(partition_by) != self.partition_by:
            raise ConfigurationError(
                f"--partition-by: the table is partitioned by {self.partition_by}, not by"
                f" {list(partition_by)}; keep its columns, or write to a new table"
            )
        record: dict[str, Any] = {
            "version": VERSION,
            "commit": self.number + 1,
            "transaction": None
            if transaction is None
            else [transaction.application, transaction.batch_id],
            "added": [_row(each) for each in added],
            "removed": list(removed),
            "schema": merged_schema(self.schema, schema),
            "partitionBy": list(partition_by),
        }
        if record["commit"] % WHOLE_EVERY == 0:
            whole = ManifestState(self.number, dict(self.files), dict(self.applications))
            whole.apply(record)
            record["files"] = [_row(each) for each in whole.files.values()]
            record["applications"] = whole.applications
        return record


def _row(file: TableFile) -> list[str | int]:
    return [file.path, file.size_bytes, file.rows_count]


class ManifestTable:
    """A `parquet:` table. It keeps no state: each call reads the log."""

    def __init__(self, path: Path) -> None:
        """Use the table in this directory, which may be missing yet."""
        self.path = path
        self._log = path / DIRECTORY

    def state(self) -> ManifestState:
        """The table as it is now.

        Raises:
            TableConflictError: Commits were deleted while they were read, many times.
        """
        for _ in range(_ATTEMPTS):
            try:
                return self._read_state()
            except FileNotFoundError:
                continue  # another writer deleted old commits; the next read starts later
        raise self._busy()

    def _read_state(self) -> ManifestState:
        state = ManifestState()
        records: list[dict[str, Any]] = []
        for number in reversed(self._numbers()):
            records.append(self._read(number))
            if "files" in records[-1]:
                break
        for record in reversed(records):
            state.apply(record)
        return state

    def _numbers(self) -> list[int]:
        return sorted(int(each.stem) for each in self._log.glob("*.json"))

    def _read(self, number: int) -> dict[str, Any]:  # Any: JSON
        return dict(json.loads(self._path_of(number).read_text()))

    def schema(self) -> Schema | None:
        """The schema; None if there is no table yet."""
        return self.state().schema

    def last_batch(self, application: str) -> int | None:
        """The number of an application's newest batch in the log; None if there is none."""
        return self.state().applications.get(application)

    def files(self) -> Sequence[TableFile]:
        """The files that count."""
        return list(self.state().files.values())

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of the given files that the newest state does not have."""
        counted = self.state().files
        return [each for each in paths if each not in counted]

    def commit(self, commit: Commit) -> bool:
        """Make files part of the table; an overwrite removes and deletes all others.

        Returns:
            False if the log has the batch already; the table is unchanged then.

        Raises:
            ConfigurationError: The table is partitioned by other columns.
            TableSchemaError: The rows don't fit the table's columns.
            TableConflictError: Other writers took the next number each time.
        """
        for _ in range(_ATTEMPTS):
            state = self.state()
            if state.has_batch(commit.transaction):
                return False
            removed = list(state.files) if commit.is_overwrite else []
            if commit.is_overwrite:
                state.schema = None
            record = state.next_record(
                added=commit.added,
                removed=removed,
                schema=commit.schema,
                partition_by=commit.partition_by,
                transaction=commit.transaction,
            )
            if self._append(record):
                if commit.is_overwrite:
                    self._delete_removed(self._numbers())
                return True
        raise self._busy()

    def _busy(self) -> TableConflictError:
        return TableConflictError(
            f"{self.path}: other writers changed the table {_ATTEMPTS} times meanwhile; try again"
        )

    def _append(self, record: dict[str, Any]) -> bool:  # Any: JSON
        """Write a commit under its number; False if another writer has taken the number.

        Raises:
            OSError: The commit can't be written; the error has its path.
            TableConflictError: So many commits came meanwhile that one of this number may have been
                made and deleted before; whether this one counts can't be known.
        """
        number = record["commit"]
        self._log.mkdir(parents=True, exist_ok=True)
        if not self._linked(number, json.dumps(record)):
            return False
        for each in (self._log, self.path):
            sync_directory(each)
        newest = self._numbers()[-1]
        if newest - number > WHOLE_EVERY:
            # A process that was suspended for that long may have linked a number that another
            # commit had before and that was deleted since, so that the link did not fail.
            raise TableConflictError(
                f"{self.path}: {newest - number} commits of others were made while commit"
                f" {number} was written; try again"
            )
        if "files" in record:
            self._forget(range(number - WHOLE_EVERY))
        return True

    def _linked(self, number: int, text: str) -> bool:
        """Write a commit aside, then link it, so that it appears whole; False if it exists."""
        temporary = self._log / f"{number:08}-{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_text(text)
            sync_file(temporary)
            self._path_of(number).hardlink_to(temporary)
        except FileExistsError:
            return False
        except FileNotFoundError:
            return False  # another writer deleted the temporary file of a number that is long past
        except OSError as error:  # an error for a full disk has no path
            raise OSError(error.errno, error.strerror, str(self._path_of(number))) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _forget(self, old: range) -> None:
        """Delete old commits, the files they have removed, and commits that were never linked."""
        for left in self._log.glob("*-*.tmp"):
            if int(left.stem.partition("-")[0]) in old:
                left.unlink(missing_ok=True)
        numbers = [each for each in self._numbers() if each in old]
        self._delete_removed(numbers)
        for each in numbers:
            self._path_of(each).unlink(missing_ok=True)

    def _delete_removed(self, numbers: Iterable[int]) -> None:
        """Delete the files that these commits have removed, where a crash left them."""
        removed: set[str] = set()
        for each in numbers:
            try:
                removed.update(self._read(each)["removed"])
            except FileNotFoundError:
                continue  # another writer deletes old commits now, and their files with them
        self._delete(self.unlogged(sorted(removed)))

    def _path_of(self, number: int) -> Path:
        return self._log / f"{number:08}.json"

    def _delete(self, paths: Iterable[str]) -> None:
        for each in paths:
            (self.path / each).unlink(missing_ok=True)

    def compact(self, target_bytes: int) -> CompactionResult:
        """Merge small files into fewer ones of about that size, and delete the small ones.

        If another merge or an overwrite has removed one of them, the table stays as it is.
        """
        self._delete_removed(self._numbers())
        state = self.state()
        groups = small_file_groups(list(state.files.values()), target_bytes)
        if not groups:
            return CompactionResult(0, 0)
        sources = [each for group in groups for each in group]
        with attempt(self, f"compacted-{state.number + 1:08}") as own:
            try:
                merged = self._merged(groups, own)
            except OSError:
                # A source may be gone because another writer has removed it: no error then.
                if self._has(sources):
                    raise
                return CompactionResult(0, 0)
            own.is_logged = self._replace(sources, merged)
        if not own.is_logged:
            return CompactionResult(0, 0)
        self._delete(each.path for each in sources)
        return CompactionResult(len(sources), len(merged))

    def _has(self, files: Sequence[TableFile], state: ManifestState | None = None) -> bool:
        counted = (state or self.state()).files
        return all(counted.get(each.path) == each for each in files)

    def _replace(self, sources: Sequence[TableFile], merged: Sequence[TableFile]) -> bool:
        """Commit a merge; False if the log does not have one of its sources any more."""
        for _ in range(_ATTEMPTS):
            state = self.state()
            if state.schema is None or not self._has(sources, state):
                return False
            record = state.next_record(
                added=merged,
                removed=[each.path for each in sources],
                schema=state.schema,
                partition_by=state.partition_by,
                transaction=None,
            )
            if self._append(record):
                return True
        return False

    def _merged(self, groups: Sequence[Sequence[TableFile]], own: Attempt) -> list[TableFile]:
        for number, group in enumerate(groups):
            path = own.staging / group[0].partition / f"part-{number:05}{SUFFIX}"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._merge(group, path)
        return put_in_place(own)

    def _merge(self, group: Sequence[TableFile], path: Path) -> None:
        """Write the rows of several files into one, a row group at a time to bound memory."""
        sources = [pq.ParquetFile(self.path / each.path) for each in group]
        schema = pa.unify_schemas(
            [each.schema_arrow.remove_metadata() for each in sources], promote_options="permissive"
        )
        with pq.ParquetWriter(path, schema, compression="snappy") as writer:
            for source in sources:
                for number in range(source.num_row_groups):
                    writer.write_table(fitted(source.read_row_group(number), schema))
                source.close()


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """An Arrow table with the columns of a schema; columns that it lacks are null."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
