"""Values of all kinds of schemas, through a real session: what is published is what rows have."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.testing.broker_thread import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "int"]}},
        {
            "name": "by",
            "type": [
                "null",
                {"type": "record", "name": "By", "fields": [{"name": "name", "type": "string"}]},
            ],
        },
        {"name": "any", "type": ["string", "long"]},
        {"name": "wide", "type": ["int", "long"]},
        {"name": "data", "type": "bytes"},
    ],
}
AN_ORDER = {
    "id": 1,
    "note": None,
    "at": datetime(2026, 5, 4, 3, 2, 1, 7000, tzinfo=UTC),
    "day": date(2026, 5, 4),
    "price": Decimal("12.50"),
    "kind": "OLD",
    "tags": ["a", "b"],
    "counts": {"x": 1, "y": None},
    "by": {"name": "me"},
    "any": 5,
    "wide": 2**40,
    "data": b"\x00\xff",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config={"brokerDeleteInactiveTopicsEnabled": False}) as broker:
        yield broker


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def publish(broker: BrokerThread, topic: str, schema: Any, *values: object) -> None:
    async def send() -> None:
        async with (
            Client(broker.service_url) as client,
            await client.create_producer(topic, schema=schema) as producer,
        ):
            for value in values:
                await producer.send(value)

    run(send())


def frame(spark: SparkSession, broker: BrokerThread, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("pulsar").option("service.url", broker.service_url)
    given = {"columns": ""} | options
    return reader.options(**given).option("topics", topic).load()


def rows(spark: SparkSession, broker: BrokerThread, topic: str, **options: str) -> list[Row]:
    return frame(spark, broker, topic, **options).collect()


@pytest.mark.parametrize("kind", [schemas.AvroSchema, schemas.JsonSchema])
def test_records_become_columns(spark: SparkSession, broker: BrokerThread, kind: Any) -> None:
    topic = f"records-{kind.__name__}"
    publish(broker, topic, kind(schema_definition=ORDER), AN_ORDER, None)
    read = frame(spark, broker, topic)
    assert dict(read.dtypes) == {
        "id": "bigint",
        "note": "string",
        "at": "timestamp",
        "day": "date",
        "price": "decimal(9,2)",
        "kind": "string",
        "tags": "array<string>",
        "counts": "map<string,int>",
        "by": "struct<name:string>",
        "any": "struct<member0:string,member1:bigint>",
        "wide": "bigint",
        "data": "binary",
    }
    order, tombstone = read.selectExpr("*", "unix_millis(at) AS millis").drop("at").collect()
    expected = AN_ORDER | {"any": {"member0": None, "member1": 5}}
    millis = int(expected.pop("at").timestamp() * 1000)
    assert order.asDict(recursive=True) == expected | {"millis": millis}
    assert set(tombstone.asDict().values()) == {None}


def test_primitive_values_have_their_type(spark: SparkSession, broker: BrokerThread) -> None:
    publish(broker, "longs", schemas.Int64Schema(), 7, -(2**60))
    read = frame(spark, broker, "longs")
    assert read.dtypes == [("value", "bigint")]
    assert [row.value for row in read.collect()] == [7, -(2**60)]
    publish(broker, "texts", schemas.StringSchema(), "ä", "")
    assert [row.value for row in rows(spark, broker, "texts")] == ["ä", ""]


@pytest.mark.parametrize("encoding", list(schemas.KeyValueEncodingType))
def test_pairs_are_two_columns(spark: SparkSession, broker: BrokerThread, encoding: Any) -> None:
    topic = f"pairs-{encoding.value}"
    value = {
        "type": "record",
        "name": "V",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}],
    }
    key = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]}
    schema = schemas.KeyValueSchema(
        schemas.AvroSchema(schema_definition=key),
        schemas.JsonSchema(schema_definition=value),
        encoding,
    )
    pair = schemas.KeyValue({"id": 4}, {"a": 5, "b": "c"})
    publish(broker, topic, schema, pair, schemas.KeyValue({"id": 6}, None))
    read = frame(spark, broker, topic)
    assert read.dtypes == [("key", "struct<id:bigint>"), ("value", "struct<a:int,b:string>")]
    flat = read.select("key.*", "value.*").collect()
    assert [row.asDict() for row in flat] == [
        {"id": 4, "a": 5, "b": "c"},
        {"id": 6, "a": None, "b": None},
    ]


def test_older_versions_are_read_as_the_newest(spark: SparkSession, broker: BrokerThread) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    more = {"name": "b", "type": ["null", "string"], "default": None}
    new = {**old, "fields": [*old["fields"], more]}
    publish(broker, "versions", schemas.AvroSchema(schema_definition=old), {"a": 1})
    publish(broker, "versions", schemas.AvroSchema(schema_definition=new), {"a": 2, "b": "x"})
    read = rows(spark, broker, "versions")
    assert [row.asDict() for row in read] == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_what_does_not_fit_follows_the_option(spark: SparkSession, broker: BrokerThread) -> None:
    definition = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    schema = schemas.JsonSchema(schema_definition=definition)
    publish(broker, "broken", schema, {"a": 1})

    async def send_broken() -> None:
        async with (
            Client(broker.service_url) as client,
            await client.create_producer(
                "broken", schema=_Unchecked(schema_definition=definition)
            ) as producer,
        ):
            await producer.send(b'{"a": "x"}')
            await producer.send(b'{"a": 3}')

    run(send_broken())
    with pytest.raises(Exception, match=r"broken: message .*: a: Could not convert 'x'"):
        rows(spark, broker, "broken")
    assert [row.a for row in rows(spark, broker, "broken", undecodable="drop")] == [1, 3]
    kept = rows(spark, broker, "broken", undecodable="column")
    assert [(row.a, row["__undecodable"]) for row in kept] == [
        (1, None),
        (None, b'{"a": "x"}'),
        (3, None),
    ]


class _Unchecked(schemas.JsonSchema):  # type: ignore[type-arg] # of bytes
    """Sends bytes as they are."""

    def encode(self, value: bytes) -> bytes:
        return value


def test_topics_of_different_schemas_are_an_error(
    spark: SparkSession, broker: BrokerThread
) -> None:
    publish(broker, "one-kind", schemas.Int32Schema(), 1)
    publish(broker, "another-kind", schemas.StringSchema(), "1")
    with pytest.raises(Exception, match=r"another-kind has a schema .*STRING.*one-kind.*INT32"):
        rows(spark, broker, "one-kind,another-kind")
    raw = rows(spark, broker, "one-kind,another-kind", valueMode="raw")
    assert sorted(row.value for row in raw) == [b"\0\0\0\1", b"1"]


def test_a_user_s_schema_is_a_projection_by_name(spark: SparkSession, broker: BrokerThread) -> None:
    publish(broker, "projected", schemas.AvroSchema(schema_definition=ORDER), AN_ORDER)
    reader = spark.read.format("pulsar").option("service.url", broker.service_url)
    reader = reader.option("topic", "projected")
    (row,) = reader.schema("kind STRING, __entryId BIGINT, id BIGINT").load().collect()
    assert tuple(row) == ("OLD", 0, 1)
    with pytest.raises(Exception, match=r"no column 'kin', did you mean 'kind'"):
        reader.schema("kin STRING").load().collect()
    with pytest.raises(Exception, match=r"column 'id' is int64 in the topic, not string"):
        reader.schema("id STRING").load().collect()


def write(spark: SparkSession, broker: BrokerThread, rows: DataFrame, topic: str) -> None:
    writer = rows.write.format("pulsar").mode("append")
    writer.option("service.url", broker.service_url).option("topic", topic).save()


COLUMNS = """
    1L AS id, timestamp_micros(1777863721000007) AS at, DATE'2026-05-04' AS day,
    CAST(12.5 AS DECIMAL(9,2)) AS price, array('a', NULL) AS tags, map('x', 1) AS counts,
    named_struct('name', 'me', 'age', CAST(7 AS SMALLINT)) AS by, X'00FF' AS data
"""


def test_what_is_written_is_what_is_read(spark: SparkSession, broker: BrokerThread) -> None:
    written = spark.sql(f"SELECT {COLUMNS} UNION ALL SELECT 2L" + ", NULL" * 7).coalesce(1)
    write(spark, broker, written, "written")
    read = frame(spark, broker, "written")
    expected = [kind.replace("smallint", "int") for _, kind in written.dtypes]
    assert [kind for _, kind in read.dtypes] == expected
    assert read.orderBy("id").collect() == written.orderBy("id").collect()


def test_a_topic_s_own_definition_is_written_by(spark: SparkSession, broker: BrokerThread) -> None:
    definition = {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "more", "type": ["null", "int"], "default": None},
        ],
    }
    for kind in (schemas.AvroSchema, schemas.JsonSchema):
        topic = f"own-{kind.__name__}"
        publish(broker, topic, kind(schema_definition=definition))
        rows_ = spark.sql("SELECT timestamp_micros(1777863721000007) AS at, 'B' AS kind")
        write(spark, broker, rows_, topic)
        read = frame(spark, broker, topic).selectExpr("kind", "unix_micros(at)", "more")
        assert [tuple(row) for row in read.collect()] == [("B", 1777863721000000, None)]


def test_a_struct_in_one_column_is_the_record_and_null_a_tombstone(
    spark: SparkSession, broker: BrokerThread
) -> None:
    written = spark.sql(
        "SELECT named_struct('a', 1) AS value UNION ALL SELECT NULL UNION ALL"
        " SELECT named_struct('a', CAST(NULL AS INT))"
    )
    write(spark, broker, written, "structs")
    read = rows(spark, broker, "structs", columns="__isTombstone")
    found = sorted(map(tuple, read), key=str)
    assert found == [(1, False), (None, False), (None, True)]


def test_native_protobuf_is_read_by_its_descriptor(
    spark: SparkSession, broker: BrokerThread
) -> None:
    topic = "native"
    publish(broker, topic, schemas.ProtobufNativeSchema(Duration), Duration(seconds=5, nanos=7))
    read = frame(spark, broker, topic)
    assert read.dtypes == [("seconds", "bigint"), ("nanos", "int")]
    assert [tuple(row) for row in read.collect()] == [(5, 7)]


def test_a_stream_copies_records_of_all_versions(
    spark: SparkSession, broker: BrokerThread, tmp_path: Path
) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    more = {"name": "b", "type": ["null", "string"], "default": None}
    new = {**old, "fields": [*old["fields"], more]}
    publish(broker, "from", schemas.AvroSchema(schema_definition=old), {"a": 1}, {"a": 2})
    publish(broker, "from", schemas.AvroSchema(schema_definition=new), {"a": 3, "b": "x"})
    reader = spark.readStream.format("pulsar").option("service.url", broker.service_url)
    read = reader.options(topic="from", startingOffsets="earliest").load()
    writer = read.writeStream.format("pulsar").option("service.url", broker.service_url)
    writer = writer.option("topic", "to").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    copied = rows(spark, broker, "to")
    assert [tuple(row) for row in copied] == [(1, None), (2, None), (3, "x")]
