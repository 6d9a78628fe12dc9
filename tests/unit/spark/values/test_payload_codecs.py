"""Payloads of each kind of schema become Arrow arrays."""

from __future__ import annotations

import json
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
from pulsar_py.schema.avro.avro_codec import AvroWriter
from pulsar_py.schema.avro.avro_definition import parse_definition
from pulsar_py.spark.values import payload_codecs
from pulsar_py.spark.values.payload_codecs import codec_of, decode_around

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
    with pytest.raises(ConfigurationError, match="EXTERNAL can't be decoded; valueMode=raw"):
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
        (b"[]", "is not a dict"),
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
    with pytest.raises(SchemaSerializationError, match="written with a schema of type STRING"):
        codec.decode([b""], SchemaInfo(SchemaType.STRING))
    with pytest.raises(SchemaSerializationError, match="the writer's schema"):
        codec.decode([b""], SchemaInfo(SchemaType.AVRO, data=b"{"))


@pytest.mark.parametrize(
    "writer", [b'{"type":"record","name":"R","fields":[{"name":"f","type":"string"}]}', b"{"]
)
def test_why_a_writer_is_not_read_is_found_out_once(
    writer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = codec_of(SchemaInfo(SchemaType.AVRO, "", json.dumps(one_field("int")).encode()))
    made = []
    monkeypatch.setattr(
        payload_codecs, "parse_definition", lambda data: made.append(data) or parse_definition(data)
    )
    array, errors = decode_around(codec, [b"\x00"] * 8, SchemaInfo(SchemaType.AVRO, "", writer))
    assert array.null_count == 8
    assert len({str(each) for each in errors.values()}) == 1
    assert made == [writer]


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


def one_field(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, **more}]}


LONG_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}


def read_json(kind: Any, text: str) -> Any:
    codec = codec_of(schemas.JsonSchema(schema_definition=one_field(kind)).schema_info())
    return codec.decode([b'{"f":%b}' % text.encode()], None).to_pylist()[0]["f"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("long", "2.0", 2),
        (["null", "int"], "2.0", 2),
        ({"type": "array", "items": "int"}, "[1, 2.0]", [1, 2]),
        ("float", "20000001", 20000000.0),
        ("double", "9007199254740993", 2.0**53),
        (["null", "double"], "1000000000000000000000", 1e21),
        ({"type": "map", "values": "double"}, '{"k":9007199254740993}', [("k", 2.0**53)]),
        (["long", "double"], "1.5", {"member0": None, "member1": 1.5}),
        (["double", "long"], "9007199254740993", {"member0": None, "member1": 2**53 + 1}),
        (["int", "string", "long"], str(2**40), {"member0": None, "member1": None, "member2": 2**40}),
        (["int", "string", "long"], "4", {"member0": 4, "member1": None, "member2": None}),
        (["double", "long"], str(2**70), {"member0": 2.0**70, "member1": None}),
        (["int", "boolean"], "true", {"member0": None, "member1": True}),
        (["double", "boolean"], "true", {"member0": None, "member1": True}),
        (["double", "string"], '"5"', {"member0": None, "member1": "5"}),
        ({"type": "long", "logicalType": "timestamp-millis"}, "-1", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (LONG_DECIMAL, "12345678901234567.8912", Decimal("12345678901234567.8912")),
        (LONG_DECIMAL, "-0.3E1", Decimal("-3.0000")),
        (LONG_DECIMAL, '"0E-99999999"', Decimal("0.0000")),
        (["null", LONG_DECIMAL], "12345678901234567.8912", Decimal("12345678901234567.8912")),
        ({"type": "array", "items": [LONG_DECIMAL, "string"]}, "[12345678901234567.8912]", [{"member0": Decimal("12345678901234567.8912"), "member1": None}]),
    ],
)  # fmt: skip
def test_numbers_of_json_are_the_best_their_type_has(kind: Any, text: str, expected: Any) -> None:
    found = read_json(kind, text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("long", "1.9", "^f: 1.9 is not a whole number"),
        (["null", "int"], "-0.5", "^f: -0.5 is not a whole number"),
        (
            ["null", one_field("int") | {"name": "I"}],
            '{"f":1.5}',
            "^f: f: 1.5 is not a whole number",
        ),
        ({"type": "array", "items": "int"}, "[1,1.5]", "^f: 1.5 is not a whole number"),
        (["int", "string"], "1.5", "^f: 1.5 is not of any branch"),
        ("double", "true", "^f: True is not a number"),
        ({"type": "int", "logicalType": "date"}, "true", "^f: True is neither a number"),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            '"2024-01-01T00:00+02:00"',
            "^f: .* has a time zone",
        ),
    ],
)
def test_numbers_of_json_lose_nothing_but_digits(kind: Any, text: str, message: str) -> None:
    with pytest.raises(SchemaSerializationError, match=message):
        read_json(kind, text)


@pytest.mark.parametrize(
    "text",
    ['"1E-99999999"', "1e-99999999", '"1E+99999999"', "0.00001", "1" * 36, "Infinity", "true"],
)  # fmt: skip
def test_what_is_no_decimal_of_that_size_in_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaSerializationError, match=r"^f: .*not a decimal of 38 digits, 4 of"):
        read_json(LONG_DECIMAL, text)


def test_other_fields_beside_decimals_in_json_are_what_they_are() -> None:
    kinds = ("double", "long", {"type": "array", "items": "int"}, ["null", "long", "double"])
    fields = [{"name": f"f{index}", "type": kind} for index, kind in enumerate(kinds)]
    inner = {"type": "record", "name": "I", "fields": [*fields, {"name": "d", "type": DECIMAL}]}
    text = '{"f0":0.1,"f1":2.0,"f2":[1,3.0],"f3":1.5,"d":0.10}'
    assert read_json(inner, text) == {
        "f0": 0.1,
        "f1": 2,
        "f2": [1, 3],
        "f3": {"member0": None, "member1": 1.5},
        "d": Decimal("0.10"),
    }


TEXTS = {"type": "array", "items": "string"}
RECORD_OF_TEXT = {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "string"]}]}  # fmt: skip


@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (TEXTS, '"ab"', "'ab' is not a list"),
        ({"type": "map", "values": "string"}, "[]", r"\[\] is not a dict"),
        ({"type": "map", "values": "string"}, '""', "'' is not a dict"),
        (RECORD_OF_TEXT, "[]", r"\[\] is not a dict"),
        ({"type": "array", "items": RECORD_OF_TEXT}, '[{"x":"a"},""]', "'' is not a dict"),
        ({"type": "map", "values": TEXTS}, '{"k":"ab"}', "'ab' is not a list"),
    ],
)
def test_what_is_nested_in_json_is_of_its_kind(
    kind: Any, text: str, told: str, *, is_nullable: bool
) -> None:
    with pytest.raises(SchemaSerializationError, match=f"^f: {told}"):
        read_json(["null", kind] if is_nullable else kind, text)


def test_a_text_in_json_is_of_a_branch_of_texts() -> None:
    assert read_json([TEXTS, "string"], '"ab"') == {"member0": None, "member1": "ab"}
    assert read_json([TEXTS, "string"], '["a","b"]') == {"member0": ["a", "b"], "member1": None}


@pytest.mark.parametrize("payload", [b"[]", b'""'])
def test_json_that_is_no_record_is_an_error(payload: bytes) -> None:
    codec = codec_of(schemas.JsonSchema(schema_definition=RECORD_OF_TEXT).schema_info())
    with pytest.raises(SchemaSerializationError, match="is not a dict"):
        codec.decode([b"{}", payload], None)


@pytest.mark.parametrize("fields_count", [1, 2])
def test_a_decimal_of_a_megabyte_is_refused_at_once(fields_count: int) -> None:
    definition = one_field(DECIMAL)
    if fields_count > 1:  # is not flat
        definition["fields"].append({"name": "g", "type": {"type": "array", "items": "int"}})
    plain = json.loads(json.dumps(definition).replace("decimal", "none"))
    codec = codec_of(SchemaInfo(SchemaType.AVRO, "", json.dumps(definition).encode()))
    payload = AvroWriter(plain).write({"f": b"\x01" * (1 << 20), "g": []})
    with pytest.raises(SchemaSerializationError, match="1048576 bytes are not a decimal of 6"):
        codec.decode([payload], None)


def test_a_branch_that_does_not_fit_leaves_the_value_to_the_next() -> None:
    first = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "bytes"}, {"name": "y", "type": "int"}]}  # fmt: skip
    second = {"type": "record", "name": "B", "fields": [{"name": "x", "type": "string"}]}
    found = read_json([first, second], '{"x":"eA==","y":1.5}')
    assert found == {"member0": None, "member1": {"x": "eA=="}}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
BYTES_AND_DECIMAL = {
    "type": "record",
    "name": "I",
    "fields": [
        {"name": "m", "type": "bytes"},
        {"name": "d", "type": DECIMAL, "default": "\u007d"},
        {"name": "u", "type": ["string", "long"], "default": "x"},
    ],
}


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, "\u0000\u00ff", b"\x00\xff"),
        (DECIMAL, "\u007d", Decimal("1.25")),
        (DECIMAL, "\u00ff", Decimal("-0.01")),
        (["bytes", "null"], "\u00ff", b"\xff"),
        ({"type": "array", "items": DECIMAL}, ["\u007d", "\u0000"], [Decimal("1.25"), Decimal("0.00")]),
        ({"type": "map", "values": "bytes"}, {"k": "\u00ff"}, [("k", b"\xff")]),
        (BYTES_AND_DECIMAL, {"m": "\u0000"}, {"m": b"\x00", "d": Decimal("1.25"), "u": {"member0": "x", "member1": None}}),
        (BYTES_AND_DECIMAL, {"m": "\u0000", "u": "y"}, {"m": b"\x00", "d": Decimal("1.25"), "u": {"member0": "y", "member1": None}}),
        (["long", "string"], 5, {"member0": 5, "member1": None}),
        ("double", 1, 1.0),
        ({"type": "int", "logicalType": "date"}, -1, date(1969, 12, 31)),
    ],
)  # fmt: skip
def test_defaults_are_values_of_their_type(
    kind: Any, default: Any, expected: Any, *, is_json: bool
) -> None:
    new = one_field(kind, default=default)
    new["fields"].append({"name": "k", "type": "int"})
    old = {**new, "fields": new["fields"][1:]}
    written_by = schemas.JsonSchema if is_json else schemas.AvroSchema
    writer = written_by(schema_definition=old)
    codec = codec_of(SchemaInfo(writer.schema_type, "", json.dumps(new).encode()))
    payloads = [writer.encode({"k": key}) for key in (1, 2)]
    rows = codec.decode(payloads, writer.schema_info()).to_pylist()
    assert rows == [{"f": expected, "k": 1}, {"f": expected, "k": 2}]


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
@pytest.mark.parametrize(
    ("field", "default"), [("bytes", "\u0100"), (BYTES_AND_DECIMAL, {"d": "x"}), ("int", "x")]
)
def test_a_default_that_does_not_fit_counts_where_it_is_needed(
    kind: SchemaType, field: Any, default: Any
) -> None:
    codec = codec_of(SchemaInfo(kind, "", json.dumps(one_field(field, default=default)).encode()))
    old = SchemaInfo(kind, "", b'{"type":"record","name":"R","fields":[]}')
    with pytest.raises(SchemaSerializationError, match=r"^f: missing, and .* its default in R"):
        codec.decode([b"{}" if kind is SchemaType.JSON else b""], old)
    if field == "int":
        sound = b'{"f":1}' if kind is SchemaType.JSON else b"\x02"
        assert codec.decode([sound], None).to_pylist() == [{"f": 1}]


def test_the_member_of_a_union_is_the_branch_that_was_written() -> None:
    schema = schemas.AvroSchema(schema_definition=one_field(["double", "long"]))
    codec = codec_of(schema.schema_info())
    payloads = [b"\x02\x0a", b"\x00" + bytes(8)]
    assert codec.decode(payloads, None).to_pylist() == [
        {"f": {"member0": None, "member1": 5}},
        {"f": {"member0": 0.0, "member1": None}},
    ]
