"""Avro definitions as trees: names looked up, logical types beside what they are made of (pure).

`avro_node` takes a definition that `types_of` found to be one. A named type is one node wherever it
is used, so a record that contains itself is a cycle.

`definition_for_reading` makes a definition of a tree again, by which fastavro reads values as they
stand in payloads: without logical types and defaults, under names that are nobody's. Where a union
has several branches beside null, each of these is a record of one field, `BRANCH_FIELD`. Records
have no bytes of their own, so payloads are the same, and since fastavro names those of unions, it
says which branch was written, for numbers as well.

Source: the Avro 1.11 specification, binary encoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pulsar_py.schema.named_types import defined_name, full_name

__all__ = ["BRANCH_FIELD", "AvroNode", "avro_node", "definition_for_reading"]

AvroJson: TypeAlias = Any
"""A definition, as the JSON of it."""

BRANCH_FIELD: Final = "value"
_NAMED: Final = frozenset({"record", "enum", "fixed"})


@dataclass(slots=True, eq=False)
class AvroNode:
    """One type."""

    kind: str
    """A primitive type's name, or `record`, `enum`, `fixed`, `array`, `map`, `union`."""
    text: Mapping[str, Any] = field(default_factory=dict)
    """What else its definition says; for a record its fields."""
    name: str = ""
    """In full, of what has one."""
    children: Sequence[AvroNode] = ()
    """Of a record's fields, an array's items, a map's values, a union's branches."""

    @property
    def is_named(self) -> bool:
        """Whether unions tell it from others by its name."""
        return self.kind in _NAMED

    @property
    def others(self) -> Sequence[AvroNode]:
        """A union's branches beside null."""
        return [each for each in self.children if each.kind != "null"]

    @property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """A record's, as its definition has them."""
        fields: Sequence[Mapping[str, Any]] = self.text["fields"]
        return fields


def avro_node(definition: AvroJson) -> AvroNode:
    """The tree of a definition that is one."""
    return _Reader().read(definition, None)


class _Reader:
    """Reads one definition."""

    def __init__(self) -> None:
        self._named: dict[str, AvroNode] = {}

    def read(self, text: AvroJson, namespace: str | None) -> AvroNode:
        if isinstance(text, list):
            return AvroNode("union", children=[self.read(each, namespace) for each in text])
        if isinstance(text, str):
            found = self._named.get(full_name(text, namespace)) or self._named.get(text)
            return found or AvroNode(text)
        return self._of_object(text, namespace)

    def _of_object(self, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        match text["type"]:
            case "record" | "error":
                node = self._record(text, namespace)
            case "enum" | "fixed" as kind:
                node = self._define(kind, text, namespace)
            case "array":
                node = AvroNode("array", children=[self.read(text["items"], namespace)])
            case "map":
                node = AvroNode("map", children=[self.read(text["values"], namespace)])
            case kind:
                node = self._with_logical(text, self.read(kind, namespace))
        return node

    def _with_logical(self, text: Mapping[str, Any], node: AvroNode) -> AvroNode:
        if node.kind == "record" or "logicalType" in node.text or "logicalType" not in text:
            return node
        return replace(node, text={**node.text, **text})

    def _record(self, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        node = self._define("record", text, namespace)
        inner = node.name.rpartition(".")[0] or None
        node.children = [self.read(each["type"], inner) for each in text["fields"]]
        return node

    def _define(self, kind: str, text: Mapping[str, Any], namespace: str | None) -> AvroNode:
        name = defined_name(text, namespace)
        node = self._named[name] = AvroNode(kind, text, name)
        return node


def definition_for_reading(node: AvroNode) -> tuple[AvroJson, Mapping[int, Sequence[str]]]:
    """A definition to read by, and the names of the records around branches beside null.

    These are by identity of the union: a named type may be a branch of several.
    """
    writer = _Writer(node)
    return writer.write(node), writer.branch_names


class _Writer:
    """Writes one definition."""

    def __init__(self, root: AvroNode) -> None:
        # Names of others go on from its own, which errors show, and are in the same namespace.
        self._root = root.name or "Value"
        self._namespace, _, self._stem = self._root.rpartition(".")
        self._names: dict[int, str] = {}
        self._count = 0
        self.branch_names: dict[int, list[str]] = {}

    def write(self, node: AvroNode) -> AvroJson:
        match node.kind:
            case "record" | "enum" | "fixed":
                return self._named(node)
            case "array":
                return {"type": "array", "items": self.write(node.children[0])}
            case "map":
                return {"type": "map", "values": self.write(node.children[0])}
            case "union":
                return self._union(node)
            case kind:
                return kind

    def _named(self, node: AvroNode) -> AvroJson:
        if id(node) in self._names:
            return self._names[id(node)]
        name = self._names[id(node)] = self._new_name() if self._names else self._root
        text = {"type": node.kind, "name": name}
        if node.kind == "enum":
            return {**text, "symbols": node.text["symbols"]}
        if node.kind == "fixed":
            return {**text, "size": node.text["size"]}
        fields = zip(node.fields, node.children, strict=True)
        return {
            **text,
            "fields": [{"name": each["name"], "type": self.write(kind)} for each, kind in fields],
        }

    def _union(self, node: AvroNode) -> AvroJson:
        if len(node.others) < 2:  # noqa: PLR2004 - there is nothing to tell apart
            return [self.write(each) for each in node.children]
        names = self.branch_names[id(node)] = [self._new_name() for _ in node.others]
        following = iter(names)
        return [
            each.kind if each.kind == "null" else self._branch(each, next(following))
            for each in node.children
        ]

    def _branch(self, node: AvroNode, name: str) -> AvroJson:
        fields = [{"name": BRANCH_FIELD, "type": self.write(node)}]
        return {"type": "record", "name": name, "fields": fields}

    def _new_name(self) -> str:
        self._count += 1
        name = f"{self._stem}_{self._count}"
        return f"{self._namespace}.{name}" if self._namespace else name
