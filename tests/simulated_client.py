"""A whole broker in memory and a client of it, in virtual time: minutes of waiting take none.

async def work(world: World) -> None: ...
simulated(work)
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from pulsar_py.client.client import Client
from pulsar_py.client.producing.producer import Producer
from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated


class World:
    """One broker and one client."""

    def __init__(self, **config: object) -> None:
        self.clock = VirtualClock()
        self.broker = Broker(
            config=config,
            host="broker",
            port=6650,
            web_port=8080,
            clock=self.clock,
            chance=random.Random(1),
        )
        self.client = self.another_client()

    def another_client(self, **options: Any) -> Client:
        return Client("pulsar://broker:6650", clock=self.clock, chance=random.Random(2), **options)

    @property
    def topics(self) -> TopicRegistry:
        return self.broker.service.topics

    async def create_partitioned(self, topic: str, count: int) -> None:
        await self.topics.partitioned.create(TopicName.parse(topic), count)

    async def grow(self, topic: str, count: int) -> None:
        await self.topics.partitioned.grow(TopicName.parse(topic), count)

    async def delete(self, topic: str) -> None:
        await self.topics.delete(TopicName.parse(topic), force=True)

    async def send(self, topic: str, *contents: bytes | str, **options: Any) -> None:
        """Publish some messages and close the producer."""
        producer: Producer = await self.client.create_producer(topic)
        async with producer:
            for content in contents:
                data = content.encode() if isinstance(content, str) else content
                await producer.send(data, **options)

    def backlog(self, topic: str, subscription: str) -> int:
        """Entries that a subscription has not acknowledged."""
        loaded = self.topics.loaded(TopicName.parse(topic))
        assert loaded is not None, f"{topic} is not loaded"
        return int(loaded.stats().subscriptions[subscription].backlog_entries)


def simulated(work: Callable[[World], Awaitable[None]], **config: object) -> None:
    """Run `work` in a fresh world; nothing may be left running after it."""

    async def run() -> None:
        world = World(**config)
        async with world.broker, world.client:
            await work(world)

    run_simulated(run(), latency_seconds=0.001)
