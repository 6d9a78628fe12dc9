"""Schemas of the official client: primitives, JSON, Avro; versions and refusals."""

from __future__ import annotations

import pulsar
import pytest
from pulsar.schema import (
    AvroSchema,
    BytesSchema,
    Integer,
    JsonSchema,
    Record,
    String,
    StringSchema,
)

from tests.interop.test_produce_consume import TIMEOUT


class Example(Record):
    name = String()
    number = Integer()


@pytest.mark.parametrize("schema", [JsonSchema(Example), AvroSchema(Example)], ids=["json", "avro"])
def test_records_arrive_with_their_schema(
    client: pulsar.Client, topic: str, schema: pulsar.schema.Schema
) -> None:
    consumer = client.subscribe(topic, "sub", schema=schema)
    producer = client.create_producer(topic, schema=schema)

    producer.send(Example(name="ä", number=7))

    value = consumer.receive(TIMEOUT).value()
    assert (value.name, value.number) == ("ä", 7)


@pytest.mark.parametrize(
    ("schema", "value"), [(StringSchema(), "text ö"), (BytesSchema(), b"\x00\xff")]
)
def test_primitive_schemas(
    client: pulsar.Client, topic: str, schema: pulsar.schema.Schema, value: object
) -> None:
    consumer = client.subscribe(topic, "sub", schema=schema)
    producer = client.create_producer(topic, schema=schema)

    producer.send(value)

    assert consumer.receive(TIMEOUT).value() == value


def test_producer_of_another_schema_type_is_refused(client: pulsar.Client, topic: str) -> None:
    client.create_producer(topic, schema=JsonSchema(Example))

    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=StringSchema())
