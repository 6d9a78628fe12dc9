"""Arrow types for Avro types, and the conversions of their values (pure).

`shape_of` takes the tree of a definition and gives a `Shape`: the Arrow type of the column, and
functions that convert a plain value to one that `pa.array` takes. Where `pa.array` takes the plain
value as it is, there is no function, so most columns cost nothing:

    boolean, int, long, float, double, string     of the same kind
    bytes, fixed                                  binary; with `decimal`, decimal128 of up to 38
    enum, uuid                                    string
    int date                                      date32
    long timestamp-millis, -micros                timestamp in UTC
    long local-timestamp-millis, -micros          timestamp without a time zone
    int time-millis, long time-micros             the number, as in Spark's own Avro
    array, map, record                            list, map, struct
    union with null                               the other type, nullable
    int|long, float|double                        int64, float64
    other unions                                  struct member0, member1, ...: one is set

Days and milliseconds stay numbers in AVRO (see `resolution`): Arrow takes them, and `datetime`
objects would only cost. JSON has numbers or text for them; bytes are Base64 there, and
`json_numbers` reads numbers. Defaults of definitions, where bytes are characters up to 255, are
converted once; a default that does not fit its type is an error of the payloads that lack the
field.

A record that contains itself is refused: the type of a column is finite.

Source: the Avro 1.11 specification; SchemaConverters of Spark.
"""

from __future__ import annotations

import base64
import copy
import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from types import NoneType
from typing import Any, Final

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError, InvalidConfigurationError
from pulsar_py.schema.avro.avro_definition import parse_definition
from pulsar_py.schema.avro.avro_nodes import AvroNode, avro_node, is_recursive
from pulsar_py.spark.avro.conversions import MISFITS, Convert, null_or
from pulsar_py.spark.avro.json_numbers import branch_rank, number_of, whole_number, whole_numbers

__all__ = ["Shape", "definition_node", "shape_of"]

_MAX_DECIMAL_DIGITS: Final = 38
_DECIMALS: Final = decimal.Context(prec=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The Arrow type and the conversions of one Avro type.

    Conversions get no null, unless null is a value of the type.
    """

    arrow_type: pa.DataType
    """The type of the column."""
    is_nullable: bool = False
    """Whether null is one of the values."""
    plain_type: pa.DataType = None
    """The type that `pa.array` takes values as; a cast then makes it `arrow_type`."""
    of_bytes: Convert | None = None
    """Converts the bytes of a decimal in AVRO; None for all other types."""
    of_json: Convert | None = None
    """Converts values of a JSON parser; None: they are taken as they are."""
    of_default: Convert | None = None
    """Converts defaults as definitions write them; None: they are taken as they are."""
    children: tuple[Shape, ...] = ()
    """The shapes of a record's fields, an array's items, a map's values."""
    members: tuple[Shape, ...] = ()
    """The shapes of the branches, where a union becomes a struct."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of a record's fields, as Arrow takes them."""
    bad_defaults: Mapping[str, str] = field(default_factory=dict)
    """Why the default of a field does not fit its type, by the field's name."""
    name: str = ""
    """The name of the type; empty if it has none."""

    def __post_init__(self) -> None:
        if self.plain_type is None:
            object.__setattr__(self, "plain_type", self.arrow_type)

    def as_nullable(self) -> Shape:
        """The shape of a union of this type and null."""
        return replace(
            self,
            is_nullable=True,
            of_json=_or_none(self.of_json),
            of_default=_or_none(self.of_default),
        )


def definition_node(data: bytes) -> AvroNode:
    """The tree of a definition as brokers store it.

    Raises:
        ConfigurationError: Avro has no such definition.
    """
    try:
        return avro_node(parse_definition(data))
    except InvalidConfigurationError as error:
        raise ConfigurationError(f"the topic's schema: {error}") from error


def shape_of(node: AvroNode) -> Shape:
    """The shape of a definition, given as its tree.

    Raises:
        ConfigurationError: Values can't be a column; the text says why.
    """
    if is_recursive(node):
        raise ConfigurationError(
            "the topic's schema has a record that contains itself, which no column can be;"
            " valueMode=raw gives the payloads"
        )
    return _Shapes().of(node)


class _Shapes:
    """The shapes of one definition's types."""

    def __init__(self) -> None:
        self._known: dict[int, Shape] = {}

    def of(self, node: AvroNode) -> Shape:
        if id(node) not in self._known:
            shape = self._made(node)
            self._known[id(node)] = replace(shape, name=node.name) if node.name else shape
        return self._known[id(node)]

    def _made(self, node: AvroNode) -> Shape:
        children = [self.of(each) for each in node.children]
        match node.kind:
            case "record":
                return _record(node, children)
            case "array":
                return _array(children[0])
            case "map":
                return _map(children[0])
            case "union":
                return _union(children)
            case kind:
                return _logical(node.text, _SIMPLE[kind])


def _base64(value: Any) -> bytes:
    return base64.b64decode(value, validate=True)


def _latin1(value: Any) -> bytes:
    data: bytes = value.encode("latin-1") if isinstance(value, str) else _checked(value, str)
    return data


def _null_or_list(value: Any) -> Any:
    """Refuses text, which Arrow would take for a list of letters."""
    return value if value is None else _checked(value, list)


def _null_or_dict(value: Any) -> Any:
    """Refuses lists: Arrow would take an empty one for a record or map without entries."""
    return value if value is None else _checked(value, dict)


_TAKEN_AS_IT_IS: Final[Mapping[Convert, type]] = {
    whole_number: int,
    number_of: float,
    _null_or_list: list,
    _null_or_dict: dict,
}
"""Conversions that leave null as it is, and the type of which they change no value."""
_SIMPLE: Final[Mapping[str, Shape]] = {
    "null": Shape(arrow_type=pa.null(), is_nullable=True),
    "boolean": Shape(arrow_type=pa.bool_()),
    "int": Shape(arrow_type=pa.int32(), of_json=whole_number, of_default=whole_number),
    "long": Shape(arrow_type=pa.int64(), of_json=whole_number, of_default=whole_number),
    "float": Shape(arrow_type=pa.float32(), of_json=number_of, of_default=number_of),
    "double": Shape(arrow_type=pa.float64(), of_json=number_of, of_default=number_of),
    "bytes": Shape(arrow_type=pa.binary(), of_json=_base64, of_default=_latin1),
    "fixed": Shape(arrow_type=pa.binary(), of_json=_base64, of_default=_latin1),
    "string": Shape(arrow_type=pa.string()),
    "enum": Shape(arrow_type=pa.string()),
}


# --- logical types -------------------------------------------------------------------------------


def _logical(text: Mapping[str, Any], shape: Shape) -> Shape:
    """The shape with its logical type; Avro has unknown logical types ignored."""
    name = text.get("logicalType")
    if name == "decimal" and shape.arrow_type == pa.binary():
        return _decimal(text.get("precision"), text.get("scale", 0), shape)
    found = _LOGICAL.get(name) if isinstance(name, str) else None
    if found is None or found[0] != shape.arrow_type:
        return shape
    _, arrow_type, plain_type, of_json = found
    return Shape(arrow_type=arrow_type, plain_type=plain_type, of_json=of_json, of_default=of_json)


def _decimal(precision: Any, scale: Any, shape: Shape) -> Shape:
    if not isinstance(precision, int) or not isinstance(scale, int):
        return shape
    if not 0 <= scale <= precision <= _MAX_DECIMAL_DIGITS or not precision:
        raise ConfigurationError(
            f"a decimal of {precision} digits, {scale} of them behind the point, can't be a column:"
            f" these have up to {_MAX_DECIMAL_DIGITS} digits; valueMode=raw gives the payloads"
        )

    limit = 10**precision
    unit = decimal.Decimal(1).scaleb(-scale)
    exact = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    kind = f"not a decimal of {precision} digits, {scale} of them behind the point"

    def of_bytes(value: bytes) -> decimal.Decimal:
        number = int.from_bytes(value, "big", signed=True)
        # A hostile payload may have a number of a megabyte, whose digits would take minutes.
        if not -limit < number < limit:
            raise ValueError(f"{len(value)} bytes are {kind}")
        return decimal.Decimal(number).scaleb(-scale, _DECIMALS)

    def of_json(value: Any) -> decimal.Decimal:
        # Arrow aborts the process where an exponent is far from the scale.
        try:
            return exact.quantize(decimal.Decimal(str(value)), unit)
        except decimal.DecimalException:
            raise ValueError(f"{value!r:.100} is {kind}") from None

    return Shape(
        arrow_type=pa.decimal128(precision, scale),
        of_bytes=of_bytes,
        of_json=of_json,
        of_default=lambda value: of_bytes(_latin1(value)),
    )


def _of_text(parse: Callable[[str], Any]) -> Convert:
    """Reads a number of the unit, or text in ISO 8601."""

    def of_json(value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise TypeError(f"{value!r:.100} is neither a number nor a time as text")

    return of_json


def _point(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"{text!r:.100} has no time zone")
    return value.astimezone(UTC)


def _local_point(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError(f"{text!r:.100} has a time zone, and local times have none")
    return value


_MILLIS: Final = pa.timestamp("ms", "UTC")
_MICROS: Final = pa.timestamp("us", "UTC")
_LOCAL_MILLIS: Final = pa.timestamp("ms")
_LOCAL_MICROS: Final = pa.timestamp("us")
_LOGICAL: Final[Mapping[str, tuple[pa.DataType, pa.DataType, pa.DataType, Convert]]] = {
    "date": (pa.int32(), pa.date32(), pa.date32(), _of_text(date.fromisoformat)),
    "timestamp-millis": (pa.int64(), _MICROS, _MILLIS, _of_text(_point)),
    "timestamp-micros": (pa.int64(), _MICROS, _MICROS, _of_text(_point)),
    "local-timestamp-millis": (
        pa.int64(),
        _LOCAL_MICROS,
        _LOCAL_MILLIS,
        _of_text(_local_point),
    ),
    "local-timestamp-micros": (
        pa.int64(),
        _LOCAL_MICROS,
        _LOCAL_MICROS,
        _of_text(_local_point),
    ),
}
"""By logical type: the type below it, the column's, that of plain numbers, and JSON's reader."""


# --- what is made of other types -----------------------------------------------------------------


def _or_none(convert: Convert | None) -> Convert | None:
    return convert if convert in _TAKEN_AS_IT_IS else null_or(convert)


def _array(items: Shape) -> Shape:
    def each(convert: Convert | None) -> Convert:
        if convert is None:
            return _null_or_list
        if convert is whole_number:
            return lambda values: whole_numbers(_checked(values, list))
        return lambda values: [convert(value) for value in _checked(values, list)]

    return Shape(
        arrow_type=pa.list_(items.arrow_type),
        plain_type=pa.list_(items.plain_type),
        of_json=each(items.of_json),
        of_default=each(items.of_default),
        children=(items,),
    )


def _map(values: Shape) -> Shape:
    def each(convert: Convert | None) -> Convert:
        if convert is None:
            return _null_or_dict
        return lambda pairs: {key: convert(item) for key, item in _checked(pairs, dict).items()}

    return Shape(
        arrow_type=pa.map_(pa.string(), values.arrow_type),
        plain_type=pa.map_(pa.string(), values.plain_type),
        of_json=each(values.of_json),
        of_default=each(values.of_default),
        children=(values,),
    )


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} is not a {kind.__name__}")
    return value


def _record(node: AvroNode, shapes: Sequence[Shape]) -> Shape:
    names = [each["name"] for each in node.fields]
    if not names:
        raise ConfigurationError(
            f"record {node.name} has no fields, and Spark has no struct without fields;"
            " valueMode=raw gives the payloads"
        )
    defaults: dict[str, Any] = {}
    bad_defaults: dict[str, str] = {}
    for text, shape in zip(node.fields, shapes, strict=True):
        if "default" not in text:
            continue
        try:
            defaults[text["name"]] = _default(shape, text["default"])
        except MISFITS as error:
            bad_defaults[text["name"]] = (
                f"missing, and {text['default']!r:.100}, its default in {node.name}, does not fit:"
                f" {error!s:.200}"
            )
    types = list(zip(names, shapes, strict=True))
    return Shape(
        arrow_type=pa.struct([pa.field(name, shape.arrow_type) for name, shape in types]),
        plain_type=pa.struct([pa.field(name, shape.plain_type) for name, shape in types]),
        of_json=_record_of_json(types, defaults, bad_defaults),
        of_default=_record_of_default(types, defaults),
        children=tuple(shapes),
        defaults=defaults,
        bad_defaults=bad_defaults,
    )


def _default(shape: Shape, value: Any) -> Any:
    """A field's default as Arrow takes it."""
    if value is None and shape.is_nullable:
        return None
    plain = value if shape.of_default is None else shape.of_default(value)
    if plain is None:
        raise TypeError("null is not a value of the type")
    pa.array([plain], shape.plain_type)
    return plain


def _record_of_json(
    types: Sequence[tuple[str, Shape]],
    defaults: Mapping[str, Any],
    bad_defaults: Mapping[str, str],
) -> Convert:
    """Converts fields in place: the dicts were just read, and have no other user."""
    # Almost all numbers have the type of their field already: one comparison spares the call.
    converts = [
        (name, _TAKEN_AS_IT_IS.get(shape.of_json, NoneType), shape.of_json)
        for name, shape in types
        if shape.of_json is not None
    ]
    fills = [(name, value) for name, value in defaults.items() if value is not None]

    def of_json(values: Any) -> dict[str, Any]:
        # Hot path: JSON in benchmarks.micro_spark.
        record: dict[str, Any] = _checked(values, dict)
        get = record.get
        name = ""
        try:
            for name, taken, convert in converts:
                value = get(name)
                if type(value) is not taken and value is not None:
                    record[name] = convert(value)
        except MISFITS as error:
            raise ValueError(f"{name}: {error}") from error
        for name, value in fills:
            record.setdefault(name, value)
        for name, why in bad_defaults.items():
            if name not in record:
                raise ValueError(f"{name}: {why}")
        return record

    return of_json if converts or fills or bad_defaults else _null_or_dict


def _record_of_default(
    types: Sequence[tuple[str, Shape]], defaults: Mapping[str, Any]
) -> Convert | None:
    def of_default(values: Any) -> dict[str, Any]:
        """Converts a copy: the definition keeps its default, and rows share the result."""
        given = _checked(values, dict)
        record = {}
        for name, shape in types:
            if name in given:
                record[name] = _default(shape, given[name])
            elif name in defaults:
                record[name] = defaults[name]
            elif not shape.is_nullable:
                raise ValueError(f"it has no {name}")
        return record

    return of_default


def _union(branches: Sequence[Shape]) -> Shape:
    is_nullable = any(pa.types.is_null(each.arrow_type) for each in branches)
    others = [each for each in branches if not pa.types.is_null(each.arrow_type)]
    if not others:
        return _SIMPLE["null"]
    shape = others[0] if len(others) == 1 else _merged(others) or _members(others)
    return shape.as_nullable() if is_nullable else shape


def _merged(branches: Sequence[Shape]) -> Shape | None:
    """The shape of int|long or float|double, which are one column; None for other unions."""
    kinds = {each.arrow_type for each in branches}
    if kinds == {pa.int32(), pa.int64()}:
        return _SIMPLE["long"]
    return _SIMPLE["double"] if kinds == {pa.float32(), pa.float64()} else None


def _members(branches: Sequence[Shape]) -> Shape:
    """A struct with a member for each branch, of which one is set."""
    members = [(f"member{index}", branch) for index, branch in enumerate(branches)]

    def of_json(value: Any) -> dict[str, Any]:
        ranked = sorted(members, key=lambda each: branch_rank(value, each[1].arrow_type))
        for member, branch in ranked:
            try:
                # Records are converted in place, and this branch may turn out not to fit.
                plain = copy.deepcopy(value) if isinstance(value, dict | list) else value
                plain = plain if branch.of_json is None else branch.of_json(plain)
                pa.scalar(plain, branch.plain_type)
            except MISFITS:
                continue
            return {member: plain}
        raise TypeError(f"{value!r:.100} is not of any branch of the union")

    def of_default(value: Any) -> dict[str, Any]:
        for member, branch in members:
            try:
                return {member: _default(branch, value)}
            except MISFITS:
                continue
        raise TypeError(f"{value!r:.100} is not of any branch of the union")

    return Shape(
        arrow_type=pa.struct([pa.field(name, branch.arrow_type) for name, branch in members]),
        plain_type=pa.struct([pa.field(name, branch.plain_type) for name, branch in members]),
        of_json=of_json,
        of_default=of_default,
        members=tuple(branches),  # and no `children`: these would be required
    )
