from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import (
    AutoConsumeSchema,
    AutoProduceBytesSchema,
    AvroSchema,
    BooleanSchema,
    BytesSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    GenericRecord,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    ProtobufNativeSchema,
    ProtobufSchema,
    Schema,
    SchemaInfo,
    SchemaType,
    StringSchema,
    TimeSchema,
    TimestampSchema,
    schema_of,
)


@dataclass
class Inner:
    text: str


@dataclass
class Example:
    number: int
    inner: Inner


EXAMPLE = Example(1, Inner("x"))
AS_DICT = {"number": 1, "inner": {"text": "x"}}
NEW_YEAR = datetime(2021, 1, 1, tzinfo=UTC)

PAIRS: list[tuple[Schema[Any], Any, Any]] = [
    (BytesSchema(), b"x", b"x"),
    (StringSchema(), "x", "x"),
    (BooleanSchema(), True, True),
    (Int8Schema(), 1, 1),
    (Int16Schema(), 1, 1),
    (Int32Schema(), 1, 1),
    (Int64Schema(), 1, 1),
    (FloatSchema(), 0.5, 0.5),
    (DoubleSchema(), 0.5, 0.5),
    (DateSchema(), NEW_YEAR, NEW_YEAR),
    (TimeSchema(), time(1), time(1)),
    (TimestampSchema(), NEW_YEAR, NEW_YEAR),
    (InstantSchema(), NEW_YEAR, NEW_YEAR),
    (LocalDateSchema(), date(2021, 1, 1), date(2021, 1, 1)),
    (LocalTimeSchema(), time(1), time(1)),
    (LocalDateTimeSchema(), datetime(2021, 1, 1), datetime(2021, 1, 1)),  # noqa: DTZ001
    (AvroSchema(Example), EXAMPLE, AS_DICT),
    (JsonSchema(Example), EXAMPLE, AS_DICT),
    (ProtobufSchema(StringValue), StringValue(value="x"), b"\n\x01x"),
    (
        KeyValueSchema(StringSchema(), AvroSchema(Example)),
        KeyValue("k", EXAMPLE),
        KeyValue("k", AS_DICT),
    ),
]


@pytest.mark.parametrize(("schema", "value", "generic"), PAIRS)
def test_whatever_was_written_is_read(schema: Schema[Any], value: Any, generic: Any) -> None:
    read = AutoConsumeSchema().decoder_for(schema.schema_info())

    assert read(schema.encode(value), None) == generic


def test_records_are_generic_all_the_way_down() -> None:
    schema = AvroSchema(Example)

    value = AutoConsumeSchema().decode_with(schema.schema_info(), schema.encode(EXAMPLE))

    assert isinstance(value, GenericRecord)
    assert isinstance(value["inner"], GenericRecord)


def test_protobuf_messages_are_of_a_class_made_for_them() -> None:
    schema = ProtobufNativeSchema(StringValue)

    value = AutoConsumeSchema().decode_with(schema.schema_info(), b"\n\x01x")

    assert value.value == "x"


def test_a_separate_key_is_read_too() -> None:
    schema = KeyValueSchema(StringSchema(), Int32Schema(), KeyValueEncodingType.SEPARATED)

    read = AutoConsumeSchema().decoder_for(schema.schema_info())

    assert read(b"\0\0\0\7", b"k") == KeyValue("k", 7)
    assert read(None, b"k") == KeyValue("k", None)


def test_what_names_no_version_is_bytes() -> None:
    schema = AutoConsumeSchema()

    assert schema.decode_with(None, b"x") == schema.decode(b"x") == b"x"
    assert schema.reads_versions
    assert schema.schema_info().to_wire() is None


def test_auto_consume_encodes_nothing() -> None:
    with pytest.raises(SchemaSerializationError):
        AutoConsumeSchema().encode(b"x")


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.AVRO, data=b"{"),
        SchemaInfo(SchemaType.JSON, data=b'"unknown"'),
        SchemaInfo(SchemaType.PROTOBUF_NATIVE, data=b"{}"),
        SchemaInfo(SchemaType.KEY_VALUE, data=b""),
        SchemaInfo(SchemaType.EXTERNAL),
    ],
)
def test_definitions_that_make_no_sense_are_refused(info: SchemaInfo) -> None:
    with pytest.raises(SchemaSerializationError):
        schema_of(info)


def test_bytes_for_a_topic_are_checked_against_its_schema() -> None:
    stored = AvroSchema(Example).schema_info()
    schema = AutoProduceBytesSchema().with_topic_schema(stored)
    data = AvroSchema(Example).encode(EXAMPLE)

    assert schema.encode(data) == schema.decode(data) == data
    assert schema.schema_info() == stored
    assert not schema.needs_topic_schema
    with pytest.raises(SchemaSerializationError):
        schema.encode(data[:1])
    with pytest.raises(SchemaSerializationError, match="takes bytes"):
        schema.encode("text")  # type: ignore[arg-type]


def test_a_topic_without_schema_takes_all_bytes() -> None:
    schema = AutoProduceBytesSchema().with_topic_schema(None)

    assert schema.encode(b"\xff") == b"\xff"
    assert schema.schema_info().to_wire() is None


def test_a_schema_of_ones_own_stands_for_the_topic_s() -> None:
    schema = AutoProduceBytesSchema(Int32Schema())

    assert not schema.needs_topic_schema
    assert schema.with_topic_schema(StringSchema().schema_info()) is schema
    assert schema.schema_info().type is SchemaType.INT32
    with pytest.raises(SchemaSerializationError):
        schema.encode(b"x")


def test_before_a_topic_is_known_nothing_can_be_encoded() -> None:
    schema = AutoProduceBytesSchema()

    assert schema.needs_topic_schema
    assert schema.schema_info().type is SchemaType.AUTO_PUBLISH
    with pytest.raises(SchemaSerializationError, match="no topic"):
        schema.encode(b"x")
