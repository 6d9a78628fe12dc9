"""`export`: topics into a table of a lake, once or for ever.

A stream with a checkpoint; each micro-batch is one commit that carries (query id, batch id), so
that a batch which is repeated after a failure is left out. Its tasks only read and write files;
nothing goes through the driver. The checkpoint stands in the table's directory unless another place
is given: with it the exports of two topics into one table stay apart.

When the topic's schema has new fields, the next start adds their columns to the table.
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
    """What is exported where."""

    source: TopicRange
    lake: LakeSettings
    streaming: Streaming
    where: str | None = None
    """An SQL condition."""
    select: str | None = None
    """SQL expressions, separated by commas; the columns of the table."""


def default_checkpoint(target: Target) -> str:
    """Where an export remembers how far it is, in the table's own directory."""
    return str(target.path / CHECKPOINT)


def export(session: SparkSession, settings: ExportSettings, watch: Watch | None = None) -> int:
    """Export up to what is there now, or until stopped; returns the rows taken in."""
    watch = watch or Watch()
    found = select(
        read_stream(session, settings.source), where=settings.where, select=settings.select
    )
    writer = LakeWriter(settings.lake, watch)
    rows = run_query(start_table_stream(found, writer, settings.streaming), watch)
    if settings.lake.is_compacted:
        writer.compact()
    return rows
