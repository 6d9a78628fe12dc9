"""KEY_VALUE topics through a real session: what was read is written back unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.schema import KeyValue, KeyValueEncodingType
from pulsar_py.testing.broker_thread import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEPARATED = KeyValueEncodingType.SEPARATED
KEY = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]}
VALUE = {
    "type": "record",
    "name": "V",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"], "default": None},
    ],
}
ROWS = [KeyValue({"id": 300}, {"a": 5, "b": "c"}), KeyValue({"id": 6}, None)]

both_encodings = pytest.mark.parametrize("encoding", list(KeyValueEncodingType))


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config={"brokerDeleteInactiveTopicsEnabled": False}) as broker:
        yield broker


def pairs_of(encoding: KeyValueEncodingType, *, more: Any = ()) -> Any:
    value = VALUE | {"fields": [*VALUE["fields"], *more]}
    return schemas.KeyValueSchema(
        schemas.AvroSchema(schema_definition=KEY),
        schemas.JsonSchema(schema_definition=value),
        encoding,
    )


def publish(broker: BrokerThread, topic: str, schema: Any, *values: object) -> None:
    async def send() -> None:
        async with (
            Client(broker.service_url) as client,
            await client.create_producer(topic, schema=schema) as producer,
        ):
            for value in values:
                await producer.send(value)

    asyncio.run(send())


def received(broker: BrokerThread, topic: str, schema: Any, count: int) -> list[Any]:
    """What a consumer with that schema gets: payload key, value, key."""

    async def read() -> list[Any]:
        found = []
        async with (
            Client(broker.service_url) as client,
            await client.create_reader(topic, EARLIEST_MESSAGE_ID, schema=schema) as reader,
        ):
            for _ in range(count):
                message = await reader.read_next()
                found.append((message.value(), message.key_bytes()))
        return found

    return asyncio.run(read())


def create_partitioned(url: str, topic: str, count: int) -> None:
    path = f"{url}/admin/v2/persistent/public/default/{topic}/partitions"
    request = Request(path, str(count).encode(), method="PUT")
    request.add_header("Content-Type", "application/json")
    urlopen(request).close()


def frame(spark: SparkSession, broker: BrokerThread, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("pulsar").option("service.url", broker.service_url)
    return reader.options(**options).option("topic", topic).load()


def write(broker: BrokerThread, rows: DataFrame, topic: str, **options: str) -> None:
    writer = rows.write.format("pulsar").mode("append").options(**options)
    writer.option("service.url", broker.service_url).option("topic", topic).save()


@both_encodings
@pytest.mark.parametrize("has_schema", [True, False])
def test_what_was_read_is_written_back(
    spark: SparkSession, broker: BrokerThread, encoding: KeyValueEncodingType, *, has_schema: bool
) -> None:
    source, target = (f"{each}-{encoding.value}-{has_schema}" for each in ("source", "target"))
    schema = pairs_of(encoding)
    publish(broker, source, schema, *ROWS)
    if has_schema:
        publish(broker, target, schema)
    write(broker, frame(spark, broker, source).coalesce(1), target)
    if has_schema:  # otherwise the definition is Spark's, whose fields may be null
        expected = received(broker, source, schema, len(ROWS))
        assert received(broker, target, schema, len(ROWS)) == expected
    again = frame(spark, broker, target)
    assert again.dtypes == frame(spark, broker, source).dtypes
    assert again.select("key", "value").collect() == [
        ((300,), (5, "c")),
        ((6,), None),
    ]


@both_encodings
def test_columns_of_the_key_and_the_value_make_pairs(
    spark: SparkSession, broker: BrokerThread, encoding: KeyValueEncodingType
) -> None:
    topic = f"dotted-{encoding.value}"
    schema = pairs_of(encoding)
    publish(broker, topic, schema)
    rows = spark.sql("SELECT 4L AS `key.id`, 7 AS `value.a`, 'x' AS `value.b`")
    write(broker, rows, topic)
    ((pair, _),) = received(broker, topic, schema, 1)
    assert pair == KeyValue({"id": 4}, {"a": 7, "b": "x"})


@both_encodings
def test_pairs_of_primitives_make_a_new_topic(
    spark: SparkSession, broker: BrokerThread, encoding: KeyValueEncodingType
) -> None:
    topic = f"primitives-{encoding.value}"
    rows = spark.sql("SELECT 'k' AS key, 5L AS value UNION ALL SELECT 'gone', NULL").coalesce(1)
    write(broker, rows, topic, keyValueEncoding=encoding.value.lower())
    schema = schemas.KeyValueSchema(schemas.StringSchema(), schemas.Int64Schema(), encoding)
    pairs = received(broker, topic, schema, 2)
    assert [pair for pair, _ in pairs] == [KeyValue("k", 5), KeyValue("gone", None)]
    assert [key for _, key in pairs] == ([b"k", b"gone"] if encoding is SEPARATED else [None, None])


def test_keys_decide_the_partition(spark: SparkSession, broker: BrokerThread) -> None:
    create_partitioned(broker.web_service_url, "by-key", 3)
    rows = spark.range(40).selectExpr("concat('k', id % 10) AS key", "id AS value")
    write(broker, rows, "by-key", keyValueEncoding="separated")
    read = frame(spark, broker, "by-key", columns="__topic")
    assert read.select("key").distinct().count() == 10
    assert read.select("__topic").distinct().count() > 1
    assert read.select("key", "__topic").distinct().count() == 10


@pytest.mark.parametrize(
    ("sql", "options", "text"),
    [
        ("SELECT 1L AS id", {}, "KEY_VALUE needs the column key, or columns key.<field>"),
        ("SELECT 'k' AS key, struct(1) AS value", {}, "column key is string, and the topic has a"),
        (
            "SELECT struct(1L AS id) AS key, struct(1 AS a) AS value, 2 AS more",
            {},
            "column more is neither of the key nor of the value",
        ),
        (
            "SELECT struct(1L AS id) AS key, struct(1 AS a) AS value",
            {"keyValueEncoding": "inline"},
            "keyValueEncoding: 'inline': the topic's schema has separated keys",
        ),
        (
            "SELECT struct('x' AS id) AS key, struct(1 AS a) AS value",
            {},
            "column id is string, and the topic's schema has int64",
        ),
    ],
)
def test_rows_that_are_not_the_topic_s_pairs_are_refused(
    spark: SparkSession, broker: BrokerThread, sql: str, options: dict[str, str], text: str
) -> None:
    publish(broker, "refusing", pairs_of(SEPARATED))
    with pytest.raises(Exception, match=text):
        write(broker, spark.sql(sql), "refusing", **options)


def test_pairs_are_not_written_into_other_topics(spark: SparkSession, broker: BrokerThread) -> None:
    publish(broker, "numbers", schemas.Int64Schema())
    rows = spark.sql("SELECT 'k' AS key, 5L AS value")
    with pytest.raises(Exception, match="the topic's schema is of type INT64, not KEY_VALUE"):
        write(broker, rows, "numbers", keyValueEncoding="inline")


def test_the_topic_s_newer_definition_is_written_by(
    spark: SparkSession, broker: BrokerThread
) -> None:
    more = {"name": "more", "type": "int", "default": 3}
    publish(broker, "newer", pairs_of(SEPARATED), *ROWS)
    publish(broker, "newer", pairs_of(SEPARATED, more=[more]))
    write(broker, frame(spark, broker, "newer").coalesce(1), "newer")
    pairs = received(broker, "newer", pairs_of(SEPARATED, more=[more]), 4)
    assert [pair.value for pair, _ in pairs[2:]] == [{"a": 5, "b": "c", "more": 3}, None]
