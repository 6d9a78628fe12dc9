"""Schemas of the official client: bytes, text, JSON, Avro, Protobuf; versions and refusals.

The client has no schema classes for plain numbers; it has their types as fields of records, all of
which are here: in JSON and in Avro, with arrays, maps, enumerations and records within records.
"""

from __future__ import annotations

from enum import Enum

import pulsar
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    BytesSchema,
    CustomEnum,
    Double,
    Float,
    Integer,
    JsonSchema,
    Long,
    Map,
    ProtobufNativeSchema,
    Record,
    String,
    StringSchema,
)

from tests.interop.test_produce_consume import TIMEOUT


class Example(Record):
    name = String()
    number = Integer()


class LaterExample(Record):
    name = String()
    number = Integer()
    added = String(default="none", required_default=True)


class Colour(Enum):
    RED = 1
    GREEN = 2


class Everything(Record):
    flag = Boolean()
    small = Integer()
    large = Long()
    coarse = Float()
    fine = Double()
    text = String()
    numbers = Array(Integer())
    counts = Map(Long())
    colour = CustomEnum(Colour)
    inner = Example()
    inners = Array(Example())


class WithBytes(Record):
    data = Bytes()


@pytest.mark.parametrize("schema", [JsonSchema(Example), AvroSchema(Example)], ids=["json", "avro"])
def test_records_arrive_with_their_schema(
    client: pulsar.Client, topic: str, schema: pulsar.schema.Schema
) -> None:
    consumer = client.subscribe(topic, "sub", schema=schema)
    producer = client.create_producer(topic, schema=schema)

    producer.send(Example(name="ä", number=7))

    value = consumer.receive(TIMEOUT).value()
    assert (value.name, value.number) == ("ä", 7)


@pytest.mark.parametrize("kind", [JsonSchema, AvroSchema])
def test_fields_of_all_types(
    client: pulsar.Client, topic: str, kind: type[pulsar.schema.Schema]
) -> None:
    consumer = client.subscribe(topic, "sub", schema=kind(Everything))
    producer = client.create_producer(topic, schema=kind(Everything))

    producer.send(
        Everything(
            flag=True,
            small=-7,
            large=2**40,
            coarse=0.5,
            fine=1e-300,
            text="ö",
            numbers=[1, 2, 3],
            counts={"a": 2**33},
            colour=Colour.GREEN,
            inner=Example(name="in", number=1),
            inners=[Example(name="x", number=2)],
        )
    )

    value = consumer.receive(TIMEOUT).value()
    assert (value.flag, value.small, value.large) == (True, -7, 2**40)
    assert (value.coarse, value.fine, value.text) == (0.5, 1e-300, "ö")
    assert (value.numbers, value.counts) == ([1, 2, 3], {"a": 2**33})
    assert value.colour in (Colour.GREEN, "GREEN")
    assert (value.inner.name, value.inner.number) == ("in", 1)
    assert len(value.inners) == 1


def test_bytes_in_a_record(client: pulsar.Client, topic: str) -> None:
    """In Avro only: JSON has no bytes, and the client does not turn them into text."""
    consumer = client.subscribe(topic, "sub", schema=AvroSchema(WithBytes))
    producer = client.create_producer(topic, schema=AvroSchema(WithBytes))

    producer.send(WithBytes(data=b"\x00\xff"))

    assert consumer.receive(TIMEOUT).value().data == b"\x00\xff"


def test_protobuf_messages(client: pulsar.Client, topic: str) -> None:
    schema = ProtobufNativeSchema(StringValue)
    consumer = client.subscribe(topic, "sub", schema=schema)
    producer = client.create_producer(topic, schema=schema)

    producer.send(StringValue(value="text"))

    assert consumer.receive(TIMEOUT).value() == StringValue(value="text")


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


def test_a_reader_decodes_with_the_schema(client: pulsar.Client, topic: str) -> None:
    client.create_producer(topic, schema=JsonSchema(Example)).send(Example(name="r", number=3))
    reader = client.create_reader(topic, pulsar.MessageId.earliest, schema=JsonSchema(Example))

    assert reader.read_next(TIMEOUT).value().number == 3


def test_two_versions_are_read_with_the_schema_they_were_written_with(
    client: pulsar.Client, topic: str
) -> None:
    """The consumer asks the broker (GET_SCHEMA) for each version it meets."""
    for schema, record in (
        (AvroSchema(Example), Example(name="old", number=1)),
        (AvroSchema(LaterExample), LaterExample(name="new", number=2, added="more")),
    ):
        producer = client.create_producer(topic, schema=schema)
        producer.send(record)
        producer.close()

    reading = client.subscribe(
        topic,
        "typed",
        schema=AvroSchema(LaterExample),
        initial_position=pulsar.InitialPosition.Earliest,
    )

    values = [reading.receive(TIMEOUT).value() for _ in range(2)]
    assert [(value.name, value.number) for value in values] == [("old", 1), ("new", 2)]
    assert values[1].added == "more"


def test_a_partitioned_topic_has_one_schema(client: pulsar.Client, partitioned_topic) -> None:
    topic = partitioned_topic(3)
    consumer = client.subscribe(topic, "sub", schema=JsonSchema(Example))
    producer = client.create_producer(topic, schema=JsonSchema(Example))

    for number in range(6):
        producer.send(Example(name="p", number=number))

    assert sorted(consumer.receive(TIMEOUT).value().number for _ in range(6)) == [*range(6)]
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=StringSchema())


def test_producer_of_another_schema_type_is_refused(client: pulsar.Client, topic: str) -> None:
    client.create_producer(topic, schema=JsonSchema(Example))

    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=StringSchema())


def test_consumer_of_another_schema_type_is_refused(client: pulsar.Client, topic: str) -> None:
    client.create_producer(topic, schema=AvroSchema(Example))

    with pytest.raises(pulsar.IncompatibleSchema):
        client.subscribe(topic, "sub", schema=StringSchema())
