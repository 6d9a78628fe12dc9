"""The two schemas of Protobuf messages, PROTOBUF and PROTOBUF_NATIVE (pure).

Payloads are Protobuf's binary encoding. The schemas differ in what the broker stores: PROTOBUF has
an Avro definition derived from the message, PROTOBUF_NATIVE the message's own descriptor, by which
a program that doesn't know the message can decode it. Protobuf resolves versions by itself.

Source: ProtobufSchema and ProtobufNativeSchema in Pulsar's Java client; `ProtobufNativeSchema` in
the official Python client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema.protobuf_definition import (
    avro_definition,
    native_definition,
    parsing_properties,
)
from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["ProtobufNativeSchema", "ProtobufSchema"]

M = TypeVar("M", bound="Message")


class ProtobufSchema(Schema[M]):
    """Messages of one class; the broker stores an Avro definition."""

    schema_type: ClassVar[SchemaType] = SchemaType.PROTOBUF

    def __init__(
        self, message_class: type[M], *, properties: Mapping[str, str] | None = None
    ) -> None:
        """A schema of a generated class.

        Raises:
            InvalidConfigurationError: It is not a Protobuf message class.
        """
        from google.protobuf.message import Message  # noqa: PLC0415 - at first use

        if not isinstance(message_class, type) or not issubclass(message_class, Message):
            raise InvalidConfigurationError(
                f"{message_class!r} is not a generated Protobuf message class"
            )
        self._message_class = message_class
        descriptor: Any = message_class.DESCRIPTOR  # Any: one of two classes that are alike
        is_native = self.schema_type is SchemaType.PROTOBUF_NATIVE
        data = native_definition(descriptor) if is_native else avro_definition(descriptor)
        all_properties = parsing_properties(descriptor) | dict(properties or {})
        self._info = SchemaInfo(self.schema_type, self.schema_type.name, data, all_properties)

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return self._info

    def encode(self, value: M) -> bytes:
        """See `Schema`."""
        if not isinstance(value, self._message_class):
            raise SchemaSerializationError(
                f"expected a {self._message_class.__name__}, got {type(value).__name__}"
            )
        from google.protobuf.message import EncodeError  # noqa: PLC0415 - loaded by now

        try:
            return value.SerializeToString()
        except (EncodeError, ValueError) as error:  # a required field is missing, or it is too big
            raise SchemaSerializationError(f"{self._message_class.__name__}: {error}") from error

    def decode(self, data: bytes) -> M:
        """See `Schema`."""
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - loaded by now

        try:
            return self._message_class.FromString(data)
        except DecodeError as error:
            raise SchemaSerializationError(
                f"{len(data)} bytes are not a {self._message_class.__name__}: {error}"
            ) from error


class ProtobufNativeSchema(ProtobufSchema[M]):
    """Messages of one class; the broker stores their descriptor."""

    schema_type: ClassVar[SchemaType] = SchemaType.PROTOBUF_NATIVE
