"""Payloads into arrays."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py import schema as schemas
from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.payload_codecs import codec_of, decode_around

AT = datetime(1969, 12, 31, 23, 59, 58, 999000, tzinfo=UTC)
LOCAL = datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001 - without a time zone on purpose


@pytest.mark.parametrize(
    ("schema", "arrow_type", "value", "expected"),
    [
        (schemas.BytesSchema(), pa.binary(), b"\xff", b"\xff"),
        (schemas.StringSchema(), pa.string(), "ä", "ä"),
        (schemas.BooleanSchema(), pa.bool_(), True, True),
        (schemas.Int8Schema(), pa.int8(), -128, -128),
        (schemas.Int16Schema(), pa.int16(), -5, -5),
        (schemas.Int32Schema(), pa.int32(), 2**31 - 1, 2**31 - 1),
        (schemas.Int64Schema(), pa.int64(), -(2**63), -(2**63)),
        (schemas.FloatSchema(), pa.float32(), 1.5, 1.5),
        (schemas.DoubleSchema(), pa.float64(), 0.1, 0.1),
        (schemas.DateSchema(), pa.date32(), AT, date(1969, 12, 31)),
        (schemas.TimestampSchema(), pa.timestamp("us", "UTC"), AT, AT),
        (schemas.InstantSchema(), pa.timestamp("us", "UTC"), AT, AT),
        (schemas.TimeSchema(), pa.int32(), time(0, 1, 0, 5000), 60_005),
        (schemas.LocalTimeSchema(), pa.int64(), time(0, 0, 1, 5), 1_000_005_000),
        (schemas.LocalDateSchema(), pa.date32(), date(2024, 2, 29), date(2024, 2, 29)),
        (schemas.LocalDateTimeSchema(), pa.timestamp("us"), LOCAL, LOCAL),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, schemas.Schema) else None,
)
def test_primitive_values_and_nulls(
    schema: Any, arrow_type: pa.DataType, value: object, expected: object
) -> None:
    codec = codec_of(schema.schema_info())
    array, errors = decode_around(codec, [schema.encode(value), None], None)
    assert array.type == codec.arrow_type == arrow_type
    assert array.to_pylist() == [expected, None]
    assert not errors


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (SchemaType.INT32, b"123"),
        (SchemaType.STRING, b"\xff"),
        (SchemaType.LOCAL_TIME, b"\xff" * 8),
        (SchemaType.LOCAL_DATE, b"\x7f" * 8),
        (SchemaType.TIMESTAMP, b"\x7f" * 8),
    ],
)
def test_only_what_does_not_fit_is_an_error(kind: SchemaType, broken: bytes) -> None:
    codec = codec_of(SchemaInfo(kind))
    sound = bytes(4 if kind is SchemaType.INT32 else 8)
    array, errors = decode_around(codec, [sound, broken, None, sound, broken], None)
    assert sorted(errors) == [1, 4]
    assert array.is_null().to_pylist() == [False, True, True, False, True]


def test_types_that_are_not_decoded_name_themselves() -> None:
    with pytest.raises(ConfigurationError, match="EXTERNAL are not decoded; valueMode=raw"):
        codec_of(SchemaInfo(SchemaType.EXTERNAL))


def test_definitions_that_make_no_sense_are_refused() -> None:
    for kind in (SchemaType.AVRO, SchemaType.JSON):
        with pytest.raises(ConfigurationError, match="topic's schema"):
            codec_of(SchemaInfo(kind, data=b"{"))


RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 7},
        {
            "name": "in",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "I",
                    "fields": [
                        {"name": "x", "type": "bytes", "default": "\u00ff"},
                        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["P", "Q"]}},
                    ],
                },
            ],
            "default": None,
        },
        {
            "name": "u",
            "type": {"type": "array", "items": ["string", "I", "E", "int"]},
            "default": [],
        },
    ],
}
VALUE = {
    "a": 1,
    "b": "text",
    "at": AT,
    "in": {"x": b"\x01", "e": "P"},
    "u": ["s", {"x": b"", "e": "Q"}, 5],
}
MEMBERS = {"member0": None, "member1": None, "member2": None, "member3": None}


@pytest.mark.parametrize("kind", [schemas.AvroSchema, schemas.JsonSchema])
def test_records_with_all_that_is_nested(kind: Any) -> None:
    schema = kind(schema_definition=RECORD)
    little = {"a": 2, "b": None, "at": AT, "in": None, "u": []}
    payloads = [schema.encode(VALUE), None, schema.encode(little)]
    array, errors = decode_around(codec_of(schema.schema_info()), payloads, None)
    assert not errors
    members = [
        MEMBERS | {"member0": "s"},
        MEMBERS | {"member1": {"x": b"", "e": "Q"}},
        MEMBERS | {"member3": 5},
    ]
    assert array.to_pylist() == [VALUE | {"u": members}, None, little]


def json_codec() -> Any:
    return codec_of(schemas.JsonSchema(schema_definition=RECORD).schema_info())


def test_json_that_leaves_fields_out_has_their_defaults() -> None:
    array = json_codec().decode([b'{"a":1,"in":{"e":"P"},"unknown":[1]}'], None)
    (row,) = array.to_pylist()
    millis_7 = datetime(1970, 1, 1, 0, 0, 0, 7000, tzinfo=UTC)
    assert row == {"a": 1, "b": None, "at": millis_7, "in": {"x": b"\xff", "e": "P"}, "u": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"null", "is null or missing"),
        (b"[]", "is no dict"),
        (b"{}", "a: a value is null or missing"),
        (b'{"a":1} {}', "Extra data"),
        (b'{"a":"x"}', "a: Could not convert 'x'"),
        (b'{"a":1,"at":"yesterday"}', "Invalid isoformat"),
        (b'{"a":1,"in":{}}', "in: e: a value is null or missing"),
        (b'{"a":1,"in":{"e":"P","x":"?"}}', "base64"),
        (b'{"a":4294967296}', "a: Value 4294967296 too large"),
        (b'{"a":1,"b":"\\ud800"}', "surrogates"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_json_that_does_not_fit(text: bytes, message: str) -> None:
    array, errors = decode_around(json_codec(), [b'{"a":1}', text, b'{"a":2}'], None)
    assert list(errors) == [1]
    assert message in str(errors[1])
    assert [row and row["a"] for row in array.to_pylist()] == [1, None, 2]


@given(
    st.lists(
        st.sampled_from([b'{"a":1}', b'{"a":1},{"a":2', b'{"a":"', b'"},1],[{"a":3}', b'"}', b"}"])
    )
)
def test_json_texts_never_shift_each_other(texts: list[bytes]) -> None:
    array, errors = decode_around(json_codec(), texts, None) if texts else (pa.array([]), {})
    sound = {row for row, text in enumerate(texts) if text == b'{"a":1}'}
    assert set(range(len(texts))) - set(errors) == sound
    assert all((row is not None) == (index in sound) for index, row in enumerate(array.to_pylist()))


def test_avro_is_read_as_its_writer_wrote_it() -> None:
    old = {"type": "record", "name": "Old", "fields": [{"name": "a", "type": "int"}]}
    writer = schemas.AvroSchema(schema_definition=old)
    codec = codec_of(schemas.AvroSchema(schema_definition=RECORD).schema_info())
    (row,) = codec.decode([writer.encode({"a": 9})], writer.schema_info()).to_pylist()
    assert (row["a"], row["b"], row["u"]) == (9, None, [])


def test_avro_of_a_writer_that_does_not_go_together() -> None:
    codec = codec_of(schemas.AvroSchema(schema_definition=RECORD).schema_info())
    other = schemas.AvroSchema(
        schema_definition={
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": "string"}],
        }
    )
    with pytest.raises(SchemaSerializationError):
        codec.decode([other.encode({"a": "x"})], other.schema_info())
    with pytest.raises(SchemaSerializationError, match="a schema of type STRING wrote this"):
        codec.decode([b""], SchemaInfo(SchemaType.STRING))
    with pytest.raises(SchemaSerializationError, match="the writer's schema"):
        codec.decode([b""], SchemaInfo(SchemaType.AVRO, data=b"{"))


def test_avro_that_is_cut_is_an_error_of_its_row() -> None:
    schema = schemas.AvroSchema(schema_definition=RECORD)
    data = schema.encode(VALUE)
    array, errors = decode_around(codec_of(schema.schema_info()), [data, data[:-3], data], None)
    assert list(errors) == [1]
    assert [row and row["a"] for row in array.to_pylist()] == [1, None, 1]


def test_a_schema_that_is_no_record_is_one_value() -> None:
    schema = schemas.AvroSchema(schema_definition={"type": "array", "items": "int"})
    assert codec_of(schema.schema_info()).decode([schema.encode([1, 2])], None).to_pylist() == [
        [1, 2]
    ]


FLAT = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}},
        {"name": "more", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}  # fmt: skip


def test_flat_avro_is_as_any_other() -> None:
    schema = schemas.AvroSchema(schema_definition=FLAT)
    full = {
        "a": 1,
        "text": "ä",
        "e": "Q",
        "at": AT,
        "price": Decimal("-12.5"),
        "more": Decimal("0.1"),
        "day": date(2024, 2, 29),
    }
    little = full | dict.fromkeys(("text", "e", "at", "more"))
    broken = schema.encode(full).replace("ä".encode(), b"\xff\xff")
    payloads = [schema.encode(full), None, schema.encode(little), broken]
    array, errors = decode_around(codec_of(schema.schema_info()), payloads, None)
    assert array.to_pylist() == [full, None, little, None]
    assert list(errors) == [3]
    assert str(errors[3]).startswith("text: Invalid UTF8")
