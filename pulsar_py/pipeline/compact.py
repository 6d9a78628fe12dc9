"""`compact`: the newest message of each key, into a table or another topic.

Within a partition newest is what stands last in the log: by ledger, entry and index in the batch.
Of the last messages in several partitions or topics it is the one that was published last: a key
moves to another partition when a topic gets more of them, and ledgers of different partitions tell
nothing about time, as one may be open for days. Publish times are those of producers' clocks. Equal
ones are decided by position, then topic, so that the result is the same each time. A tombstone, a
message without a value, takes its key away; messages without a key are left out. A key of bytes and
one of text are two, though a table may have the same bytes for both.

A table is overwritten by one commit; of two compactions that overlap one fails. A topic gets the
keys of one snapshot once under one name: when something was added to the source, or deleted, all
keys are sent again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter
from pulsar_py.pipeline.runner import run_job
from pulsar_py.pipeline.settings import POSITION_COLUMNS, TopicRange, TopicTarget, quoted
from pulsar_py.pipeline.topics import (
    BINARY_KEY,
    COPIED,
    KEY,
    TOMBSTONE,
    like,
    read_batch,
    with_columns,
    write_batch,
)
from pulsar_py.pipeline.watch import Watch
from pulsar_py.spark.planning.topic_ranges import topic_extents
from pulsar_py.spark.shared.options import METADATA_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPLICATION: Final = "compact"
PUBLISH_TIME: Final = "__publishTime"
TOPIC: Final = "__topic"
"""Of a partition: its own name."""
TASKS: Final = 32
"""Among which the keys of a job that may be repeated are spread: Spark's own number depends on the
machine and on how much there is, and rows are known by their number in a task."""
DECIDING: Final = (PUBLISH_TIME, TOPIC, *POSITION_COLUMNS, TOMBSTONE, BINARY_KEY)
"""The columns that tell which message is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """What is compacted, and where to: one of the two."""

    source: TopicRange
    lake: LakeSettings | None = None
    topic: TopicTarget | None = None


def compact(session: SparkSession, settings: CompactSettings, watch: Watch | None = None) -> None:
    """Write a snapshot of what is there now.

    Raises:
        ConfigurationError: There is no target, or there are two.
        TableConflictError: Another compaction has written the table meanwhile.
    """
    watch = watch or Watch()
    if (settings.lake is None) == (settings.topic is None):
        raise ConfigurationError("compact: a table or a topic is needed, one of them")
    writer = None if settings.lake is None else LakeWriter(settings.lake, watch)
    # Before anything is read: who reads later has all that this one has.
    transaction = None if writer is None else writer.next_transaction(APPLICATION)
    sent = COPIED if writer is None else ()
    source = with_columns(settings.source, *DECIDING, *sent)
    dropped = set(_not_asked_for(settings.source)).difference(sent)
    rows = newest_of_each_key(read_batch(session, source), dropped)
    if writer is not None and transaction is not None:
        run_job(session, lambda: writer.replace(rows, transaction), watch)
        return
    assert settings.topic is not None, "checked above"
    # After a shuffle rows come in any order; each key comes once, so it is one.
    target = like(settings.source, replace(settings.topic, sequence_order=f"columns:{KEY}"))
    if target.idempotency_key is not None:
        extent = topic_extents(settings.source.connector_options(is_streaming=False))
        key = settings.source.key(target.idempotency_key, extent)
        target = replace(target, idempotency_key=key)
        rows = rows.repartition(TASKS, KEY)
    run_job(session, lambda: write_batch(rows, target), watch)


def _not_asked_for(source: TopicRange) -> Collection[str]:
    asked = tuple(source.columns) or METADATA_COLUMNS
    return () if asked == ("all",) else [each for each in DECIDING if each not in asked]


def newest_of_each_key(rows: DataFrame, dropped: Collection[str] = DECIDING) -> DataFrame:
    """One row a key: its newest message, unless that is a tombstone.

    Args:
        rows: With the columns `DECIDING`.
        dropped: Columns that the result lacks.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

    kept = [each for each in rows.columns if each not in dropped]
    columns = _struct(*kept, *{TOMBSTONE}.difference(kept))
    of_partitions = (
        rows.where(f"{quoted(KEY)} is not null")
        .selectExpr(
            quoted(KEY),
            quoted(BINARY_KEY),
            quoted(TOPIC),
            f"{_struct(*POSITION_COLUMNS)} as position",
            f"struct({_struct(PUBLISH_TIME, *POSITION_COLUMNS, TOPIC)} as age, {columns} as row)"
            " as message",
        )
        .groupBy(KEY, BINARY_KEY, TOPIC)
        .agg(functions.max_by("message", "position").alias("last"))
    )
    newest = of_partitions.groupBy(KEY, BINARY_KEY).agg(
        functions.max_by("last.row", "last.age").alias("row")
    )
    return newest.where(f"not row.{quoted(TOMBSTONE)}").selectExpr(
        *(f"row.{quoted(each)} as {quoted(each)}" for each in kept)
    )


def _struct(*columns: str) -> str:
    return f"struct({', '.join(quoted(each) for each in columns)})"
