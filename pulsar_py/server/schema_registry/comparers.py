"""The rules that compare two definitions of one schema type (pure).

AVRO, JSON and PROTOBUF schemas are Avro definitions, and compared by Avro's rules of resolution.
KEY_VALUE schemas are compared part by part, by the types that their properties name; how the two
parts are sent (`kv.encoding.type`) is no part of it. Of PROTOBUF_NATIVE schemas only the name of
the root message counts, and EXTERNAL ones are not looked into, both as in Apache Pulsar.

Source: AvroSchemaBasedCompatibilityCheck, KeyValueSchemaCompatibilityCheck,
ProtobufNativeSchemaCompatibilityCheck, ExternalSchemaCompatibilityCheck in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.schema.avro.avro_definition import parse_definition
from pulsar_py.schema.avro.avro_mismatch import mismatch
from pulsar_py.schema.avro.avro_nodes import AvroNode, avro_node
from pulsar_py.server.schema_registry.definition import SchemaDefinition
from pulsar_py.server.schema_registry.validation import split_key_value

CACHED_DEFINITIONS: Final = 256
"""Parsed Avro definitions that are kept: a transitive check reads all of a topic again."""


class SchemaComparer(Protocol):
    """Compares two definitions of one type."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        """Why data written with `writer` can't be read with `reader`; None if they can."""


class AnyComparer:
    """Every definition of the type can read every other one."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        """None: any schema is compatible."""
        del reader, writer
        return None


class AvroComparer:
    """By Avro's rules of schema resolution."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        """The first field that can't be read, and why."""
        try:
            return mismatch(_node(writer.data), _node(reader.data))
        except InvalidConfigurationError as error:
            return f"a definition can't be read: {error}"


@lru_cache(maxsize=CACHED_DEFINITIONS)
def _node(data: bytes) -> AvroNode:
    return avro_node(parse_definition(data))


class NativeComparer:
    """By the name of the root message."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        """Why the root messages differ."""
        old, new = _root_message(writer.data), _root_message(reader.data)
        if old == new:
            return None
        return f"the root message {old!r} became {new!r}, which is never compatible"


def _root_message(data: bytes) -> str | None:
    try:
        value = parse_json(data, max_depth=MAX_DEFINITION_DEPTH)
    except ValueError:
        return None
    name = value.get("rootMessageTypeName") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


class KeyValueComparer:
    """Key by key's rules, value by value's."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        """What is wrong with the key, else with the value."""
        try:
            readers, writers = _parts_of(reader), _parts_of(writer)
        except ValueError as error:
            return f"the definition of key and value can't be read: {error}"
        for part, new, old in zip(("key", "value"), readers, writers, strict=True):
            if new.type != old.type:
                names = Schema.Type.Name(old.type), Schema.Type.Name(new.type)
                return f"the {part} was written as {names[0]}, and is read as {names[1]}"
            found = COMPARERS.get(new.type, _ANY).problem(reader=new, writer=old)
            if found is not None:
                return f"in the {part}: {found}"
        return None


_TYPES: Final = MappingProxyType(
    {name.replace("_", "").upper(): number for name, number in Schema.Type.items()}
)


def _parts_of(schema: SchemaDefinition) -> tuple[SchemaDefinition, SchemaDefinition]:
    """Key and value; a type that the properties don't name counts as bytes.

    Raises:
        ValueError: They can't be told apart.
    """
    key, value = split_key_value(schema.data)
    types = [
        _TYPES.get(
            schema.properties.get(f"{part}.schema.type", "").replace("_", "").upper(),
            Schema.Type.Value("None"),
        )
        for part in ("key", "value")
    ]
    return SchemaDefinition(types[0], key), SchemaDefinition(types[1], value)


_ANY: Final = AnyComparer()
_AVRO: Final = AvroComparer()

COMPARERS: Final[Mapping[Schema.Type.ValueType, SchemaComparer]] = MappingProxyType(
    {
        Schema.Avro: _AVRO,
        Schema.Json: _AVRO,
        Schema.Protobuf: _AVRO,
        Schema.ProtobufNative: NativeComparer(),
        Schema.KeyValue: KeyValueComparer(),
    }
)
"""The rules of each type that has some; any two definitions of another one are compatible."""
