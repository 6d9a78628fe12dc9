"""A consumer of several topics, and what it receives."""

from __future__ import annotations

from typing import Any

from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from tests.simulated_client import World

A = "persistent://public/default/a"
B = "persistent://public/default/b"
P = "persistent://public/default/p"


async def subscribe(world: World, *topics: str, **options: Any) -> MultiTopicsConsumer:
    consumer = await world.client.subscribe(list(topics), "sub", **options)
    assert isinstance(consumer, MultiTopicsConsumer)
    return consumer


async def receive(consumer: MultiTopicsConsumer, count: int) -> list[Message]:
    return [await consumer.receive(30_000) for _ in range(count)]


def data(messages: list[Message]) -> list[bytes]:
    return [each.data() for each in messages]
