"""Connections over real sockets, on asyncio's loop and on uvloop: limits, silence, slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, ServerError
from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import Broker
from tests.wire_client import Received, WireClient, encode, send_frame

TOPIC = "persistent://public/default/t"
RUNNERS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}
Scenario = Callable[[Broker, str, int], Awaitable[None]]


def play(runner: str, scenario: Scenario, **settings: object) -> None:
    """Run a scenario against a fresh broker in memory, on one kind of loop."""

    async def run() -> None:
        config = BrokerConfig(**settings)  # type: ignore[arg-type]
        async with asyncio.timeout(60), Broker(config=config) as broker:
            url = urlsplit(broker.service_url)
            assert url.hostname
            assert url.port
            await scenario(broker, url.hostname, url.port)

    RUNNERS[runner](run())


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; the test's own deadline ends a wait in vain."""
    while not condition():
        await asyncio.sleep(0.005)


def connect_frame() -> bytes:
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "test"
    command.connect.protocol_version = 21
    return encode(command)


@pytest.mark.parametrize("runner", RUNNERS)
def test_publish_and_receive(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        client = await WireClient.connect(host, port)
        await client.lookup(TOPIC)
        assert (await client.subscribe(TOPIC, "s")).type == BaseCommand.SUCCESS
        await client.create_producer(TOPIC)
        client.flow(1000)
        bodies: list[bytes] = []
        client.on_message = lambda received: bodies.append(received.headers_and_payload[-3:])
        client.writer.write(b"".join(send_frame(1, index, b"%03d" % index) for index in range(500)))
        await until(lambda: len(bodies) == 500)
        assert bodies == [b"%03d" % index for index in range(500)]
        await client.close()

    play(runner, scenario)


@pytest.mark.parametrize("runner", RUNNERS)
def test_consumer_that_never_reads_costs_bounded_memory(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        producer = await WireClient.connect(host, port)
        await producer.lookup(TOPIC)
        reader, writer = await asyncio.open_connection(host, port)
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        command.subscribe.topic = TOPIC
        command.subscribe.subscription = "s"
        command.subscribe.subType = CommandSubscribe.Shared
        command.subscribe.consumer_id = 1
        command.subscribe.request_id = 1
        flow = BaseCommand(type=BaseCommand.FLOW, flow={"consumer_id": 1, "messagePermits": 10**6})
        writer.write(connect_frame() + encode(command) + encode(flow))
        await reader.readexactly(1)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        receipts = 0

        def count(_: BaseCommand) -> None:
            nonlocal receipts
            receipts += 1

        await producer.create_producer(TOPIC)
        producer.on_receipt = count
        frame_body = bytes(100_000)
        for start in range(0, 400, 20):
            frames = [send_frame(1, start + index, frame_body) for index in range(20)]
            producer.writer.write(b"".join(frames))
            await until(lambda expected=start + 20: receipts >= expected)  # type: ignore[misc]
        connections = broker.service.connections
        held = max(cnx._transport.get_write_buffer_size() for cnx in connections._open)
        assert held < 2 * connections.settings.output_high_water_bytes + 6_000_000
        writer.close()
        await producer.close()

    play(runner, scenario)


@pytest.mark.parametrize("runner", RUNNERS)
def test_writer_of_single_bytes_is_served(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        ping = BaseCommand(type=BaseCommand.PING, ping={})
        for byte in connect_frame() + encode(ping):
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        size = int.from_bytes(await reader.readexactly(4), "big")
        answer = BaseCommand.FromString((await reader.readexactly(size))[4:])
        assert answer.type == BaseCommand.PONG
        writer.close()

    play(runner, scenario)


@pytest.mark.parametrize("runner", RUNNERS)
def test_producer_of_a_dead_connection_gives_way(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        dead_reader, dead_writer = await asyncio.open_connection(host, port)
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic = TOPIC
        lookup.lookupTopic.request_id = 1
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = TOPIC
        command.producer.producer_id = command.producer.request_id = 1
        command.producer.producer_name = "same"
        dead_writer.write(connect_frame() + encode(lookup))
        await until(lambda: broker.service.namespaces.is_owned(TopicName.parse(TOPIC)))
        dead_writer.write(encode(command))
        await until(lambda: bool(broker.service.topics.topics.get(TOPIC)))
        await until(lambda: bool(broker.service.topics.topics[TOPIC].producers))
        newcomer = await WireClient.connect(host, port)
        answer = await newcomer.request(command, 1)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS
        assert await dead_reader.read() != b"", "the dead one was asked before it was closed"
        dead_writer.close()
        await newcomer.close()

    play(runner, scenario, connectionLivenessCheckTimeoutMillis=200)


@pytest.mark.parametrize("runner", RUNNERS)
def test_reading_stops_while_publishes_are_not_answered(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        client = await WireClient.connect(host, port)
        await client.lookup(TOPIC)
        await client.create_producer(TOPIC)
        receipts: list[int] = []
        client.on_receipt = lambda command: receipts.append(command.send_receipt.sequence_id)
        (cnx,) = broker.service.connections._open
        pauses = 0

        def on_pause() -> None:
            nonlocal pauses
            pauses += 1
            pause()

        pause = cnx.in_flight._on_pause
        cnx.in_flight._on_pause = on_pause
        client.writer.write(b"".join(send_frame(1, index, bytes(2000)) for index in range(2000)))
        await until(lambda: len(receipts) == 2000)
        assert receipts == list(range(2000))
        assert pauses > 0
        await client.close()

    play(runner, scenario, maxPendingPublishRequestsPerConnection=10)


@pytest.mark.parametrize("runner", RUNNERS)
def test_connections_beyond_the_limit_are_told(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        first = await WireClient.connect(host, port)
        reader, writer = await asyncio.open_connection(host, port)
        data = await reader.read()
        command = BaseCommand.FromString(data[8:])
        assert command.error.error == ServerError.NotAllowedError
        writer.close()
        await first.close()

    play(runner, scenario, brokerMaxConnections=1)


@pytest.mark.parametrize("runner", RUNNERS)
def test_stopping_the_broker_closes_its_connections(runner: str) -> None:
    async def scenario(broker: Broker, host: str, port: int) -> None:
        client = await WireClient.connect(host, port)
        await client.lookup(TOPIC)
        await client.create_producer(TOPIC)
        await broker.stop()
        assert client._task is not None
        await client._task
        closed = [received.command.type for received in client.pushed._queue]  # type: ignore[attr-defined]
        assert closed == [BaseCommand.CLOSE_PRODUCER]
        await client.close()

    play(runner, scenario)


@pytest.mark.parametrize("runner", RUNNERS)
def test_acknowledgements_and_keep_alive_go_on_beside_a_producer_that_a_rate_holds(
    runner: str,
) -> None:
    """Two megabytes for a topic that takes ten messages a second, and then a consumer's ACK."""

    async def scenario(broker: Broker, host: str, port: int) -> None:
        client = await WireClient.connect(host, port)
        await client.lookup(TOPIC)
        await client.subscribe(TOPIC, "s")
        await client.create_producer(TOPIC)
        messages: list[tuple[int, int]] = []

        def on_message(received: Received) -> None:
            its_id = received.command.message.message_id
            messages.append((its_id.ledgerId, its_id.entryId))

        client.on_message = on_message
        client.flow(1000)
        frames = [send_frame(1, number, bytes(1000)) for number in range(2000)]
        client.writer.write(b"".join(frames))
        await until(lambda: bool(messages))
        answered: list[int] = []
        client.on_ack_response = answered.append
        acknowledged = client.acknowledge(messages[:1])
        client.writer.write(encode(BaseCommand(type=BaseCommand.PING, ping={})))
        async with asyncio.timeout(5):
            while (await client.pushed.get()).command.type != BaseCommand.PONG:
                pass
            await until(lambda: answered == [acknowledged])
        later = len(messages)
        await until(lambda: len(messages) > later)  # and its permits and messages
        assert len(messages) < 200
        assert (await client.create_producer(TOPIC, 2)).type == BaseCommand.PRODUCER_SUCCESS
        assert len(broker.service.topics.topics[TOPIC].producers) == 2
        await client.close()

    play(runner, scenario, maxPublishRatePerTopicInMessages=10)
