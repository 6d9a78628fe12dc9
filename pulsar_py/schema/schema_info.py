"""`SchemaInfo`: a schema's type, definition and properties, as the broker stores them (values).

    user-facing type   on the wire         meaning
    -1  BYTES          no schema at all    bytes as they are
     0  NONE           no schema at all    the same, as stored definitions call it
     1..20             the same number     STRING to PROTOBUF_NATIVE
    21  EXTERNAL       22                  of an external registry
    -3  AUTO_CONSUME   21, to brokers      whatever the topic's schema is; for consumers
                       that know it
    -4  AUTO_PUBLISH   no schema at all    the same for producers

Source: SchemaType and SchemaInfo in Pulsar's Java client; `Schema` in PulsarApi.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema

__all__ = ["SchemaInfo", "SchemaType"]

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_WIRE_AUTO_CONSUME: Final = 21
_WIRE_EXTERNAL: Final = 22


class SchemaType(IntEnum):
    """Kinds of schemas, numbered and named as in Pulsar's Java client."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    EXTERNAL = 21
    BYTES = -1
    AUTO = -2
    AUTO_CONSUME = -3
    AUTO_PUBLISH = -4

    @classmethod
    def from_wire(cls, number: int) -> SchemaType:
        """The type of a number in a command."""
        if number == _WIRE_AUTO_CONSUME:
            return cls.AUTO_CONSUME
        return cls.EXTERNAL if number == _WIRE_EXTERNAL else cls(number)

    @property
    def has_definition_in_avro(self) -> bool:
        """Whether definitions of this type are Avro schemas in JSON."""
        return self in {SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF}

    @property
    def is_struct(self) -> bool:
        """Whether values have fields, which may differ between versions."""
        return self.has_definition_in_avro or self is SchemaType.PROTOBUF_NATIVE


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema as brokers store it."""

    type: SchemaType
    name: str = ""
    data: bytes = b""
    """The definition; empty for types that need none. Brokers leave the bytes as they are."""
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)

    @classmethod
    def from_wire(cls, schema: WireSchema) -> SchemaInfo:
        """Read from a command."""
        return cls(
            SchemaType.from_wire(schema.type),
            schema.name,
            schema.schema_data,
            {each.key: each.value for each in schema.properties},
        )

    def to_wire(self) -> WireSchema | None:
        """The message for a command; None for "no schema", which has no message.

        AUTO_CONSUME is None too: SUBSCRIBE names it only to brokers that know it.
        """
        if self.type <= SchemaType.NONE:
            return None
        number = _WIRE_EXTERNAL if self.type is SchemaType.EXTERNAL else int(self.type)
        schema = WireSchema(
            name=self.name, schema_data=self.data, type=WireSchema.Type.ValueType(number)
        )
        for key in sorted(self.properties):
            schema.properties.add(key=key, value=self.properties[key])
        return schema
