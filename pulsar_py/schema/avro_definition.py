"""Parses Avro definitions into types of values, and into what fastavro needs (pure).

Definitions come from users and from brokers, so they are read with a limit on their depth, and
refused with a ValueError-like message where Avro has no such type. Records become dicts, or what
`make` returns for them; enumerations become text.

Two things would let a small payload take the process down, and `avro_codec` asks for them here: an
array whose values take no bytes, which may claim any number of them; and a record that contains
itself, which may be nested as deep as the payload has bytes.

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.schema.collection_types import ArrayType, MapType
from pulsar_py.schema.logical_types import logical_type
from pulsar_py.schema.named_types import EnumType, FixedType, NamedType, full_name
from pulsar_py.schema.record_types import (
    NO_DEFAULT,
    MappingType,
    RecordField,
    RecordType,
    UnionType,
)
from pulsar_py.schema.value_types import (
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
    "has_uncountable_arrays",
    "is_recursive",
    "parse_definition",
    "types_of",
]

_MAX_DEPTH: Final = 200
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
        InvalidConfigurationError: It is no JSON.
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
        definition: As `parse_definition` gives it.
        make: What records are made with of a dict of their values; None leaves the dict.

    Raises:
        InvalidConfigurationError: Avro has no such definition.
    """
    try:
        return _DefinitionReader(make).read(definition, None, 0)
    except _BadDefinitionError as error:
        raise InvalidConfigurationError(f"not an Avro definition: {error}") from None


class _BadDefinitionError(Exception):
    """The reason why a definition is refused."""


class _DefinitionReader:
    """Reads one definition."""

    def __init__(self, make: Callable[[dict[str, Any]], Any] | None) -> None:
        self._make = make
        self._named: dict[str, NamedType] = {}

    def read(self, text: AvroJson, namespace: str | None, depth: int) -> ValueType:
        if depth > _MAX_DEPTH:
            raise _BadDefinitionError(f"nested deeper than {_MAX_DEPTH}")
        if isinstance(text, str):
            return self._by_name(text, namespace)
        if isinstance(text, list):
            return UnionType([self.read(each, namespace, depth + 1) for each in text])
        if isinstance(text, Mapping):
            return self._of_object(text, namespace, depth)
        raise _BadDefinitionError(f"{text!r:.100} is not a type")

    def _by_name(self, name: str, namespace: str | None) -> ValueType:
        if (primitive := _PRIMITIVES.get(name)) is not None:
            return primitive()
        found = self._named.get(full_name(name, namespace)) or self._named.get(name)
        if found is None:
            raise _BadDefinitionError(f"type {name!r:.100} is not defined before its use")
        return found

    def _of_object(self, text: Mapping[str, Any], namespace: str | None, depth: int) -> ValueType:
        kind = text.get("type")
        match kind:
            case "record" | "error":
                return self._record(text, namespace, depth)
            case "enum":
                return self._enum(text, namespace)
            case "fixed":
                return self._fixed(text, namespace)
            case "array":
                return ArrayType(self.read(text.get("items"), namespace, depth + 1))
            case "map":
                return MapType(self.read(text.get("values"), namespace, depth + 1))
            case None:
                raise _BadDefinitionError(f"{dict(text)!r:.100} has no type")
            case _:
                node = self.read(kind, namespace, depth + 1)
                return logical_type(text, node) or node

    def _name(self, text: Mapping[str, Any], namespace: str | None) -> tuple[str, str | None]:
        name, own = text.get("name"), text.get("namespace", namespace)
        if not isinstance(name, str) or not name or not isinstance(own, str | None):
            raise _BadDefinitionError(f"a {text['type']} named {name!r:.100}")
        return name, own or None

    def _define(self, node: NamedType) -> None:
        name = full_name(node.name, node.namespace)
        if name in self._named or name in _PRIMITIVES:
            raise _BadDefinitionError(f"{name} is defined twice")
        self._named[name] = node

    def _record(self, text: Mapping[str, Any], namespace: str | None, depth: int) -> ValueType:
        name, own = self._name(text, namespace)
        node = MappingType(name, own, self._make)
        self._define(node)
        fields = text.get("fields")
        if not isinstance(fields, list):
            raise _BadDefinitionError(f"record {name} has no fields")
        inner = full_name(name, own).rpartition(".")[0] or None
        node.fields = tuple(self._field(each, name, inner, depth) for each in fields)
        names = {field.name for field in node.fields}
        if len(names) < len(node.fields):
            raise _BadDefinitionError(f"record {name} has two fields of one name")
        return node

    def _field(self, text: AvroJson, record: str, namespace: str | None, depth: int) -> RecordField:
        if not isinstance(text, Mapping) or not isinstance(name := text.get("name"), str):
            raise _BadDefinitionError(f"record {record}: {text!r:.100} is not a field")
        node = self.read(text.get("type"), namespace, depth + 1)
        return RecordField(name, node, text.get("default", NO_DEFAULT))

    def _enum(self, text: Mapping[str, Any], namespace: str | None) -> ValueType:
        name, own = self._name(text, namespace)
        symbols = text.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise _BadDefinitionError(f"enum {name} has no symbols")
        default = text.get("default")
        if default is not None and default not in symbols:
            raise _BadDefinitionError(f"enum {name}: default {default!r:.100} is not a symbol")
        node = EnumType(name, own, symbols, default=default)
        self._define(node)
        return node

    def _fixed(self, text: Mapping[str, Any], namespace: str | None) -> ValueType:
        name, own = self._name(text, namespace)
        size = text.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise _BadDefinitionError(f"fixed {name} of size {size!r:.100}")
        node = FixedType(name, own, size)
        self._define(node)
        return node


def is_recursive(node: ValueType) -> bool:
    """Whether a record contains itself."""
    return _reaches_itself(node, frozenset(), set())


def _reaches_itself(node: ValueType, above: frozenset[int], done: set[int]) -> bool:
    if id(node) in above:
        return True
    if id(node) in done:
        return False
    done.add(id(node))
    if isinstance(node, RecordType):
        above |= {id(node)}
    return any(_reaches_itself(child, above, done) for child in node.children)


def has_uncountable_arrays(node: ValueType) -> bool:
    """Whether there is an array whose items may take no byte."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        children = [*each.children]
        if isinstance(each, ArrayType) and children[0].is_sizeless:
            return True
        waiting += children
    return False
