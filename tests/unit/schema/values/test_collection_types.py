from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.value_types import (
    BytesType,
    IntegerType,
    MisfitError,
    Names,
    StringType,
)


def test_definitions() -> None:
    assert ArrayType(StringType()).definition(Names()) == {"type": "array", "items": "string"}
    assert MapType(IntegerType("int")).definition(Names()) == {"type": "map", "values": "int"}


@pytest.mark.parametrize("value", [["a"], ("a",), {"a"}])
def test_any_collection_becomes_a_list(value: Any) -> None:
    assert ArrayType(StringType()).to_avro(value) == ["a"]


def test_a_list_becomes_what_was_declared() -> None:
    node = ArrayType(StringType(), tuple)

    assert node.from_avro(["a"]) == node.from_json(["a"]) == ("a",)


def test_items_are_converted() -> None:
    array, mapping = ArrayType(BytesType()), MapType(BytesType())

    assert array.to_json([b"\xff"]) == ["/w=="]
    assert array.from_json(["/w=="]) == [b"\xff"]
    assert mapping.to_json({"a": b"\xff"}) == {"a": "/w=="}
    assert mapping.from_json({"a": "/w=="}) == {"a": b"\xff"}
    assert array.to_default([b"\xff"]) == ["\xff"]
    assert mapping.to_default({"a": b"\xff"}) == {"a": "\xff"}
    assert mapping.from_avro({"a": "\xff"}) == {"a": b"\xff"}


@pytest.mark.parametrize("value", ["text", b"bytes", {"a": 1}, 5, None])
def test_what_is_no_collection_is_refused(value: Any) -> None:
    with pytest.raises(MisfitError, match="takes lists"):
        ArrayType(StringType()).to_avro(value)
    with pytest.raises(MisfitError, match="takes lists"):
        ArrayType(StringType()).to_json(value)


@pytest.mark.parametrize("value", [["a"], "a", None, {1: 1}])
def test_what_is_no_mapping_of_texts_is_refused(value: Any) -> None:
    with pytest.raises(MisfitError):
        MapType(IntegerType("int")).to_avro(value)


def test_json_has_arrays_only() -> None:
    with pytest.raises(MisfitError):
        ArrayType(StringType()).from_json("a")


def test_an_error_names_the_item() -> None:
    with pytest.raises(MisfitError, match=r"^\[1\]: takes text"):
        ArrayType(StringType()).to_avro(["a", 1])
    with pytest.raises(MisfitError, match=r"^\['k'\]: takes integers"):
        MapType(IntegerType("int")).to_avro({"k": "v"})
