"""The `compact` pipeline: writes the newest message of each key into a table or another topic.

Within a partition the newest message is the last one by ledger, entry and index in the batch. Among
the last messages of several partitions or topics it is the one with the latest publish time, by the
producers' clocks: a key moves when its topic gets more partitions, and the ledgers of different
partitions are not ordered in time, as one may be open for days. Of equal times the position
decides, then the topic, so the result is the same each time. A tombstone (a message without a
value) removes its key. Messages without a key are left out. A key of bytes and one of text are two
keys, although a table may have the same bytes for both.

A table is replaced by one commit; of two compactions that overlap one fails. Under one name a topic
gets the keys of one snapshot once; when messages were added to the source or deleted, all keys are
sent again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter
from pulsar_py.pipeline.running.runner import run_job
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.columns import quoted
from pulsar_py.pipeline.settings.topics import POSITION_COLUMNS, TopicRange, TopicTarget
from pulsar_py.pipeline.topics import (
    BINARY_KEY,
    COPIED,
    KEY,
    TOMBSTONE,
    like,
    read_batch,
    send,
    with_columns,
    write_batch,
)
from pulsar_py.spark.planning.topic_ranges import topic_extents
from pulsar_py.spark.shared.options import METADATA_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPLICATION: Final = "compact"
PUBLISH_TIME: Final = "__publishTime"
TOPIC: Final = "__topic"
"""The column with the name of the topic partition."""
TASKS: Final = 32
"""The number of tasks of a job that may be repeated. Spark's own choice depends on the machine and
the amount of data, and a repeated row is recognized by its number within its task."""
DECIDING: Final = (PUBLISH_TIME, TOPIC, *POSITION_COLUMNS, TOMBSTONE, BINARY_KEY)
"""The columns that decide which message is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """The topics, and the table or the topic that is written: one of the two."""

    source: TopicRange
    lake: LakeSettings | None = None
    topic: TopicTarget | None = None


def compact(session: SparkSession, settings: CompactSettings, watch: Watch | None = None) -> None:
    """Write the newest message of each key among the messages that exist now.

    Raises:
        ConfigurationError: There is no target or there are two, or the session can't be used.
        TableConflictError: Another compaction has replaced the table meanwhile.
        StoppedError: The watch requested a stop.
    """
    watch = watch or Watch()
    if (settings.lake is None) == (settings.topic is None):
        raise ConfigurationError("compact: give either a table or a topic to write to")
    writer = None if settings.lake is None else LakeWriter(settings.lake, watch)
    # Taken before anything is read, so that of two compactions the one with the later transaction
    # has read at least as new messages.
    transaction = None if writer is None else writer.next_transaction(APPLICATION)
    sent = COPIED if writer is None else ()
    source = with_columns(settings.source, *DECIDING, *sent)
    dropped = set(_not_asked_for(settings.source)).difference(sent)
    rows = newest_of_each_key(read_batch(session, source), dropped)
    if writer is not None and transaction is not None:
        run_job(session, lambda: writer.replace(rows, transaction), watch)
        return
    assert settings.topic is not None, "one of the two is set, checked above"
    # After a shuffle rows come in another order at each attempt, but each key has one row: so the
    # writer can sort by it.
    target = like(settings.source, replace(settings.topic, sequence_order=f"columns:{KEY}"))
    if target.idempotency_key is not None:
        extent = topic_extents(settings.source.connector_options(is_streaming=False))
        key = settings.source.key(target.idempotency_key, extent)
        target = replace(target, idempotency_key=key)
        rows = rows.repartition(TASKS, KEY)
    send(session, lambda: write_batch(rows, target), target, watch)


def _not_asked_for(source: TopicRange) -> Collection[str]:
    asked = tuple(source.columns) or METADATA_COLUMNS
    return () if asked == ("all",) else [each for each in DECIDING if each not in asked]


def newest_of_each_key(rows: DataFrame, dropped: Collection[str] = DECIDING) -> DataFrame:
    """A row for each key with its newest message, unless that is a tombstone.

    Args:
        rows: Messages with the columns `DECIDING`.
        dropped: Columns to leave out of the result.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

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
