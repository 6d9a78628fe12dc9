"""Delta Lake tables, by the `deltalake` package, which needs no jars in Spark (edge).

Spark writes the Parquet files. One Delta commit adds them, with the application and batch number as
its transaction identifier. `transaction_version` finds a batch that was committed, which is then
left out. If another writer commits the batch at the same time, the package refuses the second
commit, and the next attempt finds the first.

The package does not refuse two merges of the same files, after which each row is there twice, nor
an overwrite that begins before a merge ends, after which the merged rows are there again. So both
take one lock. It binds pipelines alone: where another engine optimizes the table, they need
`is_compacted=False`.

Source: "Transaction Identifiers" in the protocol of Delta Lake (PROTOCOL.md).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pulsar_py.common.disks.local_disk import sync_file
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.attempts import exclusively
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.schemas import (
    Schema,
    TableSchemaError,
    grown_columns,
    merged_schema,
    widened_columns,
)
from pulsar_py.pipeline.tables.table import (
    Commit,
    CompactionResult,
    TableConflictError,
    TableFile,
    Transaction,
    partition_values,
)

try:
    import deltalake
    from deltalake import transaction as actions
    from deltalake.exceptions import CommitFailedError, DeltaError
except ImportError as error:
    raise ConfigurationError(
        "delta: tables need the deltalake package; `pip install '.[spark,lake]'` installs it in a"
        " checkout"
    ) from error

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 20
_REMOVING: Final = "removing"
"""The lock of merges and overwrites, which remove files from a table."""


class DeltaLakeTable:
    """A `delta:` table. It keeps no state: each call reads the log."""

    def __init__(self, path: Path) -> None:
        """Use the table in this directory, which may be missing yet.

        Raises:
            ConfigurationError: The path has a `%` that the package would decode.
        """
        if (other := unquote(str(path))) != str(path):
            raise ConfigurationError(
                f"delta:{path}: the deltalake package decodes the % in the path and looks for"
                f" {other}; give the table a path without %"
            )
        self.path = path

    def _table(self) -> deltalake.DeltaTable | None:
        if not deltalake.DeltaTable.is_deltatable(str(self.path)):
            return None
        return deltalake.DeltaTable(self.path)

    def schema(self) -> Schema | None:
        """The schema; None if there is no table yet."""
        table = self._table()
        return None if table is None else json.loads(table.schema().to_json())

    def last_batch(self, application: str) -> int | None:
        """The number of an application's newest batch in the log; None if there is none."""
        table = self._table()
        return None if table is None else table.transaction_version(application)

    def files(self) -> Sequence[TableFile]:
        """The files that count."""
        table = self._table()
        if table is None:
            return []
        rows: list[dict[str, Any]] = _table_of(table.get_add_actions(flatten=True)).to_pylist()
        return [
            TableFile(unquote(each["path"]), each["size_bytes"], each.get("num_records") or 0)
            for each in rows
        ]

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of the given files that no version of the table has, old versions included."""
        counted = {each.path for each in self.files()}
        log = [each.read_text() for each in (self.path / "_delta_log").glob("*.json")]
        return [
            each
            for each in paths
            if each not in counted and not any(Path(each).name in text for text in log)
        ]

    def commit(self, commit: Commit) -> bool:
        """Make files part of the table, after adding new columns in a commit of their own.

        Returns:
            False if the log has the batch already; no row was added then.

        Raises:
            TableSchemaError: The rows don't fit, or a column would have to become wider, which the
                package can't do.
            TableConflictError: Other writers' commits came first each time.
        """
        is_alone = exclusively(self.path, _REMOVING, waits=True)
        with is_alone if commit.is_overwrite else nullcontext():
            for _ in range(_ATTEMPTS):
                try:
                    return self._commit(commit)
                except CommitFailedError as error:
                    failure = error
        raise TableConflictError(
            f"{self.path}: other writers changed the table {_ATTEMPTS} times meanwhile; try again."
            f" The last refusal: {failure}"
        ) from failure

    def _commit(self, commit: Commit) -> bool:
        table = self._table()
        before = -1 if table is None else table.version()
        if table is None:
            columns = _delta_schema(merged_schema(None, commit.schema))
            deltalake.DeltaTable.create(
                self.path, columns, mode="ignore", partition_by=list(commit.partition_by)
            )
            table = deltalake.DeltaTable(self.path)
        if not commit.is_overwrite:
            _add_columns(table, commit.schema)
            table = deltalake.DeltaTable(self.path)
        # Read from the version that the commit starts from: if another writer adds the batch after
        # that, the commit fails.
        if _has_batch(table, commit.transaction):
            return False
        mode = "overwrite" if commit.is_overwrite else "append"
        schema = commit.schema if commit.is_overwrite else json.loads(table.schema().to_json())
        properties = deltalake.CommitProperties(
            app_transactions=None
            if commit.transaction is None
            else [
                deltalake.Transaction(commit.transaction.application, commit.transaction.batch_id)
            ]
        )
        table.create_write_transaction(
            [_add_action(self.path, each) for each in commit.added],
            mode,
            _delta_schema(merged_schema(None, schema)),
            list(commit.partition_by) or None,
            commit_properties=properties,
        )
        self._sync_log(since=before)
        return True

    def _sync_log(self, since: int) -> None:
        """Make all commits after a version durable, other writers' too: the package syncs none.

        The package may delete old commits meanwhile, once a checkpoint of Delta's has them.
        """
        log = self.path / "_delta_log"
        newest = deltalake.DeltaTable(self.path).version()
        for version in range(since + 1, newest + 1):
            with suppress(FileNotFoundError):
                sync_file(log / f"{version:020}.json")
        for directory in (log, self.path):
            sync_directory(directory)

    def compact(self, target_bytes: int) -> CompactionResult:
        """Merge small files into fewer ones of about that size; `vacuum` deletes the small ones.

        The table stays as it is while another process merges or overwrites it, and where the
        package can't merge its files.
        """
        if self._table() is None:
            return CompactionResult(0, 0)
        with exclusively(self.path, _REMOVING, waits=False) as is_mine:
            if not is_mine:
                return CompactionResult(0, 0)
            try:
                table = deltalake.DeltaTable(self.path)
                metrics = table.optimize.compact(target_size=target_bytes)
            except CommitFailedError:
                return CompactionResult(0, 0)
            except DeltaError as error:
                # Version 1.6 can't merge files if records in maps have more fields in some of them
                # than in others. No row is lost, and the pipeline goes on.
                about = {"table": str(self.path), "reason": str(error)}
                logger.warning("small files are not merged", extra=about)
                return CompactionResult(0, 0)
        return CompactionResult(metrics["numFilesRemoved"], metrics["numFilesAdded"])


def _has_batch(table: deltalake.DeltaTable, transaction: Transaction | None) -> bool:
    if transaction is None:
        return False
    last = table.transaction_version(transaction.application)
    return last is not None and last >= transaction.batch_id


def _table_of(batches: Any) -> Any:  # Any: Arrow data of another package, as a pyarrow table
    import pyarrow as pa  # noqa: PLC0415 - needed for listing files alone

    return pa.table(batches)


def _delta_schema(schema: Schema) -> deltalake.Schema:
    return deltalake.Schema.from_json(json.dumps(schema))


def _add_columns(table: deltalake.DeltaTable, schema: Schema) -> None:
    old = json.loads(table.schema().to_json())
    merged = merged_schema(old, schema)
    if widened := widened_columns(old, merged):
        raise TableSchemaError(
            f"columns {widened} would become wider, which delta: tables can't do; use a new table"
        )
    if grown := grown_columns(old, merged):
        table.alter.add_columns([deltalake.Field.from_json(json.dumps(each)) for each in grown])


def _add_action(table: Path, file: TableFile) -> actions.AddAction:
    modified_millis = round((table / file.path).stat().st_mtime * 1000)
    return actions.AddAction(
        file.path,  # the log gets it percent-encoded
        file.size_bytes,
        partition_values(file.path),
        modified_millis,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows_count}),
    )
