"""The `export` pipeline: writes topics into a table, once or continuously.

It is a streaming query with a checkpoint. Each micro-batch is one commit with the query's id and
the batch's number, so a batch that is repeated after a failure is not added again. The tasks read
messages and write files; no row goes through the driver. The checkpoint lies in the table's
directory unless another place is given; exports of two topics into one table need two.

If the topic's schema has got new fields, the next start adds their columns to the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, start_table_stream
from pulsar_py.pipeline.running.runner import run_query
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.topics import TopicRange
from pulsar_py.pipeline.tables.places import Target
from pulsar_py.pipeline.topics import Streaming, read_stream, select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT: Final = "_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The topics, the table, and the rows and columns that are exported."""

    source: TopicRange
    lake: LakeSettings
    streaming: Streaming
    where: str | None = None
    """An SQL condition for rows; None for all."""
    select: str | None = None
    """SQL expressions for the table's columns, separated by commas; None for the source's."""


def default_checkpoint(target: Target) -> str:
    """The checkpoint of an export that names none, in the table's own directory."""
    return str(target.path / CHECKPOINT)


def export(session: SparkSession, settings: ExportSettings, watch: Watch | None = None) -> int:
    """Export the messages that exist now, or go on until stopped; returns the rows that were read.

    Raises:
        ConfigurationError: The session, the range, the checkpoint or a column does not fit.
        TableSchemaError: The rows don't fit the table's columns.
        StoppedError: The watch requested a stop.
    """
    watch = watch or Watch()
    found = select(
        read_stream(session, settings.source), where=settings.where, select=settings.select
    )
    writer = LakeWriter(settings.lake, watch)
    rows = run_query(start_table_stream(found, writer, settings.streaming), watch)
    if settings.lake.is_compacted:
        writer.compact()
    return rows
