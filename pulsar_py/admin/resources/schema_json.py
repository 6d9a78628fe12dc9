"""Converts schemas to the REST API's JSON: type names, KEY_VALUE definitions (pure).

A definition is a text. That of a KEY_VALUE schema is a JSON object of key and value; where those
are JSON themselves, as Avro definitions are, they stand in it as values, not as texts.

Source: GetSchemaResponse, PostSchemaPayload, KeyValueSchemaInfo and SchemaUtils in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.validation import split_key_value

_SIZE: Final = Struct(">i")

TYPE_NAMES: Final[Mapping[Schema.Type.ValueType, str]] = {
    Schema.Type.Value("None"): "NONE",
    Schema.String: "STRING",
    Schema.Json: "JSON",
    Schema.Protobuf: "PROTOBUF",
    Schema.Avro: "AVRO",
    Schema.Bool: "BOOLEAN",
    Schema.Int8: "INT8",
    Schema.Int16: "INT16",
    Schema.Int32: "INT32",
    Schema.Int64: "INT64",
    Schema.Float: "FLOAT",
    Schema.Double: "DOUBLE",
    Schema.Date: "DATE",
    Schema.Time: "TIME",
    Schema.Timestamp: "TIMESTAMP",
    Schema.KeyValue: "KEY_VALUE",
    Schema.Instant: "INSTANT",
    Schema.LocalDate: "LOCAL_DATE",
    Schema.LocalTime: "LOCAL_TIME",
    Schema.LocalDateTime: "LOCAL_DATE_TIME",
    Schema.ProtobufNative: "PROTOBUF_NATIVE",
    Schema.AutoConsume: "AUTO_CONSUME",
    Schema.External: "EXTERNAL",
}
"""Names of types in JSON."""

_TYPES: Final = {
    **{name: number for number, name in TYPE_NAMES.items()},
    "BYTES": Schema.Type.Value("None"),
    "AUTO_PUBLISH": Schema.AutoConsume,  # both are clients' own, and refused alike
}


def schema_json(stored: StoredSchema) -> dict[str, Any]:  # Any: JSON
    """A version of a schema as JSON."""
    definition = stored.definition
    return {
        "version": stored.version,
        "type": TYPE_NAMES.get(definition.type, "NONE"),
        "timestamp": stored.timestamp_millis,
        "data": _text_of(definition),
        "properties": dict(definition.properties),
    }


def _text_of(definition: SchemaDefinition) -> str:
    if definition.type != Schema.KeyValue:
        return definition.data.decode(errors="replace")
    try:
        key, value = split_key_value(definition.data)
    except ValueError:
        return ""
    parts = {"key": _part_of(key), "value": _part_of(value)}
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def _part_of(data: bytes) -> Any:  # Any: JSON
    """A part's definition as JSON if it is an object, else as text."""
    try:
        value = parse_json(data, max_depth=MAX_DEFINITION_DEPTH)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else data.decode(errors="replace")


def definition_of(
    type_name: str | None, text: str, properties: Mapping[str, str]
) -> SchemaDefinition | None:
    """The schema of an upload; None if there is no such type, or key and value can't be read."""
    number = _TYPES.get(type_name or "")
    if number is None:
        return None
    data = text.encode()
    if number == Schema.KeyValue:
        try:
            parts = parse_json(text, max_depth=MAX_DEFINITION_DEPTH)
            data = b"".join(
                _SIZE.pack(len(part)) + part
                for part in (_bytes_of(parts[name]) for name in ("key", "value"))
            )
        except (ValueError, KeyError, TypeError):
            return None
    return SchemaDefinition(type=number, data=data, properties=dict(properties))


def _bytes_of(part: Any) -> bytes:  # Any: JSON
    if isinstance(part, str):
        return part.encode()
    return json.dumps(part, separators=(",", ":"), ensure_ascii=False).encode()
