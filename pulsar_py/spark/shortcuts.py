"""The connector as functions that take its options as keywords (edge).

    from pulsar_py.spark import read_topic, write_topic
    orders = read_topic(spark, "pulsar://localhost:6650", "orders", starting_offsets="earliest")
    write_topic(orders.select("value"), "pulsar://localhost:6650", "copies")

Options are written as Python writes names: `max_bytes_per_trigger` is `maxBytesPerTrigger`;
settings of clients come in a mapping under the names of Pulsar's Java client. Where Spark can't
discover the connector by itself, because the package came with `--py-files`, `register` makes it
known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulsar_py.spark.shared.worker_python import naming_the_interpreter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["read_topic", "register", "write_stream", "write_topic"]

FORMAT = "pulsar"

Option = str | int | bool
"""A value of an option; Spark gets its text."""


def register(spark: SparkSession) -> None:
    """Make `format("pulsar")` known to a session that can't discover it."""
    from pulsar_py.spark.source import PulsarDataSource  # noqa: PLC0415 - needs pyspark

    spark.dataSource.register(PulsarDataSource)


def read_topic(
    spark: SparkSession,
    service_url: str,
    topic: str,
    *,
    is_streaming: bool = False,
    schema: str | None = None,
    client: Mapping[str, Option] | None = None,
    **options: Option,
) -> DataFrame:
    """Read a topic, or several separated by commas, as a DataFrame.

    Args:
        spark: The session.
        service_url: The broker's URL, `pulsar://host:6650`.
        topic: The topic's name, or several names separated by commas.
        is_streaming: Whether to read it as a stream.
        schema: The columns to read, as DDL; all by default.
        client: Settings of clients, as `pulsar.client.*` has them.
        options: All other options, under Python's names.

    Raises:
        ConfigurationError: Spark does not find the connector; the text says what to do.
    """
    reader: Any = spark.readStream if is_streaming else spark.read  # Any: two classes, one shape
    if schema is not None:
        reader = reader.schema(schema)
    named = spark_options(service_url, options, client) | {"topics": topic}
    with naming_the_interpreter():
        frame: DataFrame = reader.format(FORMAT).options(**named).load()
    return frame


def write_topic(
    frame: DataFrame,
    service_url: str,
    topic: str,
    *,
    client: Mapping[str, Option] | None = None,
    **options: Option,
) -> None:
    """Append the rows of a batch to a topic; returns when the broker has confirmed them.

    Arguments are those of `read_topic`; Spark raises the errors of the write.

    Raises:
        ConfigurationError: Spark does not find the connector; the text says what to do.
    """
    named = spark_options(service_url, options, client) | {"topic": topic}
    with naming_the_interpreter():
        frame.write.format(FORMAT).mode("append").options(**named).save()


def write_stream(
    frame: DataFrame,
    service_url: str,
    topic: str,
    *,
    client: Mapping[str, Option] | None = None,
    **options: Option,
) -> DataStreamWriter:
    """A writer of a stream's rows to a topic; give it a checkpoint and a trigger, and start it."""
    named = spark_options(service_url, options, client) | {"topic": topic}
    return frame.writeStream.format(FORMAT).options(**named)


def spark_options(
    service_url: str, options: Mapping[str, Option], client: Mapping[str, Option] | None = None
) -> dict[str, str]:
    """Options under the names of `format("pulsar")`, in which Spark ignores case."""
    named = {"service.url": service_url}
    for name, value in options.items():
        key = "admin.url" if name == "admin_url" else name.replace("_", "")
        named[key] = _text(value)
    for name, value in (client or {}).items():
        named[f"pulsar.client.{name}"] = _text(value)
    return named


def _text(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
