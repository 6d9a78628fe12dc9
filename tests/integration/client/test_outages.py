"""Brokers that are away, however long: who was idle goes on as soon as they are back."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.common.errors import (
    AuthenticationError,
    ClientTimeoutError,
    ConnectError,
    NotABrokerError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.testing.restartable_broker import RestartableBroker
from pulsar_py.wire import commands
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated, simulated_client

BACK_SECONDS = 3.0
"""What is promised: at most so long after the broker is back."""
URL = "pulsar://broker:6650"
AWAY_SECONDS = (1, 47, 3_600, pytest.param(86_400, marks=pytest.mark.slow))
"""From the first probe to long after the intervals have stopped growing; a day is the same again."""


class Attempts:
    """Counts the connections that the client asked for."""

    def __init__(self) -> None:
        self.count = 0
        loop: Any = asyncio.get_running_loop()
        create = loop.create_connection

        async def counted(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            return await create(*arguments, **options)

        loop.create_connection = counted


def in_virtual_time(work: Callable[[RestartableBroker, Client], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = VirtualClock()
        broker = RestartableBroker(
            host="broker", port=6650, web_port=8080, clock=clock, chance=random.Random(1)
        )
        async with broker, Client(URL, clock=clock, chance=random.Random(2)) as client:
            await work(broker, client)

    run_simulated(run(), latency_seconds=0.001)


@pytest.mark.parametrize("away_seconds", AWAY_SECONDS)
def test_an_idle_producer_sends_soon_after_its_broker_is_back(away_seconds: float) -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        loop = asyncio.get_running_loop()
        producer = await client.create_producer("t")
        await producer.send(b"before")
        await broker.stop()
        await asyncio.sleep(away_seconds)
        await broker.restart()
        back_at = loop.time()
        await producer.send(b"after")
        assert loop.time() - back_at < BACK_SECONDS

    in_virtual_time(work)


@pytest.mark.parametrize("away_seconds", AWAY_SECONDS)
def test_a_table_view_is_complete_as_soon(away_seconds: float) -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        loop = asyncio.get_running_loop()
        view = await client.create_table_view("t")
        producer = await client.create_producer("t")
        await producer.send(b"before", key="k")
        await broker.stop()
        await asyncio.sleep(away_seconds)
        await broker.restart()
        back_at = loop.time()
        sent = producer.send_nowait(b"after", key="k")
        while view.get("k") != b"after":
            assert loop.time() - back_at < BACK_SECONDS
            await asyncio.sleep(0.01)
        await sent

    in_virtual_time(work)


def test_an_address_is_probed_once_for_all_who_are_on_it() -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        loop = asyncio.get_running_loop()
        producers = [await client.create_producer(f"t{number}") for number in range(50)]
        await broker.stop()
        attempts = Attempts()
        await asyncio.sleep(600)
        assert 600 / 2 <= attempts.count <= 600 / 1.8 + 10
        await broker.restart()
        back_at = loop.time()
        await asyncio.gather(*(each.send(b"x") for each in producers))
        assert loop.time() - back_at < BACK_SECONDS

    in_virtual_time(work)


def test_the_longest_delay_can_be_set() -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        clock = VirtualClock()
        patient = Client(URL, clock=clock, chance=random.Random(3), max_backoff_interval_ms=30_000)
        await client.close()
        async with patient:
            await patient.create_producer("t")
            await broker.stop()
            attempts = Attempts()
            await asyncio.sleep(600)
            assert 600 / 30 <= attempts.count <= 600 / 27 + 10
            await broker.restart()

    in_virtual_time(work)


# --- what will never work ------------------------------------------------------------------------


async def first_words(words: bytes, *, url: str = "pulsar", **options: Any) -> BaseException:
    """What opening a producer raises where somebody answers with these words; at once."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if words:
            writer.write(words)
            await writer.drain()
        writer.transport.abort() if not words else writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(f"{url}://127.0.0.1:{port}", **options) as client:
        async with asyncio.timeout(10):
            with pytest.raises(NotABrokerError) as raised:
                await client.create_producer("t")
    return raised.value


async def test_a_port_that_speaks_http_is_told_at_once() -> None:
    error = await first_words(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    assert "the peer seems to speak HTTP" in str(error)


async def test_a_port_that_speaks_tls_is_told_at_once() -> None:
    error = await first_words(b"\x15\x03\x01\x00\x02\x02\x46")
    assert "the peer seems to speak TLS" in str(error)


async def test_tls_to_a_port_without_it_is_told_at_once() -> None:
    assert "no TLS on that port?" in str(await first_words(b"no TLS here\r\n", url="pulsar+ssl"))
    assert "no TLS on that port?" in str(await first_words(b"", url="pulsar+ssl"))


async def test_a_host_that_does_not_exist_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    async with Client("pulsar://no-such-host:6650") as client, asyncio.timeout(10):
        with pytest.raises(NotABrokerError, match="is the host's name right, and known here"):
            await client.create_producer("t")


@simulated
async def test_credentials_that_are_refused_are_told_at_once(broker: ScriptedBroker) -> None:
    def refused(_end: BrokerEnd, _command: BaseCommand) -> bytes:
        return commands.error(2**64 - 1, ServerError.AuthenticationError, "token expired")

    broker.script[BaseCommand.CONNECT] = refused
    began = asyncio.get_running_loop().time()
    async with simulated_client(broker) as client:
        with pytest.raises(AuthenticationError, match="token expired"):
            await client.create_producer("t")
    assert asyncio.get_running_loop().time() - began < 1


async def test_another_host_of_the_url_may_be_a_broker() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, RestartableBroker() as broker:
        url = f"pulsar://127.0.0.1:{port},{broker.service_url.removeprefix('pulsar://')}"
        for seed in range(4):
            async with Client(url, chance=random.Random(seed)) as client:
                await (await client.create_producer("t")).send(b"x")


def test_it_is_a_connect_error() -> None:
    assert issubclass(NotABrokerError, ConnectError)


@pytest.mark.parametrize("away_seconds", [1, 600])
def test_drain_of_a_producer_waits_through_an_outage(away_seconds: float) -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        loop = asyncio.get_running_loop()
        consumer = await client.subscribe("t", "s")
        producer = await client.create_producer("t", send_timeout_millis=0)
        await producer.send(b"before")
        await broker.stop()
        result = producer.send_nowait(b"under way")
        draining = asyncio.ensure_future(producer.drain())
        await asyncio.sleep(away_seconds)
        assert not draining.done()
        assert not producer.is_closed
        await broker.restart()
        back_at = loop.time()
        await draining
        assert loop.time() - back_at < BACK_SECONDS
        assert producer.is_closed
        assert (await result).entry_id >= 0
        got = {(await consumer.receive(timeout_millis=30_000)).data() for _ in range(2)}
        assert got == {b"before", b"under way"}

    in_virtual_time(work)


def test_drain_of_a_producer_tells_of_what_timed_out_in_an_outage() -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        producer = await client.create_producer("t")  # send_timeout_millis is 30 s
        await broker.stop()
        producer.send_nowait(b"lost")
        with pytest.raises(ClientTimeoutError):
            await producer.drain()
        assert producer.is_closed
        await broker.restart()

    in_virtual_time(work)


def test_drain_of_a_consumer_waits_for_a_listener_that_waits_for_the_broker() -> None:
    async def work(broker: RestartableBroker, client: Client) -> None:
        onwards = await client.create_producer("onwards", send_timeout_millis=0)
        begun = asyncio.Event()
        done = []

        async def listen(consumer: Any, message: Any) -> None:
            begun.set()
            await broker_is_away.wait()
            done.append(await onwards.send(message.data()))
            await consumer.acknowledge(message)

        broker_is_away = asyncio.Event()
        consumer = await client.subscribe("t", "s", message_listener=listen)
        await (await client.create_producer("t")).send(b"x")
        await begun.wait()
        await broker.stop()
        broker_is_away.set()
        draining = asyncio.ensure_future(consumer.drain())
        await asyncio.sleep(600)
        assert not draining.done()
        await broker.restart()
        await draining
        assert len(done) == 1
        assert consumer.is_closed

    in_virtual_time(work)
