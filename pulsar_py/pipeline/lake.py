"""Writes data frames into tables, and reads tables into data frames, whatever their format (edge).

`LakeWriter.append` adds a batch: it leaves the batch out if the log has it, writes its files,
commits them, and merges small files now and then. `LakeWriter.replace` makes a batch the whole
table. If two of these overlap one fails, because its rows may be older than the other's.
"""

from __future__ import annotations

import errno
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

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
"""The number of a stream's batches between two merges of small files."""
READING: Final = {"datetimeRebaseMode": "CORRECTED", "ignoreMissingFiles": "false"}
"""Options for reading the files of a log, whatever the session's settings are. Dates and times are
read as they were written, and a file that was merged meanwhile is an error: with a session's
`ignoreMissingFiles` its rows would be missing without one."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSettings:
    """The table that is written, its partition columns and the sizes of its files."""

    target: Target
    partition_by: Sequence[PartitionColumn] = ()
    file_bytes: int = DEFAULT_FILE_BYTES
    """The target size of files, in bytes: larger ones are split, small ones merged."""
    is_compacted: bool = True
    """Whether small files are merged."""


def open_table(target: Target) -> LakeTable:
    """The table of a target; its directory may be missing yet.

    Raises:
        ConfigurationError: The `deltalake` package is missing, or can't open the path.
    """
    match target.format:
        case TableFormat.PARQUET:
            return ManifestTable(target.path)
        case TableFormat.DELTA:
            from pulsar_py.pipeline.tables.delta import (  # noqa: PLC0415 - an extra of its own
                DeltaLakeTable,
            )

            return DeltaLakeTable(target.path)
        case unknown:
            assert_never(unknown)


def rows_of_a_file(files: Sequence[TableFile], file_bytes: int) -> int:
    """The most rows for a file of a size, by the average size of the given files' rows.

    0, which means no limit, if there are no rows.
    """
    rows = sum(each.rows_count for each in files)
    size = sum(each.size_bytes for each in files)
    return max(1, math.floor(file_bytes * rows / size)) if rows and size else 0


@dataclass(slots=True)
class LakeWriter:
    """Writes batches into one table; lives as long as its pipeline."""

    settings: LakeSettings
    watch: Watch
    batches: int = 0
    """The number of batches that this writer has committed."""

    def next_transaction(self, application: str) -> Transaction:
        """The transaction for a `replace`. Take it before the rows are read.

        Then no replacement that was committed before can have newer rows.
        """
        last = open_table(self.settings.target).last_batch(application)
        return Transaction(application, 0 if last is None else last + 1)

    def append(self, rows: DataFrame, transaction: Transaction) -> int:
        """Add a batch, unless the table has it; returns the number of rows that were added.

        Raises:
            TableSchemaError: The rows don't fit the table's columns.
            TableConflictError: Other writers kept changing the table meanwhile.
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
        """Make a batch the whole table; returns the number of its rows.

        Args:
            rows: Rows that are read after `transaction` was made.
            transaction: A value of `next_transaction`.

        Raises:
            TableConflictError: Another run has replaced the table since the transaction was made.
        """
        clean(open_table(self.settings.target))
        written = self._write(rows, transaction, overwrite=True)
        if written is None:
            raise TableConflictError(
                f"{self.settings.target}: another {transaction.application} replaced the table"
                " while this one ran; the table has its rows, and none of this one's. Run it again"
            )
        return written

    def _write(self, rows: DataFrame, transaction: Transaction, *, overwrite: bool) -> int | None:
        """Write and commit a batch; returns its rows, None if the log had the batch already."""
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
        """Merge small files; on a full disk they stay, with a warning, and the pipeline goes on."""
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
    """Whether an error says that a disk or quota is full.

    The `deltalake` package has the error's number in the text alone.
    """
    return error.errno in _FULL or any(f"(os error {each})" in str(error) for each in _FULL)


def start_table_stream(rows: DataFrame, writer: LakeWriter, streaming: Streaming) -> StreamingQuery:
    """Start a query that writes rows into a table, each micro-batch by one commit.

    Raises:
        ConfigurationError: The checkpoint belongs to another table, or a partition column is
            missing.
    """
    from pulsar_py.pipeline.topics import triggered  # noqa: PLC0415 - at first use

    def write(batch: DataFrame, batch_id: int) -> None:
        writer.append(batch, Transaction(query_id_of(batch), batch_id))

    check_table(streaming.checkpoint, open_table(writer.settings.target))
    # Checked before the query starts: an error raised here is one sentence, one raised in a
    # micro-batch is wrapped in a traceback of Java's.
    with_partition_columns(rows, writer.settings.partition_by)
    return triggered(rows.writeStream.foreachBatch(write), streaming).start()


def query_id_of(batch: DataFrame) -> str:
    """The id of a micro-batch's query, which stays the same when the query is restarted."""
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise ConfigurationError(
            "Spark gives no id of this micro-batch's query, without which a repeated batch can't be"
            " recognized; rows have to come from a streaming query of this session"
        )
    return str(found)


def read_table(session: SparkSession, target: Target) -> DataFrame:
    """The rows of a table: of the files in its log, or of all files of a directory without a log.

    Raises:
        ConfigurationError: The table is missing or empty.
    """
    return read_snapshot(session, snapshot_of(target))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a table at one moment, and the schema of its log."""

    target: Target
    files: Sequence[TableFile]
    """Sorted by path: a log lists them in any order, and Spark distributes files of one size to
    tasks in the order in which they are listed."""
    schema: Schema | None = None
    """None for a directory without a log."""


def snapshot_of(target: Target) -> Snapshot:
    """The table as it is now.

    Raises:
        ConfigurationError: The table is missing or empty.
    """
    table = open_table(target)
    files = table.files()
    schema = table.schema() if files else None  # read after the files, so it has all their columns
    if not files and target.format is TableFormat.PARQUET:
        files = files_without_log(target.path)
    if not files:
        raise ConfigurationError(f"{target}: there is no table, or it has no rows")
    return Snapshot(target, sorted(files, key=lambda each: each.path), schema)


def files_without_log(path: Path) -> list[TableFile]:
    """The Parquet files of a directory without a log, but for hidden ones; rows are not counted."""
    found = []
    for each in path.glob("**/*.parquet"):
        parts = each.relative_to(path).parts
        is_hidden = any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in parts)
        if not is_hidden and each.is_file():
            found.append(TableFile("/".join(parts), each.stat().st_size, 0))
    return found


def read_snapshot(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """The rows of a snapshot's files, with the columns of the log.

    Without a log Spark infers the columns, and takes a directory `code=007` for a number.
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415 - loads pyspark

    table = snapshot.target.path
    # Spark takes characters such as `*` and `[` in a path as a pattern, so they are escaped.
    reader = session.read.option("basePath", spark_path(table)).option("__globPaths__", "false")
    if snapshot.schema is None:
        reader = reader.option("mergeSchema", "true")
    else:
        schema = with_metadata(snapshot.schema, _written_schema(snapshot))
        reader = reader.options(**READING).schema(StructType.fromJson(schema))
    return reader.parquet(*(spark_path(table / each.path) for each in snapshot.files))


def _written_schema(snapshot: Snapshot) -> Schema | None:
    """The schema that Spark wrote into one of the files; files of a merge don't have it."""
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
