"""Data frames into tables of a lake and back, whatever their format (edge).

`append` is what each pipeline that writes a lake does with a batch: leave it out if it is in the
log, write its files, commit them, and merge small files now and then. `replace` makes a batch the
whole table; of two that overlap one fails, as its rows may be older than the other's.
"""

from __future__ import annotations

import errno
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.resuming.checkpoints import check_table
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.columns import PartitionColumn
from pulsar_py.pipeline.tables.attempts import attempt, clean
from pulsar_py.pipeline.tables.manifest import ManifestTable
from pulsar_py.pipeline.tables.places import TableFormat, Target
from pulsar_py.pipeline.tables.schemas import Schema, merged_schema, with_metadata
from pulsar_py.pipeline.tables.staging import spark_path, with_partition_columns, write_files
from pulsar_py.pipeline.tables.table import (
    Commit,
    LakeTable,
    TableConflictError,
    TableFile,
    Transaction,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pulsar_py.pipeline.topics import Streaming

logger = logging.getLogger(__name__)

DEFAULT_FILE_BYTES: Final = 128 << 20
COMPACT_EVERY: Final = 20
"""Batches of a stream between two compactions."""
READING: Final = {"datetimeRebaseMode": "CORRECTED", "ignoreMissingFiles": "false"}
"""Options of a read of files that a log names, whatever the session has: days and times are those
that were written, and rows of a file that was merged meanwhile are not left out without a word."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSettings:
    """Which table is written, and how its files lie."""

    target: Target
    partition_by: Sequence[PartitionColumn] = ()
    file_bytes: int = DEFAULT_FILE_BYTES
    """What files should have: larger ones are split, small ones merged."""
    is_compacted: bool = True


def open_table(target: Target) -> LakeTable:
    """The table, there or not.

    Raises:
        ConfigurationError: The package for its format is missing.
    """
    if target.format is TableFormat.PARQUET:
        return ManifestTable(target.path)
    from pulsar_py.pipeline.tables.delta import (  # noqa: PLC0415 - an extra of its own
        DeltaLakeTable,
    )

    return DeltaLakeTable(target.path)


def rows_of_a_file(files: Sequence[TableFile], file_bytes: int) -> int:
    """Most rows for a file of that size, from the average of what is there; 0 if nothing is."""
    rows = sum(each.rows_count for each in files)
    size = sum(each.size_bytes for each in files)
    return max(1, math.floor(file_bytes * rows / size)) if rows and size else 0


@dataclass(slots=True)
class LakeWriter:
    """Writes batches into one table; lives as long as its pipeline."""

    settings: LakeSettings
    watch: Watch
    batches: int = 0
    """Written by this writer."""

    def next_transaction(self, application: str) -> Transaction:
        """What `replace` is told; asked for before its rows are read, so that they are newer."""
        last = open_table(self.settings.target).last_batch(application)
        return Transaction(application, 0 if last is None else last + 1)

    def append(self, rows: DataFrame, transaction: Transaction) -> int:
        """Add a batch once, however often it is repeated; returns the rows that were added.

        Raises:
            TableSchemaError: The rows do not fit.
        """
        table = open_table(self.settings.target)
        clean(table)
        last = table.last_batch(transaction.application)
        is_new = last is None or last < transaction.batch_id
        written = self._write(rows, transaction, overwrite=False) if is_new else None
        if written is None:
            self.watch.report("skipped", batch_id=transaction.batch_id, reason="already in the log")
            return 0
        if self.settings.is_compacted and self.batches % COMPACT_EVERY == 0:
            self.compact()
        return written

    def replace(self, rows: DataFrame, transaction: Transaction) -> int:
        """Make a batch the whole table; returns its rows.

        Args:
            rows: Read after `transaction` was made.
            transaction: From `next_transaction`.

        Raises:
            TableConflictError: Another one has replaced the table since then.
        """
        clean(open_table(self.settings.target))
        written = self._write(rows, transaction, overwrite=True)
        if written is None:
            raise TableConflictError(
                f"{self.settings.target}: another {transaction.application} replaced the table"
                " while this one ran; its rows are there, and none of this one's. Run it again"
            )
        return written

    def _write(self, rows: DataFrame, transaction: Transaction, *, overwrite: bool) -> int | None:
        """Rows that were written; None if the log had the batch before they were."""
        table = open_table(self.settings.target)
        columns = [each.name for each in self.settings.partition_by]
        rows = with_partition_columns(rows, self.settings.partition_by)
        schema = rows.schema.jsonValue()
        if not overwrite:
            merged_schema(table.schema(), schema)  # refuse before anything is written
        with attempt(table, transaction.file_prefix) as own:
            limit = rows_of_a_file(table.files(), self.settings.file_bytes)
            files = write_files(rows, own, partition_by=columns, max_rows=limit)
            own.is_logged = table.commit(
                Commit(
                    added=files,
                    schema=schema,
                    partition_by=columns,
                    transaction=transaction,
                    is_overwrite=overwrite,
                )
            )
        if not own.is_logged:
            return None
        self.batches += 1
        written = sum(each.rows_count for each in files)
        self.watch.report(
            "committed", batch_id=transaction.batch_id, rows=written, files=len(files)
        )
        return written

    def compact(self) -> None:
        """Merge small files; where there is no room for it they stay, and rows can still come."""
        try:
            result = open_table(self.settings.target).compact(self.settings.file_bytes)
        except OSError as error:
            if not is_full(error):
                raise
            about = {"table": str(self.settings.target.path), "reason": str(error)}
            logger.warning("small files are not merged", extra=about)
            return
        if result.files_before:
            self.watch.report("compacted", files=result.files_before, into=result.files_after)


def is_full(error: OSError) -> bool:
    """Whether a disk or a quota is; the package of Delta tables tells it in the text alone."""
    return error.errno in _FULL or any(f"(os error {each})" in str(error) for each in _FULL)


def start_table_stream(rows: DataFrame, writer: LakeWriter, streaming: Streaming) -> StreamingQuery:
    """Write rows into a table as they come; each micro-batch is one commit.

    Raises:
        ConfigurationError: The checkpoint is of another table, or a column is not there.
    """
    from pulsar_py.pipeline.topics import triggered  # noqa: PLC0415 - only with streams

    def write(batch: DataFrame, batch_id: int) -> None:
        writer.append(batch, Transaction(query_id_of(batch), batch_id))

    check_table(streaming.checkpoint, open_table(writer.settings.target))
    # Refused here, an error is one sentence; in a batch it ends a traceback of Java's.
    with_partition_columns(rows, writer.settings.partition_by)
    return triggered(rows.writeStream.foreachBatch(write), streaming).start()


def query_id_of(batch: DataFrame) -> str:
    """The id of the query that a micro-batch is of; it stays when the query is restarted."""
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise ConfigurationError("Spark does not tell which query this micro-batch is of")
    return str(found)


def read_table(session: SparkSession, target: Target) -> DataFrame:
    """The rows of a table: those that its log counts, or of all files where there is no log.

    Raises:
        ConfigurationError: There is nothing.
    """
    return read_snapshot(session, snapshot_of(target))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a table that counted at one moment."""

    target: Target
    files: Sequence[TableFile]
    """By path: logs list them in any order, and Spark deals equal ones out as they are listed."""
    schema: Schema | None = None
    """None without a log."""


def snapshot_of(target: Target) -> Snapshot:
    """The table as it is now.

    Raises:
        ConfigurationError: There is nothing.
    """
    table = open_table(target)
    files = table.files()
    schema = table.schema() if files else None  # the later of the two: it has all their columns
    if not files and target.format is TableFormat.PARQUET:
        files = files_without_log(target.path)
    if not files:
        raise ConfigurationError(f"{target}: there is no table, or it is empty")
    return Snapshot(target, sorted(files, key=lambda each: each.path), schema)


def files_without_log(path: Path) -> list[TableFile]:
    """What readers take for the files of a directory; rows are not counted."""
    found = []
    for each in path.glob("**/*.parquet"):
        parts = each.relative_to(path).parts
        is_hidden = any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in parts)
        if not is_hidden and each.is_file():
            found.append(TableFile("/".join(parts), each.stat().st_size, 0))
    return found


def read_snapshot(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """The rows of these files, in the columns that the log tells.

    Without a log Spark finds them out, and takes directories `code=007` for numbers.
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415 - late on purpose

    table = snapshot.target.path
    # Paths are no patterns, whatever signs they have.
    reader = session.read.option("basePath", spark_path(table)).option("__globPaths__", "false")
    if snapshot.schema is None:
        reader = reader.option("mergeSchema", "true")
    else:
        schema = with_metadata(snapshot.schema, _written_schema(snapshot))
        reader = reader.options(**READING).schema(StructType.fromJson(schema))
    return reader.parquet(*(spark_path(table / each.path) for each in snapshot.files))


def _written_schema(snapshot: Snapshot) -> Schema | None:
    """The columns as Spark wrote them into one of the files; merged files do not tell."""
    for each in snapshot.files:
        try:
            metadata = pq.read_schema(snapshot.target.path / each.path).metadata
        except FileNotFoundError:
            raise TableConflictError(
                f"{snapshot.target}: {each.path} was merged or replaced while the table was read;"
                " read it again"
            ) from None
        found = (metadata or {}).get(_SPARK_SCHEMA)
        if found is not None:
            return dict(json.loads(found))
    return None
