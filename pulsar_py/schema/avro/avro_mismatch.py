"""Finds the field in which a reader's Avro definition can't read what a writer's wrote (pure).

fastavro says only which two types do not go together, and for records with their whole definition.
This walks both trees by the rules of schema resolution, and stops at the first place that breaks
them. It is asked when a value could not be read, never before: some of what it would refuse can be
read as long as no value makes use of it, such as one branch of a union.

Source: the Avro 1.11 specification, schema resolution.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.schema.avro.avro_nodes import AvroNode

__all__ = ["mismatch"]

_PROMOTED: Final = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""What a primitive type may be read as, beside itself."""


def mismatch(writer: AvroNode, reader: AvroNode) -> str | None:
    """The first field that keeps `reader` from reading `writer`, and why; None if none does.

    The text is like `field a.b was written as string, and is read as long`.
    """
    return _Comparison().compare(writer, reader, "")


class _Comparison:
    """Compares two trees; types that contain themselves are looked at once."""

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], bool] = {}  # true also while it is being looked at

    def compare(self, writer: AvroNode, reader: AvroNode, path: str) -> str | None:
        pair = id(writer), id(reader)
        if pair in self._fits:
            return None if self._fits[pair] else _unlike(writer, reader, path)
        self._fits[pair] = True
        problem = self._compare_new(writer, reader, path)
        self._fits[pair] = problem is None
        return problem

    def _compare_new(self, writer: AvroNode, reader: AvroNode, path: str) -> str | None:
        if writer.kind == "union" or reader.kind == "union":
            return self._unions(writer, reader, path)
        if writer.kind == reader.kind:
            return self._alike(writer, reader, path)
        return (
            None if reader.kind in _PROMOTED.get(writer.kind, ()) else _unlike(writer, reader, path)
        )

    def _alike(self, writer: AvroNode, reader: AvroNode, path: str) -> str | None:
        """Why one type can't read the other, both of one kind; None if it can."""
        match writer.kind:
            case "record":
                return self._records(writer, reader, path)
            case "array" | "map":
                return self.compare(writer.children[0], reader.children[0], f"{path}[]")
            case "fixed" | "enum" if not _has_name_of(writer, reader):
                return _unlike(writer, reader, path)
            case "fixed" if writer.text["size"] != reader.text["size"]:
                return _unlike(writer, reader, path)
            case "enum" if "default" not in reader.text:
                lacking = [e for e in writer.text["symbols"] if e not in reader.text["symbols"]]
                return f"{_at(path)} has no symbol {lacking[0]!r:.100}" if lacking else None
        return None

    def _unions(self, writer: AvroNode, reader: AvroNode, path: str) -> str | None:
        """Each branch that may have been written needs one that reads it."""
        branches = writer.children if writer.kind == "union" else [writer]
        readers = reader.children if reader.kind == "union" else [reader]
        for branch in branches:
            problems = [self.compare(branch, each, path) for each in readers]
            if None not in problems:
                alike = (p for p, r in zip(problems, readers, strict=True) if r.kind == branch.kind)
                return next(alike, None) or _unlike(branch, reader, path)
        return None

    def _records(self, writer: AvroNode, reader: AvroNode, path: str) -> str | None:
        renamed = {
            alias: text["name"] for text in reader.fields for alias in text.get("aliases", ())
        }
        written = {
            renamed.get(text["name"], text["name"]): node
            for text, node in zip(writer.fields, writer.children, strict=True)
        }
        for text, node in zip(reader.fields, reader.children, strict=True):
            inner = f"{path}.{text['name']}" if path else text["name"]
            source = written.get(text["name"])
            if source is None:
                if "default" not in text:
                    return f"{_at(inner)} was not written, and has no default"
            elif (problem := self.compare(source, node, inner)) is not None:
                return problem
        return None


def _has_name_of(writer: AvroNode, reader: AvroNode) -> bool:
    """Whether a named type is the same, by its name without namespace or by an alias."""
    names = {_unqualified(each) for each in (reader.name, *reader.text.get("aliases", ()))}
    return _unqualified(writer.name) in names


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def _unlike(writer: AvroNode, reader: AvroNode, path: str) -> str:
    return f"{_at(path)} was written as {_text(writer)}, and is read as {_text(reader)}"


def _at(path: str) -> str:
    return f"field {path}" if path else "the value"


def _text(node: AvroNode) -> str:
    if node.kind == "union":
        return f"one of {', '.join(_text(each) for each in node.children)}"
    return f"{node.kind} {node.name}".rstrip()
