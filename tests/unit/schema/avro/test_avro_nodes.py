"""Definitions as trees, what is refused, and what readers of payloads ask for."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.avro.avro_nodes import avro_node, has_uncountable_arrays, is_recursive

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}


def record(*types: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def test_a_named_type_is_one_node() -> None:
    node = avro_node(record(record("int", name="I"), "I", "n.I", namespace="n"))
    assert node.name == "n.R"
    assert node.children[0] is node.children[1] is node.children[2]
    assert node.children[0].name == "n.I"


def test_a_record_may_contain_itself() -> None:
    node = avro_node(record(["null", "R"]))
    assert node.children[0].others == [node]


def test_logical_types_are_beside_what_they_are_made_of() -> None:
    number = {"type": "long", "logicalType": "timestamp-millis"}
    fixed = {"type": "fixed", "name": "F", "size": 2}
    node = avro_node(record(number, {"type": number}, fixed, {"type": "F", "logicalType": "mine"}))
    assert [each.kind for each in node.children] == ["long", "long", "fixed", "fixed"]
    assert [each.text.get("logicalType") for each in node.children] == [
        "timestamp-millis",
        "timestamp-millis",
        None,
        "mine",
    ]


@pytest.mark.parametrize(
    "definition",
    [
        "unknown",
        5,
        None,
        {},
        {"type": "recrd"},
        {"type": "record", "name": "R"},
        {"type": "record", "fields": []},
        {"type": "record", "name": "R", "namespace": 5, "fields": []},
        {"type": "record", "name": "R", "fields": ["a"]},
        {"type": "record", "name": "R", "fields": [{"name": 5, "type": "int"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2},
        {"type": "record", "name": "int", "fields": []},
        {"type": "enum", "name": "E"},
        {"type": "enum", "name": "E", "symbols": [1]},
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": "4"},
        {"type": "array"},
        {"type": "map"},
        {"type": "bytes", "logicalType": "decimal", "precision": 0},
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        ["null", "unknown"],
        [NODE, NODE],
    ],
    ids=str,
)
def test_what_is_no_definition_is_refused(definition: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match="not a valid Avro definition"):
        avro_node(definition)


def test_depth_has_a_limit() -> None:
    definition: Any = "int"
    for _ in range(300):
        definition = {"type": "array", "items": definition}

    with pytest.raises(InvalidConfigurationError, match="deeper than 200"):
        avro_node(definition)


def test_records_within_themselves_are_noticed() -> None:
    twice = {
        "type": "record",
        "name": "Twice",
        "fields": [
            {"name": "a", "type": {"type": "record", "name": "Inner", "fields": []}},
            {"name": "b", "type": "Inner"},
        ],
    }

    assert is_recursive(avro_node(NODE))
    assert is_recursive(avro_node({"type": "array", "items": NODE}))
    assert not is_recursive(avro_node(twice))


@pytest.mark.parametrize(
    ("items", "is_uncountable"),
    [
        ("null", True),
        ({"type": "record", "name": "R", "fields": []}, True),
        ({"type": "fixed", "name": "F", "size": 0}, True),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]}, True),
        ("boolean", False),
        (["null", "int"], False),
        ({"type": "array", "items": "int"}, False),
        (NODE, False),
    ],
    ids=str,
)
def test_arrays_whose_items_take_no_bytes_are_noticed(items: Any, *, is_uncountable: bool) -> None:
    definition = {"type": "map", "values": {"type": "array", "items": items}}

    assert has_uncountable_arrays(avro_node(definition)) is is_uncountable


def test_a_record_in_itself_takes_no_bytes_where_nothing_else_does() -> None:
    loop = record("R")

    assert has_uncountable_arrays(avro_node({"type": "array", "items": loop}))
    assert not has_uncountable_arrays(avro_node({"type": "array", "items": record("R", "int")}))
    fixed = {"type": "fixed", "name": "F", "size": 1}
    assert not has_uncountable_arrays(avro_node({"type": "array", "items": fixed}))


def test_a_type_that_each_level_uses_twice_is_looked_at_once() -> None:
    kind: Any = record("null", name="R0")
    for level in range(1, 60):
        kind = record(kind, f"R{level - 1}", name=f"R{level}")

    assert has_uncountable_arrays(avro_node({"type": "array", "items": kind}))
