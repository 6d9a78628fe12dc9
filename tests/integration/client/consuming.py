"""A broker, clients, and messages to consume, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest_asyncio

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import ClientTimeoutError
from pulsar_py.common.message_id import MessageId
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock

TOPIC = "persistent://public/default/consuming"
ACK_GROUP_SECONDS = 0.1

_numbers = itertools.count(2)  # no two clients make up the same names


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(clock=VirtualClock(), chance=random.Random(1)) as started:
        yield started


@pytest_asyncio.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with client_of(broker, operation_timeout_seconds=10) as made:
        yield made


def client_of(broker: Broker, **options: Any) -> Client:
    return Client(
        broker.service_url, clock=VirtualClock(), chance=random.Random(next(_numbers)), **options
    )


async def publish(
    client: Client, payloads: Iterable[bytes], *, topic: str = TOPIC, **options: Any
) -> list[MessageId]:
    """Send unbatched, unless the options say otherwise."""
    async with await client.create_producer(
        topic, **{"batching_enabled": False, **options}
    ) as producer:
        return [await producer.send(payload) for payload in payloads]


async def publish_batch(
    client: Client, payloads: Iterable[bytes], *, topic: str = TOPIC, **options: Any
) -> list[MessageId]:
    """Send as one batch."""
    async with await client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=10_000, **options
    ) as producer:
        waiting = [producer.send_nowait(payload) for payload in payloads]
        await producer.flush()
        return [await each for each in waiting]


async def receive(
    consumer: Consumer, count: int, *, is_acknowledged: bool = False
) -> list[Message]:
    messages = [await consumer.receive(30_000) for _ in range(count)]
    if is_acknowledged:
        await consumer.acknowledge(messages)
    return messages


async def payloads(consumer: Consumer, count: int, *, is_acknowledged: bool = False) -> list[bytes]:
    return [each.data() for each in await receive(consumer, count, is_acknowledged=is_acknowledged)]


async def until(is_reached: Callable[[], bool], seconds: float = 10) -> None:
    """Return when something has become true."""
    async with asyncio.timeout(seconds):
        while not is_reached():
            await asyncio.sleep(0.01)


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


async def is_drained(consumer: Consumer, millis: int = 200) -> bool:
    """Whether nothing more comes."""
    try:
        await consumer.receive(millis)
    except ClientTimeoutError:
        return True
    return False
