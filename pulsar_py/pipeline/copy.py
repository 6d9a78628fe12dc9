"""`copy`: a topic into another one, also of another cluster.

With a checkpoint it is a stream that goes on where it stopped, up to what is there now or for ever;
without one a batch of the range. Exactly once needs deduplication on the target; a batch of the
same topics, range and selection is the same one again under the same name.

A copy has all that a producer may say of a message: key, be it text or bytes, ordering key,
properties, event time, and that there is no value. Values are decoded by the topic's schema and
encoded again, so that conditions and expressions can use fields; raw ones are copied as they are,
as bytes without a schema. A target without a schema gets the source's, unless columns are selected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pulsar_py.pipeline.runner import run_job, run_query
from pulsar_py.pipeline.settings import TopicRange, TopicTarget
from pulsar_py.pipeline.topics import (
    COPIED,
    Streaming,
    like,
    read_batch,
    read_stream,
    select,
    start_stream,
    with_columns,
    write_batch,
)
from pulsar_py.pipeline.watch import Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """What is copied where."""

    source: TopicRange
    target: TopicTarget
    # None: a batch.
    streaming: Streaming | None = None
    where: str | None = None
    """An SQL condition."""
    select: str | None = None
    """SQL expressions, separated by commas; the columns of the new messages."""


def copy(session: SparkSession, settings: CopySettings, watch: Watch | None = None) -> None:
    """Copy until the end of the range, or until stopped."""
    watch = watch or Watch()
    rows = read_stream if settings.streaming is not None else read_batch
    source, target = with_columns(settings.source, *COPIED), settings.target
    if settings.select is None:
        target = like(source, target)
    found = select(rows(session, source), where=settings.where, select=settings.select)
    if settings.streaming is None:
        # Not of a stream: its batches are told apart by their numbers, whatever is selected.
        key = source.key(target.idempotency_key, settings.where, settings.select)
        target = replace(target, idempotency_key=key)
        run_job(session, lambda: write_batch(found, target), watch)
        return
    run_query(start_stream(found, target, settings.streaming), watch)
