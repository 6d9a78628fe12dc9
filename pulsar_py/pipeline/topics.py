"""Topics as data frames: the connector's read and write, batch and streaming (edge).

Needs a session in which `format("pulsar")` is known: one of `sessions.open_session`, or any where
Spark discovers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.sessions import use_session
from pulsar_py.pipeline.settings import TopicRange, TopicTarget, quoted, topic_option
from pulsar_py.pipeline.tables import spark_place
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
"""Tells a message without a value from one whose fields are all null."""
BINARY_KEY: Final = "__hasBinaryKey"
"""Tells keys that are bytes from those that are texts."""
COPIED: Final = (TOMBSTONE, "__orderingKey", BINARY_KEY)
"""What a producer may say of a message, beside the columns that come anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """How a stream runs."""

    checkpoint: str
    is_continuous: bool = False
    """Go on for ever; otherwise up to what is there now."""
    interval_seconds: float = 60.0
    """Between the starts of two micro-batches of a continuous one."""


def read_batch(session: SparkSession, source: TopicRange) -> DataFrame:
    """The rows of a range of topics.

    Raises:
        ConfigurationError: The session can't be used.
    """
    use_session(session)
    options = source.connector_options(is_streaming=False)
    return session.read.format(FORMAT).options(**options).load()


def read_stream(session: SparkSession, source: TopicRange) -> DataFrame:
    """The rows of topics as they come.

    Raises:
        ConfigurationError: The range has an end, or the session can't be used.
    """
    use_session(session)
    if source.ending_millis is not None or source.ending_offsets is not None:
        raise ConfigurationError("a stream has no end; leave the checkpoint out for a batch")
    options = source.connector_options(is_streaming=True)
    return session.readStream.format(FORMAT).options(**options).load()


def write_batch(rows: DataFrame, target: TopicTarget) -> None:
    """Send rows to a topic; returns when all are stored."""
    rows = with_keys(rows, target)
    rows.write.format(FORMAT).mode("append").options(**target.connector_options()).save()


def like(source: TopicRange, target: TopicTarget) -> TopicTarget:
    """The target with the source's schema, which it gets if it has none.

    The schema is that of the first topic; a pattern or raw values have none here.
    """
    kind, topics = topic_option(source.topic)
    if source.is_raw or kind == "topicsPattern":
        return target
    topic = topics.split(",")[0].strip()
    found = topic_schema_option(source.cluster.connector_options() | {"topic": topic})
    return target if found is None else replace(target, value_schema=found)


def start_stream(rows: DataFrame, target: TopicTarget, streaming: Streaming) -> StreamingQuery:
    """Send rows to a topic as they come."""
    rows = with_keys(rows, target)
    writer = rows.writeStream.format(FORMAT).options(**target.connector_options())
    return triggered(writer.outputMode("append"), streaming).start()


def with_keys(rows: DataFrame, target: TopicTarget) -> DataFrame:
    """Rows whose keys are texts, unless they shall be bytes, or each row says what its key is.

    What is read has bytes for keys, and a message with a key of bytes is another one: clients see
    base64, and its partition is another. A key that is no text fails the job. Pairs whose keys are
    the messages' bring them along, as the bytes that they are.
    """
    if has_separate_keys(rows) or option_has_separate_keys(target.value_schema):
        return rows
    if target.has_binary_keys:
        return rows.drop(BINARY_KEY)
    if BINARY_KEY in rows.columns or dict(rows.dtypes).get(KEY) != "binary":
        return rows
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

    text = functions.expr(f"validate_utf8(cast({quoted(KEY)} as string))")
    return rows.withColumn(KEY, text)


def has_separate_keys(rows: DataFrame) -> bool:
    """Whether rows are KEY_VALUE pairs that were read from messages with their keys."""
    comment = next((each.metadata.get("comment") for each in rows.schema if each.name == PAIR), "")
    return says_separate_keys(comment or "")


def triggered(writer: DataStreamWriter, streaming: Streaming) -> DataStreamWriter:
    """With its checkpoint, and when micro-batches start."""
    writer = writer.option("checkpointLocation", spark_place(streaming.checkpoint))
    if not streaming.is_continuous:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{round(streaming.interval_seconds * 1000)} milliseconds")


def with_columns(source: TopicRange, *names: str) -> TopicRange:
    """The same range with further metadata columns, after the usual six."""
    columns = tuple(source.columns) or METADATA_COLUMNS
    if columns == ("all",):
        return source
    return replace(source, columns=tuple(dict.fromkeys((*columns, *names))))


def select(rows: DataFrame, *, where: str | None, select: str | None) -> DataFrame:
    """Rows that a condition holds for, and the columns that a list of SQL expressions makes."""
    if where is not None:
        rows = rows.where(where)
    return rows if select is None else rows.selectExpr(*split_expressions(select))


def split_expressions(text: str) -> list[str]:
    """SQL expressions separated by commas outside parentheses and quotes.

    Raises:
        ConfigurationError: There is none, or a parenthesis or quote is not closed.
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
        raise ConfigurationError(f"{text!r} is no list of SQL expressions")
    return [part.strip() for part in parts]
