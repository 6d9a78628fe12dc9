"""Reads topics into data frames and writes these to topics, as batches or streams (edge).

The session has to know `format("pulsar")`: one of `running.sessions.open_session` does, and so does
any for whose Python path Spark has found the connector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.running.runner import run_job
from pulsar_py.pipeline.running.sessions import use_session
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.columns import quoted
from pulsar_py.pipeline.settings.topics import TopicRange, TopicTarget, topic_option
from pulsar_py.pipeline.tables.places import spark_place
from pulsar_py.spark.shared.options import METADATA_COLUMNS
from pulsar_py.spark.shared.schema_option import option_has_separate_keys
from pulsar_py.spark.values.pair_columns import KEY as PAIR
from pulsar_py.spark.values.pair_columns import says_separate_keys
from pulsar_py.spark.values.schema_copy import topic_schema_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT: Final = "pulsar"
KEY: Final = "__key"
TOMBSTONE: Final = "__isTombstone"
"""The column that is true for a message without a value, whose fields are all null then."""
BINARY_KEY: Final = "__hasBinaryKey"
"""The column that is true for keys of bytes, and false for keys of text."""
COPIED: Final = (TOMBSTONE, "__orderingKey", BINARY_KEY)
"""Columns that a copy needs, beside the connector's default ones, to keep all of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """The checkpoint and the pace of a streaming query."""

    checkpoint: str
    is_continuous: bool = False
    """Go on for ever; otherwise stop after the messages that exist at the start."""
    interval_seconds: float = 60.0
    """Between the starts of two micro-batches of a continuous query."""


def read_batch(session: SparkSession, source: TopicRange) -> DataFrame:
    """A data frame of the messages in a range of topics.

    Raises:
        ConfigurationError: The session was stopped, or belongs to Spark Connect.
    """
    use_session(session)
    options = source.connector_options(is_streaming=False)
    return session.read.format(FORMAT).options(**options).load()


def read_stream(session: SparkSession, source: TopicRange) -> DataFrame:
    """A streaming data frame of the messages of topics.

    Raises:
        ConfigurationError: The range has an end, or the session was stopped or belongs to Spark
            Connect.
    """
    use_session(session)
    if source.ending_millis is not None or source.ending_offsets is not None:
        raise ConfigurationError(
            "a stream reads without an end, and this range has one; leave the checkpoint out to"
            " read it as a batch"
        )
    options = source.connector_options(is_streaming=True)
    return session.readStream.format(FORMAT).options(**options).load()


def write_batch(rows: DataFrame, target: TopicTarget) -> int:
    """Send rows to a topic; returns their number when the broker has stored all."""
    from pyspark.sql import Observation  # noqa: PLC0415 - loads pyspark
    from pyspark.sql.functions import count, lit  # noqa: PLC0415 - as above

    sent = Observation()
    rows = with_keys(rows, target).observe(sent, count(lit(1)).alias("rows"))
    rows.write.format(FORMAT).mode("append").options(**target.connector_options()).save()
    return int(sent.get["rows"])


def send(
    session: SparkSession, write: Callable[[], int], target: TopicTarget, watch: Watch
) -> None:
    """Run a job that writes rows to a topic and returns their number, and report it.

    Raises:
        StoppedError: The watch requested a stop.
    """
    rows_count = run_job(session, write, watch)
    watch.report("sent", rows=rows_count, topic=target.topic)


def like(source: TopicRange, target: TopicTarget) -> TopicTarget:
    """The target with the source's schema as `value_schema`, for a topic that has none.

    The schema is that of the source's first topic. For a pattern and for raw values the target is
    returned unchanged.
    """
    kind, topics = topic_option(source.topic)
    if source.is_raw or kind == "topicsPattern":
        return target
    topic = topics.split(",")[0].strip()
    found = topic_schema_option(source.cluster.connector_options() | {"topic": topic})
    return target if found is None else replace(target, value_schema=found)


def start_stream(rows: DataFrame, target: TopicTarget, streaming: Streaming) -> StreamingQuery:
    """Start a query that sends rows to a topic."""
    rows = with_keys(rows, target)
    writer = rows.writeStream.format(FORMAT).options(**target.connector_options())
    return triggered(writer.outputMode("append"), streaming).start()


def with_keys(rows: DataFrame, target: TopicTarget) -> DataFrame:
    """Rows with keys of the type in which they are to be sent.

    The connector reads every key as bytes. A key that is sent as bytes is another one than the same
    key as text: clients see it in base64, and it goes to another partition. So keys become texts,
    unless the target wants bytes or a column says it for each row. A key that is not UTF-8 fails
    the job. Key-value pairs whose key is the message's key keep it in the pair, as bytes.
    """
    if has_separate_keys(rows) or option_has_separate_keys(target.value_schema):
        return rows
    if target.has_binary_keys:
        return rows.drop(BINARY_KEY)
    if BINARY_KEY in rows.columns or dict(rows.dtypes).get(KEY) != "binary":
        return rows
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

    text = functions.expr(f"validate_utf8(cast({quoted(KEY)} as string))")
    return rows.withColumn(KEY, text)


def has_separate_keys(rows: DataFrame) -> bool:
    """Whether rows are KEY_VALUE pairs of messages that have the pair's key as their key."""
    comment = next((each.metadata.get("comment") for each in rows.schema if each.name == PAIR), "")
    return says_separate_keys(comment or "")


def triggered(writer: DataStreamWriter, streaming: Streaming) -> DataStreamWriter:
    """The writer with its checkpoint and trigger set."""
    writer = writer.option("checkpointLocation", spark_place(streaming.checkpoint))
    if not streaming.is_continuous:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{round(streaming.interval_seconds * 1000)} milliseconds")


def with_columns(source: TopicRange, *names: str) -> TopicRange:
    """The range with further metadata columns, after the connector's default ones."""
    columns = tuple(source.columns) or METADATA_COLUMNS
    if columns == ("all",):
        return source
    return replace(source, columns=tuple(dict.fromkeys((*columns, *names))))


def select(rows: DataFrame, *, where: str | None, select: str | None) -> DataFrame:
    """The rows for which an SQL condition holds, with the columns of a list of SQL expressions."""
    if where is not None:
        rows = rows.where(where)
    return rows if select is None else rows.selectExpr(*split_expressions(select))


def split_expressions(text: str) -> list[str]:
    """The SQL expressions of a text, separated by commas outside of parentheses and quotes.

    Raises:
        ConfigurationError: An expression is empty, or a parenthesis or quote is not closed.
    """
    parts = [""]
    depth = 0
    quote = ""
    for each in text:
        if quote:
            quote = "" if each == quote else quote
        elif each in "'\"`":
            quote = each
        elif each in "([":
            depth += 1
        elif each in ")]":
            depth -= 1
        if each == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += each
    if depth or quote or not all(part.strip() for part in parts):
        raise ConfigurationError(
            f"{text!r} is not a list of SQL expressions: one is empty, or a parenthesis or quote is"
            " not closed"
        )
    return [part.strip() for part in parts]
