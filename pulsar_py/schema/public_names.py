"""The table of public names of `pulsar_py.schema`, with the module that each is loaded from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["MODULES"]

MODULES: Final[Mapping[str, str]] = {
    "Array": "classes.records",
    "AutoConsumeSchema": "auto_schemas",
    "AutoProduceBytesSchema": "auto_schemas",
    "AvroSchema": "avro_schema",
    "AvroType": "classes.annotations",
    "Boolean": "classes.records",
    "BooleanSchema": "primitive_schemas",
    "Bytes": "classes.records",
    "BytesSchema": "primitive_schemas",
    "CustomEnum": "classes.records",
    "DateSchema": "time_schemas",
    "Decoder": "schema",
    "Double": "classes.records",
    "DoubleSchema": "primitive_schemas",
    "Field": "classes.records",
    "Float": "classes.records",
    "Float32": "classes.annotations",
    "FloatSchema": "primitive_schemas",
    "GenericRecord": "generic_record",
    "InstantSchema": "time_schemas",
    "Int16Schema": "primitive_schemas",
    "Int32": "classes.annotations",
    "Int32Schema": "primitive_schemas",
    "Int64Schema": "primitive_schemas",
    "Int8Schema": "primitive_schemas",
    "Integer": "classes.records",
    "JsonSchema": "json_schema",
    "KeyValue": "key_value_schema",
    "KeyValueEncodingType": "key_value_schema",
    "KeyValueSchema": "key_value_schema",
    "LocalDateSchema": "time_schemas",
    "LocalDateTimeSchema": "time_schemas",
    "LocalTimeSchema": "time_schemas",
    "LocalTimestamp": "classes.annotations",
    "Long": "classes.records",
    "Map": "classes.records",
    "Null": "classes.records",
    "ProtobufNativeSchema": "protobuf_schemas",
    "ProtobufSchema": "protobuf_schemas",
    "Record": "classes.records",
    "Schema": "schema",
    "SchemaInfo": "schema_info",
    "SchemaType": "schema_info",
    "String": "classes.records",
    "StringSchema": "primitive_schemas",
    "TimeMillis": "classes.annotations",
    "TimeSchema": "time_schemas",
    "TimestampMillis": "classes.annotations",
    "TimestampSchema": "time_schemas",
    "decimal_of": "classes.annotations",
    "schema_of": "auto_schemas",
}
"""Public name -> the module that has it."""
