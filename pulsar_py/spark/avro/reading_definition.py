"""Makes definitions for fastavro with which unions tell the branch that was written (pure).

`definition_for_reading` makes a definition of a tree again: without logical types and defaults, so
that values come as they stand in payloads, under names that no other type has. Where a union has
several branches beside null, each of these is a record of one field, `BRANCH_FIELD`. A record adds
no bytes of its own, so payloads are the same; and since fastavro names the records of unions, it
says which branch was written, for numbers as well.

Source: the Avro 1.11 specification, binary encoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulsar_py.schema.avro.avro_nodes import AvroNode
from pulsar_py.schema.values.value_types import AvroJson

__all__ = ["BRANCH_FIELD", "definition_for_reading"]

BRANCH_FIELD: Final = "value"


def definition_for_reading(node: AvroNode) -> tuple[AvroJson, Mapping[int, Sequence[str]]]:
    """A definition for fastavro, and the names of the records around branches.

    The names are by identity of the union, and in the order of its branches beside null. A named
    type may be a branch of several unions.
    """
    writer = _Writer(node)
    return writer.write(node), writer.branch_names


class _Writer:
    """Writes one definition."""

    def __init__(self, root: AvroNode) -> None:
        # Errors show these names, so they begin with the name of the outermost type.
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
