"""`compact`: the newest message of each key, into a table or another topic.

Newest is what stands last in the log: by ledger, entry and index in the batch, which also orders
the partitions of a topic as ledger ids grow for all of them. A tombstone, a message without a
value, takes its key away; messages without a key are left out.

A table is overwritten by one commit; of two compactions that overlap one fails. A topic gets the
keys of one snapshot once under one name: when something was added to the source, or deleted, all
keys are sent again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter
from pulsar_py.pipeline.runner import run_job
from pulsar_py.pipeline.settings import POSITION_COLUMNS, TopicRange, TopicTarget, quoted
from pulsar_py.pipeline.topics import KEY, TOMBSTONE, like, read_batch, with_columns, write_batch
from pulsar_py.pipeline.watch import Watch
from pulsar_py.spark.extents import topic_extents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPLICATION: Final = "compact"


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
    source = with_columns(settings.source, *POSITION_COLUMNS, TOMBSTONE)
    rows = newest_of_each_key(read_batch(session, source))
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
    run_job(session, lambda: write_batch(rows, target), watch)


def newest_of_each_key(rows: DataFrame) -> DataFrame:
    """One row a key: its last in the log, unless that is a tombstone."""
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

    kept = [each for each in rows.columns if each not in (*POSITION_COLUMNS, TOMBSTONE)]
    position = ", ".join(quoted(each) for each in POSITION_COLUMNS)
    columns = ", ".join(quoted(each) for each in (*kept, TOMBSTONE))
    newest = (
        rows.where(f"{quoted(KEY)} is not null")
        .selectExpr(quoted(KEY), f"struct({position}) as position", f"struct({columns}) as row")
        .groupBy(KEY)
        .agg(functions.max_by("row", "position").alias("row"))
    )
    return newest.where(f"not row.{quoted(TOMBSTONE)}").selectExpr(
        *(f"row.{quoted(each)} as {quoted(each)}" for each in kept)
    )
