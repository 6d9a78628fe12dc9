from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.avro_definition import (
    definition_text,
    has_uncountable_arrays,
    is_recursive,
    parse_definition,
    types_of,
)
from pulsar_py.schema.value_types import Names

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}

DEFINITIONS: list[Any] = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    ["null", "string"],
    {"type": "array", "items": "int"},
    {"type": "map", "values": ["null", "int"]},
    {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"},
    {"type": "fixed", "name": "F", "namespace": "n", "size": 4},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    {"type": "string", "logicalType": "uuid"},
    NODE,
    {
        "type": "record",
        "name": "Outer",
        "namespace": "com.example",
        "fields": [
            {"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "b", "type": "E", "default": "A"},
            {"name": "c", "type": {**NODE, "namespace": "other"}},
            {"name": "d", "type": "other.Node"},
        ],
    },
]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=str)
def test_types_say_what_was_read(definition: Any) -> None:
    said = types_of(definition).definition(Names())

    assert _without_namespaces(said) == _without_namespaces(definition)
    assert types_of(said).definition(Names()) == said


def _without_namespaces(text: Any) -> Any:
    """Types inside a namespace may say it again."""
    if isinstance(text, dict):
        return {k: _without_namespaces(v) for k, v in text.items() if k != "namespace"}
    return [_without_namespaces(each) for each in text] if isinstance(text, list) else text


def test_what_avro_allows_beside_is_left_out() -> None:
    node = types_of({"type": {"type": "string", "avro.java.string": "String"}})

    assert node.definition(Names()) == "string"


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
        ["null", "unknown"],
        [NODE, NODE],
    ],
    ids=str,
)
def test_what_is_no_definition_is_refused(definition: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match="not an Avro definition"):
        types_of(definition)


def test_depth_has_a_limit() -> None:
    definition: Any = "int"
    for _ in range(300):
        definition = {"type": "array", "items": definition}

    with pytest.raises(InvalidConfigurationError, match="deeper than 200"):
        types_of(definition)


def test_json_that_can_not_be_parsed_is_refused() -> None:
    for text in ("{", b"\xff", "[" * 100_000):
        with pytest.raises(InvalidConfigurationError, match="not JSON"):
            parse_definition(text)


def test_texts_bytes_and_objects_are_definitions() -> None:
    assert parse_definition('"int"') == parse_definition(b'"int"') == "int"
    assert parse_definition(NODE) == NODE
    assert parse_definition(definition_text(NODE)) == NODE


def test_records_within_themselves_are_noticed() -> None:
    twice = {
        "type": "record",
        "name": "Twice",
        "fields": [
            {"name": "a", "type": {"type": "record", "name": "Inner", "fields": []}},
            {"name": "b", "type": "Inner"},
        ],
    }

    assert is_recursive(types_of(NODE))
    assert is_recursive(types_of({"type": "array", "items": NODE}))
    assert not is_recursive(types_of(twice))


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

    assert has_uncountable_arrays(types_of(definition)) is is_uncountable
