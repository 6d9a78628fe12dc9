"""Values of one client are read by the other: text, bytes, JSON, Avro, Protobuf; and versions.

The official client has `StringSchema`, `BytesSchema`, records in JSON and Avro, and native
Protobuf. What it has no schemas for (numbers, times, key-value) is written by us, and read by it as
bytes, which have to be those of Pulsar's Java client; and the other way round.
"""
# ruff: noqa: DTZ001 - local times have no time zone

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Any

import pulsar
import pulsar.schema
import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue

import pulsar_py
import pulsar_py.schema
from pulsar_py.schema import (
    AutoConsumeSchema,
    AutoProduceBytesSchema,
    Int32,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
)
from tests.interop.client.sides import Official, Ours, Side, receive_all

SCHEMAS = {"ours": pulsar_py.schema, "official": pulsar.schema}


class Colour(Enum):
    RED = 1
    GREEN = 2


def records(schemas: Any) -> Any:
    """The same record classes, declared with either client's classes."""

    class Inner(schemas.Record):
        name = schemas.String()
        number = schemas.Integer()

    class Everything(schemas.Record):
        _avro_namespace = "com.example"
        flag = schemas.Boolean()
        small = schemas.Integer(required=True)
        large = schemas.Long(default=5, required_default=True)
        coarse = schemas.Float()
        fine = schemas.Double()
        text = schemas.String(default="none")
        numbers = schemas.Array(schemas.Integer())
        counts = schemas.Map(schemas.Long())
        colour = schemas.CustomEnum(Colour)
        inner = Inner()
        inners = schemas.Array(Inner())

    Everything.inner_class = Inner
    return Everything


def filled(record_class: Any) -> Any:
    inner = record_class.inner_class
    return record_class(
        flag=True,
        small=-7,
        large=2**40,
        coarse=0.5,
        fine=1e-300,
        text="ö",
        numbers=[1, 2, 3],
        counts={"a": 2**33},
        colour=Colour.GREEN,
        inner=inner(name="in", number=1),
        inners=[inner(name="x", number=2), inner()],
    )


FIELDS = ("flag", "small", "large", "coarse", "fine", "text", "numbers", "counts")


def assert_same(value: Any, expected: Any) -> None:
    for name in FIELDS:
        assert getattr(value, name) == getattr(expected, name), name
    assert value.colour in (expected.colour, getattr(expected.colour, "name", None))
    assert (value.inner.name, value.inner.number) == (expected.inner.name, expected.inner.number)
    assert len(value.inners) == len(expected.inners)


def schema_of(side: Side, kind: str, *arguments: Any) -> Any:
    return getattr(SCHEMAS[side.name], kind)(*arguments)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("StringSchema", "text ö"), ("StringSchema", ""), ("BytesSchema", b"\x00\xff")],
)
async def test_text_and_bytes(
    writer: Side, reader: Side, topic: str, kind: str, value: object
) -> None:
    consumer = await reader.consumer(topic, schema=schema_of(reader, kind))

    await writer.publish(topic, [value], schema=schema_of(writer, kind))

    (message,) = await receive_all(consumer, 1)
    assert message.value() == value


@pytest.mark.parametrize("kind", ["AvroSchema", "JsonSchema"])
@pytest.mark.parametrize("is_full", [True, False])
async def test_records(writer: Side, reader: Side, topic: str, kind: str, *, is_full: bool) -> None:
    """Both register the same definition, so a topic that one made takes the other's."""
    theirs, mine = records(SCHEMAS[writer.name]), records(SCHEMAS[reader.name])
    consumer = await reader.consumer(topic, schema=schema_of(reader, kind, mine))

    value = filled(theirs) if is_full else theirs(small=1, inners=[])
    await writer.publish(topic, [value], schema=schema_of(writer, kind, theirs))

    (message,) = await receive_all(consumer, 1)
    assert_same(message.value(), value)
    assert isinstance(message.value(), mine)
    assert versions_of(reader, message) == 0


def versions_of(side: Side, message: Any) -> int:
    if side.name == "ours":
        return int(message.int_schema_version())
    return int(message._message.int_schema_version())


async def test_batches_of_records(writer: Side, reader: Side, topic: str) -> None:
    theirs, mine = records(SCHEMAS[writer.name]), records(SCHEMAS[reader.name])
    consumer = await reader.consumer(topic, schema=schema_of(reader, "AvroSchema", mine))

    values = [theirs(small=number) for number in range(50)]
    schema = schema_of(writer, "AvroSchema", theirs)
    await writer.publish(topic, values, schema=schema, batching_enabled=True)

    assert [m.value().small for m in await receive_all(consumer, 50)] == [*range(50)]


async def test_readers_decode(writer: Side, reader: Side, topic: str) -> None:
    theirs, mine = records(SCHEMAS[writer.name]), records(SCHEMAS[reader.name])
    await writer.publish(topic, [theirs(small=3)], schema=schema_of(writer, "JsonSchema", theirs))

    start = reader.module.MessageId.earliest
    reading = await reader.reader(topic, start, schema=schema_of(reader, "JsonSchema", mine))

    assert (await reading.read_next(10_000)).value().small == 3


async def test_partitions_share_a_schema(
    writer: Side, reader: Side, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(3)
    older, _ = versions(SCHEMAS[writer.name])
    _, mine = versions(SCHEMAS[reader.name])
    schema = schema_of(writer, "AvroSchema", older)
    await writer.publish(topic, [older(name=str(number)) for number in range(6)], schema=schema)

    consumer = await reader.consumer(topic, schema=schema_of(reader, "AvroSchema", mine))

    names = [message.value().name for message in await receive_all(consumer, 6)]
    assert sorted(names) == [str(number) for number in range(6)]


async def test_protobuf_messages(writer: Side, reader: Side, topic: str) -> None:
    consumer = await reader.consumer(
        topic, schema=schema_of(reader, "ProtobufNativeSchema", StringValue)
    )

    await writer.publish(
        topic,
        [StringValue(value="text")],
        schema=schema_of(writer, "ProtobufNativeSchema", StringValue),
    )

    (message,) = await receive_all(consumer, 1)
    assert message.value() == StringValue(value="text")


def versions(schemas: Any) -> tuple[Any, Any]:
    class Example(schemas.Record):
        name = schemas.String()

    older = Example

    class Example(schemas.Record):  # type: ignore[no-redef]
        name = schemas.String()
        added = schemas.String(default="none", required_default=True)

    return older, Example


async def test_versions_are_read_as_they_were_written(
    writer: Side, reader: Side, topic: str
) -> None:
    older, newer = versions(SCHEMAS[writer.name])
    for value in (older(name="old"), newer(name="new", added="more")):
        schema = schema_of(writer, "AvroSchema", type(value))
        await writer.publish(topic, [value], schema=schema)

    _, mine = versions(SCHEMAS[reader.name])
    consumer = await reader.consumer(topic, schema=schema_of(reader, "AvroSchema", mine))

    values = [each.value() for each in await receive_all(consumer, 2)]
    assert [each.name for each in values] == ["old", "new"]
    assert values[1].added == "more"


@dataclass
class Inner:
    name: str | None
    number: Int32 | None


@dataclass
class Small:
    number: int
    text: str | None
    inner: Inner | None


DEFINITION = json.dumps(
    {
        "type": "record",
        "name": "Small",
        "fields": [
            {"name": "number", "type": "long"},
            {"name": "text", "type": ["null", "string"]},
            {
                "name": "inner",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "Inner",
                        "fields": [
                            {"name": "name", "type": ["null", "string"]},
                            {"name": "number", "type": ["null", "int"]},
                        ],
                    },
                ],
            },
        ],
    }
)
SMALL = {"number": 7, "text": None, "inner": {"name": "in", "number": 1}}


async def test_dataclasses_are_read_as_dicts(ours: Ours, official: Official, topic: str) -> None:
    """The official client has dicts by a definition, for Avro."""
    schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(DEFINITION))
    consumer = await official.consumer(topic, schema=schema)

    value = Small(7, None, Inner("in", 1))
    await ours.publish(topic, [value], schema=pulsar_py.schema.AvroSchema(Small))

    (message,) = await receive_all(consumer, 1)
    assert message.value() == SMALL


async def test_dicts_are_read_as_dataclasses(ours: Ours, official: Official, topic: str) -> None:
    consumer = await ours.consumer(topic, schema=pulsar_py.schema.AvroSchema(Small))

    schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(DEFINITION))
    await official.publish(topic, [{"content": SMALL}], schema=schema)

    (message,) = await receive_all(consumer, 1)
    assert message.value() == Small(7, None, Inner("in", 1))


JAVA_BYTES = [
    ("BooleanSchema", True, "01"),
    ("Int8Schema", -2, "fe"),
    ("Int16Schema", 300, "012c"),
    ("Int32Schema", 70000, "00011170"),
    ("Int64Schema", 1 << 40, "0000010000000000"),
    ("FloatSchema", 1.5, "3fc00000"),
    ("DoubleSchema", -0.1, "bfb999999999999a"),
    ("DateSchema", datetime(2021, 1, 1, 0, 0, 0, 123000, UTC), "00000176bb3e707b"),
    ("TimeSchema", time(1, 2, 3, 4000), "000000000038cefc"),
    ("TimestampSchema", datetime(2021, 1, 1, 0, 0, 0, 123000, UTC), "00000176bb3e707b"),
    ("InstantSchema", datetime(2021, 1, 1, tzinfo=UTC), "000000005fee660000000000"),
    ("LocalDateSchema", date(2021, 1, 1), "00000000000048c4"),
    ("LocalTimeSchema", time(1, 2, 3, 4), "00000362d417bda0"),
    ("LocalDateTimeSchema", datetime(2021, 1, 1, 1, 2, 3, 4), "00000000000048c400000362d417bda0"),
]


@pytest.mark.parametrize("vector", JAVA_BYTES, ids=[each[0] for each in JAVA_BYTES])
async def test_numbers_and_times_are_java_s_bytes(
    ours: Ours, official: Official, topic: str, vector: tuple[str, Any, str]
) -> None:
    kind, value, data = vector
    schema = getattr(pulsar_py.schema, kind)()
    mine = await ours.consumer(topic, "mine", schema=schema)
    theirs = await official.consumer(topic, "theirs")

    await ours.publish(topic, [value], schema=schema)
    await official.publish(topic, [bytes.fromhex(data)])

    assert [m.data().hex() for m in await receive_all(theirs, 2)] == [data, data]
    assert [m.value() for m in await receive_all(mine, 2)] == [value, value]


def pairs(encoding: KeyValueEncodingType) -> KeyValueSchema[str, int]:
    return KeyValueSchema(pulsar_py.schema.StringSchema(), pulsar_py.schema.Int32Schema(), encoding)


async def test_inline_pairs_are_java_s_bytes(ours: Ours, official: Official, topic: str) -> None:
    schema = pairs(KeyValueEncodingType.INLINE)
    mine = await ours.consumer(topic, "mine", schema=schema)
    theirs = await official.consumer(topic, "theirs")

    await ours.publish(topic, [KeyValue("k", 7), KeyValue(None, None)], schema=schema)
    await official.publish(topic, [bytes.fromhex("000000016bffffffff")])

    assert [m.data().hex() for m in await receive_all(theirs, 2)] == [
        "000000016b0000000400000007",
        "ffffffffffffffff",
    ]
    assert [m.value() for m in await receive_all(mine, 3)] == [
        KeyValue("k", 7),
        KeyValue(None, None),
        KeyValue("k", None),
    ]


async def test_separated_pairs_have_their_key_as_the_message_s(
    ours: Ours, official: Official, topic: str
) -> None:
    schema = pairs(KeyValueEncodingType.SEPARATED)
    mine = await ours.consumer(topic, "mine", schema=schema)
    theirs = await official.consumer(topic, "theirs")

    await ours.publish(topic, [KeyValue("k", 7), KeyValue("gone", None)], schema=schema)

    messages = await receive_all(theirs, 2)
    assert base64.b64decode(messages[0].partition_key()) == b"k"
    assert messages[0].data() == bytes.fromhex("00000007")
    assert [m.value() for m in await receive_all(mine, 2)] == [
        KeyValue("k", 7),
        KeyValue("gone", None),
    ]


@pytest.mark.parametrize("kind", ["AvroSchema", "JsonSchema"])
async def test_auto_consume_reads_what_the_official_client_writes(
    ours: Ours, official: Official, topic: str, kind: str
) -> None:
    consumer = await ours.consumer(topic, schema=AutoConsumeSchema())

    record_class = records(pulsar.schema)
    await official.publish(
        topic,
        [filled(record_class)],
        schema=schema_of(official, kind, record_class),
    )
    await official.publish(topic, [b"without"])

    first, second = [m.value() for m in await receive_all(consumer, 2)]
    assert {name: first[name] for name in FIELDS} == {
        name: getattr(filled(record_class), name) for name in FIELDS
    }
    assert first["inner"] == {"name": "in", "number": 1}
    assert second == b"without"


async def test_auto_consume_decodes_protobuf_by_its_stored_descriptor(
    ours: Ours, official: Official, topic: str
) -> None:
    consumer = await ours.consumer(topic, schema=AutoConsumeSchema())
    value = Struct()
    value.update({"a": [1, {"b": None}]})

    schema = pulsar.schema.ProtobufNativeSchema(Struct)
    await official.publish(topic, [value], schema=schema)

    (message,) = await receive_all(consumer, 1)
    assert message.value().SerializeToString() == value.SerializeToString()


async def test_auto_produce_sends_bytes_of_the_topic_s_schema(
    ours: Ours, official: Official, topic: str
) -> None:
    theirs = records(pulsar.schema)
    schema = pulsar.schema.AvroSchema(theirs)
    consumer = await official.consumer(topic, schema=schema)
    mine = records(pulsar_py.schema)
    data = pulsar_py.schema.AvroSchema(mine).encode(filled(mine))

    producer = await ours.producer(topic, schema=AutoProduceBytesSchema())
    await producer.send(data)
    with pytest.raises(pulsar_py.SchemaSerializationError):
        await producer.send(data[:5])

    (message,) = await receive_all(consumer, 1)
    assert_same(message.value(), filled(theirs))


async def test_a_message_may_bring_a_schema_of_its_own(
    ours: Ours, official: Official, topic: str
) -> None:
    older, newer = versions(pulsar_py.schema)
    producer = await ours.producer(topic, schema=pulsar_py.schema.AvroSchema(older))
    await producer.send(older(name="a"))
    await producer.send(newer(name="b", added="more"), schema=pulsar_py.schema.AvroSchema(newer))
    await producer.send(older(name="c"))

    _, mine = versions(pulsar.schema)
    consumer = await official.consumer(topic, schema=pulsar.schema.AvroSchema(mine))

    messages = await receive_all(consumer, 3)
    assert [versions_of(official, each) for each in messages] == [0, 1, 0]
    assert [each.value().name for each in messages] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["StringSchema", "Int32Schema"])
async def test_another_type_is_refused(
    ours: Ours, official: Official, topic: str, kind: str
) -> None:
    record_class = records(pulsar.schema)
    schema = pulsar.schema.JsonSchema(record_class)
    await official.publish(topic, [filled(record_class)], schema=schema)

    other = getattr(pulsar_py.schema, kind)()
    with pytest.raises(pulsar_py.IncompatibleSchemaError):
        await ours.producer(topic, schema=other)
    with pytest.raises(pulsar_py.IncompatibleSchemaError):
        await ours.consumer(topic, schema=other)
