"""Checks that the values of a union come back as they were (pure).

Avro names the branch that a value belongs to, and has each unnamed type once in a union. JSON does
not name it: a value is told by its form, so two branches must not write the same form. What is
text in JSON (texts, bytes, enumerations, dates, decimals, UUIDs) is told apart where both have few
values, or fixed forms.

Source: the Avro 1.11 specification, unions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.literal_type import LiteralType
from pulsar_py.schema.values.logical_types import DecimalType, LogicalType, UuidType
from pulsar_py.schema.values.named_types import EnumType, FixedType, NamedType
from pulsar_py.schema.values.record_types import RecordType, UnionType
from pulsar_py.schema.values.value_types import (
    BooleanType,
    BytesType,
    FloatingType,
    IntegerType,
    StringType,
    ValueType,
)

__all__ = ["check_json", "check_union"]

_FREE_TEXT = (StringType, BytesType, FixedType)
_TEXT = (*_FREE_TEXT, EnumType, DecimalType, LogicalType, UuidType)


def check_union(branches: Sequence[ValueType]) -> None:
    """Check that Avro can have these types in one union.

    Raises:
        InvalidConfigurationError: Two are the same type in Avro.
    """
    for one, other in itertools.combinations(branches, 2):
        is_named = isinstance(_base(one), NamedType) or isinstance(_base(other), NamedType)
        if not is_named and one.branch == other.branch:
            raise InvalidConfigurationError(
                f"{_words(one)} and {_words(other)} are both {one.branch} in Avro, which a union "
                "has once: use one of them, or a dataclass for each"
            )


def check_json(node: ValueType) -> None:
    """Check that in JSON the branches of all unions within a type can be told apart.

    Raises:
        InvalidConfigurationError: Two can't; it names the field.
    """
    _Walk().visit(node, "")


class _Walk:
    """Looks at each type once, since a record may contain itself."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def visit(self, node: ValueType, where: str) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, UnionType):
            for one, other in itertools.combinations(node.branches, 2):
                if _look_alike(one, other):
                    raise InvalidConfigurationError(
                        f"{where}: in JSON {_words(one)} and {_words(other)} look alike, so values "
                        "would not come back as they were: use AvroSchema, one of the two, or a "
                        "record for each with a Literal field that tells them apart"
                    )
        if isinstance(node, RecordType):
            for field in node.fields:
                self.visit(field.type, f"{node.name}.{field.name}")
        else:
            for child in node.children:
                self.visit(child, where)


def _base(node: ValueType) -> ValueType:
    return node.base if isinstance(node, LiteralType) else node


def _words(node: ValueType) -> str:
    if isinstance(node, LiteralType):
        return f"Literal[{', '.join(map(repr, node.values))}]"
    if isinstance(node, LogicalType):
        return node.name
    return {DecimalType: "decimal", UuidType: "uuid"}.get(type(node), node.branch)


def _look_alike(one: ValueType, other: ValueType) -> bool:
    for few, rest in ((one, other), (other, one)):
        values = few.json_values()
        if values is not None:
            return any(map(rest.wrote_json, values))
    if isinstance(one, _TEXT) and isinstance(other, _TEXT):
        return isinstance(one, _FREE_TEXT) or isinstance(other, _FREE_TEXT)
    if isinstance(one, RecordType) and isinstance(other, RecordType):
        return not _records_differ(one, other)
    if isinstance(one, RecordType | MapType) and isinstance(other, RecordType | MapType):
        return True
    return _form(one) == _form(other)


def _records_differ(one: RecordType, other: RecordType) -> bool:
    """Whether they have other fields, or a field with other values: records are written whole."""
    ours = {each.name: each.type for each in one.fields}
    theirs = {each.name: each.type for each in other.fields}
    if ours.keys() != theirs.keys():
        return True
    return any(
        (ours[name].json_values() is not None or theirs[name].json_values() is not None)
        and not _look_alike(ours[name], theirs[name])
        for name in ours
    )


def _form(node: ValueType) -> object:
    """The kind of JSON that a type writes."""
    for form, kinds in {
        "true or false": BooleanType,
        "whole number": IntegerType,
        "number": FloatingType,
        "array": ArrayType,
    }.items():
        if isinstance(node, kinds):
            return form
    return id(node)
