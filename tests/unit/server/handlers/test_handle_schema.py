from __future__ import annotations

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import (
    IncompatibleSchemaError,
    InvalidTopicNameError,
    TopicNotFoundError,
)
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandGetOrCreateSchema,
    CommandGetSchema,
    CommandProducer,
    CommandSubscribe,
    Schema,
)
from pulsar_py.server.schema_registry import SchemaPolicies
from tests.unit.server.connection.standins import Client, Server

TEXT = Schema(name="s", type=Schema.String, schema_data=b"")
NUMBER = Schema(name="n", type=Schema.Int32, schema_data=b"")
NONE = Schema(name="x", type=Schema.Type.Value("None"), schema_data=b"")
AUTO = Schema(name="a", type=Schema.AutoConsume, schema_data=b"")


async def used(server: Server, **policies: object) -> Client:
    """A connection with a producer on `t`, which has these policies."""
    client = await server.connect()
    await client.asks(CommandProducer(topic="t", producer_id=1, request_id=1, producer_name="p"))
    topic = server.topic()
    topic.settings = replace(topic.settings, schema=SchemaPolicies(**policies))  # type: ignore[arg-type]
    return client


def get(**fields: object) -> CommandGetSchema:
    return CommandGetSchema(topic="t", request_id=5, **fields)  # type: ignore[arg-type]


def create(schema: Schema, topic: str = "t") -> CommandGetOrCreateSchema:
    return CommandGetOrCreateSchema(topic=topic, request_id=6, schema=schema)


def subscribe(consumer_id: int, schema: Schema, topic: str = "t") -> CommandSubscribe:
    return CommandSubscribe(
        topic=topic,
        subscription="s",
        subType=CommandSubscribe.Shared,
        consumer_id=consumer_id,
        request_id=7,
        schema=schema,
    )


async def test_schema_is_created_and_found(server: Server) -> None:
    client = await used(server)
    assert (await client.asks(create(TEXT))).schema_version == bytes(8)
    for command in (get(), get(schema_version=bytes(8))):
        answer = await client.asks(command)
        assert (answer.request_id, answer.schema.type) == (5, Schema.String)
        assert answer.schema.name == "public/default/t"
        assert answer.schema_version == bytes(8)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (get(), TopicNotFoundError.code),
        (get(schema_version=bytes(8)), TopicNotFoundError.code),
        (get(schema_version=b""), IncompatibleSchemaError.code),
        (get(schema_version=b"\x00"), IncompatibleSchemaError.code),
        (CommandGetSchema(topic="a/b", request_id=5), InvalidTopicNameError.code),
        (create(TEXT, "missing"), TopicNotFoundError.code),
        (create(AUTO), IncompatibleSchemaError.code),
    ],
)
async def test_what_is_not_there_is_an_error_in_its_own_answer(
    server: Server, command: CommandGetSchema, code: int
) -> None:
    client = await used(server)
    answer = await client.asks(command)
    assert answer.error_code == code


async def test_type_none_is_no_schema(server: Server) -> None:
    client = await used(server)
    assert (await client.asks(create(NONE))).schema_version == b""
    assert (await client.asks(get())).error_code == TopicNotFoundError.code


async def test_other_type_is_refused_unless_everything_goes(server: Server) -> None:
    client = await used(server)
    await client.asks(create(TEXT))
    assert (await client.asks(create(NUMBER))).error_code == IncompatibleSchemaError.code
    client = await used(server, strategy=SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE)
    assert (await client.asks(create(NUMBER))).schema_version == bytes(7) + b"\x01"


async def test_system_topics_take_everything(server: Server) -> None:
    client = await used(server)
    server.topic().is_system = True
    await client.asks(create(TEXT))
    assert (await client.asks(create(NUMBER))).schema_version == bytes(7) + b"\x01"


async def test_producer_without_schema_is_refused_where_enforced(server: Server) -> None:
    client = await used(server, is_validation_enforced=True)
    plain = CommandProducer(topic="t", producer_id=2, request_id=2, producer_name="q")
    assert (await client.asks(plain)).schema_version == b""
    await client.asks(create(TEXT))
    plain.producer_id = 3
    assert (await client.asks(plain)).error == IncompatibleSchemaError.code


async def test_updates_may_be_off(server: Server) -> None:
    client = await used(server, is_auto_update_allowed=False)
    assert (await client.asks(create(TEXT))).error_code == IncompatibleSchemaError.code


async def test_consumer_gives_its_schema_to_an_unused_topic(server: Server) -> None:
    client = await server.connect()
    assert (await client.asks(subscribe(1, TEXT))).request_id == 7
    assert (await client.asks(get())).schema.type == Schema.String
    assert (await client.asks(subscribe(2, NUMBER))).error == IncompatibleSchemaError.code
    for consumer_id, schema in enumerate((TEXT, AUTO, NONE), 3):
        assert not hasattr(await client.asks(subscribe(consumer_id, schema)), "error")


@pytest.mark.parametrize("has_messages", [True, False])
async def test_consumer_cannot_give_a_schema_to_a_topic_in_use(
    server: Server, *, has_messages: bool
) -> None:
    client = await used(server)
    if has_messages:
        server.topic().producers.clear()
        server.topic().last_position = Position(1, 0)
    assert (await client.asks(subscribe(1, TEXT))).error == IncompatibleSchemaError.code


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"type":' * 100_000, b'{"size":' + b"9" * 5000])
@pytest.mark.parametrize("kind", [Schema.Avro, Schema.Json, Schema.ProtobufNative])
async def test_a_definition_that_can_not_be_read_is_told_by_each_command(
    server: Server, kind: Schema.Type.ValueType, data: bytes
) -> None:
    """As Apache Pulsar answers for any bad definition, and the connection goes on."""
    client = await used(server)
    schema = Schema(name="s", type=kind, schema_data=data)
    created = await client.asks(create(schema))
    assert created.error_code == IncompatibleSchemaError.code
    producer = CommandProducer(topic="t", producer_id=2, request_id=8, schema=schema)
    assert (await client.asks(producer)).error == IncompatibleSchemaError.code
    await client.asks(create(TEXT))
    refused = await client.asks(subscribe(3, schema))
    assert refused.error == IncompatibleSchemaError.code
