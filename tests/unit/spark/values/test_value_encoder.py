"""Rows become payloads, which are read back as they were."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py import schema as schemas
from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.values.payload_codecs import codec_of
from pulsar_py.spark.values.primitive_encoder import ValueEncoder
from pulsar_py.spark.values.value_encoder import definition_of, value_encoder

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "flag": pa.bool_(),
        "small": pa.int16(),
        "share": pa.float64(),
        "text": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "price": pa.decimal128(9, 2),
        "in": pa.struct({"x": pa.int8(), "times": pa.list_(pa.timestamp("us", "UTC"))}),
        "counts": pa.map_(pa.string(), pa.float32()),
        "data": pa.binary(),
    }
)
AT = datetime(2024, 2, 29, 1, 2, 3, 4005, tzinfo=UTC)
ROW = {
    "id": 2**40,
    "flag": True,
    "small": -5,
    "share": 0.1,
    "text": "ä",
    "at": AT,
    "local": AT.replace(tzinfo=None),
    "day": date(1969, 1, 1),
    "price": Decimal("-12.50"),
    "in": {"x": 3, "times": [AT, None]},
    "counts": [("k", 1.5), ("none", None)],
    "data": b"\x00\xff",
}
JSON_TOPIC = SchemaInfo(SchemaType.JSON, "", b'{"type":"record","name":"R","fields":[]}', {})


def encoder_of(schema: pa.Schema, topic: SchemaInfo | None = None) -> ValueEncoder:
    return value_encoder(schema, schema.names, topic)


@pytest.mark.parametrize("topic", [None, JSON_TOPIC], ids=["AVRO", "JSON"])
def test_records_are_read_as_they_were_written(topic: SchemaInfo | None) -> None:
    encoder = encoder_of(SCHEMA, topic)
    assert encoder.schema_info.type is (SchemaType.AVRO if topic is None else SchemaType.JSON)
    rows = [ROW, dict.fromkeys(ROW)]
    payloads = encoder.encode(pa.RecordBatch.from_pylist(rows, SCHEMA))
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == rows


def test_the_definition_is_named_and_has_defaults() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
    assert json.loads(encoder_of(schema).schema_info.data) == {
        "type": "record",
        "name": "topLevelRecord",
        "fields": [
            {"name": "a", "type": "int"},
            {"name": "b", "type": ["null", "string"], "default": None},
        ],
    }


def test_nested_records_of_one_name_are_told_apart() -> None:
    inner = pa.struct({"x": pa.int32()})
    schema = pa.schema({"a": pa.struct({"in": inner}), "b": pa.list_(pa.struct({"in": inner}))})
    encoder = encoder_of(schema)
    row = {"a": {"in": {"x": 1}}, "b": [{"in": {"x": 2}}]}
    payloads = encoder.encode(pa.RecordBatch.from_pylist([row], schema))
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == [row]


def test_a_single_column_has_a_primitive_schema_and_null_is_a_tombstone() -> None:
    schema = pa.schema({"value": pa.int32()})
    encoder = encoder_of(schema)
    assert encoder.schema_info.type is SchemaType.INT32
    batch = pa.RecordBatch.from_pydict({"value": [1, None]}, schema)
    assert encoder.encode(batch) == [b"\0\0\0\1", None]


def test_a_single_struct_is_the_record_and_null_is_a_tombstone() -> None:
    schema = pa.schema({"value": pa.struct({"a": pa.int32()})})
    encoder = encoder_of(schema)
    values = [{"a": 1}, None, {"a": None}]
    payloads = encoder.encode(pa.RecordBatch.from_pydict({"value": values}, schema))
    assert payloads[1] is None
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == values


def test_a_single_column_without_a_primitive_schema_is_a_record() -> None:
    schema = pa.schema({"prices": pa.list_(pa.decimal128(5, 2))})
    encoder = encoder_of(schema)
    row = {"prices": [Decimal("1.25")]}
    payloads = encoder.encode(pa.RecordBatch.from_pylist([row], schema))
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == [row]


def topic_with(*fields: Any) -> SchemaInfo:
    definition = {"type": "record", "name": "Mine", "fields": list(fields)}
    return schemas.AvroSchema[Any](schema_definition=definition).schema_info()


ID = {"name": "id", "type": "long"}
MILLIS = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}


def test_the_topic_s_definition_is_taken_where_the_columns_fit_it() -> None:
    topic = topic_with(ID, MILLIS, {"name": "more", "type": "int", "default": 3})
    schema = pa.schema({"at": SCHEMA.field("at").type, "id": pa.int64()})
    encoder = encoder_of(schema, topic)
    assert encoder.schema_info is topic
    payloads = encoder.encode(pa.RecordBatch.from_pylist([{"id": 1, "at": AT}], schema))
    (row,) = codec_of(topic).decode(payloads, None).to_pylist()
    assert row == {"id": 1, "at": AT.replace(microsecond=4000), "more": 3}


@pytest.mark.parametrize(
    "fields",
    [
        [{"name": "id", "type": "int"}],
        [{"name": "id", "type": "int"}, {"name": "other", "type": "int", "default": 3}],
        [{"name": "other", "type": ["null", "long"], "default": None}],
        [{"name": "id", "type": ["string", "long"]}],
    ],
)
def test_a_definition_that_does_not_fit_is_left_to_the_broker(fields: Any) -> None:
    info = encoder_of(
        pa.schema({"id": pa.int64(), "more": pa.int64()}), topic_with(*fields)
    ).schema_info
    assert json.loads(info.data)["name"] == "topLevelRecord"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            [pa.field("foo", pa.int64(), nullable=False), pa.field("id", pa.int64())],
            "columns foo, id don't fit the topic's fields id: foo is not in the topic's schema",
        ),
        (
            [pa.field("foo", pa.int64()), pa.field("bar", pa.int64())],
            "columns foo, bar don't fit the topic's fields id: id is required by the topic's schema",
        ),
    ],
)
def test_what_would_make_messages_unreadable_is_refused(schema: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        encoder_of(pa.schema(schema), topic_with(ID))


def test_null_where_the_topic_has_none_is_an_error() -> None:
    schema = pa.schema({"id": pa.struct({"id": pa.int64()})})
    encoder = encoder_of(schema, topic_with(ID))
    with pytest.raises(SchemaSerializationError):
        encoder.encode(pa.RecordBatch.from_pydict({"id": [{"id": None}]}, schema))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"a b": pa.int32(), "c": pa.int32()}, "column a b: names in Avro"),
        ({"a": pa.struct({"b-c": pa.int32()}), "c": pa.int32()}, "column a.b-c"),
        (
            {"a": pa.map_(pa.int32(), pa.int32())},
            "column a: its keys are int32, and keys of maps in Avro",
        ),
        ({"a": pa.duration("us")}, "column a: Avro has no type for duration"),
    ],
)
def test_what_avro_does_not_have_is_refused(schema: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        definition_of(list(pa.schema(schema)))


@pytest.mark.parametrize("topic", [None, JSON_TOPIC], ids=["AVRO", "JSON"])
def test_flat_records_are_as_any_other(topic: SchemaInfo | None) -> None:
    names = [field.name for field in SCHEMA if not pa.types.is_nested(field.type)]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    rows = [{name: ROW[name] for name in names}, dict.fromkeys(names)]
    rows.append(rows[0] | {"price": Decimal("99999.99"), "share": float("inf"), "text": '"'})
    rows.append(rows[0] | {"price": Decimal(0), "share": float("-inf"), "flag": False})
    encoder = encoder_of(schema, topic)
    payloads = encoder.encode(pa.RecordBatch.from_pylist(rows, schema))
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == rows
    for payload, row in zip(payloads, rows, strict=True):
        data = encoder.schema_info.data
        kind = schemas.AvroSchema if topic is None else schemas.JsonSchema
        assert kind[Any](schema_definition=data).decode(payload) == row


def test_flat_records_in_one_column_with_a_null_between() -> None:
    kind = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
    schema = pa.schema({"value": kind})
    values = [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]
    encoder = encoder_of(schema)
    payloads = encoder.encode(pa.RecordBatch.from_pydict({"value": values}, schema))
    assert payloads[1] is None
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.string(), "column id is string, and the topic's schema has int64"),
        (pa.list_(pa.int64()), "column id is list<"),
        (pa.bool_(), "column id is bool"),
    ],
)
def test_what_no_reader_could_take_for_the_topic_s_field_is_refused(
    kind: pa.DataType, text: str
) -> None:
    schema = pa.schema({"id": kind, "more": pa.int64()})
    with pytest.raises(ConfigurationError, match=text):
        encoder_of(schema, topic_with(ID))


def test_pairs_are_another_encoder_s() -> None:
    schema = pa.schema({"key": pa.string(), "value": pa.int64()})
    topic = schemas.KeyValueSchema(schemas.StringSchema(), schemas.Int64Schema()).schema_info()
    assert encoder_of(schema, topic).schema_info is topic


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON], ids=lambda each: each.name)
@pytest.mark.parametrize("is_nested", [False, True])
def test_times_before_1970_are_floored_to_the_field_s_unit(
    kind: SchemaType, *, is_nested: bool
) -> None:
    times = {"type": "array", "items": MILLIS["type"]}
    fields = [ID, MILLIS, *([{"name": "times", "type": times}] if is_nested else [])]
    topic = topic_with(*fields)
    topic = SchemaInfo(kind, topic.name, topic.data, {})
    before = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    row = {"id": 1, "at": before, "times": [before, AT]}
    at = SCHEMA.field("at").type
    columns = {"id": pa.int64(), "at": at, "times": pa.list_(at)}
    schema = pa.schema(list(columns.items())[: len(fields)])
    encoder = encoder_of(schema, topic)
    assert encoder.schema_info is topic
    (found,) = codec_of(topic).decode(
        encoder.encode(pa.RecordBatch.from_pylist([row], schema)), None
    )
    floor = before.replace(microsecond=999000)
    assert found.as_py()["at"] == floor
    assert found.as_py().get("times", []) == [floor, AT.replace(microsecond=4000)] * is_nested


FIXED = {
    "type": "fixed",
    "name": "D",
    "size": 4,
    "logicalType": "decimal",
    "precision": 8,
    "scale": 2,
}


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON], ids=lambda each: each.name)
def test_decimals_of_a_fixed_size_are_read_as_they_were_written(kind: SchemaType) -> None:
    topic = topic_with(
        ID,
        {"name": "m", "type": ["null", FIXED]},
        {"name": "all", "type": {"type": "array", "items": "D"}},
    )
    topic = SchemaInfo(kind, topic.name, topic.data, {})
    price = pa.decimal128(8, 2)
    schema = pa.schema({"id": pa.int64(), "m": price, "all": pa.list_(price)})
    encoder = encoder_of(schema, topic)
    assert encoder.schema_info is topic
    rows = [
        {"id": 1, "m": Decimal("-1.25"), "all": [Decimal("999999.99"), Decimal("-0.01")]},
        {"id": 2, "m": None, "all": []},
    ]
    payloads = encoder.encode(pa.RecordBatch.from_pylist(rows, schema))
    assert codec_of(topic).decode(payloads, None).to_pylist() == rows
    if kind is SchemaType.AVRO:
        assert payloads[0] is not None
        assert payloads[0][2:6] == b"\xff\xff\xff\x83"


def test_a_decimal_that_has_no_room_is_refused() -> None:
    topic = topic_with(ID, {"name": "m", "type": {**FIXED, "size": 2}})
    schema = pa.schema({"id": pa.int64(), "m": pa.decimal128(8, 2)})
    batch = pa.RecordBatch.from_pylist([{"id": 1, "m": Decimal("-327.69")}], schema)
    with pytest.raises(
        SchemaSerializationError, match=r"m: -327\.69 does not fit into the 2 bytes"
    ):
        encoder_of(schema, topic).encode(batch)


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON], ids=lambda each: each.name)
def test_what_is_not_written_has_its_default(kind: SchemaType) -> None:
    bytes_decimal = {**FIXED, "type": "bytes"}
    inner = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "m", "type": "D"}, {"name": "b", "type": "bytes"}],
    }
    topic = topic_with(
        ID,
        {"name": "d", "type": "bytes", "default": "\u00ff"},
        {"name": "price", "type": bytes_decimal, "default": "\u007d"},
        {"name": "fixed", "type": FIXED, "default": "\u00ff\u00ff\u00ff\u00ff"},
        {"name": "maybe", "type": ["null", "D"], "default": None},
        {"name": "in", "type": inner, "default": {"m": "\0\0\0\u007d", "b": "\u00fe"}},
    )
    topic = SchemaInfo(kind, topic.name, topic.data, {})
    encoder = encoder_of(pa.schema({"value": pa.struct({"id": pa.int64()})}), topic)
    assert encoder.schema_info is topic
    batch = pa.RecordBatch.from_pydict({"value": [{"id": 1}, {"id": 2}]})
    rows = codec_of(topic).decode(encoder.encode(batch), None).to_pylist()
    expected = {
        "d": b"\xff",
        "price": Decimal("1.25"),
        "fixed": Decimal("-0.01"),
        "maybe": None,
        "in": {"m": Decimal("1.25"), "b": b"\xfe"},
    }
    assert rows == [{"id": 1, **expected}, {"id": 2, **expected}]


@pytest.mark.parametrize("topic_schema", [None, SchemaInfo(SchemaType.BYTES)])
def test_a_key_beside_a_value_is_refused_with_what_it_may_be(
    topic_schema: SchemaInfo | None,
) -> None:
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())])
    with pytest.raises(ConfigurationError) as raised:
        value_encoder(schema, schema.names, topic_schema)
    for text in ("keyColumn=key", "keyValueEncoding=inline", "struct(key, value)"):
        assert text in str(raised.value)


def test_a_key_beside_a_value_is_a_field_where_the_topic_has_records() -> None:
    schema = pa.schema([("key", pa.string()), ("value", pa.string())])
    record = value_encoder(pa.schema([("v", pa.struct(list(schema)))]), ["v"]).schema_info
    assert value_encoder(schema, schema.names, record).schema_info == record
