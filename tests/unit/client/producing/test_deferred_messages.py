"""Messages that wait: in order, each once, also when the producer closes meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.producer import Producer
from pulsar_py.common.errors import AlreadyClosedError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.schema.primitive_schemas import StringSchema
from pulsar_py.wire import commands
from tests.producer_parts import TOPIC, confirming, payloads
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated, simulated_client


async def producer_of(client: Client, **options: Any) -> Producer:
    made = await client.create_producer(TOPIC, **options)
    assert isinstance(made, Producer)
    return made


def answer_of_schema(end: BrokerEnd, command: BaseCommand) -> bytes:
    return commands.get_or_create_schema_response(command.getOrCreateSchema.request_id, b"\x01")


@simulated
async def test_what_follows_a_waiting_message_waits_too(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        first = producer.send_nowait("1", schema=StringSchema())
        second = producer.send_nowait(b"2")
        await asyncio.sleep(1)
        assert payloads(broker) == []
        broker.end.push(
            answer_of_schema(broker.end, broker.of(BaseCommand.GET_OR_CREATE_SCHEMA)[0])
        )
        assert [(await first).entry_id, (await second).entry_id] == [0, 1]
        # From here on the short way is open again.
        assert (await producer.send_nowait(b"3")).entry_id == 2


@simulated
async def test_flush_waits_for_them(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    broker.script[BaseCommand.GET_OR_CREATE_SCHEMA] = answer_of_schema
    async with simulated_client(broker) as client:
        producer = await producer_of(client, batching_enabled=True)
        result = producer.send_nowait("1", schema=StringSchema())
        await producer.flush()
        assert result.done()


@simulated
async def test_closing_fails_what_still_waits(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        producer = await producer_of(client)
        results = [
            producer.send_nowait("1", schema=StringSchema()),
            producer.send_nowait(b"2"),
        ]
        begun = asyncio.get_running_loop().time()
        await producer.close()
        assert asyncio.get_running_loop().time() - begun <= 6
        for each in results:
            with pytest.raises((AlreadyClosedError, TimeoutError)):
                await each
        assert client.context.memory_limit.current_bytes == 0
