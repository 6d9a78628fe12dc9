"""`KeyValueSchema`: pairs of a key and a value, each with a schema of its own (pure).

    INLINE     payload = keyLength:i32 key valueLength:i32 value    big endian; -1: it is None
    SEPARATED  payload = value, and the message's key = key         Base64 on the wire

    definition = keyLength:i32 definition of the key, valueLength:i32 that of the value
    properties = key.schema.name, key.schema.type, key.schema.properties (JSON), the same of
                 value.schema, and kv.encoding.type

Lengths in payloads come from others: one that exceeds the payload is refused.

Source: KeyValueSchemaImpl, KeyValueSchemaInfo and KeyValue in Pulsar's Java client.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Any, Final, Generic, TypeVar

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.schema.schema import Decoder, Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

__all__ = [
    "KeyValue",
    "KeyValueEncodingType",
    "KeyValueSchema",
    "key_value_encoding_of",
    "split_key_value_info",
]

K = TypeVar("K")
V = TypeVar("V")

_LENGTH: Final = Struct(">i")
_NO_PARTS: Final = (SchemaType.KEY_VALUE, SchemaType.AUTO_CONSUME, SchemaType.AUTO_PUBLISH)
_ENCODING: Final = "kv.encoding.type"


class KeyValueEncodingType(Enum):
    """Whether the key is in the payload, or is the message's key."""

    INLINE = "INLINE"
    """Into the payload, before the value."""
    SEPARATED = "SEPARATED"
    """Into the message's key, which decides its partition and what compaction keeps."""


@dataclass(frozen=True)  # no slots: KeyValue[K, V](...) could not be written then
class KeyValue(Generic[K, V]):
    """A pair; either may be None."""

    key: K | None
    value: V | None


class KeyValueSchema(Schema[KeyValue[K, V]]):
    """Encodes pairs of a key and a value, each by its own schema."""

    def __init__(
        self,
        key_schema: Schema[K],
        value_schema: Schema[V],
        encoding: KeyValueEncodingType = KeyValueEncodingType.INLINE,
    ) -> None:
        """Raises InvalidConfigurationError for schemas of pairs, or that depend on a topic."""
        for each in (key_schema, value_schema):
            if each.schema_info().type in _NO_PARTS:
                raise InvalidConfigurationError(
                    f"{type(each).__name__} can't be part of a key-value schema"
                )
        self._key_schema = key_schema
        self._value_schema = value_schema
        self._encoding = encoding
        self._info = _info_of(key_schema.schema_info(), value_schema.schema_info(), encoding)

    def __repr__(self) -> str:
        return f"KeyValueSchema({self._key_schema}, {self._value_schema}, {self._encoding.name})"

    @property
    def key_schema(self) -> Schema[K]:
        """The schema of the keys."""
        return self._key_schema

    @property
    def value_schema(self) -> Schema[V]:
        """The schema of the values."""
        return self._value_schema

    @property
    def encoding(self) -> KeyValueEncodingType:
        """Whether the key is in the payload, or is the message's key."""
        return self._encoding

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return self._info

    @property
    def has_separate_key(self) -> bool:
        """See `Schema`."""
        return self._encoding is KeyValueEncodingType.SEPARATED

    @property
    def reads_versions(self) -> bool:
        """See `Schema`."""
        return self._key_schema.reads_versions or self._value_schema.reads_versions

    def is_null(self, value: KeyValue[K, V] | None) -> bool:
        """See `Schema`; with a separate key, a pair whose value is None deletes that key."""
        if value is None:
            return True
        return self.has_separate_key and isinstance(value, KeyValue) and value.value is None

    def encode_key(self, value: KeyValue[K, V]) -> bytes | None:
        """See `Schema`."""
        key = _checked(value).key
        return None if key is None else self._key_schema.encode(key)

    def encode(self, value: KeyValue[K, V]) -> bytes:
        """See `Schema`."""
        pair = _checked(value)
        data = None if pair.value is None else self._value_schema.encode(pair.value)
        if self.has_separate_key:
            return data or b""
        return _with_length(self.encode_key(pair)) + _with_length(data)

    def decode(self, data: bytes) -> KeyValue[K, V]:
        """See `Schema`; a separate key is not in the payload, and is None here."""
        pair = self.decoder_for(None)(data, None)
        assert pair is not None  # only a null value is
        return pair

    def decoder_for(self, writer: SchemaInfo | None) -> Decoder[KeyValue[K, V]]:
        """See `Schema`."""
        key_writer = value_writer = None
        if writer is not None:
            key_writer, value_writer = split_key_value_info(writer)
        decode_key = self._key_schema.decoder_for(key_writer)
        decode_value = self._value_schema.decoder_for(value_writer)

        def decode_inline(data: bytes | None, _key: bytes | None) -> KeyValue[K, V] | None:
            if data is None:
                return None
            key, value = _split(data)
            return KeyValue(decode_key(key, None), decode_value(value, None))

        def decode_separated(data: bytes | None, key: bytes | None) -> KeyValue[K, V] | None:
            return KeyValue(decode_key(key, None), decode_value(data, None))

        return decode_separated if self.has_separate_key else decode_inline


def _checked(value: Any) -> KeyValue[Any, Any]:
    if isinstance(value, KeyValue):
        return value
    raise SchemaSerializationError(
        f"expected a KeyValue, got {type(value).__name__} {value!r:.100}"
    )


def _with_length(data: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if data is None else _LENGTH.pack(len(data)) + data


def _split(data: bytes) -> tuple[bytes | None, bytes | None]:
    parts: list[bytes | None] = []
    offset = 0
    for name in ("key", "value"):
        end = offset + _LENGTH.size
        if end > len(data):
            raise SchemaSerializationError(f"{len(data)} bytes end before the {name}'s length")
        (length,) = _LENGTH.unpack_from(data, offset)
        offset = end
        if length < 0:
            parts.append(None)
            continue
        if length > len(data) - offset:
            raise SchemaSerializationError(
                f"a {name} of {length} bytes does not fit {len(data)} bytes"
            )
        parts.append(data[offset : offset + length])
        offset += length
    return parts[0], parts[1]


def _info_of(key: SchemaInfo, value: SchemaInfo, encoding: KeyValueEncodingType) -> SchemaInfo:
    properties = {_ENCODING: encoding.value}
    for name, info in (("key", key), ("value", value)):
        properties[f"{name}.schema.name"] = info.name
        properties[f"{name}.schema.type"] = info.type.name
        properties[f"{name}.schema.properties"] = json.dumps(
            dict(info.properties), separators=(",", ":")
        )
    data = _with_length(key.data) + _with_length(value.data)
    return SchemaInfo(SchemaType.KEY_VALUE, "KeyValue", data, properties)


def split_key_value_info(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """The schemas of key and value in a key-value schema that a broker stored.

    Raises:
        SchemaSerializationError: It is not one, or contradicts itself.
    """
    if info.type is not SchemaType.KEY_VALUE:
        raise SchemaSerializationError(f"a {info.type.name} schema, where KEY_VALUE is expected")
    key, value = _split(info.data)
    return _part(info, "key", key), _part(info, "value", value)


def _part(info: SchemaInfo, name: str, data: bytes | None) -> SchemaInfo:
    properties = info.properties
    kind = properties.get(f"{name}.schema.type", "BYTES")
    try:
        schema_type = SchemaType[kind]
        own = parse_json(properties.get(f"{name}.schema.properties") or "{}")
    except (KeyError, ValueError) as error:
        raise SchemaSerializationError(f"a KEY_VALUE schema whose {name} is {error}") from None
    if not isinstance(own, dict):
        raise SchemaSerializationError(f"a KEY_VALUE schema whose {name} has properties {own!r}")
    texts = {key: str(value) for key, value in own.items()}
    return SchemaInfo(schema_type, properties.get(f"{name}.schema.name", ""), data or b"", texts)


def key_value_encoding_of(info: SchemaInfo) -> KeyValueEncodingType:
    """The encoding of a stored key-value schema; INLINE if it names none.

    Raises:
        SchemaSerializationError: It names an unknown one.
    """
    text = info.properties.get(_ENCODING, "INLINE")
    try:
        return KeyValueEncodingType(text)
    except ValueError:
        raise SchemaSerializationError(
            f"{_ENCODING} {text!r} is unknown, expected INLINE or SEPARATED"
        ) from None
