"""`AutoConsumeSchema` and its like: schemas that take the topic's own definition (pure).

`schema_of` makes a schema from a definition that a broker stored: AVRO and JSON with
GenericRecords, PROTOBUF_NATIVE with messages of a class made at run time, key-value pairs, and the
primitive ones. PROTOBUF values come as bytes, because the definition lacks the field numbers.

Source: AutoConsumeSchema and AutoProduceBytesSchema in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import primitive_schemas as primitives
from pulsar_py.schema import time_schemas as times
from pulsar_py.schema.avro_schema import AvroSchema
from pulsar_py.schema.generic_record import GenericRecord
from pulsar_py.schema.json_schema import JsonSchema
from pulsar_py.schema.key_value_schema import (
    KeyValueSchema,
    key_value_encoding_of,
    split_key_value_info,
)
from pulsar_py.schema.protobuf_definition import parse_native_definition
from pulsar_py.schema.protobuf_schemas import ProtobufNativeSchema
from pulsar_py.schema.schema import Decoder, Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

__all__ = ["AutoConsumeSchema", "AutoProduceBytesSchema", "schema_of"]

AnySchema = Schema[Any]  # Any: the topic decides

_SIMPLE: Final[Mapping[SchemaType, type[AnySchema]]] = {
    SchemaType.BYTES: primitives.BytesSchema,
    SchemaType.NONE: primitives.BytesSchema,
    SchemaType.PROTOBUF: primitives.BytesSchema,
    SchemaType.STRING: primitives.StringSchema,
    SchemaType.BOOLEAN: primitives.BooleanSchema,
    SchemaType.INT8: primitives.Int8Schema,
    SchemaType.INT16: primitives.Int16Schema,
    SchemaType.INT32: primitives.Int32Schema,
    SchemaType.INT64: primitives.Int64Schema,
    SchemaType.FLOAT: primitives.FloatSchema,
    SchemaType.DOUBLE: primitives.DoubleSchema,
    SchemaType.DATE: times.DateSchema,
    SchemaType.TIME: times.TimeSchema,
    SchemaType.TIMESTAMP: times.TimestampSchema,
    SchemaType.INSTANT: times.InstantSchema,
    SchemaType.LOCAL_DATE: times.LocalDateSchema,
    SchemaType.LOCAL_TIME: times.LocalTimeSchema,
    SchemaType.LOCAL_DATE_TIME: times.LocalDateTimeSchema,
}


def schema_of(info: SchemaInfo) -> Schema[Any]:  # Any: as above
    """The schema that a stored definition describes.

    Raises:
        SchemaSerializationError: The definition is not valid, or its type can't be decoded.
    """
    simple = _SIMPLE.get(info.type)
    if simple is not None:
        return simple()
    try:
        match info.type:
            case SchemaType.AVRO:
                return AvroSchema(schema_definition=info.data, records_as=GenericRecord)
            case SchemaType.JSON:
                return JsonSchema(schema_definition=info.data, records_as=GenericRecord)
            case SchemaType.PROTOBUF_NATIVE:
                return ProtobufNativeSchema(parse_native_definition(info.data))
            case SchemaType.KEY_VALUE:
                key, value = split_key_value_info(info)
                encoding = key_value_encoding_of(info)
                return KeyValueSchema(schema_of(key), schema_of(value), encoding)
            case _:
                pass
    except InvalidConfigurationError as error:
        raise SchemaSerializationError(f"the topic's {info.type.name} schema: {error}") from error
    raise SchemaSerializationError(f"values of type {info.type.name} can't be decoded")


class AutoConsumeSchema(Schema[Any]):  # Any: whatever was written
    """Decodes values by the schema that they were written with; for consumers only.

    Messages that name no version of the topic's schema were written without one: they are bytes.
    """

    def schema_info(self) -> SchemaInfo:
        """See `Schema`; brokers get no schema, so they check nothing."""
        return SchemaInfo(SchemaType.AUTO_CONSUME, "AutoConsume")

    @property
    def reads_versions(self) -> bool:
        """See `Schema`."""
        return True

    def encode(self, value: Any) -> bytes:
        """Always raises SchemaSerializationError: producers use AutoProduceBytesSchema."""
        raise SchemaSerializationError(
            f"AUTO_CONSUME is for consumers and can't encode {value!r:.100}"
        )

    def decode(self, data: bytes) -> Any:
        """See `Schema`."""
        return data

    def decoder_for(self, writer: SchemaInfo | None) -> Decoder[Any]:
        """See `Schema`."""
        schema = primitives.BytesSchema() if writer is None else schema_of(writer)
        return schema.decoder_for(None)


class AutoProduceBytesSchema(Schema[bytes]):
    """Bytes that were encoded already, checked against the topic's schema; for producers.

    With `schema`, that one is registered instead of the topic's own.
    """

    def __init__(self, schema: Schema[Any] | None = None) -> None:
        # The schema that bytes are checked against; None until the topic is known.
        self._schema = schema
        self._needs_topic_schema = schema is None

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        if self._schema is None:
            return SchemaInfo(SchemaType.AUTO_PUBLISH, "AutoPublish")
        return self._schema.schema_info()

    @property
    def needs_topic_schema(self) -> bool:
        """See `Schema`."""
        return self._needs_topic_schema

    def with_topic_schema(self, topic_schema: SchemaInfo | None) -> AutoProduceBytesSchema:
        """See `Schema`."""
        if not self._needs_topic_schema:
            return self
        if topic_schema is None:
            return AutoProduceBytesSchema(primitives.BytesSchema())
        return AutoProduceBytesSchema(_Stored(topic_schema))

    def encode(self, value: bytes) -> bytes:
        """See `Schema`; the bytes unchanged, after decoding them once as a check."""
        if not isinstance(value, bytes):
            raise primitives.misfit(SchemaType.AUTO_PUBLISH, value, "bytes")
        if self._schema is None:
            raise SchemaSerializationError("AutoProduceBytesSchema: no topic's schema is known yet")
        self._schema.decode(value)
        return value

    def decode(self, data: bytes) -> bytes:
        """See `Schema`."""
        return data


class _Stored(Schema[Any]):
    """A topic's schema, with the definition exactly as it is stored."""

    def __init__(self, info: SchemaInfo) -> None:
        self._info = info
        self._schema = schema_of(info)

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return self._info

    def encode(self, value: Any) -> bytes:
        """See `Schema`."""
        return self._schema.encode(value)

    def decode(self, data: bytes) -> Any:
        """See `Schema`."""
        return self._schema.decode(data)
