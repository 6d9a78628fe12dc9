"""Builds types of values from annotations, and records from classes (pure).

    bool boolean    int long    float double    str string    bytes bytes    None null
    datetime timestamp-micros   date date   time time-micros   UUID uuid   Enum enum
    Decimal   decimal of 38 digits, 18 after the point
    Literal   the type of its values
    A | B     union; list, tuple[X, ...], set, frozenset, Sequence  array; dict, Mapping  map
    a dataclass, pydantic model, TypedDict, NamedTuple or Record    record, which may contain itself

`Annotated` chooses other types (`annotations`). A default becomes Avro's default, and the branch it
belongs to stands first in its union, as Avro wants it. The record's name is the class's;
`_avro_namespace`, if the class has it, its namespace. What has no type is refused with the name of
the field and what to use instead (`refusals`).

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, get_args, get_origin
from uuid import UUID

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.avro.avro_definition import types_of
from pulsar_py.schema.classes.annotations import AvroType
from pulsar_py.schema.classes.class_fields import ClassField, Description, describe
from pulsar_py.schema.classes.defaults import fixed_default
from pulsar_py.schema.classes.pydantic_models import decimal_digits, underlying_type
from pulsar_py.schema.classes.records import Record, record_type
from pulsar_py.schema.classes.refusals import avro_name, no_record, no_type
from pulsar_py.schema.classes.union_checks import check_union
from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.literal_type import LiteralType
from pulsar_py.schema.values.logical_types import DecimalType, LogicalType, UuidType
from pulsar_py.schema.values.named_types import EnumType
from pulsar_py.schema.values.record_types import RecordField, RecordType, UnionType
from pulsar_py.schema.values.value_types import (
    BooleanType,
    BytesType,
    FloatingType,
    IntegerType,
    MisfitError,
    NullType,
    StringType,
    ValueType,
)

__all__ = ["record_of"]

_SIMPLE: Final[dict[object, Callable[[], ValueType]]] = {
    bool: BooleanType,
    int: lambda: IntegerType("long"),
    float: lambda: FloatingType("double"),
    str: StringType,
    bytes: BytesType,
    None: NullType,
    type(None): NullType,
    datetime: lambda: LogicalType("timestamp-micros"),
    date: lambda: LogicalType("date"),
    time: lambda: LogicalType("time-micros"),
    UUID: UuidType,
    Decimal: lambda: DecimalType(38, 18),
}
_SEQUENCES: Final[dict[object, Callable[[list[Any]], Any] | None]] = {
    list: None,
    collections.abc.Sequence: None,
    collections.abc.Iterable: None,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
}
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def record_of(owner: type) -> RecordType:
    """The type of a dataclass, pydantic model, TypedDict, NamedTuple or `Record` class.

    Raises:
        InvalidConfigurationError: It is none of these, or an annotation has no Avro type; the
            message names class and field, and what to use instead.
    """
    if isinstance(owner, type) and issubclass(owner, Record):
        return record_type(owner)
    description = describe(owner)
    if description is None:
        raise no_record(owner)
    return _Builder().record(owner, description)


class _Builder:
    """Builds the types of one schema: the same class is the same node."""

    def __init__(self) -> None:
        self._records: dict[type, RecordType] = {}

    def of(self, annotation: Any) -> ValueType:  # Any: annotations may be anything
        simple = _SIMPLE.get(annotation) if _is_hashable(annotation) else None
        if simple is not None:
            return simple()
        if get_origin(annotation) is not None:
            return self._of_arguments(annotation, get_origin(annotation), get_args(annotation))
        if isinstance(annotation, typing.NewType):
            return self.of(annotation.__supertype__)
        if isinstance(annotation, type):
            return self._of_class(annotation)
        raise no_type(annotation)

    def _of_arguments(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> ValueType:
        if origin is Annotated:
            return self._annotated(arguments)
        if origin is Literal:
            return _union(_literals(arguments))
        if origin in {typing.Union, types.UnionType}:
            return self._union_of(arguments)
        return self._container(annotation, origin, arguments)

    def _annotated(self, arguments: tuple[Any, ...]) -> ValueType:
        for each in arguments[1:]:
            if isinstance(each, AvroType):
                return types_of(each.definition)
        if arguments[0] is Decimal and (digits := decimal_digits(arguments[1:])) is not None:
            return DecimalType(*digits)
        return self.of(arguments[0])

    def _union_of(self, arguments: tuple[Any, ...]) -> ValueType:
        """All `Literal`s of a union are one; None stands first."""
        literals: list[Any] = []
        branches: list[ValueType] = []
        for each in arguments:
            if get_origin(each) is Literal:
                literals += get_args(each)
            else:
                branches.append(self.of(each))
        if literals:
            branches += _literals(literals)
        return _union(branches)

    def _container(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> ValueType:
        if origin is tuple and arguments[1:] == (Ellipsis,):
            return ArrayType(self.of(arguments[0]), tuple)
        if origin in _SEQUENCES and len(arguments) == 1:
            return ArrayType(self.of(arguments[0]), _SEQUENCES[origin])
        if origin in _MAPPINGS and arguments[0] is str:
            return MapType(self.of(arguments[1]))
        raise no_type(annotation)

    def _of_class(self, owner: type) -> ValueType:
        if (known := self._records.get(owner)) is not None:
            return known
        if issubclass(owner, Record):
            return record_type(owner)
        if (description := describe(owner)) is not None:
            return self.record(owner, description)
        if issubclass(owner, Enum) and not issubclass(owner, Flag):
            names = [avro_name(each, owner.__name__) for each in owner.__members__]
            return EnumType(
                avro_name(owner.__name__, "class"), _namespace(owner), dict.fromkeys(names), owner
            )
        if (underlying := underlying_type(owner)) is not None:
            return self.of(underlying)
        raise no_type(owner)

    def record(self, owner: type, description: Description) -> RecordType:
        node = description.node(avro_name(description.name, "class"), _namespace(owner))
        self._records[owner] = node
        node.fields = tuple(self._field(owner, each) for each in description.fields())
        return node

    def _field(self, owner: type, field: ClassField) -> RecordField:
        try:
            node = self.of(field.annotation)
            name = avro_name(field.name, "field")
            if not field.has_default:
                return RecordField(name, node)
            if field.factory is not None:
                value, is_fixed = fixed_default(field.factory)
                if not is_fixed:
                    return RecordField(name, node, may_be_absent=True)
            else:
                value = field.default
            node = _default_first(node, value)
            default = node.to_default(value)
        except (InvalidConfigurationError, MisfitError) as error:
            raise InvalidConfigurationError(f"{owner.__name__}.{field.name}: {error}") from None
        return RecordField(name, node, default, may_be_absent=True)


def _literals(values: collections.abc.Iterable[Any]) -> list[ValueType]:
    """A branch for each type of the values."""
    by_type: dict[type, list[Any]] = {}
    for value in values:
        known = by_type.setdefault(type(value), [])
        if value not in known:
            known.append(value)
    branches: list[ValueType] = []
    for kind, group in by_type.items():
        base = _Builder().of(kind)
        branches.append(base if kind is type(None) else LiteralType(base, group))
    return branches


def _union(branches: list[ValueType]) -> ValueType:
    if len(branches) == 1:
        return branches[0]
    none_first = sorted(branches, key=lambda each: not isinstance(each, NullType))
    check_union(none_first)
    return UnionType(none_first)


def _default_first(node: ValueType, value: Any) -> ValueType:
    """The union with the default's branch first, as Avro requires."""
    if not isinstance(node, UnionType):
        return node
    first = next((each for each in node.branches if each.is_own(value)), None)
    first = first or next((each for each in node.branches if each.accepts(value)), None)
    if first is None:
        raise MisfitError(f"default {value!r:.100} fits no branch of the union")
    return UnionType([first, *(each for each in node.branches if each is not first)])


def _namespace(owner: type) -> str | None:
    namespace = getattr(owner, "_avro_namespace", None)
    return namespace if isinstance(namespace, str) else None


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
