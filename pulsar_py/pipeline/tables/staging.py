"""Writes rows as files of a table: Spark writes them aside, then they are moved into place (edge).

    table/_staging/<name>/...                     while Spark writes
    table/date=2026-01-31/<name>-00000.parquet    in place, and not yet in the log

The name belongs to one attempt; `attempts` deletes its files if it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from pulsar_py.common.disks.local_disk import sync_file
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.columns import PartitionColumn, quoted
from pulsar_py.pipeline.tables.attempts import Attempt
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.table import NULL_PARTITION, SUFFIX, TableFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITING: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""Settings that a session gets before files are written, whatever the user has set.

With others the files would have dates of the Julian calendar, and lists in a form that can't be
merged with those of other files. Spark takes these as session settings alone, not as options of a
write."""


def spark_path(path: Path) -> str:
    """A path as the URL that Spark takes: nothing in it is percent-encoded."""
    return f"file://{path}"


def with_partition_columns(rows: DataFrame, partition_by: Sequence[PartitionColumn]) -> DataFrame:
    """The rows with their partition columns added.

    The empty text and `__HIVE_DEFAULT_PARTITION__` become null: Spark would use the directory of
    null for them, too, and two partitions of a write can't share one directory.

    Raises:
        ConfigurationError: A column is missing, or an expression would replace one.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

    check_partition_columns(rows.columns, partition_by)
    for each in partition_by:
        rows = rows.withColumn(each.name, functions.expr(each.expression))
        if rows.schema[each.name].dataType.typeName() == "string":
            column = functions.col(quoted(each.name))
            rows = rows.withColumn(
                each.name, functions.when(~column.isin("", NULL_PARTITION), column)
            )
    return rows


def check_partition_columns(
    columns: Sequence[str], partition_by: Sequence[PartitionColumn]
) -> None:
    """Refuse partition columns that can't be made of these columns; SQL ignores the case of names.

    Raises:
        ConfigurationError: A column is missing, or an expression would replace one.
    """
    known = {each.lower() for each in columns}
    for each in partition_by:
        is_there = each.name.lower() in known
        if each.is_plain and not is_there:
            raise ConfigurationError(
                f"--partition-by: there is no column {each.name!r}; the rows have"
                f" {', '.join(columns)}"
            )
        if is_there and not each.is_plain:
            raise ConfigurationError(
                f"--partition-by: {each.name}={each.expression}: there is a column {each.name!r}"
                " already; give the new column another name"
            )


def write_files(
    rows: DataFrame, own: Attempt, *, partition_by: Sequence[str] = (), max_rows: int = 0
) -> list[TableFile]:
    """Write rows as files and move these into place; the log does not have them yet.

    Args:
        rows: They have the partition columns.
        own: The attempt that owns the files. Spark's workers and this process must see its
            directory under the same path.
        partition_by: Columns that become directories.
        max_rows: The most rows in a file; 0 for no limit.
    """
    for name, value in WRITING.items():
        rows.sparkSession.conf.set(name, value)
    writer = rows.write.mode("overwrite").option("maxRecordsPerFile", max_rows)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(spark_path(own.staging))
    return put_in_place(own)


def put_in_place(own: Attempt) -> list[TableFile]:
    """Move an attempt's files, `part-*`, from its staging directory into the table's directories.

    They are durable on return: a log must not have files that a loss of power takes away, least of
    all merged ones, whose sources are deleted after the commit.
    """
    placed = []
    directories = {own.table}
    for number, source in enumerate(sorted(own.staging.rglob(f"part-*{SUFFIX}"))):
        rows_count = pq.read_metadata(source).num_rows
        if not rows_count:
            continue  # where there are no rows Spark writes one file for the schema alone
        directory = own.table / source.parent.relative_to(own.staging)
        target = directory / f"{own.name}-{number:05}{SUFFIX}"
        directory.mkdir(parents=True, exist_ok=True)
        size = source.stat().st_size
        source.rename(target)
        sync_file(target)
        path = target.relative_to(own.table)
        directories.update(own.table / each for each in path.parents)
        placed.append(TableFile(path.as_posix(), size, rows_count))
    for directory in directories if placed else ():
        sync_directory(directory)
    return placed
