"""The table of public names of `pulsar_py.schema`, with the module that each is loaded from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["MODULES"]

MODULES: Final[Mapping[str, str]] = {
    "Array": "records",
    "AutoConsumeSchema": "auto_schemas",
    "AutoProduceBytesSchema": "auto_schemas",
    "AvroSchema": "avro_schema",
    "AvroType": "dataclass_types",
    "Boolean": "records",
    "BooleanSchema": "primitive_schemas",
    "Bytes": "records",
    "BytesSchema": "primitive_schemas",
    "CustomEnum": "records",
    "DateSchema": "time_schemas",
    "Decoder": "schema",
    "Double": "records",
    "DoubleSchema": "primitive_schemas",
    "Field": "records",
    "Float": "records",
    "Float32": "dataclass_types",
    "FloatSchema": "primitive_schemas",
    "GenericRecord": "generic_record",
    "InstantSchema": "time_schemas",
    "Int16Schema": "primitive_schemas",
    "Int32": "dataclass_types",
    "Int32Schema": "primitive_schemas",
    "Int64Schema": "primitive_schemas",
    "Int8Schema": "primitive_schemas",
    "Integer": "records",
    "JsonSchema": "json_schema",
    "KeyValue": "key_value_schema",
    "KeyValueEncodingType": "key_value_schema",
    "KeyValueSchema": "key_value_schema",
    "LocalDateSchema": "time_schemas",
    "LocalDateTimeSchema": "time_schemas",
    "LocalTimeSchema": "time_schemas",
    "LocalTimestamp": "dataclass_types",
    "Long": "records",
    "Map": "records",
    "Null": "records",
    "ProtobufNativeSchema": "protobuf_schemas",
    "ProtobufSchema": "protobuf_schemas",
    "Record": "records",
    "Schema": "schema",
    "SchemaInfo": "schema_info",
    "SchemaType": "schema_info",
    "String": "records",
    "StringSchema": "primitive_schemas",
    "TimeMillis": "dataclass_types",
    "TimeSchema": "time_schemas",
    "TimestampMillis": "dataclass_types",
    "TimestampSchema": "time_schemas",
    "decimal_of": "dataclass_types",
    "schema_of": "auto_schemas",
}
"""Public name -> the module that has it."""
