"""`copy`: a topic into another one, also of another cluster.

With a checkpoint it is a stream that goes on where it stopped, up to what is there now or for ever;
without one a batch of the range. Exactly once needs deduplication on the target; a batch of the
same topics, range and selection is the same one again under the same name. A stream may change
what it selects, but not between two attempts at one micro-batch.

So that this holds while topics grow, a batch with a name that is sent exactly once copies each
topic partition by a task and a name of its own: a row is known by its number among those of its
partition, and what comes later stands behind them.

A copy has all that a producer may say of a message: key, be it text or bytes, ordering key,
properties, event time, and that there is no value. Values are decoded by the topic's schema and
encoded again, so that conditions and expressions can use fields; raw ones are copied as they are,
as bytes without a schema. A target without a schema gets the source's, unless columns are selected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.checkpoints import Setting, check_query
from pulsar_py.pipeline.runner import in_threads, run_job, run_query
from pulsar_py.pipeline.secrets import is_secret_name
from pulsar_py.pipeline.settings import Guarantee, TopicRange, TopicTarget
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
from pulsar_py.spark.planning.topic_ranges import topic_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FREE: Final = frozenset(
    {
        *("arrowbatchbytes", "polltimeoutms", "waitingfornonexistedtopic"),
        *("maxbytespertrigger", "maxentriespertrigger", "maxoffsetspertrigger"),
        *("predefinedsubscription", "subscriptionprefix"),
        *("pulsar.reader.receiverqueuesize", "pulsar.reader.readername"),
        "pulsar.reader.subscriptionroleprefix",
    }
)
"""Options of the connector that change no row of a micro-batch that was begun; in lower case."""
_FREE_PREFIXES: Final = ("pulsar.client.", "pulsar.admin.", "pulsar.producer.")
_SPREADING: Final = "pulsar.producer.hashingscheme"


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
    if settings.streaming is not None:
        topic = {"--to": str(TopicName.parse(target.topic))}
        check_query(settings.streaming.checkpoint, topic, numbering_settings(settings))
        run_query(start_stream(found, target, settings.streaming), watch)
    elif target.idempotency_key is None or target.guarantee is not Guarantee.EXACTLY_ONCE:
        run_job(session, lambda: write_batch(found, target), watch)
    else:
        made = replace(settings, source=source, target=target)
        run_job(session, lambda: _copy_partitions(session, made), watch)


def numbering_settings(settings: CopySettings) -> dict[str, Setting]:
    """What rows of a micro-batch are numbered and spread by, where they are known by numbers."""
    if settings.target.guarantee is not Guarantee.EXACTLY_ONCE:
        return {}
    own: dict[str, Setting] = {
        "--where": settings.where,
        "--select": settings.select,
        "--raw": settings.source.is_raw,
        "--binary-keys": settings.target.has_binary_keys,
    }
    clusters = (settings.source.cluster, settings.target.cluster)
    options = {
        name.lower(): text
        for cluster in clusters
        for name, text in cluster.options.items()
        if not _is_free(name.lower()) and not is_secret_name(name)
    }
    return own | {"--option": repr(dict(sorted(options.items())))}


def _is_free(option: str) -> bool:
    """Whether it may change so that a micro-batch can end: times, sizes, limits, connections."""
    return option in _FREE or (option.startswith(_FREE_PREFIXES) and option != _SPREADING)


def _copy_partitions(session: SparkSession, settings: CopySettings) -> None:
    """Copy each topic partition by a job of one task, as many at once as there are cores."""
    partitions = topic_partitions(settings.source.connector_options(is_streaming=False))
    cores = max(1, session.sparkContext.defaultParallelism)
    parts = [partial(_copy_partition, session, settings, each) for each in partitions]
    in_threads(session, parts, cores)


def _copy_partition(session: SparkSession, settings: CopySettings, partition: str) -> None:
    source = settings.source.of_partition(partition)
    rows = select(read_batch(session, source), where=settings.where, select=settings.select)
    key = source.key(settings.target.idempotency_key, settings.where, settings.select)
    # Without a shuffle: the pieces of the partition, one after the other.
    write_batch(rows.coalesce(1), replace(settings.target, idempotency_key=key))
