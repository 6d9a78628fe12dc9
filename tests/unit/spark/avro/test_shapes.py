"""Avro definitions as Arrow types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.shapes import definition_node, shape_of

MICROS = pa.timestamp("us", "UTC")


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def logical(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        ({"type": "fixed", "name": "F", "size": 4}, pa.binary()),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        (logical("string", "uuid"), pa.string()),
        (logical("int", "date"), pa.date32()),
        (logical("long", "timestamp-millis"), MICROS),
        (logical("long", "timestamp-micros"), MICROS),
        (logical("long", "local-timestamp-millis"), pa.timestamp("us")),
        (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
        (logical("int", "time-millis"), pa.int32()),
        (logical("long", "time-micros"), pa.int64()),
        (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2)),
        (
            logical("fixed", "decimal", name="D", size=8, precision=9, scale=2),
            pa.decimal128(9, 2),
        ),
        (logical("string", "timestamp-millis"), pa.string()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int32())),
        (["null", "int"], pa.int32()),
        (["int", "null", "long"], pa.int64()),
        (["double", "float"], pa.float64()),
        (["string", "int"], pa.struct({"member0": pa.string(), "member1": pa.int32()})),
        (record("int", record("string", name="I")), pa.struct({"f0": pa.int32(), "f1": pa.struct({"f0": pa.string()})})),
        (record(record("int", name="I"), "I"), pa.struct({"f0": pa.struct({"f0": pa.int32()}), "f1": pa.struct({"f0": pa.int32()})})),
    ],
)  # fmt: skip
def test_each_type_of_avro_has_its_type_of_arrow(definition: Any, expected: pa.DataType) -> None:
    assert shape_of(avro_node(definition)).arrow_type == expected


def test_a_union_with_null_is_nullable() -> None:
    assert shape_of(avro_node(["null", "int"])).is_nullable
    assert not shape_of(avro_node(["long", "int"])).is_nullable


def test_names_are_found_within_their_namespace() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    definition = {**record(inner, "E", "n.E"), "namespace": "n"}
    assert [field.type for field in shape_of(avro_node(definition)).arrow_type] == [pa.string()] * 3


def test_a_record_that_contains_itself_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="contains itself"):
        shape_of(avro_node(record(["null", "R"])))


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ({"type": "record", "name": "R", "fields": []}, "record R has no fields"),
        (logical("bytes", "decimal", precision=39, scale=2), "a decimal of 39 digits"),
    ],
)
def test_what_no_column_can_be_is_refused(definition: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        shape_of(avro_node(definition))


def test_a_text_that_is_no_definition_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the topic's schema: .* is not JSON"):
        definition_node(b"{")
    with pytest.raises(ConfigurationError, match=r"the topic's schema: .*nonsense"):
        definition_node(b'{"type": "nonsense"}')
    assert definition_node(b'["null", "int"]').children[1].kind == "int"
