"""Both clients behind one face, so that a test says once what has to work in both directions.

Options, methods and their names are alike; the official client blocks and has enumerations of its
own, ours is awaited. `Side.Consumer` and the like are what the client made, with every method as a
coroutine function; messages are the clients' own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import pulsar

import pulsar_py

TIMEOUT = 10_000

RECEIVED = ("properties", "partition_key", "ordering_key", "event_timestamp", "producer_name")
"""What of a message has to be the same on both sides, besides its data."""


class Awaited:
    """An object whose methods are all coroutine functions."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if inspect.iscoroutinefunction(method):
            return method

        async def call(*arguments: Any, **options: Any) -> Any:
            if type(self.inner).__module__.startswith("pulsar_py"):
                made = method(*arguments, **options)
                return await made if inspect.isawaitable(made) else made
            return await asyncio.to_thread(method, *arguments, **options)

        return call


class Side:
    """One of the two clients."""

    name: str
    module: Any

    def __init__(self, client: Any) -> None:
        self.client = Awaited(client)

    def __repr__(self) -> str:
        return self.name

    def option(self, value: Any) -> Any:
        """`"ConsumerType.Shared"` as this client's own enumeration has it; others as they are."""
        if isinstance(value, str) and value.partition(".")[0] in ENUMS:
            kind, _, member = value.partition(".")
            return getattr(getattr(self.module, kind), member)
        return value

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.option(value) for name, value in options.items()}

    async def producer(self, topic: str, **options: Any) -> Any:
        return Awaited(await self.client.create_producer(topic, **self._options(options)))

    async def consumer(self, topic: Any, subscription: str = "sub", **options: Any) -> Any:
        options = {"initial_position": "InitialPosition.Earliest"} | options
        return Awaited(await self.client.subscribe(topic, subscription, **self._options(options)))

    async def reader(self, topic: str, start: Any, **options: Any) -> Any:
        return Awaited(await self.client.create_reader(topic, start, **self._options(options)))

    def message_id(self, serialized: bytes) -> Any:
        """An id of the other client's as this one's own."""
        return self.module.MessageId.deserialize(serialized)

    async def publish(self, topic: str, messages: Iterable[Any], **options: Any) -> None:
        """Send contents, or dictionaries of `send`'s arguments, all at once, and wait."""
        producer = await self.producer(topic, **options)
        for each in messages:
            self.send_at_once(producer, each if isinstance(each, dict) else {"content": each})
        await producer.flush()
        await producer.close()

    def send_at_once(self, producer: Any, arguments: dict[str, Any]) -> None:
        raise NotImplementedError


ENUMS = (
    "BatchingType",
    "CompressionType",
    "ConsumerCryptoFailureAction",
    "ConsumerType",
    "InitialPosition",
    "PartitionsRoutingMode",
    "ProducerAccessMode",
    "RegexSubscriptionMode",
)


class Ours(Side):
    name = "ours"
    module = pulsar_py

    def send_at_once(self, producer: Any, arguments: dict[str, Any]) -> None:
        producer.inner.send_nowait(**arguments)


class Official(Side):
    name = "official"
    module = pulsar

    def send_at_once(self, producer: Any, arguments: dict[str, Any]) -> None:
        producer.inner.send_async(callback=_fine, **arguments)


def _fine(result: pulsar.Result, _: Any) -> None:
    assert result == pulsar.Result.Ok


async def receive_all(consumer: Any, count: int, *, acknowledge: bool = True) -> list[Any]:
    messages = []
    for _ in range(count):
        messages.append(await consumer.receive(TIMEOUT))
        if acknowledge:
            await consumer.acknowledge(messages[-1])
    return messages


async def data_of(consumer: Any, count: int, *, acknowledge: bool = True) -> list[bytes]:
    return [m.data() for m in await receive_all(consumer, count, acknowledge=acknowledge)]


async def next_of(consumer: Any, timeout_millis: int = 200) -> Any | None:
    """The next message, acknowledged; None if there is none for a while."""
    try:
        message = await consumer.receive(timeout_millis)
    except (pulsar.Timeout, pulsar_py.ClientTimeoutError):
        return None
    await consumer.acknowledge(message)
    return message


async def nothing_comes(consumer: Any, timeout_millis: int = 200) -> bool:
    """Whether there is no message for a while; one that comes is not acknowledged."""
    try:
        await consumer.receive(timeout_millis)
    except (pulsar.Timeout, pulsar_py.ClientTimeoutError):
        return True
    return False
