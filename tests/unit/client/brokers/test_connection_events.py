from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_py.common.errors import ProducerFencedError, ServiceNotReadyError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated, simulated_client


class Told:
    """A ConnectionListener that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def connected(self, who: str, broker: str) -> None:
        self.lines.append(f"{who}: connected to {broker}")

    def disconnected(self, who: str, reason: str) -> None:
        self.lines.append(f"{who}: disconnected: {reason}")

    def reconnected(self, who: str, broker: str) -> None:
        self.lines.append(f"{who}: reconnected to {broker}")

    def given_up(self, who: str, error: Exception) -> None:
        self.lines.append(f"{who}: given up: {type(error).__name__}")


@contextmanager
def info_lines() -> Iterator[list[str]]:
    """What the client logs of connections at INFO and above."""
    logger = logging.getLogger("pulsar_py.client.brokers")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@simulated
async def test_a_listener_and_the_log_hear_of_each_place_by_topic_and_subscription(
    broker: ScriptedBroker,
) -> None:
    told = Told()
    with info_lines() as records:
        async with simulated_client(broker, connection_listener=told) as client:
            consumer = await client.subscribe("t", "s", consumer_name="c")
            broker.end.cut()
            await asyncio.sleep(5)
            assert consumer.is_connected()
    who = "consumer c of s on persistent://public/default/t"
    assert told.lines[0] == f"{who}: connected to {broker.address}"
    assert told.lines[1].startswith(f"{who}: disconnected: ")
    assert told.lines[2:] == [f"{who}: reconnected to {broker.address}"]
    for text in ("connected to", "disconnected: ", f"connected to {broker.address} again"):
        assert [each for each in records if each.startswith(f"{who}: {text}")], text


@simulated
async def test_who_gives_up_says_why(broker: ScriptedBroker) -> None:
    told = Told()
    async with simulated_client(broker, connection_listener=told) as client:
        await client.create_producer("t")

        def fenced(_end: BrokerEnd, command: BaseCommand) -> bytes:
            return commands.error(command.producer.request_id, ServerError.ProducerFenced, "other")

        broker.script[BaseCommand.PRODUCER] = fenced
        broker.end.cut()
        await asyncio.sleep(5)
    assert told.lines[-1].endswith(f"given up: {ProducerFencedError.__name__}")


@simulated
async def test_a_listener_that_raises_costs_nothing_but_a_line_in_the_log(
    broker: ScriptedBroker,
) -> None:
    class Broken(Told):
        def connected(self, who: str, broker: str) -> None:
            raise ValueError(who)

    logging.getLogger("pulsar_py.client").setLevel(logging.CRITICAL)
    try:
        async with simulated_client(broker, connection_listener=Broken()) as client:
            assert (await client.create_producer("t")).is_connected()
    finally:
        logging.getLogger("pulsar_py.client").setLevel(logging.NOTSET)


@simulated
async def test_a_refusal_is_told_with_the_time_of_the_next_attempt(broker: ScriptedBroker) -> None:
    refused = ServiceNotReadyError.code
    answers = [refused, None]

    def answer(_end: BrokerEnd, command: BaseCommand) -> bytes:
        if (code := answers.pop(0)) is not None:
            return commands.error(command.subscribe.request_id, code, "loading")
        return commands.success(command.subscribe.request_id)

    broker.script[BaseCommand.SUBSCRIBE] = answer
    async with simulated_client(broker) as client:
        consumer = await client.subscribe("t", "s", consumer_name="c")
        assert repr(consumer) == "Consumer(c of s on persistent://public/default/t, connected)"


@simulated
async def test_parts_of_one_connection_are_one_line(broker: ScriptedBroker) -> None:
    with info_lines() as records:
        async with simulated_client(broker) as client:
            for number in range(5):
                await client.create_producer(f"t-{number}")
            await asyncio.sleep(1)
            records.clear()
            broker.end.cut()
            await asyncio.sleep(5)
    lines = [each for each in records if "persistent://" in each]
    names = ", ".join(f"producer {n} of persistent://public/default/t-{n}" for n in range(3))
    assert len(lines) == 2
    assert lines[0].startswith(f"{names} and 2 more: disconnected: ")
    assert lines[1].endswith(f" and 2 more: connected to {broker.address} again")


@simulated
async def test_an_hour_without_a_broker_is_told_when_it_begins(broker: ScriptedBroker) -> None:
    with info_lines() as records:
        async with simulated_client(broker) as client:
            producers = [await client.create_producer(f"t-{number}") for number in range(5)]
            await asyncio.sleep(1)
            records.clear()
            broker.close()
            await asyncio.sleep(3600)
            assert not producers[0].is_connected()
            assert len(records) == 3, records  # the connection, its parts, nobody there


@simulated
async def test_a_refusal_is_told_once(broker: ScriptedBroker) -> None:
    def refuse(_end: BrokerEnd, command: BaseCommand) -> bytes:
        return commands.error(command.producer.request_id, ServiceNotReadyError.code, "loading")

    with info_lines() as records:
        async with simulated_client(broker) as client:
            producer = await client.create_producer("t")
            broker.script[BaseCommand.PRODUCER] = refuse
            broker.end.cut()
            await asyncio.sleep(300)
            assert not producer.is_connected()
    assert len([each for each in records if "loading" in each]) == 1
