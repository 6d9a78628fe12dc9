"""Derives types of values from dataclasses, by their annotations (pure).

    bool boolean    int long    float double    str string    bytes bytes    None null
    datetime timestamp-micros   date date   time time-micros   UUID uuid   Enum enum
    Decimal   decimal of 38 digits, 18 after the point
    X | None  union; list, tuple[X, ...], set, frozenset, Sequence  array; dict, Mapping  map
    a dataclass or Record  record, which may contain itself

Other types are chosen with `Annotated`: `Annotated[int, AvroType("int")]`, of which the usual
ones have names here (`Int32`, `Float32`, `TimestampMillis`, `TimeMillis`, `LocalTimestamp`) or a
function (`decimal_of`). A default becomes Avro's default, and the branch it belongs to stands first
in its union, as Avro wants it. The record's name is the class's; `_avro_namespace`, if the class
has it, its namespace.

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import types
import typing
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints
from uuid import UUID

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.avro.avro_definition import types_of
from pulsar_py.schema.classes.records import Record, record_type
from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.logical_types import DecimalType, LogicalType, UuidType
from pulsar_py.schema.values.named_types import EnumType
from pulsar_py.schema.values.record_types import (
    ObjectType,
    RecordField,
    RecordType,
    UnionType,
)
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

__all__ = [
    "AvroType",
    "Float32",
    "Int32",
    "LocalTimestamp",
    "TimeMillis",
    "TimestampMillis",
    "decimal_of",
    "record_of",
]


@dataclass(frozen=True)
class AvroType:
    """For `Annotated`: the Avro type of a field, instead of that of its Python type."""

    definition: Any  # Any: text or object, as Avro definitions have it

    def __hash__(self) -> int:
        """Unions of annotations need it."""
        return hash(json.dumps(self.definition, sort_keys=True))


def decimal_of(precision: int, scale: int = 0) -> AvroType:
    """For `Annotated`: decimals of `precision` digits, `scale` of them after the point."""
    return AvroType(
        {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    )


Int32 = Annotated[int, AvroType("int")]
"""A whole number of 32 bits."""
Float32 = Annotated[float, AvroType("float")]
"""A floating-point number of 32 bits."""
TimestampMillis = Annotated[datetime, AvroType({"type": "long", "logicalType": "timestamp-millis"})]
"""A point in time, in milliseconds."""
LocalTimestamp = Annotated[
    datetime, AvroType({"type": "long", "logicalType": "local-timestamp-micros"})
]
"""Date and time without a time zone, in microseconds."""
TimeMillis = Annotated[time, AvroType({"type": "int", "logicalType": "time-millis"})]
"""A time of day in milliseconds, as Java's client writes `LocalTime` in records."""

_SIMPLE: Final[dict[object, Any]] = {  # Any: makes a ValueType
    bool: BooleanType,
    int: lambda: IntegerType("long"),
    float: lambda: FloatingType("double"),
    str: StringType,
    bytes: BytesType,
    type(None): NullType,
    datetime: lambda: LogicalType("timestamp-micros"),
    date: lambda: LogicalType("date"),
    time: lambda: LogicalType("time-micros"),
    UUID: UuidType,
    Decimal: lambda: DecimalType(38, 18),
}
_SEQUENCES: Final[dict[object, Any]] = {  # Any: makes the sequence of a list
    list: None,
    collections.abc.Sequence: None,
    collections.abc.Iterable: None,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
}
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def record_of(owner: type) -> RecordType:
    """The type of a dataclass or of a `Record` class.

    Raises:
        InvalidConfigurationError: It is neither, or a field's annotation has no Avro type; the
            message names class and field.
    """
    if not (isinstance(owner, type) and (is_dataclass(owner) or issubclass(owner, Record))):
        raise InvalidConfigurationError(
            f"{owner!r}: neither a dataclass nor a Record; give a class with @dataclass, or one "
            "derived from Record, or an Avro definition as schema_definition"
        )
    node = _Builder().of(owner)
    assert isinstance(node, RecordType), owner
    return node


class _Builder:
    """Builds the types of one schema: the same class is the same node."""

    def __init__(self) -> None:
        self._records: dict[type, RecordType] = {}

    def of(self, annotation: Any) -> ValueType:  # Any: annotations may be anything
        simple = _SIMPLE.get(annotation) if _is_hashable(annotation) else None
        if simple is not None:
            node: ValueType = simple()
            return node
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotated(arguments)
        if origin in {typing.Union, types.UnionType}:
            none_first = sorted(arguments, key=lambda each: each is not type(None))
            return UnionType([self.of(each) for each in none_first])
        if origin is not None or annotation in {list, dict, set, tuple, frozenset}:
            return self._container(annotation, origin, arguments)
        if isinstance(annotation, typing.NewType):
            return self.of(annotation.__supertype__)
        if isinstance(annotation, type):
            return self._of_class(annotation)
        raise InvalidConfigurationError(f"{annotation!r} has no type in Avro")

    def _annotated(self, arguments: tuple[Any, ...]) -> ValueType:
        for each in arguments[1:]:
            if isinstance(each, AvroType):
                return types_of(each.definition)
        return self.of(arguments[0])

    def _container(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> ValueType:
        if origin is tuple and arguments[1:] == (Ellipsis,):
            return ArrayType(self.of(arguments[0]), tuple)
        if origin in _SEQUENCES and len(arguments) == 1:
            return ArrayType(self.of(arguments[0]), _SEQUENCES[origin])
        if origin in _MAPPINGS and arguments[0] is str:
            return MapType(self.of(arguments[1]))
        raise InvalidConfigurationError(
            f"{annotation!r} has no type in Avro: "
            "expected list[X], tuple[X, ...], set[X] or dict[str, X]"
        )

    def _of_class(self, owner: type) -> ValueType:
        if (known := self._records.get(owner)) is not None:
            return known
        if issubclass(owner, Record):
            return record_type(owner)
        if dataclasses.is_dataclass(owner):
            return self._dataclass(owner)
        if issubclass(owner, Enum):
            return EnumType(owner.__name__, _namespace(owner), owner.__members__, owner)
        raise InvalidConfigurationError(f"{owner!r} has no type in Avro")

    def _dataclass(self, owner: type) -> RecordType:
        node = ObjectType(owner.__name__, _namespace(owner), owner)
        self._records[owner] = node
        try:
            hints = get_type_hints(owner, include_extras=True)
        except NameError as error:
            raise InvalidConfigurationError(
                f"{owner.__name__}: {error}; classes of fields have to be at a module's top level"
            ) from None
        node.fields = tuple(
            self._field(owner, each, hints[each.name])
            for each in dataclasses.fields(owner)
            if each.init
        )
        return node

    def _field(self, owner: type, field: dataclasses.Field[Any], annotation: Any) -> RecordField:
        try:
            node = self.of(annotation)
            value, has_default = _default_of(field)
            if not has_default:
                return RecordField(field.name, node)
            node = _default_first(node, value)
            default = node.to_default(value)
        except (InvalidConfigurationError, MisfitError) as error:
            raise InvalidConfigurationError(f"{owner.__name__}.{field.name}: {error}") from None
        return RecordField(field.name, node, default, may_be_absent=True)


def _default_of(field: dataclasses.Field[Any]) -> tuple[Any, bool]:
    if field.default is not dataclasses.MISSING:
        return field.default, True
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory(), True
    return None, False


def _default_first(node: ValueType, value: Any) -> ValueType:
    """The union with the default's branch first, as Avro requires."""
    if not isinstance(node, UnionType):
        return node
    first = next((each for each in node.branches if each.accepts(value)), None)
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
