"""Schema definitions as values, with their wire and stored forms.

Schema types have three forms. This module uses the protocol's numbers, `Schema.Type`; the stored
`SchemaInfo.SchemaType` is that plus one for 0..20; names in REST are the stored names (`KEY_VALUE`
and `PROTOBUF_NATIVE` written with an underscore). A version is a number from 0 that grows by one
with each change, and is sent as eight bytes, big endian.

Source: Schema in PulsarApi.proto, SchemaInfo in SchemaRegistryFormat.proto, LongSchemaVersion.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from msgspec import Struct, field

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaRegistryFormat_pb2 import SchemaInfo

NO_VERSION = b""
"""The version bytes of "no schema"."""

_VERSION = struct.Struct(">q")
# `Schema.None` is a syntax error in Python.
_NONE_TYPE = Schema.Type.Value("None")
_EMPTY: Mapping[str, str] = MappingProxyType({})
_LAST_COMMON_TYPE = Schema.ProtobufNative
_EXTERNAL_SHIFT = SchemaInfo.EXTERNAL - Schema.External


def encode_version(version: int) -> bytes:
    """The eight bytes in which a version is sent."""
    return _VERSION.pack(version)


def decode_version(data: bytes) -> int:
    """The number in version bytes.

    Raises:
        IncompatibleSchemaError: They are not eight bytes long.
    """
    if len(data) != _VERSION.size:
        raise IncompatibleSchemaError(f"schema version of {len(data)} bytes, expected 8")
    version: int = _VERSION.unpack(data)[0]
    return version


class SchemaDefinition(Struct, frozen=True):
    """A schema as clients send it: type, definition and properties."""

    type: Schema.Type.ValueType
    data: bytes
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    name: str = ""

    @classmethod
    def from_wire(cls, schema: Schema) -> SchemaDefinition:
        """The value of a `Schema` in a command."""
        return cls(
            type=schema.type,
            data=schema.schema_data,
            properties={pair.key: pair.value for pair in schema.properties},
            name=schema.name,
        )

    def to_wire(self) -> Schema:
        """The `Schema` for an answer."""
        schema = Schema(name=self.name, schema_data=self.data, type=self.type)
        for key in sorted(self.properties):
            schema.properties.add(key=key, value=self.properties[key])
        return schema

    @property
    def is_empty(self) -> bool:
        """Whether the type is BYTES, which the protocol calls None: the same as no schema."""
        return self.type == _NONE_TYPE

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of the definition's bytes."""
        return hashlib.sha256(self.data).digest()


class StoredSchema(Struct, frozen=True):
    """One version in a topic's history."""

    definition: SchemaDefinition
    version: int
    timestamp_millis: int
    user: str = ""
    is_deleted: bool = False

    @property
    def version_bytes(self) -> bytes:
        """The version in the form that is sent."""
        return encode_version(self.version)


def encode_stored(schema_id: str, stored: StoredSchema) -> bytes:
    """The serialized `SchemaInfo` that is stored for a version."""
    info = SchemaInfo(
        schema_id=schema_id,
        user=stored.user,
        type=_to_stored_type(stored.definition.type),
        schema=stored.definition.data,
        timestamp=stored.timestamp_millis,
        deleted=stored.is_deleted,
    )
    for key, value in stored.definition.properties.items():
        info.props.add(key=key, value=value)
    return info.SerializeToString()


def decode_stored(data: bytes, version: int, name: str) -> StoredSchema:
    """The version in a serialized `SchemaInfo`; `name` is what clients see as the schema's name."""
    info = SchemaInfo.FromString(data)
    return StoredSchema(
        definition=SchemaDefinition(
            type=_to_wire_type(info.type),
            data=info.schema,
            properties={pair.key: pair.value for pair in info.props},
            name=name,
        ),
        version=version,
        timestamp_millis=info.timestamp,
        user=info.user,
        is_deleted=info.deleted,
    )


def _to_stored_type(wire_type: Schema.Type.ValueType) -> SchemaInfo.SchemaType.ValueType:
    shift = 1 if wire_type <= _LAST_COMMON_TYPE else _EXTERNAL_SHIFT
    return cast("SchemaInfo.SchemaType.ValueType", wire_type + shift)


def _to_wire_type(stored_type: SchemaInfo.SchemaType.ValueType) -> Schema.Type.ValueType:
    shift = _EXTERNAL_SHIFT if stored_type == SchemaInfo.EXTERNAL else 1
    return cast("Schema.Type.ValueType", stored_type - shift)
