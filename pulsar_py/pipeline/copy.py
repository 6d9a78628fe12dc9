"""The `copy` pipeline: copies topics into another topic, also of another cluster.

With a checkpoint it is a streaming query that resumes where it stopped, and reads the messages that
exist now or goes on for ever. Without one it is a batch of the range. Exactly once needs
deduplication on the target. A batch of the same topics, range and selection repeats the earlier one
of the same name. A stream may change its selection, but not between attempts at one micro-batch.

A named batch that is sent exactly once can be repeated while its topics grow, because one task with
producers of its own copies each topic partition: a row is numbered by its position in the
partition, and new messages come after it.

A copy keeps all that a producer can set on a message: key (text or bytes), ordering key,
properties, event time, and a missing value. Values are decoded by the topic's schema and encoded
again, so that conditions and expressions can use their fields; raw values are copied as bytes
without a schema. A target without a schema gets the source's, unless columns are selected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.resuming.checkpoints import Setting, check_query
from pulsar_py.pipeline.running.runner import in_threads, run_query
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.secrets import is_secret_name
from pulsar_py.pipeline.settings.topics import Guarantee, TopicRange, TopicTarget
from pulsar_py.pipeline.topics import (
    COPIED,
    Streaming,
    like,
    read_batch,
    read_stream,
    select,
    send,
    start_stream,
    with_columns,
    write_batch,
)
from pulsar_py.spark.planning.topic_ranges import topic_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FREE: Final = frozenset(
    {
        *("arrowbatchbytes", "polltimeoutms", "waitingfornonexistedtopic"),
        "failonmissingtopic",
        *("maxbytespertrigger", "maxentriespertrigger", "maxoffsetspertrigger"),
        *("predefinedsubscription", "subscriptionprefix"),
        *("pulsar.reader.receiverqueuesize", "pulsar.reader.readername"),
        "pulsar.reader.subscriptionroleprefix",
    }
)
"""Options of the connector, in lower case, that may change within a micro-batch.

They change neither its rows nor their numbers."""
_FREE_PREFIXES: Final = ("pulsar.client.", "pulsar.admin.", "pulsar.producer.")
_SPREADING: Final = "pulsar.producer.hashingscheme"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """The topics, the target, and the messages that are copied."""

    source: TopicRange
    target: TopicTarget
    # The checkpoint and pace of a stream; None for a batch.
    streaming: Streaming | None = None
    where: str | None = None
    """An SQL condition for rows; None for all."""
    select: str | None = None
    """SQL expressions for the columns of the new messages, separated by commas; None for all."""


def copy(session: SparkSession, settings: CopySettings, watch: Watch | None = None) -> None:
    """Copy until the end of the range, or until stopped.

    Raises:
        ConfigurationError: The session or range does not fit, or the checkpoint began with other
            settings.
        StoppedError: The watch requested a stop.
    """
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
        send(session, lambda: write_batch(found, target), target, watch)
    else:
        made = replace(settings, source=source, target=target)
        send(session, lambda: _copy_partitions(session, made), target, watch)


def numbering_settings(settings: CopySettings) -> dict[str, Setting]:
    """The settings that the numbers of a micro-batch's rows depend on; none with at-least-once."""
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
    """Whether an option may change within a micro-batch: a limit, a time-out, a connection's."""
    return option in _FREE or (option.startswith(_FREE_PREFIXES) and option != _SPREADING)


def _copy_partitions(session: SparkSession, settings: CopySettings) -> int:
    """Copy each topic partition by a job of one task, as many at a time as Spark has cores.

    Returns the number of rows in all of them.
    """
    partitions = topic_partitions(settings.source.connector_options(is_streaming=False))
    cores = max(1, session.sparkContext.defaultParallelism)
    parts = [partial(_copy_partition, session, settings, each) for each in partitions]
    return sum(in_threads(session, parts, cores))


def _copy_partition(session: SparkSession, settings: CopySettings, partition: str) -> int:
    source = settings.source.of_partition(partition)
    rows = select(read_batch(session, source), where=settings.where, select=settings.select)
    key = source.key(settings.target.idempotency_key, settings.where, settings.select)
    # `coalesce(1)` does not shuffle: one task reads the pieces of the partition in their order.
    return write_batch(rows.coalesce(1), replace(settings.target, idempotency_key=key))
