"""Bytes as Apache Pulsar 4.2.4's Java client makes them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import (
    BooleanSchema,
    BytesSchema,
    DoubleSchema,
    FloatSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    Schema,
    SchemaType,
    StringSchema,
)

ALL: list[tuple[Schema[Any], SchemaType, str]] = [
    (BytesSchema(), SchemaType.BYTES, "Bytes"),
    (StringSchema(), SchemaType.STRING, "String"),
    (BooleanSchema(), SchemaType.BOOLEAN, "Boolean"),
    (Int8Schema(), SchemaType.INT8, "INT8"),
    (Int16Schema(), SchemaType.INT16, "INT16"),
    (Int32Schema(), SchemaType.INT32, "INT32"),
    (Int64Schema(), SchemaType.INT64, "INT64"),
    (FloatSchema(), SchemaType.FLOAT, "Float"),
    (DoubleSchema(), SchemaType.DOUBLE, "Double"),
]

VECTORS: list[tuple[Schema[Any], Any, str]] = [
    (BytesSchema(), b"\x01\x02", "0102"),
    (StringSchema(), "ä", "c3a4"),
    (StringSchema(), "", ""),
    (BooleanSchema(), True, "01"),
    (BooleanSchema(), False, "00"),
    (Int8Schema(), -2, "fe"),
    (Int8Schema(), 5, "05"),
    (Int16Schema(), -2, "fffe"),
    (Int16Schema(), 300, "012c"),
    (Int32Schema(), -2, "fffffffe"),
    (Int32Schema(), 70000, "00011170"),
    (Int64Schema(), -2, "fffffffffffffffe"),
    (Int64Schema(), 1 << 40, "0000010000000000"),
    (FloatSchema(), 1.5, "3fc00000"),
    (DoubleSchema(), 1.5, "3ff8000000000000"),
    (DoubleSchema(), -0.1, "bfb999999999999a"),
]


@pytest.mark.parametrize(("schema", "value", "data"), VECTORS)
def test_bytes_are_java_s(schema: Schema[Any], value: Any, data: str) -> None:
    assert schema.encode(value).hex() == data
    assert schema.decode(bytes.fromhex(data)) == value


@pytest.mark.parametrize(("schema", "schema_type", "name"), ALL)
def test_definitions_are_java_s(schema: Schema[Any], schema_type: SchemaType, name: str) -> None:
    info = schema.schema_info()

    assert (info.type, info.name, info.data, dict(info.properties)) == (schema_type, name, b"", {})


def test_a_float_loses_digits() -> None:
    assert FloatSchema().encode(-0.1).hex() == "bdcccccd"
    assert FloatSchema().decode(bytes.fromhex("bdcccccd")) == pytest.approx(-0.1)


def test_integers_are_numbers_too() -> None:
    assert DoubleSchema().encode(2) == DoubleSchema().encode(2.0)


def test_what_is_not_finite_goes_through() -> None:
    assert DoubleSchema().decode(DoubleSchema().encode(math.inf)) == math.inf
    assert math.isnan(FloatSchema().decode(FloatSchema().encode(math.nan)))


def test_any_byte_but_zero_is_true() -> None:
    assert BooleanSchema().decode(b"\x07") is True


def test_bytes_of_other_kinds_are_copied() -> None:
    source = bytearray(b"abc")

    data = BytesSchema().encode(source)  # type: ignore[arg-type]
    source[0] = 0

    assert data == b"abc"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (BytesSchema(), "text"),
        (StringSchema(), b"bytes"),
        (StringSchema(), "\ud800"),
        (BooleanSchema(), 1),
        (Int8Schema(), 128),
        (Int8Schema(), -129),
        (Int16Schema(), 1 << 15),
        (Int32Schema(), 1 << 31),
        (Int64Schema(), 1 << 63),
        (Int32Schema(), 1.0),
        (Int32Schema(), True),
        (Int32Schema(), None),
        (FloatSchema(), "1"),
        (FloatSchema(), 1e39),
        (DoubleSchema(), 10**400),
        (DoubleSchema(), True),
    ],
)
def test_what_does_not_fit_is_refused(schema: Schema[Any], value: Any) -> None:
    with pytest.raises(SchemaSerializationError):
        schema.encode(value)


@pytest.mark.parametrize("schema", [each for each, *_ in ALL[2:]])
@pytest.mark.parametrize("data", [b"", b"123", b"123456789"])
def test_payloads_of_another_size_are_refused(schema: Schema[Any], data: bytes) -> None:
    with pytest.raises(SchemaSerializationError, match=f"the payload has {len(data)}"):
        schema.decode(data)


def test_text_that_is_no_utf_8_is_refused() -> None:
    with pytest.raises(SchemaSerializationError, match="UTF-8"):
        StringSchema().decode(b"\xff")
