"""Schemas: encode values as payloads and decode them; primitives, Avro, JSON, Protobuf, key-value.

In: values of the application, payloads, and definitions that a broker stored. Out: payloads,
values, and definitions to register; errors are `SchemaSerializationError`s. Pure: no topics, no
clock, no sockets. Modules are loaded on first use, so that a program loads only what it uses.
Third-party packages it may import: protobuf, and when a record has to be coded fastavro.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.schema.auto_schemas import AutoConsumeSchema, AutoProduceBytesSchema, schema_of
    from pulsar_py.schema.avro_schema import AvroSchema
    from pulsar_py.schema.classes.annotations import (
        AvroType,
        Float32,
        Int32,
        LocalTimestamp,
        TimeMillis,
        TimestampMillis,
        decimal_of,
    )
    from pulsar_py.schema.classes.records import (
        Array,
        Boolean,
        Bytes,
        CustomEnum,
        Double,
        Field,
        Float,
        Integer,
        Long,
        Map,
        Null,
        Record,
        String,
    )
    from pulsar_py.schema.generic_record import GenericRecord
    from pulsar_py.schema.json_schema import JsonSchema
    from pulsar_py.schema.key_value_schema import KeyValue, KeyValueEncodingType, KeyValueSchema
    from pulsar_py.schema.primitive_schemas import (
        BooleanSchema,
        BytesSchema,
        DoubleSchema,
        FloatSchema,
        Int8Schema,
        Int16Schema,
        Int32Schema,
        Int64Schema,
        StringSchema,
    )
    from pulsar_py.schema.protobuf_schemas import ProtobufNativeSchema, ProtobufSchema
    from pulsar_py.schema.schema import Decoder, Schema
    from pulsar_py.schema.schema_info import SchemaInfo, SchemaType
    from pulsar_py.schema.time_schemas import (
        DateSchema,
        InstantSchema,
        LocalDateSchema,
        LocalDateTimeSchema,
        LocalTimeSchema,
        TimeSchema,
        TimestampSchema,
    )

__all__ = [
    "Array",
    "AutoConsumeSchema",
    "AutoProduceBytesSchema",
    "AvroSchema",
    "AvroType",
    "Boolean",
    "BooleanSchema",
    "Bytes",
    "BytesSchema",
    "CustomEnum",
    "DateSchema",
    "Decoder",
    "Double",
    "DoubleSchema",
    "Field",
    "Float",
    "Float32",
    "FloatSchema",
    "GenericRecord",
    "InstantSchema",
    "Int8Schema",
    "Int16Schema",
    "Int32",
    "Int32Schema",
    "Int64Schema",
    "Integer",
    "JsonSchema",
    "KeyValue",
    "KeyValueEncodingType",
    "KeyValueSchema",
    "LocalDateSchema",
    "LocalDateTimeSchema",
    "LocalTimeSchema",
    "LocalTimestamp",
    "Long",
    "Map",
    "Null",
    "ProtobufNativeSchema",
    "ProtobufSchema",
    "Record",
    "Schema",
    "SchemaInfo",
    "SchemaType",
    "String",
    "StringSchema",
    "TimeMillis",
    "TimeSchema",
    "TimestampMillis",
    "TimestampSchema",
    "decimal_of",
    "schema_of",
]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> object:
        """Load a public name from the module that has it."""
        from pulsar_py.schema.public_names import MODULES  # noqa: PLC0415 - at first use

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
