"""Decodes payloads into Arrow arrays: one codec for each kind of schema (pure).

A `PayloadCodec` decodes many payloads in one call, all or none: so numbers are one `struct.unpack`,
JSON is one call of its parser, and the columns of a record are one `pa.array`. Where a payload does
not fit, `decode_around` halves the payloads until it is found: only bad payloads cost extra time,
and the result of a row never depends on the rows next to it.

Several payloads in one JSON text could shift each other if one closed a bracket that it did not
open. So each is followed by a random number that a payload can't predict, and payloads are parsed
one by one if these numbers are not all in their places.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from struct import Struct, unpack
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from pulsar_py.common.errors import (
    ConfigurationError,
    InvalidConfigurationError,
    SchemaSerializationError,
)
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.schema.avro.avro_definition import parse_definition
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.flat_records import flat_decoder
from pulsar_py.spark.avro.json_numbers import WrittenFloat
from pulsar_py.spark.avro.resolution import ResolvedReader
from pulsar_py.spark.avro.shapes import Shape, definition_node, shape_of
from pulsar_py.spark.values.arrays import Array, binary_array
from pulsar_py.spark.values.protobuf_types import ProtobufPayloads

__all__ = ["RAW_BYTES", "ColumnCodec", "PayloadCodec", "codec_of", "decode_around"]

Payloads: TypeAlias = Sequence[bytes | None]

_MISFITS: Final = (ValueError, TypeError, ArithmeticError, KeyError, RecursionError)
"""The errors of parsers, conversions and Arrow where values don't fit."""


class PayloadCodec(Protocol):
    """Decodes the payloads of one schema."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the arrays; a struct for records."""

    @property
    def reads_versions(self) -> bool:
        """Whether `decode` needs the definition that payloads were written with."""

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """The values of all payloads; None is null.

        Args:
            payloads: Payloads that were written with one version of the schema.
            writer: The definition of that version; None for the codec's own schema.

        Raises:
            SchemaSerializationError: At least one payload does not fit.
        """


@runtime_checkable
class ColumnCodec(Protocol):
    """Decodes payloads that are a binary column already, without an object for each."""

    def decode_column(self, payloads: Array) -> Array:
        """The values of all payloads, none of which is null.

        Raises:
            SchemaSerializationError: At least one payload does not fit.
        """


def decode_around(
    codec: PayloadCodec, payloads: Payloads, writer: SchemaInfo | None
) -> tuple[Array, dict[int, SchemaSerializationError]]:
    """All values, null where a payload does not fit; and the errors by row."""
    errors: dict[int, SchemaSerializationError] = {}
    arrays: list[Array] = []

    def decode(start: int, end: int) -> None:
        try:
            arrays.append(codec.decode(payloads[start:end], writer))
        except SchemaSerializationError as error:
            if end - start == 1:
                errors[start] = error
                arrays.append(pa.nulls(1, codec.arrow_type))
                return
            middle = (start + end) // 2
            decode(start, middle)
            decode(middle, end)

    decode(0, len(payloads))
    return (arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)), errors


def codec_of(info: SchemaInfo) -> PayloadCodec:
    """The codec for payloads of a schema; KEY_VALUE pairs have two, see `value_columns`.

    Raises:
        ConfigurationError: Values of the schema can't be columns.
    """
    if (simple := _SIMPLE.get(info.type)) is not None:
        return simple
    if (kind := _DEFINED.get(info.type)) is not None:
        return kind(info)
    raise ConfigurationError(
        f"values of schema type {info.type.name} can't be decoded; valueMode=raw gives the payloads"
    )


def _misfit(error: Exception) -> SchemaSerializationError:
    return SchemaSerializationError(f"{str(error) or type(error).__name__:.300}")


# --- single values -------------------------------------------------------------------------------


class _Bytes:
    """Payloads as they are."""

    arrow_type = pa.binary()
    reads_versions = False

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        del writer
        sound = [each for each in payloads if each is not None]
        if len(sound) == len(payloads):
            return binary_array(sound)
        return pa.array(payloads, pa.binary())

    def decode_column(self, payloads: Array) -> Array:
        """See `ColumnCodec`."""
        return payloads


RAW_BYTES: Final[PayloadCodec] = _Bytes()


class _Texts:
    """Payloads of UTF-8."""

    arrow_type = pa.string()
    reads_versions = False

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        del writer
        return self.decode_column(pa.array(payloads, pa.binary()))

    def decode_column(self, payloads: Array) -> Array:
        """See `ColumnCodec`."""
        try:
            return payloads.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise _misfit(error) from error


class _Numbers:
    """Payloads of a fixed size, big endian; `convert` makes values for Arrow of all numbers."""

    reads_versions = False

    def __init__(
        self,
        arrow_type: pa.DataType,
        layout: str,
        convert: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
        plain_type: pa.DataType = None,
    ) -> None:
        self.arrow_type = arrow_type
        self._plain_type = plain_type or arrow_type
        self._layout = layout
        self._size_bytes = Struct(f">{layout}").size
        self._convert = convert

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        del writer
        size = self._size_bytes
        there = [each for each in payloads if each is not None]
        if wrong := set(map(len, there)) - {size}:
            raise SchemaSerializationError(
                f"the payload has {wrong.pop()} bytes, values of its type have {size}"
            )
        numbers: Sequence[Any] = unpack(f">{self._layout * len(there)}", b"".join(there))
        try:
            if self._convert is not None:
                numbers = self._convert(numbers)
            if len(there) < len(payloads):
                following = iter(numbers)
                numbers = [None if each is None else next(following) for each in payloads]
            array = pa.array(numbers, self._plain_type)
            return array if self._plain_type is self.arrow_type else array.cast(self.arrow_type)
        except _MISFITS as error:
            raise _misfit(error) from error


_MILLIS_PER_DAY: Final = 86_400_000
_NANOS_PER_DAY: Final = 86_400_000_000_000
_UTC_MICROS: Final = pa.timestamp("us", "UTC")


def _flags(numbers: Sequence[int]) -> Sequence[bool]:
    return [number != 0 for number in numbers]


def _days_of_millis(numbers: Sequence[int]) -> Sequence[int]:
    return [number // _MILLIS_PER_DAY for number in numbers]


def _micros_of_instants(numbers: Sequence[int]) -> Sequence[int]:
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return [seconds * 1_000_000 + nanos // 1000 for seconds, nanos in pairs]


def _micros_of_days(numbers: Sequence[int]) -> Sequence[int]:
    pairs = zip(numbers[::2], _within_day(numbers[1::2]), strict=True)
    return [(days * _NANOS_PER_DAY + nanos) // 1000 for days, nanos in pairs]


def _within_day(numbers: Sequence[int]) -> Sequence[int]:
    if numbers and not (min(numbers) >= 0 and max(numbers) < _NANOS_PER_DAY):
        raise ValueError(f"a time of day is not within 0 and {_NANOS_PER_DAY - 1} ns")
    return numbers


def _millis_of_day(numbers: Sequence[int]) -> Sequence[int]:
    return [number % _MILLIS_PER_DAY for number in numbers]


_SIMPLE: Final[Mapping[SchemaType, PayloadCodec]] = {
    SchemaType.BYTES: RAW_BYTES,
    SchemaType.NONE: RAW_BYTES,
    # Its definition is an Avro schema, which lacks the field numbers that payloads have.
    SchemaType.PROTOBUF: RAW_BYTES,
    SchemaType.STRING: _Texts(),
    SchemaType.BOOLEAN: _Numbers(pa.bool_(), "b", _flags),
    SchemaType.INT8: _Numbers(pa.int8(), "b"),
    SchemaType.INT16: _Numbers(pa.int16(), "h"),
    SchemaType.INT32: _Numbers(pa.int32(), "i"),
    SchemaType.INT64: _Numbers(pa.int64(), "q"),
    SchemaType.FLOAT: _Numbers(pa.float32(), "f"),
    SchemaType.DOUBLE: _Numbers(pa.float64(), "d"),
    SchemaType.DATE: _Numbers(pa.date32(), "q", _days_of_millis),
    SchemaType.TIMESTAMP: _Numbers(_UTC_MICROS, "q", None, pa.timestamp("ms", "UTC")),
    # Times of day are numbers of their unit, as in Avro: not all Spark versions have the type TIME.
    SchemaType.TIME: _Numbers(pa.int32(), "q", _millis_of_day),
    SchemaType.LOCAL_TIME: _Numbers(pa.int64(), "q", _within_day),
    SchemaType.INSTANT: _Numbers(_UTC_MICROS, "qi", _micros_of_instants),
    SchemaType.LOCAL_DATE: _Numbers(pa.date32(), "q"),
    SchemaType.LOCAL_DATE_TIME: _Numbers(pa.timestamp("us"), "qq", _micros_of_days),
}


# --- records -------------------------------------------------------------------------------------


class _Defined:
    """Base of the codecs of AVRO and JSON: a definition, and the shape of its values."""

    def __init__(self, info: SchemaInfo) -> None:
        self._node = definition_node(info.data)
        self._data = info.data
        self._shape = shape_of(self._node)
        # Whether times are in another unit than the column's, and have to be cast.
        self._is_cast = self._shape.plain_type != self._shape.arrow_type

    @property
    def arrow_type(self) -> pa.DataType:
        """See `PayloadCodec`."""
        return self._shape.arrow_type

    def _array(self, values: list[Any]) -> Array:
        try:
            array = pa.array(values, self._shape.plain_type)
        except _MISFITS as error:
            if len(values) == 1 and isinstance(values[0], dict):
                _find_misfit(values[0], self._shape.plain_type)
            raise _misfit(error) from error
        return array.cast(self._shape.arrow_type) if self._is_cast else array


def _find_misfit(record: dict[str, Any], kind: pa.DataType) -> None:
    """Raise an error that names the field of a record that Arrow doesn't take."""
    for field in kind if pa.types.is_struct(kind) else ():
        try:
            pa.array([record.get(field.name)], field.type)
        except _MISFITS as error:
            raise SchemaSerializationError(f"{field.name}: {_misfit(error)}") from error


class AvroPayloads(_Defined):
    """Decodes AVRO, with a reader for each version of the definition."""

    reads_versions = True

    def __init__(self, info: SchemaInfo) -> None:
        """Raises ConfigurationError where values can't be columns."""
        super().__init__(info)
        # Decodes payloads of this very definition, where its records are flat.
        self._flat = flat_decoder(self._node)
        # Writer's definition -> its reader, or a text why there is none.
        self._known = lru_cache(maxsize=100)(self._reader_or_why)

    def _reader(self, data: bytes) -> ResolvedReader:
        found = self._known(data)
        if isinstance(found, str):
            raise SchemaSerializationError(found)
        return found

    def _reader_or_why(self, data: bytes) -> ResolvedReader | str:
        try:
            if data == self._data:
                return ResolvedReader(self._node, self._node, self._shape)
            writer = avro_node(parse_definition(data))
            return ResolvedReader(writer, self._node, self._shape)
        except InvalidConfigurationError as error:
            return f"the writer's schema: {error}"
        except SchemaSerializationError as error:
            return str(error)

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        # Hot path: AVRO in benchmarks.micro_spark.
        if writer is not None and not writer.type.has_definition_in_avro:
            raise SchemaSerializationError(
                f"the payload was written with a schema of type {writer.type.name}, not AVRO"
            )
        if self._flat is not None and (writer is None or writer.data == self._data):
            return self._flat_array(self._flat.decode(payloads), payloads)
        reader = self._reader(self._data if writer is None else writer.data)
        try:
            return self._array(reader.read(payloads))
        except _MISFITS as error:
            raise _misfit(error) from error

    def _flat_array(self, columns: Sequence[list[Any]], payloads: Payloads) -> Array:
        arrays = []
        fields = list(self._shape.arrow_type)
        for field, child, values in zip(fields, self._shape.children, columns, strict=True):
            try:
                arrays.append(_flat_column(child, values))
            except _MISFITS as error:
                raise SchemaSerializationError(f"{field.name}: {_misfit(error)}") from error
        mask = None
        if None in payloads:
            mask = pa.array([each is None for each in payloads], pa.bool_())
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _flat_column(shape: Shape, values: list[Any]) -> Array:
    kind = shape.arrow_type
    if kind == pa.string() and not shape.name:
        return pa.array(values, pa.binary()).cast(kind)
    if pa.types.is_decimal(kind):
        assert shape.of_bytes is not None, "decimals are made of bytes"
        values = [None if each is None else shape.of_bytes(each) for each in values]
    array = pa.array(values, shape.plain_type)
    return array if shape.plain_type == kind else array.cast(kind)


class JsonPayloads(_Defined):
    """Decodes JSON, whose texts name their fields, so that versions don't matter."""

    reads_versions = False

    def __init__(self, info: SchemaInfo) -> None:
        """Raises ConfigurationError where values can't be columns."""
        super().__init__(info)
        # The random number behind each payload, see the module.
        self._mark = uuid.uuid4().int
        self._loads: Callable[[bytes], Any] = json.loads
        if _has_decimals(self._shape.arrow_type):
            self._loads = partial(json.loads, parse_float=WrittenFloat)

    def decode(self, payloads: Payloads, writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        # Hot path: JSON in benchmarks.micro_spark.
        del writer
        convert = self._shape.of_json
        try:
            values = self._parsed([b"null" if each is None else each for each in payloads])
            if convert is not None:
                values = [None if each is None else convert(each) for each in values]
            array = self._array(values)
        except _MISFITS as error:
            raise _misfit(error) from error
        _require(self._shape, array, payloads.count(None))
        return array

    def _parsed(self, texts: list[bytes]) -> list[Any]:
        mark = b",%d]" % self._mark
        try:
            pairs = self._loads(b"[[" + (mark + b",[").join(texts) + mark + b"]")
        except ValueError:
            pairs = []
        is_sound = len(pairs) == len(texts) and all(
            type(each) is list and len(each) == 2 and each[1] == self._mark  # noqa: PLR2004 - pairs
            for each in pairs
        )
        return [each[0] for each in pairs] if is_sound else [self._loads(each) for each in texts]


def _has_decimals(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_decimals(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _has_decimals(kind.item_type)
    if pa.types.is_list(kind):
        return _has_decimals(kind.value_type)
    return bool(pa.types.is_decimal(kind))


def _require(shape: Shape, array: Array, nulls_count: int) -> None:
    """Refuse nulls where the definition has none."""
    if array.null_count > nulls_count and not shape.is_nullable:
        raise SchemaSerializationError("a value is null or missing, and the schema requires one")
    if not shape.children:
        return
    if pa.types.is_struct(shape.arrow_type):
        # `field()` ignores the nulls of the struct itself; `flatten` applies them to its fields.
        children = zip(shape.arrow_type, shape.children, array.flatten(), strict=True)
        for field, child, values in children:
            try:
                _require(child, values, array.null_count)
            except SchemaSerializationError as error:
                raise SchemaSerializationError(f"{field.name}: {error}") from None
    elif pa.types.is_map(shape.arrow_type):
        _require(shape.children[0], array.items, 0)
    else:
        _require(shape.children[0], array.values, 0)


_DEFINED: Final[Mapping[SchemaType, Callable[[SchemaInfo], PayloadCodec]]] = {
    SchemaType.AVRO: AvroPayloads,
    SchemaType.JSON: JsonPayloads,
    SchemaType.PROTOBUF_NATIVE: ProtobufPayloads,
}
