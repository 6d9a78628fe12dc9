"""Decodes PROTOBUF_NATIVE messages into Arrow structs, by the topic's descriptor (pure).

    bool, int32, int64, float, double      of the same kind; sint, fixed, sfixed likewise
    uint32, uint64                         int64, decimal of 20 digits: Spark's have a sign
    string, bytes                          string, binary
    enum                                   string: the name, or the number where there is no name
    message                                struct; google.protobuf.Timestamp: timestamp
    repeated, map                          list, map

A field with presence is null where it was not set, unless its definition has a default. A message
that contains itself is refused: the type of a column is finite.

Protobuf resolves versions by itself: unknown fields are left out.

Source: ProtobufNativeSchema in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import SchemaInfo
from pulsar_py.schema.protobuf_definition import parse_native_definition
from pulsar_py.spark.values.arrays import Array

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

__all__ = ["ProtobufPayloads"]

Read: TypeAlias = Callable[[Any], Any]
"""Converts a message, or the value of a field, to a value that Arrow takes."""

# FieldDescriptor's CPPTYPE_... and TYPE_BYTES.
_INT32, _INT64, _UINT32, _UINT64, _DOUBLE, _FLOAT, _BOOL, _ENUM, _STRING, _MESSAGE = range(1, 11)
_TYPE_BYTES: Final = 12
_TYPES: Final = {
    _INT32: pa.int32(),
    _INT64: pa.int64(),
    _UINT32: pa.int64(),
    _UINT64: pa.decimal128(20, 0),
    _DOUBLE: pa.float64(),
    _FLOAT: pa.float32(),
    _BOOL: pa.bool_(),
    _ENUM: pa.string(),
    _STRING: pa.string(),
}
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_MICROS: Final = pa.timestamp("us", "UTC")


class ProtobufPayloads:
    """Decodes messages of one class; see `PayloadCodec`."""

    reads_versions = False

    def __init__(self, info: SchemaInfo) -> None:
        """Raises ConfigurationError where values can't be columns."""
        try:
            self._message_class = parse_native_definition(info.data)
        except SchemaSerializationError as error:
            raise ConfigurationError(f"the topic's schema: {error}") from error
        self.arrow_type, self._read = _message(self._message_class.DESCRIPTOR, ())

    def decode(self, payloads: Sequence[bytes | None], writer: SchemaInfo | None) -> Array:
        """See `PayloadCodec`."""
        # Hot path: PROTOBUF_NATIVE in benchmarks.micro_spark.
        del writer
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - at first use

        parse, read = self._message_class.FromString, self._read
        try:
            values = [None if each is None else read(parse(each)) for each in payloads]
            return pa.array(values, self.arrow_type)
        except (DecodeError, ValueError, TypeError, ArithmeticError) as error:
            raise SchemaSerializationError(f"{str(error) or type(error).__name__:.300}") from error


def _message(descriptor: Descriptor, above: tuple[str, ...]) -> tuple[pa.DataType, Read]:
    """The struct of a message, and the function that makes its dict."""
    if descriptor.full_name == _TIMESTAMP:
        return _MICROS, lambda value: value.seconds * 1_000_000 + value.nanos // 1000
    if descriptor.full_name in above:
        raise ConfigurationError(
            f"the topic's schema: {descriptor.full_name} contains itself, which no column can be;"
            " valueMode=raw gives the payloads"
        )
    if not descriptor.fields:
        raise ConfigurationError(
            f"the topic's schema: {descriptor.full_name} has no fields, and Spark has no struct"
            " without fields; valueMode=raw gives the payloads"
        )
    fields: list[pa.Field] = []
    readers: list[tuple[str, Read]] = []
    for each in descriptor.fields:
        arrow_type, read = _field(each, (*above, descriptor.full_name))
        fields.append(pa.field(each.name, arrow_type))
        readers.append((each.name, read))
    return pa.struct(fields), lambda value: {name: read(value) for name, read in readers}


def _field(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[pa.DataType, Read]:
    """The type of a field, and the function that reads it from its message."""
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        by_name = field.message_type.fields_by_name
        key_type, _ = _single(by_name["key"], above)
        item_type, read_item = _single(by_name["value"], above)

        def read_map(message: Any) -> Any:
            found = getattr(message, name)
            return [
                (key, item if read_item is None else read_item(item)) for key, item in found.items()
            ]

        return pa.map_(key_type, item_type), read_map
    arrow_type, read = _single(field, above)
    if field.is_repeated:
        if read is None:
            return pa.list_(arrow_type), lambda message: list(getattr(message, name))
        convert = read
        return pa.list_(arrow_type), lambda message: [
            convert(each) for each in getattr(message, name)
        ]
    return arrow_type, _reader_of_single(field, read)


def _reader_of_single(field: FieldDescriptor, read: Read | None) -> Read:
    name = field.name
    if not field.has_presence or field.has_default_value:
        if read is None:
            return lambda message: getattr(message, name)
        return lambda message: read(getattr(message, name))
    if read is None:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return lambda message: read(getattr(message, name)) if message.HasField(name) else None


def _single(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[pa.DataType, Read | None]:
    """The type of a single value, and its conversion; None: Arrow takes it as it is."""
    if field.message_type is not None:
        return _message(field.message_type, above)
    if field.enum_type is not None:
        return pa.string(), _symbol(field.enum_type)
    if field.type == _TYPE_BYTES:
        return pa.binary(), None
    return _TYPES[field.cpp_type], Decimal if field.cpp_type == _UINT64 else None


def _symbol(enum: EnumDescriptor) -> Read:
    names = {number: each.name for number, each in enum.values_by_number.items()}
    return lambda number: names.get(number) or str(number)
