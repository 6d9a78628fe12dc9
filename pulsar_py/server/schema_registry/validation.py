"""Checks that a schema definition is well formed, and whether two are equal (pure).

Avro, JSON and Protobuf schemas are Avro definitions in JSON; this module knows just enough of Avro
to refuse definitions that no Avro parser accepts: types, names, fields, symbols. Primitive types
have no definition; for strings the official Python client sends the text `null`.

Source: SchemaDataValidator in Pulsar's broker; the Avro 1.11 specification.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Final

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.definition import SchemaDefinition

AVRO_DEFINED: Final = frozenset({Schema.Avro, Schema.Json, Schema.Protobuf})
"""Types whose definition is an Avro schema."""

PRIMITIVES: Final = frozenset(
    {
        Schema.String,
        Schema.Bool,
        Schema.Int8,
        Schema.Int16,
        Schema.Int32,
        Schema.Int64,
        Schema.Float,
        Schema.Double,
        Schema.Date,
        Schema.Time,
        Schema.Timestamp,
        Schema.Instant,
        Schema.LocalDate,
        Schema.LocalTime,
        Schema.LocalDateTime,
    }
)
"""Types that have no definition."""

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAME = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_SIZE = struct.Struct(">i")
_MAX_DEPTH = 200
_MAX_VALUES = 50_000
"""The most values in a definition: checking this many takes some 50 ms, and nothing else runs
meanwhile. A record with a thousand fields has about ten thousand."""
_NATIVE_KEYS = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")


def check_definition(schema: SchemaDefinition) -> None:
    """Check that the definition is valid for its type.

    Raises:
        IncompatibleSchemaError: It is not valid; the message says why.
    """
    kind = Schema.Type.Name(schema.type)
    if schema.type == Schema.AutoConsume:
        raise IncompatibleSchemaError(
            f"schema type {kind} is for clients only and can't be registered"
        )
    is_null_text = schema.type == Schema.String and schema.data == b"null"  # the Python client's
    if schema.type in PRIMITIVES and schema.data and not is_null_text:
        raise IncompatibleSchemaError(
            "Invalid schema definition data for primitive schemas :length of schema data should be "
            f"zero, but {len(schema.data)} bytes is found"
        )
    try:
        if schema.type in AVRO_DEFINED:
            _check_avro(_parse_json(schema.data), set(), 0)
        elif schema.type == Schema.ProtobufNative:
            _check_native(_parse_json(schema.data))
        elif schema.type == Schema.KeyValue:
            split_key_value(schema.data)
    except ValueError as error:
        raise IncompatibleSchemaError(f"invalid definition of {kind} schema: {error}") from error


def is_same(one: SchemaDefinition, other: SchemaDefinition) -> bool:
    """Whether two definitions are equal, as bytes or, for types with JSON, as parsed values."""
    if one.type != other.type:
        return False
    if one.data == other.data:
        return True
    if one.type not in AVRO_DEFINED:
        return False
    try:
        return bool(_parse_json(one.data) == _parse_json(other.data))
    except ValueError:
        return False


def comparable(schema: SchemaDefinition) -> tuple[int, bytes]:
    """A value that two definitions share if `is_same` holds for them."""
    if schema.type in AVRO_DEFINED:
        try:
            value = _parse_json(schema.data)
            return schema.type, json.dumps(value, sort_keys=True).encode()
        except ValueError:
            pass
    return schema.type, schema.data


def split_key_value(data: bytes) -> tuple[bytes, bytes]:
    """The definitions of key and value in a KEY_VALUE schema.

    Raises:
        ValueError: The lengths don't fit the bytes.
    """
    parts = []
    offset = 0
    for _ in range(2):
        if offset + _SIZE.size > len(data):
            raise ValueError(f"{len(data)} bytes end before a length at {offset}")
        (size,) = _SIZE.unpack_from(data, offset)
        offset += _SIZE.size
        size = max(size, 0)
        if offset + size > len(data):
            raise ValueError(f"a part of {size} bytes does not fit {len(data)} bytes")
        parts.append(data[offset : offset + size])
        offset += size
    return parts[0], parts[1]


def _parse_json(data: bytes) -> Any:  # Any: JSON
    # Each value but the first follows one of these characters. Texts may have more of them, so this
    # may count too many, never too few.
    count = data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{")
    if count > _MAX_VALUES:
        raise ValueError(f"about {count} values, allowed are {_MAX_VALUES}")
    return parse_json(data, max_depth=MAX_DEFINITION_DEPTH)


def _check_native(definition: Any) -> None:  # Any: JSON
    if not isinstance(definition, dict):
        raise ValueError("not an object")  # noqa: TRY004 - one error for all bad input
    for key in _NATIVE_KEYS:
        if not isinstance(definition.get(key), str):
            raise ValueError(f"no {key}")  # noqa: TRY004 - one error for all bad input


def _check_avro(definition: Any, names: set[str], depth: int) -> None:  # Any: JSON
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(definition, str):
        if definition not in _PRIMITIVES and definition.rpartition(".")[2] not in names:
            raise ValueError(f"undefined name {definition!r}")
    elif isinstance(definition, list):
        for branch in definition:
            _check_avro(branch, names, depth + 1)
    elif isinstance(definition, dict):
        _check_complex(definition, names, depth)
    else:
        raise ValueError(f"not a schema: {definition!r}")  # noqa: TRY004 - one error for all


def _check_complex(definition: dict[str, Any], names: set[str], depth: int) -> None:  # Any: JSON
    kind = definition.get("type")
    if kind is None:
        raise ValueError("no type")
    if kind in ("record", "error", "enum", "fixed"):
        names.add(_checked_name(definition).rpartition(".")[2])
    if kind in ("record", "error"):
        _check_fields(definition.get("fields"), names, depth)
    elif kind == "enum":
        _check_symbols(definition.get("symbols"), definition.get("default"))
    elif kind == "fixed":
        if not isinstance(definition.get("size"), int):
            raise ValueError("a fixed type needs a size")
    elif kind == "array":
        _check_avro(definition.get("items"), names, depth + 1)
    elif kind == "map":
        _check_avro(definition.get("values"), names, depth + 1)
    else:
        _check_avro(kind, names, depth + 1)


def _check_symbols(symbols: Any, default: Any) -> None:  # Any: JSON
    is_list = isinstance(symbols, list) and all(isinstance(each, str) for each in symbols)
    if not is_list or len(set(symbols)) != len(symbols):
        raise ValueError("an enum needs distinct symbols")
    if default is not None and default not in symbols:
        raise ValueError(f"the enum's default {default!r:.100} is none of its symbols")


def _check_fields(fields: Any, names: set[str], depth: int) -> None:  # Any: JSON
    if not isinstance(fields, list):
        raise ValueError("a record needs fields")  # noqa: TRY004 - one error for all bad input
    seen = set()
    for each in fields:
        if not isinstance(each, dict):
            raise ValueError(f"not a field: {each!r}")  # noqa: TRY004 - one error for all bad input
        name = _checked_name(each)
        if name in seen:
            raise ValueError(f"two fields are called {name!r}")
        seen.add(name)
        _check_avro(each.get("type"), names, depth + 1)


def _checked_name(definition: dict[str, Any]) -> str:  # Any: JSON
    name = definition.get("name")
    if not isinstance(name, str) or not re.fullmatch(_NAME, name, re.ASCII):
        raise ValueError(f"not a valid name: {name!r}")
    return name
