from __future__ import annotations

import math
from typing import Any

import pytest

from pulsar_py.schema.values.value_types import (
    BooleanType,
    BytesType,
    FloatingType,
    IntegerType,
    MisfitError,
    Names,
    NullType,
    StringType,
    ValueType,
)

VALUES: list[tuple[ValueType, Any, Any]] = [
    (NullType(), None, None),
    (BooleanType(), True, True),
    (IntegerType("int"), -(2**31), -(2**31)),
    (IntegerType("long"), 2**63 - 1, 2**63 - 1),
    (FloatingType("float"), 0.5, 0.5),
    (FloatingType("double"), 1e-300, 1e-300),
    (FloatingType("double"), math.inf, "Infinity"),
    (FloatingType("double"), -math.inf, "-Infinity"),
    (StringType(), "ä", "ä"),
    (BytesType(), b"\x01\xff", "Af8="),
]


@pytest.mark.parametrize(("node", "value", "plain"), VALUES)
def test_values_become_json_and_come_back(node: ValueType, value: Any, plain: Any) -> None:
    assert node.to_json(value) == plain
    assert node.from_json(plain) == value


@pytest.mark.parametrize(("node", "value", "plain"), VALUES)
def test_avro_takes_values_as_they_are(node: ValueType, value: Any, plain: Any) -> None:
    assert node.from_avro(node.to_avro(value)) == value


@pytest.mark.parametrize(
    ("node", "definition"),
    [
        (NullType(), "null"),
        (BooleanType(), "boolean"),
        (IntegerType("int"), "int"),
        (FloatingType("double"), "double"),
        (StringType(), "string"),
        (BytesType(), "bytes"),
    ],
)
def test_primitive_types_are_defined_by_their_name(node: ValueType, definition: str) -> None:
    assert node.definition(Names()) == definition == node.branch


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (NullType(), 0),
        (BooleanType(), 1),
        (IntegerType("int"), 2**31),
        (IntegerType("long"), -(2**63) - 1),
        (IntegerType("int"), True),
        (IntegerType("int"), 1.0),
        (FloatingType("float"), 1e39),
        (FloatingType("double"), 10**400),
        (FloatingType("double"), "1"),
        (FloatingType("double"), False),
        (StringType(), b"x"),
        (BytesType(), "x"),
    ],
)
def test_what_does_not_fit_is_refused(node: ValueType, value: Any) -> None:
    assert not node.accepts(value)
    with pytest.raises(MisfitError):
        node.to_avro(value)


@pytest.mark.parametrize(
    ("node", "plain"), [(BytesType(), "no Base64!"), (BytesType(), 5), (IntegerType("int"), 1.5)]
)
def test_json_that_does_not_fit_is_refused(node: ValueType, plain: Any) -> None:
    with pytest.raises(MisfitError):
        node.from_json(plain)


def test_whole_floats_of_json_are_integers() -> None:
    assert IntegerType("int").from_json(7.0) == 7


def test_not_a_number_goes_through_json() -> None:
    node = FloatingType("float")

    assert node.to_json(math.nan) == "NaN"
    assert math.isnan(node.from_json("NaN"))


def test_defaults_of_bytes_are_characters() -> None:
    assert BytesType().to_default(b"\x01\xff") == "\x01\xff"
    assert BytesType().from_avro("\x01\xff") == b"\x01\xff"


def test_an_error_says_where_it_is() -> None:
    error = MisfitError("takes text").inside("[2]").inside("names").inside("inner")

    assert str(error) == "inner.names[2]: takes text"


def test_names_are_as_short_as_their_place_allows() -> None:
    names = Names()
    names.namespace = "com.example"

    assert names.reference("com.example.Inner") == "Inner"
    assert names.reference("other.Inner") == "other.Inner"
