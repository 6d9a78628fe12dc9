"""Converts schemas between the REST API's JSON and the binary protocol (pure).

    REST        {"version": 3, "type": "AVRO", "data": "<text>", "properties": {..}}
    protocol    Schema(type, schema_data, properties), version as 8 bytes, big-endian

The text is the bytes of the definition; only a key-value schema differs: there it is a JSON object
of both definitions, and in bytes `keyLength:u32 key valueLength:u32 value`, big-endian.

Source: GetSchemaResponse and PostSchemaPayload in Pulsar's admin API; DefaultImplementation's
convertKeyValueDataStringToSchemaInfoSchema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pulsar_py.common.errors import InvalidMessageError, LookupFailedError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.proto.PulsarApi_pb2 import Schema

__all__ = ["schema_from_rest", "schema_to_rest", "version_bytes"]

_TYPES: Final[Mapping[str, int]] = {
    "NONE": Schema.Type.Value("None"),
    "STRING": Schema.String,
    "JSON": Schema.Json,
    "PROTOBUF": Schema.Protobuf,
    "AVRO": Schema.Avro,
    "BOOLEAN": Schema.Bool,
    "INT8": Schema.Int8,
    "INT16": Schema.Int16,
    "INT32": Schema.Int32,
    "INT64": Schema.Int64,
    "FLOAT": Schema.Float,
    "DOUBLE": Schema.Double,
    "DATE": Schema.Date,
    "TIME": Schema.Time,
    "TIMESTAMP": Schema.Timestamp,
    "KEY_VALUE": Schema.KeyValue,
    "INSTANT": Schema.Instant,
    "LOCAL_DATE": Schema.LocalDate,
    "LOCAL_TIME": Schema.LocalTime,
    "LOCAL_DATE_TIME": Schema.LocalDateTime,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
}
_NAMES: Final = {number: name for name, number in _TYPES.items()}
_LENGTH_BYTES: Final = 4


def schema_from_rest(topic: str, value: Mapping[str, Any]) -> tuple[Schema, bytes]:
    """The schema and its version.

    Raises:
        LookupFailedError: Type, definition or version can't be read; the message names the topic.
    """
    kind, data = value.get("type"), value.get("data") or ""
    properties = value.get("properties") or {}
    number = _TYPES.get(kind) if isinstance(kind, str) else None
    if number is None or not isinstance(data, str) or not isinstance(properties, dict):
        raise LookupFailedError(f"schema of {topic}: unknown type {kind!r}")
    schema = Schema(
        name=topic,
        type=Schema.Type.ValueType(number),
        schema_data=_pair_bytes(topic, data) if number == Schema.KeyValue else data.encode(),
    )
    for key, text in properties.items():
        schema.properties.add(key=key, value=str(text))
    return schema, version_bytes(topic, value.get("version"))


def schema_to_rest(schema: Schema) -> dict[str, Any]:
    """The JSON body of POST."""
    is_pair = schema.type == Schema.KeyValue
    data = schema.schema_data
    return {
        "type": _NAMES.get(schema.type, "BYTES"),
        "schema": _pair_text(data) if is_pair else data.decode(),
        "properties": {each.key: each.value for each in schema.properties},
    }


def version_bytes(topic: str, version: object) -> bytes:
    """The version as messages carry it.

    Raises:
        LookupFailedError: It is not a number.
    """
    if not isinstance(version, int) or not 0 <= version < 1 << 63:
        raise LookupFailedError(f"schema of {topic}: expected a version number, got {version!r}")
    return version.to_bytes(8, "big")


def _pair_bytes(topic: str, text: str) -> bytes:
    try:
        value = parse_json(text, max_depth=MAX_DEFINITION_DEPTH)
        parts = [_definition(value[name]) for name in ("key", "value")]
    except (ValueError, KeyError, TypeError) as error:
        raise LookupFailedError(f"schema of {topic}: not a key-value schema: {error!r}") from error
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in parts)


def _definition(value: Any) -> bytes:  # Any: JSON
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text.encode()


def _pair_text(data: bytes) -> str:
    key, rest = _cut(data)
    value, rest = _cut(rest)
    if rest:
        raise InvalidMessageError(f"a key-value schema with {len(rest)} bytes too many")
    return json.dumps({"key": _json_or_text(key), "value": _json_or_text(value)})


def _cut(data: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(data[:_LENGTH_BYTES], "big")
    end = _LENGTH_BYTES + length
    if len(data) < end:
        raise InvalidMessageError(f"a key-value schema of {len(data)} bytes is cut off")
    return data[_LENGTH_BYTES:end], data[end:]


def _json_or_text(part: bytes) -> Any:  # Any: JSON
    try:
        return parse_json(part, max_depth=MAX_DEFINITION_DEPTH)
    except ValueError:
        return part.decode(errors="replace")
