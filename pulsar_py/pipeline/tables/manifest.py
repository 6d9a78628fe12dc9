"""Parquet tables with a log of our own: which files count, and which batches they hold (edge).

    table/_manifest/00000007-<chance>.tmp     while it is written
    table/_manifest/00000007.json
    {"version": 1, "commit": 7, "transaction": ["<application>", 12], "added": [[path, bytes,
     rows], ...], "removed": [path, ...], "schema": {...}, "partitionBy": [...]}

Each commit makes the next number, by a link that fails if it is there, so two writers do not
overwrite each other: who comes second decides anew by the log as it is then. A batch that is in the
log is not added again, and a merge counts only if the log still has all that was merged.

Every 50th commit also has the whole state (`files`, `applications`): reading begins at the newest
of these, and what lies before the one before it is deleted. A path is never used twice, so what a
commit has removed can be deleted at any later time. A reader that ignores the log sees the same
rows whenever no writer is at work; one that reads files while they are merged misses some, and
fails.
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

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.local_disk import sync_file
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
    """A table as its log tells it (pure)."""

    number: int = -1
    """Of the newest commit."""
    files: dict[str, TableFile] = field(default_factory=dict)
    applications: dict[str, int] = field(default_factory=dict)
    schema: Schema | None = None
    partition_by: list[str] = field(default_factory=list)

    def has_batch(self, transaction: Transaction | None) -> bool:
        """Whether that batch, or a later one of its application, is in the log."""
        if transaction is None:
            return False
        return self.applications.get(transaction.application, -1) >= transaction.batch_id

    def apply(self, record: dict[str, Any]) -> None:  # Any: JSON
        """Take in the next commit.

        Raises:
            ConfigurationError: It was written by another version.
        """
        if record.get("version") != VERSION:
            raise ConfigurationError(
                f"manifest: version {record.get('version')!r}, this pulsar_py reads {VERSION}"
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
        """The commit that follows; raises ConfigurationError for other partition columns."""
        if self.schema is not None and list(partition_by) != self.partition_by:
            raise ConfigurationError(
                f"the table is partitioned by {self.partition_by}, not by {list(partition_by)}"
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
    """A Parquet table with such a log."""

    def __init__(self, path: Path) -> None:
        """The directory need not be there yet."""
        self.path = path
        self._log = path / DIRECTORY

    def state(self) -> ManifestState:
        """The table as it is now."""
        for _ in range(_ATTEMPTS):
            try:
                return self._read_state()
            except FileNotFoundError:
                continue  # old commits were deleted meanwhile, so there is a newer whole state
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
        """The columns; None if there is no table yet."""
        return self.state().schema

    def last_batch(self, application: str) -> int | None:
        """The newest batch of an application that is in the log."""
        return self.state().applications.get(application)

    def files(self) -> Sequence[TableFile]:
        """The files that count."""
        return list(self.state().files.values())

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of some files that do not count."""
        counted = self.state().files
        return [each for each in paths if each not in counted]

    def commit(self, commit: Commit) -> bool:
        """Make files part of the table; an overwrite takes all others out, and away.

        Returns:
            False if the log has that batch already: then nothing has changed.

        Raises:
            TableSchemaError: The rows do not fit.
            TableConflictError: Other writers were faster all the time.
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
        return TableConflictError(f"{self.path}: other writers were faster {_ATTEMPTS} times")

    def _append(self, record: dict[str, Any]) -> bool:  # Any: JSON
        """Whether this was the next commit, and nobody else's was.

        Raises:
            OSError: It can't be written; the error has its path.
            TableConflictError: That can't be told, because commits of that age are deleted.
        """
        number = record["commit"]
        self._log.mkdir(parents=True, exist_ok=True)
        if not self._linked(number, json.dumps(record)):
            return False
        for each in (self._log, self.path):
            sync_directory(each)
        newest = self._numbers()[-1]
        if newest - number > WHOLE_EVERY:
            # A process that stood still may have written a number that was there, and is gone.
            raise TableConflictError(
                f"{self.path}: {newest - number} commits of others were made while commit"
                f" {number} was written; try again"
            )
        if "files" in record:
            self._forget(range(number - WHOLE_EVERY))
        return True

    def _linked(self, number: int, text: str) -> bool:
        """Write a commit aside, then link it: whole, or not at all. False if it is there."""
        temporary = self._log / f"{number:08}-{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_text(text)
            sync_file(temporary)
            self._path_of(number).hardlink_to(temporary)
        except FileExistsError:
            return False
        except FileNotFoundError:
            return False  # forgotten, as commits of that age are
        except OSError as error:  # a full disk has no name
            raise OSError(error.errno, error.strerror, str(self._path_of(number))) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _forget(self, old: range) -> None:
        """Delete old commits, and what they have removed, should it still be there.

        So go those that a crash left before they were linked.
        """
        for left in self._log.glob("*-*.tmp"):
            if int(left.stem.partition("-")[0]) in old:
                left.unlink(missing_ok=True)
        numbers = [each for each in self._numbers() if each in old]
        self._delete_removed(numbers)
        for each in numbers:
            self._path_of(each).unlink(missing_ok=True)

    def _delete_removed(self, numbers: Iterable[int]) -> None:
        """Delete what these commits have removed; a crash may have come before."""
        removed: set[str] = set()
        for each in numbers:
            try:
                removed.update(self._read(each)["removed"])
            except FileNotFoundError:
                continue  # another writer forgets it, and does the same
        self._delete(self.unlogged(sorted(removed)))

    def _path_of(self, number: int) -> Path:
        return self._log / f"{number:08}.json"

    def _delete(self, paths: Iterable[str]) -> None:
        for each in paths:
            (self.path / each).unlink(missing_ok=True)

    def compact(self, target_bytes: int) -> CompactionResult:
        """Make small files into few of about that size; the small ones are deleted.

        Where another merge, or an overwrite, has taken one of them, the table stays as it is.
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
        """Commit a merge, unless one of its sources is not there any more."""
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
        """One file with the rows of several, a row group at a time."""
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
    """A table with all columns of a schema, null where it has none of its own."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
