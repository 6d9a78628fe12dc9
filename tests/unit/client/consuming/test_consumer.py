from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    TopicTerminatedError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import (
    deliver,
    in_thread,
    new_client,
    open_consumer,
    spawn,
)
from tests.unit.client.entries import TOPIC, batch


@simulated
async def test_what_a_consumer_is(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_name="me")
        assert consumer.topic() == TOPIC
        assert consumer.subscription_name() == "s"
        assert consumer.consumer_name() == "me"
        assert consumer.is_connected()
        assert consumer.is_active
        assert not consumer.is_closed
        unnamed = await open_consumer(client)
        assert len(unnamed.consumer_name()) == 5
        failover = await open_consumer(client, consumer_type=ConsumerType.Failover)
        assert not failover.is_active


@simulated
async def test_the_event_loop_of_another_thread_is_refused(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        message = await consumer.receive()

        async def refuse() -> None:
            consumer.negative_acknowledge(message)

        for work in (
            consumer.receive,
            consumer.__anext__,
            consumer.batch_receive,
            lambda: consumer.acknowledge(message),
            lambda: consumer.seek(MessageId.earliest),
            refuse,
        ):
            error = in_thread(work)
            assert f"consumer {consumer.consumer_name()} of s on {TOPIC} belongs" in str(error)
            assert "of thread 'MainThread', and was used in thread 'worker':" in str(error)


@simulated
async def test_iteration(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0), batch([b"a", b"b"]))
        seen = []
        async for message in consumer:
            seen.append(message.data())
            if len(seen) == 2:
                break
        assert seen == [b"a", b"b"]


@simulated
async def test_closing_when_the_broker_does_not_answer(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CLOSE_CONSUMER] = lambda end, command: None
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        waiting = spawn(consumer.receive())
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        first = spawn(consumer.close())
        await asyncio.gather(first, consumer.close())
        assert asyncio.get_running_loop().time() - began <= 5.1
        with pytest.raises(AlreadyClosedError, match=TOPIC):
            await waiting
        await consumer.close()


@simulated
async def test_closing_while_there_is_no_connection(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        broker.script[BaseCommand.CONNECT] = lambda end, command: None
        broker.end.cut()
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        await consumer.close()
        assert asyncio.get_running_loop().time() - began < 0.1


@simulated
async def test_a_cancelled_close_still_ends_the_consumer(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CLOSE_CONSUMER] = lambda end, command: None
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        closing = spawn(consumer.close())
        await asyncio.sleep(0.1)
        closing.cancel()
        await asyncio.wait([closing])
        assert consumer.is_closed
        await consumer.close()


@simulated
async def test_a_subscribe_that_is_not_answered_is_taken_back(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SUBSCRIBE] = lambda end, command: None
    async with new_client(broker) as client:
        with pytest.raises(ClientTimeoutError, match=TOPIC):
            await open_consumer(client)
        await asyncio.sleep(0.01)
        assert "CLOSE_CONSUMER" in broker.types()
        assert not client.context.children


@simulated
async def test_a_cancelled_subscribe_is_taken_back(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SUBSCRIBE] = lambda end, command: None
    async with new_client(broker) as client:
        opening = spawn(open_consumer(client))
        await asyncio.sleep(0.5)
        opening.cancel()
        await asyncio.wait([opening])
        await asyncio.sleep(0.01)
        assert broker.types()[-1] == "CLOSE_CONSUMER"


@simulated
async def test_cancelling_receive_at_any_step_loses_nothing(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        got: list[bytes] = []
        for entry_id in range(60):
            receiving = spawn(consumer.receive(1000 if entry_id % 2 else None))
            for _ in range(entry_id % 4):
                await asyncio.sleep(0)
            deliver(broker, (1, entry_id))
            for _ in range(entry_id % 5):
                await asyncio.sleep(0)
            receiving.cancel()
            await asyncio.wait([receiving])
            if not receiving.cancelled():
                got.append(receiving.result().data())
        while len(got) < 60:
            got.append((await consumer.receive(1000)).data())
        assert sorted(got, key=lambda each: int(each[2:])) == [b"1:%d" % i for i in range(60)]


@simulated
async def test_what_ends_for_good_says_why(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        broker.script[BaseCommand.SUBSCRIBE] = lambda end, command: commands.error(
            command.subscribe.request_id, ServerError.TopicTerminatedError, "terminated"
        )
        broker.end.cut()
        await asyncio.sleep(1)
        with pytest.raises(TopicTerminatedError):
            await consumer.receive()
        await consumer.close()
