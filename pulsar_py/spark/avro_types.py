"""Avro definitions as Arrow types, and values of either encoding as what Arrow takes (pure).

`shape_of` reads a definition as brokers store it and gives a `Shape`: the Arrow type of the column,
and functions that make of a plain value (of fastavro, or of a JSON parser) one that `pa.array`
takes. Where a plain value is taken as it is there is no function, so most columns cost nothing:

    boolean, int, long, float, double, string     of the same kind
    bytes, fixed                                  binary; with `decimal`, decimal128 of up to 38
    enum, uuid                                    string
    int date                                      date32
    long timestamp-millis, -micros                timestamp in UTC
    long local-timestamp-millis, -micros          timestamp without a time zone
    int time-millis, long time-micros             the number, as Spark's own Avro has it
    array, map, record                            list, map, struct
    union with null                               the other type, null
    int|long, float|double                        int64, float64
    other unions                                  struct member0, member1, ...: one is set

Logical types are taken off the definitions that payloads are read by (`without_logical_types`):
Arrow takes days and milliseconds as numbers, and a `datetime` a value would only cost. JSON has
them as numbers, too, or as text; bytes are Base64 there.

A record that contains itself is refused: a column's type is finite.

Source: spec section 1.2; the Avro 1.11 specification; SchemaConverters of Spark.
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError, InvalidConfigurationError
from pulsar_py.schema.avro_definition import is_recursive, types_of
from pulsar_py.schema.named_types import full_name

__all__ = ["Convert", "Shape", "shape_of", "without_logical_types"]

AvroJson = Any
"""A definition, as the JSON of it."""

Convert = Callable[[Any], Any]
"""Makes of a value, never None, one that Arrow takes. Raises ValueError or TypeError."""

_MAX_DECIMAL_DIGITS: Final = 38
_DECIMALS: Final = decimal.Context(prec=100)


@dataclass(frozen=True, slots=True)
class Shape:
    """What becomes of values of one Avro type."""

    arrow_type: pa.DataType
    """The column's."""
    is_nullable: bool = False
    """Whether null is one of the values."""
    plain_type: pa.DataType = None
    """What `pa.array` takes the values as before a cast makes them `arrow_type`."""
    of_avro: Convert | None = None
    """Of fastavro's; None: they are taken as they are."""
    of_json: Convert | None = None
    children: tuple[Shape, ...] = ()
    """Of a record's fields, an array's items, a map's values."""
    # Python types of fastavro's values, and names of types: tells the branches of unions apart.
    python_types: tuple[type, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if self.plain_type is None:
            object.__setattr__(self, "plain_type", self.arrow_type)

    def as_nullable(self) -> Shape:
        """The same, or null."""
        return Shape(
            self.arrow_type,
            True,
            self.plain_type,
            _or_none(_unpaired(self)),
            _or_none(self.of_json),
            self.children,
            self.python_types,
            self.name,
        )


def shape_of(definition: AvroJson) -> Shape:
    """What becomes of values of a definition.

    Raises:
        ConfigurationError: It is no definition, or can't be a column; the text says where.
    """
    try:
        types = types_of(definition)
    except InvalidConfigurationError as error:
        raise ConfigurationError(f"the topic's schema: {error}") from error
    if is_recursive(types):
        raise ConfigurationError(
            "the topic's schema has a record that contains itself, which no column can be;"
            " valueMode=raw gives the payloads"
        )
    return _Reader().read(definition, None)


def without_logical_types(definition: AvroJson) -> AvroJson:
    """A definition by which values come as numbers, bytes and text."""
    if isinstance(definition, list):
        return [without_logical_types(each) for each in definition]
    if not isinstance(definition, Mapping):
        return definition
    return {
        key: value if key == "default" else without_logical_types(value)
        for key, value in definition.items()
        if key != "logicalType"
    }


class _Reader:
    """Reads one definition that `types_of` found to be one."""

    def __init__(self) -> None:
        self._named: dict[str, Shape] = {}

    def read(self, text: AvroJson, namespace: str | None) -> Shape:
        if isinstance(text, list):
            return _union([self.read(each, namespace) for each in text])
        if isinstance(text, str):
            found = _SIMPLE.get(text) or self._named.get(full_name(text, namespace))
            return found or self._named[text]
        return self._of_object(text, namespace)

    def _of_object(self, text: AvroJson, namespace: str | None) -> Shape:
        shape: Shape
        match text["type"]:
            case "record" | "error":
                shape = self._record(text, namespace)
            case "enum":
                shape = self._define(text, namespace, _ENUM)
            case "fixed":
                shape = self._define(text, namespace, _logical(text, _SIMPLE["bytes"]))
            case "array":
                shape = _array(self.read(text["items"], namespace))
            case "map":
                shape = _map(self.read(text["values"], namespace))
            case kind:
                shape = _logical(text, self.read(kind, namespace))
        return shape

    def _define(self, text: AvroJson, namespace: str | None, shape: Shape) -> Shape:
        name = full_name(text["name"], text.get("namespace", namespace) or None)
        named = Shape(
            shape.arrow_type,
            False,
            shape.plain_type,
            shape.of_avro,
            shape.of_json,
            shape.children,
            shape.python_types,
            name,
        )
        self._named[name] = named
        return named

    def _record(self, text: AvroJson, namespace: str | None) -> Shape:
        name = full_name(text["name"], text.get("namespace", namespace) or None)
        inner = name.rpartition(".")[0] or None
        names = [each["name"] for each in text["fields"]]
        shapes = [self.read(each["type"], inner) for each in text["fields"]]
        if not names:
            raise ConfigurationError(f"record {name} has no fields, which no column can have")
        defaults = {
            each["name"]: _default(shape, each["default"])
            for each, shape in zip(text["fields"], shapes, strict=True)
            if each.get("default") is not None
        }
        return self._define(text, namespace, _struct(names, shapes, defaults))


def _floating(value: Any) -> float:
    """Numbers; what is not finite comes as text."""
    return float(value) if isinstance(value, str) else value


def _base64(value: Any) -> bytes:
    return base64.b64decode(value, validate=True)


_SIMPLE: Final[Mapping[str, Shape]] = {
    "null": Shape(pa.null(), is_nullable=True),
    "boolean": Shape(pa.bool_(), python_types=(bool,)),
    "int": Shape(pa.int32(), python_types=(int,)),
    "long": Shape(pa.int64(), python_types=(int,)),
    "float": Shape(pa.float32(), python_types=(float, int), of_json=_floating),
    "double": Shape(pa.float64(), python_types=(float, int), of_json=_floating),
    "bytes": Shape(pa.binary(), python_types=(bytes,), of_json=_base64),
    "string": Shape(pa.string(), python_types=(str,)),
}
_ENUM: Final = Shape(pa.string(), python_types=(str,))


# --- logical types -------------------------------------------------------------------------------


def _logical(text: Mapping[str, Any], shape: Shape) -> Shape:
    """The shape of a definition with `logicalType`; unknown ones mean nothing (see Avro)."""
    name = text.get("logicalType")
    is_bytes = shape.arrow_type == pa.binary()
    if name == "decimal" and is_bytes:
        return _decimal(text.get("precision"), text.get("scale", 0), shape)
    found = _LOGICAL.get(name) if isinstance(name, str) else None
    if found is None or found[0] != shape.arrow_type:
        return shape
    _, arrow_type, plain_type, of_json = found
    return Shape(arrow_type, False, plain_type, None, of_json, (), (int,))


def _decimal(precision: Any, scale: Any, shape: Shape) -> Shape:
    if not isinstance(precision, int) or not isinstance(scale, int):
        return shape
    if not 0 <= scale <= precision <= _MAX_DECIMAL_DIGITS or not precision:
        raise ConfigurationError(
            f"a decimal of {precision} digits, {scale} of them behind the point: columns have up"
            f" to {_MAX_DECIMAL_DIGITS}"
        )

    def of_avro(value: bytes) -> decimal.Decimal:
        number = decimal.Decimal(int.from_bytes(value, "big", signed=True))
        return number.scaleb(-scale, _DECIMALS)

    def of_json(value: Any) -> decimal.Decimal:
        return decimal.Decimal(str(value))

    return Shape(
        pa.decimal128(precision, scale), of_avro=of_avro, of_json=of_json, python_types=(bytes,)
    )


def _of_text(parse: Callable[[str], Any]) -> Convert:
    """JSON has a number of the unit, or text in ISO 8601."""

    def of_json(value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, int):
            return value
        raise TypeError(f"{value!r:.100} is neither a number nor a time as text")

    return of_json


def _point(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"{text!r:.100} has no time zone")
    return value.astimezone(UTC)


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
        _of_text(datetime.fromisoformat),
    ),
    "local-timestamp-micros": (
        pa.int64(),
        _LOCAL_MICROS,
        _LOCAL_MICROS,
        _of_text(datetime.fromisoformat),
    ),
}
"""Of which type, the column's type, what plain numbers are taken as, and what reads JSON."""


# --- what is made of other types -----------------------------------------------------------------


def _or_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _unpaired(shape: Shape) -> Convert | None:
    """In unions fastavro gives values of named types as pairs of name and value."""
    convert = shape.of_avro
    if not shape.name:
        return convert
    if convert is None:
        return lambda value: value[1] if type(value) is tuple else value
    return lambda value: convert(value[1] if type(value) is tuple else value)


def _array(items: Shape) -> Shape:
    def each(convert: Convert | None) -> Convert | None:
        if convert is None:
            return None
        return lambda values: [convert(value) for value in _checked(values, list)]

    return Shape(
        pa.list_(items.arrow_type),
        False,
        pa.list_(items.plain_type),
        each(items.of_avro),
        each(items.of_json),
        (items,),
        (list,),
    )


def _map(values: Shape) -> Shape:
    def each(convert: Convert | None) -> Convert | None:
        if convert is None:
            return None
        return lambda pairs: {key: convert(item) for key, item in _checked(pairs, dict).items()}

    return Shape(
        pa.map_(pa.string(), values.arrow_type),
        False,
        pa.map_(pa.string(), values.plain_type),
        each(values.of_avro),
        each(values.of_json),
        (values,),
        (dict,),
    )


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} is no {kind.__name__}")
    return value


def _struct(names: Sequence[str], shapes: Sequence[Shape], defaults: Mapping[str, Any]) -> Shape:
    """Fields are converted in place: the dicts were just read, and nobody else has them."""
    of_avro = [(name, s.of_avro) for name, s in zip(names, shapes, strict=True) if s.of_avro]
    of_json = [(name, s.of_json) for name, s in zip(names, shapes, strict=True) if s.of_json]

    def record_of_avro(values: dict[str, Any]) -> dict[str, Any]:
        for name, convert in of_avro:
            values[name] = convert(values[name])
        return values

    def record_of_json(values: Any) -> dict[str, Any]:
        record: dict[str, Any] = _checked(values, dict)
        for name, convert in of_json:
            if (value := record.get(name)) is not None:
                record[name] = convert(value)
        for name, value in defaults.items():
            record.setdefault(name, value)
        return record

    types = list(zip(names, shapes, strict=True))
    return Shape(
        pa.struct([pa.field(name, shape.arrow_type) for name, shape in types]),
        False,
        pa.struct([pa.field(name, shape.plain_type) for name, shape in types]),
        record_of_avro if of_avro else None,
        record_of_json if of_json or defaults else None,
        tuple(shapes),
        (dict,),
    )


def _default(shape: Shape, value: Any) -> Any:
    """What Arrow takes for a field that JSON leaves out; definitions write bytes as Latin-1."""
    if isinstance(value, str) and bytes in shape.python_types:
        data = value.encode("latin-1")
        return data if shape.of_avro is None else shape.of_avro(data)
    if isinstance(value, str | int) or shape.of_json is None:
        return value
    return shape.of_json(value)


def _union(branches: Sequence[Shape]) -> Shape:
    is_nullable = any(pa.types.is_null(each.arrow_type) for each in branches)
    others = [each for each in branches if not pa.types.is_null(each.arrow_type)]
    if not others:
        return _SIMPLE["null"]
    shape = others[0] if len(others) == 1 else _merged(others) or _members(others)
    return shape.as_nullable() if is_nullable else shape


def _merged(branches: Sequence[Shape]) -> Shape | None:
    """int|long and float|double are one column."""
    kinds = {each.arrow_type for each in branches}
    if kinds == {pa.int32(), pa.int64()}:
        return _SIMPLE["long"]
    return _SIMPLE["double"] if kinds == {pa.float32(), pa.float64()} else None


def _members(branches: Sequence[Shape]) -> Shape:
    """A struct of which the member is set that the value is of.

    fastavro names records, enumerations and fixed values; of others, and in JSON, the first branch
    counts that has values of that Python type.
    """
    names = [f"member{index}" for index in range(len(branches))]

    def of_avro(value: Any) -> dict[str, Any]:
        name, value = value if type(value) is tuple else ("", value)
        for member, branch in zip(names, branches, strict=True):
            if branch.name == name if name else isinstance(value, branch.python_types):
                return {member: value if branch.of_avro is None else branch.of_avro(value)}
        raise TypeError(f"{value!r:.100} is of no branch")

    def of_json(value: Any) -> dict[str, Any]:
        for member, branch in zip(names, branches, strict=True):
            try:
                plain = value if branch.of_json is None else branch.of_json(value)
                pa.scalar(plain, branch.plain_type)
            except (TypeError, ValueError, ArithmeticError):
                continue
            return {member: plain}
        raise TypeError(f"{value!r:.100} is of no branch")

    types = list(zip(names, branches, strict=True))
    return Shape(
        pa.struct([pa.field(name, branch.arrow_type) for name, branch in types]),
        False,
        pa.struct([pa.field(name, branch.plain_type) for name, branch in types]),
        of_avro,
        of_json,
        (),  # none of them is required
        (dict,),
    )
