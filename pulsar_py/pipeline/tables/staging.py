"""Rows into files of a table: written aside by Spark, then put in their place (edge).

    table/_staging/<name>/...                     while Spark writes
    table/date=2026-01-31/<name>-00000.parquet

The name is an attempt's own; `attempts` has what becomes of its files when it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.local_disk import sync_file
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
"""Settings of a session that files are written by, whatever it had: with others there are days and
times of Julius Caesar's calendar in them, and lists that can't be merged with those of other files;
Spark has no options of a write for them."""


def spark_path(path: Path) -> str:
    """A path as Spark takes it: with a scheme, and nothing in it encoded."""
    return f"file://{path}"


def with_partition_columns(rows: DataFrame, partition_by: Sequence[PartitionColumn]) -> DataFrame:
    """The rows with the columns that they are partitioned by.

    Texts that have the directory of null become null: two groups can't write one file.

    Raises:
        ConfigurationError: A column is not there, or one to be made is.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

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
    """Refuse what can't be made of these columns; names of SQL have no case.

    Raises:
        ConfigurationError: A column is not there, or one to be made is.
    """
    known = {each.lower() for each in columns}
    for each in partition_by:
        is_there = each.name.lower() in known
        if each.is_plain and not is_there:
            raise ConfigurationError(
                f"partition-by: there is no column {each.name!r}, but {', '.join(columns)}"
            )
        if is_there and not each.is_plain:
            raise ConfigurationError(
                f"partition-by: {each.name}={each.expression}: there is a column {each.name!r}"
                " already; give the one that is made another name"
            )


def write_files(
    rows: DataFrame, own: Attempt, *, partition_by: Sequence[str] = (), max_rows: int = 0
) -> list[TableFile]:
    """Write rows and put the files in their place; no log knows them yet.

    Args:
        rows: With the columns of the partitions.
        own: Whose files they are; Spark's workers and this process see the same directory.
        partition_by: Columns that become directories.
        max_rows: Most rows a file, 0 for no limit.
    """
    for name, value in WRITING.items():
        rows.sparkSession.conf.set(name, value)
    writer = rows.write.mode("overwrite").option("maxRecordsPerFile", max_rows)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(spark_path(own.staging))
    return put_in_place(own)


def put_in_place(own: Attempt) -> list[TableFile]:
    """Move an attempt's files, `part-*`, from where they were written to where they are read.

    They are durable then: a log must not know of files that a loss of power takes away, the less as
    those that were merged into them are deleted.
    """
    placed = []
    directories = {own.table}
    for number, source in enumerate(sorted(own.staging.rglob(f"part-*{SUFFIX}"))):
        rows_count = pq.read_metadata(source).num_rows
        if not rows_count:
            continue  # Spark writes one for the schema where there are no rows
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
