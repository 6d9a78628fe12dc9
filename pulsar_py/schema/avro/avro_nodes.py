"""Trees of Avro definitions: checked, names looked up, logical types beside what they annotate.

`avro_node` is the one reader of definitions. Value types (`avro_definition.types_of`), the codecs'
checks and the columns of Spark are all made of its tree. A named type is one node wherever it is
used, so a record that contains itself is a circle.

Definitions come from users and from brokers, so anything may stand in them: the reader limits their
depth, and refuses what Avro has no such type for.

Two properties let a small payload take the process down, and readers of payloads ask for them: an
array whose items take no bytes, which may claim any number of items; and a record that contains
itself, which may be nested as deep as the payload has bytes. Pure.

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.named_types import full_name
from pulsar_py.schema.values.value_types import AvroJson

__all__ = ["AvroNode", "avro_node", "has_uncountable_arrays", "is_recursive"]

_MAX_DEPTH: Final = 200
_PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
_NAMED: Final = frozenset({"record", "enum", "fixed"})


@dataclass(slots=True, eq=False)
class AvroNode:
    """One type of a definition."""

    kind: str
    """The name of a primitive type, or `record`, `enum`, `fixed`, `array`, `map`, `union`."""
    text: Mapping[str, Any] = field(default_factory=dict)
    """The attributes of its definition; for a record these include its fields."""
    name: str = ""
    """The full name; empty for a type that has none."""
    children: Sequence[AvroNode] = ()
    """The types of a record's fields, an array's items, a map's values, a union's branches."""

    @property
    def is_named(self) -> bool:
        """Whether branches of a union are told apart by its name: record, enum or fixed."""
        return self.kind in _NAMED

    @property
    def others(self) -> Sequence[AvroNode]:
        """The branches of a union except null."""
        return [each for each in self.children if each.kind != "null"]

    @property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """The fields of a record, as its definition has them."""
        fields: Sequence[Mapping[str, Any]] = self.text["fields"]
        return fields


def avro_node(definition: AvroJson) -> AvroNode:
    """The tree of a definition.

    Args:
        definition: Its JSON, the result of `avro_definition.parse_definition`.

    Raises:
        InvalidConfigurationError: It is not a valid Avro definition, or nested too deep.
    """
    try:
        return _DefinitionReader().read(definition, None, 0)
    except _BadDefinitionError as error:
        raise InvalidConfigurationError(f"not a valid Avro definition: {error}") from None


class _BadDefinitionError(Exception):
    """A definition is not valid; becomes an InvalidConfigurationError in `avro_node`."""


class _DefinitionReader:
    """Reads one definition."""

    def __init__(self) -> None:
        self._named: dict[str, AvroNode] = {}

    def read(self, text: AvroJson, namespace: str | None, depth: int) -> AvroNode:
        if depth > _MAX_DEPTH:
            raise _BadDefinitionError(f"nested deeper than {_MAX_DEPTH}")
        if isinstance(text, str):
            return self._by_name(text, namespace)
        if isinstance(text, list):
            branches = [self.read(each, namespace, depth + 1) for each in text]
            return AvroNode("union", children=branches)
        if isinstance(text, Mapping):
            return self._of_object(text, namespace, depth)
        raise _BadDefinitionError(f"{text!r:.100} is not a type")

    def _by_name(self, name: str, namespace: str | None) -> AvroNode:
        if name in _PRIMITIVES:
            return AvroNode(name)
        found = self._named.get(full_name(name, namespace)) or self._named.get(name)
        if found is None:
            raise _BadDefinitionError(f"the type {name!r:.100} is not defined before its use")
        return found

    def _of_object(self, text: Mapping[str, Any], namespace: str | None, depth: int) -> AvroNode:
        kind = text.get("type")
        match kind:
            case "record" | "error":
                return self._record(text, namespace, depth)
            case "enum":
                return self._enum(text, namespace)
            case "fixed":
                return self._fixed(text, namespace)
            case "array":
                items = self.read(text.get("items"), namespace, depth + 1)
                return AvroNode("array", children=[items])
            case "map":
                values = self.read(text.get("values"), namespace, depth + 1)
                return AvroNode("map", children=[values])
            case None:
                raise _BadDefinitionError(f"{dict(text)!r:.100} has no type")
            case _:
                return _annotated(text, self.read(kind, namespace, depth + 1))

    def _record(self, text: Mapping[str, Any], namespace: str | None, depth: int) -> AvroNode:
        # Registered before its fields are read: a record may contain itself.
        node = self._define("record", text, namespace)
        fields = text.get("fields")
        if not isinstance(fields, list):
            raise _BadDefinitionError(f"record {text['name']} has no fields")
        inner = node.name.rpartition(".")[0] or None
        node.children = [self._field(each, text["name"], inner, depth) for each in fields]
        if len({each["name"] for each in fields}) < len(fields):
            raise _BadDefinitionError(f"record {text['name']} has two fields of one name")
        return node

    def _field(self, text: AvroJson, record: str, namespace: str | None, depth: int) -> AvroNode:
        if not isinstance(text, Mapping) or not isinstance(text.get("name"), str):
            raise _BadDefinitionError(
                f"record {record}: {text!r:.100} is not a field, expected an object with a name"
            )
        return self.read(text.get("type"), namespace, depth + 1)

    def _enum(self, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        name = _name_of(text)
        symbols = text.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise _BadDefinitionError(f"enum {name} has no symbols: expected a list of texts")
        default = text.get("default")
        if default is not None and default not in symbols:
            raise _BadDefinitionError(
                f"enum {name}: default {default!r:.100} is not one of its symbols"
            )
        return self._define("enum", text, namespace)

    def _fixed(self, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        name = _name_of(text)
        size = text.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise _BadDefinitionError(
                f"fixed {name} has size {size!r:.100}, expected an integer of at least 0"
            )
        return self._define("fixed", text, namespace)

    def _define(self, kind: str, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        own = text.get("namespace", namespace)
        if not isinstance(own, str | None):
            raise _BadDefinitionError(
                f"{kind} {_name_of(text)} has the namespace {own!r:.100}, expected a text"
            )
        name = full_name(_name_of(text), own)
        if name in self._named or name in _PRIMITIVES:
            raise _BadDefinitionError(f"{name} is defined twice")
        node = self._named[name] = AvroNode(kind, text, name)
        return node


def _name_of(text: Mapping[str, Any]) -> str:
    name = text.get("name")
    if not isinstance(name, str) or not name:
        raise _BadDefinitionError(f"a {text['type']} has the name {name!r:.100}, expected a text")
    return name


def _annotated(text: Mapping[str, Any], node: AvroNode) -> AvroNode:
    """The type of `{"type": ..., "logicalType": ...}`; a logical type further inside wins."""
    if node.kind == "record" or "logicalType" in node.text or "logicalType" not in text:
        return node
    if node.kind == "bytes" and text["logicalType"] == "decimal":
        _check_decimal(text.get("precision"), text.get("scale", 0))
    return replace(node, text={**node.text, **text})


def _check_decimal(precision: object, scale: object) -> None:
    if not isinstance(precision, int) or not isinstance(scale, int):
        return  # plain bytes: Avro has logical types ignored that are not whole
    # Avro ignores invalid logical types. A definition with a precision wants decimals, though, and
    # would silently get bytes.
    if precision < 1 or not 0 <= scale <= precision:
        raise _BadDefinitionError(
            f"decimal of precision {precision} and scale {scale}: the precision has to be at least"
            " 1, the scale from 0 to the precision"
        )


def is_recursive(node: AvroNode) -> bool:
    """Whether a record contains itself."""
    return _reaches_itself(node, frozenset(), set())


def _reaches_itself(node: AvroNode, above: frozenset[int], done: set[int]) -> bool:
    if id(node) in above:
        return True
    if id(node) in done:
        return False
    done.add(id(node))
    if node.kind == "record":
        above |= {id(node)}
    return any(_reaches_itself(child, above, done) for child in node.children)


def has_uncountable_arrays(node: AvroNode) -> bool:
    """Whether there is an array whose items may take no bytes."""
    return any(each.kind == "array" and _is_sizeless(each.children[0]) for each in _nodes(node))


def _is_sizeless(node: AvroNode) -> bool:
    """Whether values may take no bytes, so that the payload's size does not bound their count.

    A record that contains itself through records alone has no values, so it counts as such, too.
    """
    return all(
        each.kind in {"record", "null"} or (each.kind == "fixed" and each.text["size"] == 0)
        for each in _nodes(node, within="record")
    )


def _nodes(root: AvroNode, *, within: str = "") -> Iterator[AvroNode]:
    """A type and all types that it contains, each once; with `within` only through that kind."""
    # Each once: if each of n types uses the next one twice, there are 2**n paths.
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if not within or node.kind == within:
                waiting += node.children
