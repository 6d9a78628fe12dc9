"""Values to payloads; schemas that messages bring along are registered once."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.producer import Producer
from pulsar_py.common.errors import (
    IncompatibleSchemaError,
    InvalidConfigurationError,
    SchemaSerializationError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema
from pulsar_py.schema.auto_schemas import AutoProduceBytesSchema
from pulsar_py.schema.key_value_schema import KeyValue, KeyValueEncodingType, KeyValueSchema
from pulsar_py.schema.primitive_schemas import BytesSchema, Int32Schema, StringSchema
from pulsar_py.schema.schema_info import SchemaInfo
from pulsar_py.wire import commands
from tests.producer_parts import TOPIC, confirming, payloads, sent
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


async def producer_of(client: Client, **options: Any) -> Producer:
    made = await client.create_producer(TOPIC, **options)
    assert isinstance(made, Producer)
    return made


@simulated
async def test_a_schema_is_registered_and_encodes(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    broker.script[BaseCommand.PRODUCER] = lambda end, command: commands.producer_success(
        command.producer.request_id, "p", schema_version=b"\x07"
    )
    async with simulated_client(broker) as client:
        producer = await producer_of(client, schema=StringSchema())
        await producer.send("ä")
        await producer.send_nowait("b", key="k")
        await producer.send(None)
        with pytest.raises(SchemaSerializationError):
            await producer.send(5)
    (command,) = broker.of(BaseCommand.PRODUCER)
    assert command.producer.schema.type == WireSchema.String
    assert payloads(broker) == [["ä".encode()], [b"b"], [b""]]
    assert sent(broker)[2].entry.metadata.null_value
    assert {each.entry.metadata.schema_version for each in sent(broker)} == {b"\x07"}


@simulated
async def test_bytes_are_no_schema(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, schema=BytesSchema())
        await producer.send_nowait(b"x")
    assert not broker.of(BaseCommand.PRODUCER)[0].producer.HasField("schema")
    assert payloads(broker) == [[b"x"]]


@simulated
async def test_a_separate_key_becomes_the_messages_key(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    schema = KeyValueSchema(StringSchema(), StringSchema(), KeyValueEncodingType.SEPARATED)
    async with simulated_client(broker) as client:
        producer = await producer_of(client, schema=schema)
        await producer.send(KeyValue("k", "v"))
    (only,) = sent(broker)
    assert only.entry.payload == b"v"
    assert only.entry.metadata.partition_key_b64_encoded


def test_several_schemas_are_registered_once_each_and_order_holds() -> None:
    versions = iter([b"\x01", b"\x02"])

    @simulated
    async def run(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.SEND] = confirming()
        broker.script[BaseCommand.GET_OR_CREATE_SCHEMA] = lambda end, command: (
            commands.get_or_create_schema_response(
                command.getOrCreateSchema.request_id, next(versions)
            )
        )
        async with simulated_client(broker) as client:
            producer = await producer_of(client, batching_enabled=True)
            results = [
                producer.send_nowait(b"0"),
                producer.send_nowait("1", schema=StringSchema()),
                producer.send_nowait("2", schema=StringSchema()),
                producer.send_nowait(b"3"),
                producer.send_nowait(4, schema=Int32Schema()),
            ]
            await producer.flush()
            assert [(await each).entry_id for each in results] == [0, 1, 1, 2, 3]
            await producer.send("5", schema=StringSchema())
        assert broker.types().count("GET_OR_CREATE_SCHEMA") == 2
        assert payloads(broker) == [[b"0"], [b"1", b"2"], [b"3"], [b"\0\0\0\x04"], [b"5"]]
        assert [each.entry.metadata.schema_version for each in sent(broker)] == [
            b"",
            b"\x01",
            b"",
            b"\x02",
            b"\x01",
        ]

    run()


@simulated
async def test_a_schema_that_is_refused_fails_its_message_alone(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    broker.script[BaseCommand.GET_OR_CREATE_SCHEMA] = lambda end, command: (
        commands.get_or_create_schema_failed(
            command.getOrCreateSchema.request_id, ServerError.IncompatibleSchema, "no"
        )
    )
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        refused = producer.send_nowait("1", schema=StringSchema())
        after = producer.send_nowait(b"2")
        with pytest.raises(IncompatibleSchemaError):
            await refused
        assert (await after).entry_id == 0
        assert client.context.memory_limit.current_bytes == 0


@simulated
async def test_bytes_may_be_checked_by_the_topics_schema(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    broker.script[BaseCommand.GET_SCHEMA] = lambda end, command: commands.get_schema_response(
        command.getSchema.request_id,
        WireSchema(name="INT32", schema_data=b"", type=WireSchema.Int32),
        b"\0",
    )
    async with simulated_client(broker) as client:
        producer = await producer_of(client, schema=AutoProduceBytesSchema())
        await producer.send(b"\0\0\0\x01")
        with pytest.raises(SchemaSerializationError):
            await producer.send(b"not four")
    assert broker.of(BaseCommand.PRODUCER)[0].producer.schema.type == WireSchema.Int32


@simulated
async def test_what_is_no_schema_is_refused(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        with pytest.raises(InvalidConfigurationError, match="schema"):
            await producer_of(client, schema=str)
        producer = await producer_of(client)
        with pytest.raises(InvalidConfigurationError, match="schema"):
            producer.send_nowait("x", schema=str)


class TextSchema(BytesSchema):
    """One that forgets to encode."""

    def schema_info(self) -> SchemaInfo:
        return StringSchema().schema_info()

    def encode(self, value: Any) -> bytes:
        return value


@simulated
async def test_a_schema_that_returns_no_bytes_fails_its_message(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, schema=TextSchema(), batching_enabled=True)
        with pytest.raises(SchemaSerializationError, match="encode returned str"):
            producer.send_nowait("text")
        await producer.send(b"bytes")
    assert payloads(broker) == [[b"bytes"]]
