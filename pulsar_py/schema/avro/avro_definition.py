"""Avro definitions in JSON, and the types of values that they describe.

Reads and writes the text of a definition, and makes value types of its tree (`avro_nodes`). Records
become dicts, or what `make` makes of them; enumerations become text. Pure.

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.schema.avro.avro_nodes import AvroNode, avro_node
from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.logical_types import logical_type
from pulsar_py.schema.values.named_types import EnumType, FixedType
from pulsar_py.schema.values.record_types import (
    NO_DEFAULT,
    MappingType,
    RecordField,
    UnionType,
)
from pulsar_py.schema.values.value_types import (
    AvroJson,
    BooleanType,
    BytesType,
    FloatingType,
    IntegerType,
    NullType,
    StringType,
    ValueType,
)

__all__ = [
    "definition_text",
    "parse_definition",
    "types_of",
    "value_types",
]

_PRIMITIVES: Final[Mapping[str, Callable[[], ValueType]]] = {
    "null": NullType,
    "boolean": BooleanType,
    "int": lambda: IntegerType("int"),
    "long": lambda: IntegerType("long"),
    "float": lambda: FloatingType("float"),
    "double": lambda: FloatingType("double"),
    "bytes": BytesType,
    "string": StringType,
}


def definition_text(definition: AvroJson) -> bytes:
    """The text that brokers store, laid out as the official Python client does."""
    return json.dumps(definition, indent=1).encode()


def parse_definition(text: str | bytes | Mapping[str, Any]) -> AvroJson:
    """The JSON of a definition that a user or broker gave.

    Raises:
        InvalidConfigurationError: It is not JSON.
    """
    if isinstance(text, Mapping):
        return dict(text)
    try:
        return parse_json(text, max_depth=MAX_DEFINITION_DEPTH)
    except ValueError as error:
        raise InvalidConfigurationError(f"the Avro definition is not JSON: {error}") from None


def types_of(
    definition: AvroJson, make: Callable[[dict[str, Any]], Any] | None = None
) -> ValueType:
    """The types that a definition describes.

    Args:
        definition: The result of `parse_definition`.
        make: Makes a record from the dict of its values; None leaves the dict.

    Raises:
        InvalidConfigurationError: It is not a valid Avro definition.
    """
    return value_types(avro_node(definition), make)


def value_types(node: AvroNode, make: Callable[[dict[str, Any]], Any] | None = None) -> ValueType:
    """As `types_of`, for the tree of a definition."""
    return _Types(make).of(node)


class _Types:
    """Makes the value types of one tree."""

    def __init__(self, make: Callable[[dict[str, Any]], Any] | None) -> None:
        self._make = make
        # id(node) -> value type: a named type is one node wherever it is used, so it is made once.
        self._known: dict[int, ValueType] = {}

    def of(self, node: AvroNode) -> ValueType:
        known = self._known.get(id(node))
        if known is None:
            known = self._record(node) if node.kind == "record" else self._made(node)
            self._known[id(node)] = known
        return known

    def _made(self, node: AvroNode) -> ValueType:
        match node.kind:
            case "enum":
                name, namespace = _names_of(node)
                text = node.text
                return EnumType(name, namespace, text["symbols"], default=text.get("default"))
            case "fixed":
                return FixedType(*_names_of(node), node.text["size"])
            case "array":
                return ArrayType(self.of(node.children[0]))
            case "map":
                return MapType(self.of(node.children[0]))
            case "union":
                return UnionType([self.of(each) for each in node.children])
            case kind:
                primitive = _PRIMITIVES[kind]()
                return logical_type(node.text, primitive) or primitive

    def _record(self, node: AvroNode) -> ValueType:
        record = MappingType(*_names_of(node), self._make)
        # Registered before its fields are made: a field may be of this very type.
        self._known[id(node)] = record
        record.fields = tuple(
            RecordField(text["name"], self.of(child), text.get("default", NO_DEFAULT))
            for text, child in zip(node.fields, node.children, strict=True)
        )
        return record


def _names_of(node: AvroNode) -> tuple[str, str | None]:
    """The name as the definition has it, and its namespace; None for a dotted name, or for none."""
    name: str = node.text["name"]
    return name, None if "." in name else node.name.rpartition(".")[0] or None
