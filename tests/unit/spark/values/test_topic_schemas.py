"""Schemas of topics: a read takes one, versions are asked for once."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.planning.catalog import TopicCatalog
from pulsar_py.spark.shared.options import ClientOptions
from pulsar_py.spark.values.topic_schemas import (
    RawValues,
    TopicVersions,
    check_projection,
    is_same,
    newest_schema,
    value_columns,
)
from pulsar_py.spark.values.value_columns import ValueColumns
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.broker_parts import read_options

INT = {"name": "a", "type": "int"}
TEXT = {"name": "b", "type": ["null", "string"], "default": None}


def avro(*fields: Any) -> schemas.AvroSchema[Any]:
    return schemas.AvroSchema(
        schema_definition={"type": "record", "name": "R", "fields": list(fields)}
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


async def publish(client: Client, topic: str, schema: Any, value: object) -> Any:
    async with await client.create_producer(topic, schema=schema) as producer:
        return await producer.send(value)


def columns_of(broker: BrokerThread, *topics: str, **options: str) -> ValueColumns:
    """What a read of topics has, which were made by `make`."""

    async def ask() -> ValueColumns:
        async with Client(broker.service_url) as client:
            given = read_options(broker.service_url, topics=",".join(topics), **options)
            partitions = [
                each for name in topics for each in await client.get_topic_partitions(name)
            ]
            return await value_columns(
                client, given, partitions, TopicCatalog(client, given).exists
            )

    return asyncio.run(ask())


def made(broker: BrokerThread, topic: str, *written: tuple[Any, object]) -> str:
    async def make() -> None:
        async with Client(broker.service_url) as client:
            for schema, value in written:
                await publish(client, topic, schema, value)

    asyncio.run(make())
    return topic


def names_of(columns: ValueColumns) -> list[str]:
    return [field.name for field in columns.fields]


def test_columns_are_those_of_the_newest_version(broker: BrokerThread) -> None:
    topic = made(broker, "newest", (avro(INT), {"a": 1}), (avro(INT, TEXT), {"a": 1, "b": "x"}))
    assert names_of(columns_of(broker, topic)) == ["a", "b"]


def test_a_topic_without_a_schema_has_bytes(broker: BrokerThread) -> None:
    topic = made(broker, "bytes", (schemas.BytesSchema(), b"x"))
    assert columns_of(broker, topic).fields == (pa.field("value", pa.binary()),)


def test_raw_values_need_no_schema(broker: BrokerThread) -> None:
    topic = made(broker, "raw", (avro(INT), {"a": 1}))
    assert isinstance(columns_of(broker, topic, valueMode="raw"), RawValues)


def test_topics_of_one_schema_are_read_together(broker: BrokerThread) -> None:
    topics = [made(broker, f"same-{index}", (avro(INT), {"a": 1})) for index in range(2)]
    assert names_of(columns_of(broker, *topics)) == ["a"]


def test_topics_of_different_schemas_are_both_named(broker: BrokerThread) -> None:
    made(broker, "differs-1", (avro(INT), {"a": 1}))
    made(broker, "differs-2", (avro(INT, TEXT), {"a": 1, "b": None}))
    with pytest.raises(ConfigurationError, match=r"differs-1 has .* AVRO, .*differs-2 another"):
        columns_of(broker, "differs-1", "differs-2")


def test_a_topic_that_does_not_exist_has_no_say_in_the_schema(broker: BrokerThread) -> None:
    made(broker, "there", (avro(INT), {"a": 1}))
    assert names_of(columns_of(broker, "not-there", "there")) == ["a"]
    assert names_of(columns_of(broker, "not-there")) == ["value"]


def test_a_field_that_is_called_as_a_metadata_column_is_refused(broker: BrokerThread) -> None:
    topic = made(broker, "taken", (avro({"name": "__Key", "type": "int"}), {"__Key": 1}))
    with pytest.raises(
        ConfigurationError, match=r"taken: .*'__Key', which is the name of a metadata column"
    ):
        columns_of(broker, topic)


def test_versions_are_asked_for_once(
    broker: BrokerThread, caplog: pytest.LogCaptureFixture
) -> None:
    topic = made(broker, "asked", (avro(INT), {"a": 1}), (avro(INT, TEXT), {"a": 1, "b": "x"}))
    name = f"persistent://public/default/{topic}-partition-3"
    versions = pickle.loads(
        pickle.dumps(TopicVersions(ClientOptions(broker.service_url, None), {}))
    )
    first = versions.writer(name, bytes(8))
    assert first is not None
    assert first.data == avro(INT).schema_info().data
    assert versions.writer(name, bytes(8)) is first
    assert not caplog.records
    for _ in range(2):
        assert versions.writer(name, bytes(7) + b"\x09") is None
    (record,) = caplog.records
    assert f"{topic}: messages of version 0000000000000009 are read" in record.detail  # type: ignore[attr-defined]


async def test_the_newest_schema_of_a_topic_that_is_not_there(broker: BrokerThread) -> None:
    async with Client(broker.service_url) as client:
        assert await newest_schema(client, "nowhere") is None
        await publish(client, "somewhere", schemas.Int32Schema(), 1)
        found = await newest_schema(client, "somewhere")
    assert found is not None
    assert found.type is SchemaType.INT32


def test_definitions_are_compared_by_what_they_say() -> None:
    one = SchemaInfo(SchemaType.AVRO, "x", b'{"type": "string"}', {})
    assert is_same(one, SchemaInfo(SchemaType.AVRO, "y", b'{"type":"string"}', {"p": "q"}))
    assert not is_same(one, SchemaInfo(SchemaType.JSON, "x", one.data, {}))
    assert not is_same(one, SchemaInfo(SchemaType.AVRO, "x", b"{", {}))
    pair = SchemaInfo(SchemaType.KEY_VALUE, "", b"", {"kv.encoding.type": "INLINE"})
    assert not is_same(pair, SchemaInfo(SchemaType.KEY_VALUE, "", b"", {}))


def test_a_schema_may_name_some_columns_in_any_order() -> None:
    schema = pa.schema(
        {"__entryId": pa.int64(), "value": pa.binary(), "__undecodable": pa.binary()}
    )
    assert check_projection(RawValues(), schema) == ("__entryId", "value", "__undecodable")


def test_a_schema_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no column 'valeu', did you mean 'value'\?"):
        check_projection(RawValues(), pa.schema({"valeu": pa.binary()}))
    with pytest.raises(ConfigurationError, match="'value' is binary in the topic, not string"):
        check_projection(RawValues(), pa.schema({"value": pa.string()}))
