"""Parquet tables with a log of our own: which files count, and which batches they hold (edge).

    table/_manifest/00000007.json
    {"version": 1, "commit": 7, "transaction": ["<application>", 12], "added": [[path, bytes,
     rows], ...], "removed": [path, ...], "schema": {...}, "partitionBy": [...]}

Each commit makes the next number, by a link that fails if it is there, so two writers do not
overwrite each other. Every 50th also has the whole state (`files`, `applications`): reading begins
at the newest of these, and what lies before the one before it is deleted. A reader that ignores the
log sees the same rows whenever no writer is at work.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables import (
    SUFFIX,
    Commit,
    CompactionResult,
    Schema,
    TableFile,
    Transaction,
    merged_schema,
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
        state = ManifestState()
        records: list[dict[str, Any]] = []
        for each in sorted(self._log.glob("*.json"), reverse=True):
            records.append(json.loads(each.read_text()))
            if "files" in records[-1]:
                break
        for record in reversed(records):
            state.apply(record)
        return state

    def schema(self) -> Schema | None:
        """The columns; None if there is no table yet."""
        return self.state().schema

    def last_batch(self, application: str) -> int | None:
        """The newest batch of an application that is in the log."""
        return self.state().applications.get(application)

    def files(self) -> Sequence[TableFile]:
        """The files that count."""
        return list(self.state().files.values())

    def commit(self, commit: Commit) -> None:
        """Make files part of the table; an overwrite takes all others out, and away.

        Raises:
            TableSchemaError: The rows do not fit.
        """
        for _ in range(_ATTEMPTS):
            state = self.state()
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
                self._delete(removed)
                return
        raise ConfigurationError(f"{self.path}: other writers were faster {_ATTEMPTS} times")

    def _append(self, record: dict[str, Any]) -> bool:  # Any: JSON
        """Whether this was the next commit, and nobody else's was."""
        self._log.mkdir(parents=True, exist_ok=True)
        temporary = self._log / f"{uuid.uuid4().hex}.tmp"
        temporary.write_text(json.dumps(record))
        try:
            self._path_of(record["commit"]).hardlink_to(temporary)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        if "files" in record:
            for number in range(record["commit"] - 2 * WHOLE_EVERY, record["commit"] - WHOLE_EVERY):
                self._path_of(number).unlink(missing_ok=True)
        return True

    def _path_of(self, number: int) -> Path:
        return self._log / f"{number:08}.json"

    def _delete(self, paths: Sequence[str]) -> None:
        for each in paths:
            (self.path / each).unlink(missing_ok=True)

    def compact(self, target_bytes: int) -> CompactionResult:
        """Make small files into few of about that size; the small ones are deleted."""
        state = self.state()
        groups = small_file_groups(list(state.files.values()), target_bytes)
        if not groups or state.schema is None:
            return CompactionResult(0, 0)
        merged = [
            self._merge(group, f"compacted-{state.number + 1:08}-{number:05}")
            for number, group in enumerate(groups)
        ]
        removed = [each.path for group in groups for each in group]
        record = state.next_record(
            added=merged,
            removed=removed,
            schema=state.schema,
            partition_by=state.partition_by,
            transaction=None,
        )
        if not self._append(record):
            self._delete([each.path for each in merged])
            return CompactionResult(0, 0)  # someone else writes; the next time then
        self._delete(removed)
        return CompactionResult(len(removed), len(merged))

    def _merge(self, group: Sequence[TableFile], name: str) -> TableFile:
        """One file with the rows of several, a row group at a time."""
        path = "/".join(part for part in (group[0].partition, f"{name}{SUFFIX}") if part)
        sources = [pq.ParquetFile(self.path / each.path) for each in group]
        schema = pa.unify_schemas(
            [each.schema_arrow.remove_metadata() for each in sources], promote_options="permissive"
        )
        with pq.ParquetWriter(self.path / path, schema, compression="snappy") as writer:
            for source in sources:
                for number in range(source.num_row_groups):
                    writer.write_table(fitted(source.read_row_group(number), schema))
                source.close()
        size = (self.path / path).stat().st_size
        return TableFile(path, size, sum(each.rows_count for each in group))


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with all columns of a schema, null where it has none of its own."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
