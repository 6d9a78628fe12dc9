"""Handlers of GET_SCHEMA and GET_OR_CREATE_SCHEMA; checks of schemas in PRODUCER and SUBSCRIBE.

Source: ServerCnx.handleGetSchema, tryAddSchema, AbstractTopic.addSchemaIfIdleOrCheckCompatible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.errors import IncompatibleSchemaError, ServiceError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.common.position import EARLIEST
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandGetOrCreateSchema,
    CommandGetSchema,
    Schema,
)
from pulsar_py.server.handlers.authorizing import authorize
from pulsar_py.server.schema_registry import SchemaDefinition, SchemaPolicies
from pulsar_py.server.schema_registry.definition import NO_VERSION, decode_version
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection
    from pulsar_py.server.schema_registry import SchemaRegistry
    from pulsar_py.server.topics.topic import Topic


def handle_get_schema(cnx: CommandConnection, command: CommandGetSchema) -> None:
    """Answer with a version of a topic's schema, the latest by default."""
    cnx.spawn(_get_schema(cnx, command), "get schema")


async def _get_schema(cnx: CommandConnection, command: CommandGetSchema) -> None:
    schemas = cnx.connections.schemas
    try:
        name = TopicName.parse(command.topic)
        refusal = "Client is not authorized to Get Schema"
        await authorize(cnx, Action.GET_METADATA, AccessTarget.of_topic(name), refusal)
        if command.HasField("schema_version"):
            if not command.schema_version:
                raise IncompatibleSchemaError("Empty schema version")  # noqa: TRY301 - one answer
            decode_version(command.schema_version)
            found = await schemas.get(name.schema_id, command.schema_version)
        else:
            found = await schemas.latest(name.schema_id)
        if found is None:
            raise TopicNotFoundError(f"Topic not found or no-schema {name}")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        answer = cnx.explain(error)
        cnx.send(commands.get_schema_failed(command.request_id, answer.code, str(answer)))
        return
    schema = found.definition.to_wire()
    cnx.send(commands.get_schema_response(command.request_id, schema, found.version_bytes))


def handle_get_or_create_schema(cnx: CommandConnection, command: CommandGetOrCreateSchema) -> None:
    """Answer with the version of a schema, which is stored if it is new and compatible."""
    cnx.spawn(_get_or_create_schema(cnx, command), "get or create schema")


async def _get_or_create_schema(cnx: CommandConnection, command: CommandGetOrCreateSchema) -> None:
    try:
        name = TopicName.parse(command.topic)
        refusal = "Client is not authorized to Get or Create Schema"
        await authorize(cnx, Action.PRODUCE, AccessTarget.of_topic(name), refusal)
        topic = await cnx.connections.topics.get_or_load(name, create_if_missing=False)
        definition = SchemaDefinition.from_wire(command.schema)
        version = await _put(cnx.connections.schemas, topic, definition, cnx.role)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        _create_failed(cnx, command.request_id, cnx.explain(error))
        return
    cnx.send(commands.get_or_create_schema_response(command.request_id, version))


def _create_failed(cnx: CommandConnection, request_id: int, error: ServiceError) -> None:
    cnx.send(commands.get_or_create_schema_failed(request_id, error.code, str(error)))


async def _put(
    schemas: SchemaRegistry, topic: Topic, schema: SchemaDefinition, role: str | None
) -> bytes:
    if schema.is_empty:
        return NO_VERSION
    policies = _policies_of(topic)
    return await schemas.put_if_absent(
        topic.name.schema_id,
        schema,
        strategy=policies.strategy,
        is_auto_update_allowed=policies.is_auto_update_allowed,
        user=role or "",
    )


def _policies_of(topic: Topic) -> SchemaPolicies:
    if topic.is_system:
        return SchemaPolicies(SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE)
    return topic.settings.schema


async def schema_version_for_producer(
    schemas: SchemaRegistry, topic: Topic, schema: Schema | None, role: str | None
) -> bytes:
    """The version bytes of a producer's schema, which is stored if it is new; empty without one.

    Raises:
        IncompatibleSchemaError: It is not compatible with the topic's, or one is required.
    """
    definition = None if schema is None else SchemaDefinition.from_wire(schema)
    if definition is not None and not definition.is_empty:
        return await _put(schemas, topic, definition, role)
    is_enforced = _policies_of(topic).is_validation_enforced
    if is_enforced and await schemas.latest(topic.name.schema_id) is not None:
        raise IncompatibleSchemaError(
            "Producers cannot connect without a schema to topics with a schema "
            "when SchemaValidationEnforced is enabled"
        )
    return NO_VERSION


async def check_schema_of_consumer(
    schemas: SchemaRegistry, topic: Topic, schema: Schema | None, role: str | None
) -> None:
    """Check a consumer's schema; in a topic that was never used it becomes the first version.

    Raises:
        IncompatibleSchemaError: The consumer may not read the topic with it.
    """
    if schema is None or schema.type == Schema.AutoConsume:
        return
    definition = SchemaDefinition.from_wire(schema)
    if definition.is_empty:
        return
    policies = _policies_of(topic)
    if await schemas.latest(topic.name.schema_id) is not None:
        await schemas.check_consumer(topic.name.schema_id, definition, strategy=policies.strategy)
    elif _is_unused(topic):
        await _put(schemas, topic, definition, role)
    elif policies.strategy is not SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE:
        raise IncompatibleSchemaError(
            f"topic {topic.name} has clients or messages and no schema: none can be added"
        )


def _is_unused(topic: Topic) -> bool:
    """Whether the topic has neither clients nor messages."""
    if topic.producers or topic.consumers_count:
        return False
    return not topic.name.is_persistent or topic.last_message_position() == EARLIEST
