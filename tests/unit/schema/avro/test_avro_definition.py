from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.avro.avro_definition import (
    definition_text,
    parse_definition,
    types_of,
)
from pulsar_py.schema.values.value_types import Names

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


def test_json_that_can_not_be_parsed_is_refused() -> None:
    for text in ("{", b"\xff", "[" * 100_000):
        with pytest.raises(InvalidConfigurationError, match="not JSON"):
            parse_definition(text)


def test_texts_bytes_and_objects_are_definitions() -> None:
    assert parse_definition('"int"') == parse_definition(b'"int"') == "int"
    assert parse_definition(NODE) == NODE
    assert parse_definition(definition_text(NODE)) == NODE


def test_records_are_made_with_what_is_given() -> None:
    types = types_of(NODE, make=lambda values: ("made", values))

    assert types.from_json({"next": {"next": None}}) == (
        "made",
        {"next": ("made", {"next": None})},
    )


def test_a_dotted_name_is_its_own_namespace() -> None:
    inner = {"type": "enum", "name": "x.y.E", "symbols": ["A"]}
    node = types_of({**NODE, "namespace": "n", "fields": [{"name": "e", "type": inner}]})

    assert node.definition(Names())["fields"][0]["type"] == inner
