"""Encodes values by a producer's schema, and registers schemas of single messages (edge).

A producer has one schema, or none and takes bytes; a message may have another one, whose version
the broker is asked for once (GET_OR_CREATE_SCHEMA registers it if it is new).

Source: ProducerImpl.populateMessageSchema and getOrCreateSchema in Pulsar's Java client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.security.encrypted_elsewhere import EncryptedPayload
from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema
from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["ProducerSchema", "topic_schema"]

_BYTES = (SchemaType.BYTES, SchemaType.NONE)

AnySchema = Schema[Any]  # Any: the application's values


async def topic_schema(
    context: ClientContext, topic: TopicName, schema: AnySchema | None
) -> AnySchema | None:
    """The schema to use on a topic; an `AutoProduceBytes…` schema gets the topic's own.

    Raises:
        InvalidConfigurationError: It is not a schema.
        ServiceError, ClientError: The topic's schema could not be read.
    """
    if schema is None:
        return None
    if not isinstance(schema, Schema):
        raise InvalidConfigurationError(f"schema: expected a Schema, got {type(schema).__name__}")
    if not schema.needs_topic_schema:
        return schema
    answer = await context.lookup.schema(str(topic.base))
    return schema.with_topic_schema(None if answer is None else SchemaInfo.from_wire(answer.schema))


class ProducerSchema:
    """Encodes the values of one producer. Its partitions share it."""

    def __init__(self, context: ClientContext, topic: TopicName, schema: AnySchema | None) -> None:
        """`schema` is the result of `topic_schema`."""
        self._context = context
        self._topic = str(topic.base)
        self._schema = schema
        # The schema that PRODUCER carries; None for bytes.
        self.wire_schema: WireSchema | None = (
            None if schema is None else schema.schema_info().to_wire()
        )
        # Whether values are bytes, and payloads the same.
        self.takes_bytes = schema is None or (
            schema.schema_info().type in _BYTES and not schema.has_separate_key
        )
        # Serialized definition of a schema that a message brought -> its version.
        self._versions: dict[bytes, bytes] = {}

    def encode(self, message: OutgoingMessage) -> None:
        """Set the message's payload, and its key where that is part of the value.

        Raises:
            SchemaSerializationError: The value doesn't fit the schema.
        """
        if message.is_encoded:
            return
        schema = self._schema if message.schema is None else message.schema
        content = message.content
        if schema is None or (schema is self._schema and self.takes_bytes):
            self._take_bytes(message)
            return
        if not isinstance(schema, Schema):
            raise InvalidConfigurationError(
                f"schema: expected a Schema, got {type(schema).__name__}"
            )
        if schema.has_separate_key:
            message.key = None if content is None else schema.encode_key(content)
        message.null_value = schema.is_null(content)
        message.payload = b"" if message.null_value else schema.encode(content)
        if not isinstance(
            message.payload, bytes
        ):  # encoding a batch relies on it, and would fail far from here
            raise SchemaSerializationError(
                f"{self._topic}: {type(schema).__name__}.encode returned "
                f"{type(message.payload).__name__}, not bytes"
            )
        if message.schema is not None:
            self._set_version(message, schema)

    def _take_bytes(self, message: OutgoingMessage) -> None:
        content = message.content
        if type(content) is bytes or isinstance(content, EncryptedPayload):
            message.payload = content
        elif isinstance(content, bytes | bytearray | memoryview):
            message.payload = bytes(content)
        elif content is not None:
            raise SchemaSerializationError(
                f"{self._topic}: takes bytes or None, not {type(content).__name__}; "
                "give the producer a schema for anything else"
            )

    def _set_version(self, message: OutgoingMessage, schema: AnySchema) -> None:
        """Set the version of the schema that the message brought, if it is known already."""
        wire = schema.schema_info().to_wire()
        if wire is None or wire == self.wire_schema:
            message.schema = None
        else:
            message.schema_version = self._versions.get(wire.SerializeToString())

    @staticmethod
    def needs_version(message: OutgoingMessage) -> bool:
        """Whether `learn_version` has to be awaited before it can go out."""
        return message.schema is not None and message.schema_version is None

    async def learn_version(self, message: OutgoingMessage) -> None:
        """Ask the broker for the version of the schema that the message brought.

        Raises:
            IncompatibleSchemaError: The topic's compatibility strategy refuses that schema.
            ServiceError, ClientError: The broker refused otherwise, or did not answer.
        """
        wire = message.schema.schema_info().to_wire()
        key = wire.SerializeToString()
        if key not in self._versions:
            self._versions[key] = await self._context.lookup.get_or_create_schema(self._topic, wire)
        message.schema_version = self._versions[key]
