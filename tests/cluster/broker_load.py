"""A load on some brokers of a cluster, and what was promised about it.

One client sends messages to each topic, by default one a second, and acknowledges them in a subscription, with
receipts. In the end each topic is read: what was confirmed is where its receipt says, each message
once and in order, and nothing came back that was acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

from pulsar_py.client.client import Client
from pulsar_py.common.message_id import MessageId
from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.our_broker import OurBroker

SESSION_SECONDS: Final = 10.0
SETTINGS: Final = {
    "metadataStoreSessionTimeoutMillis": int(SESSION_SECONDS * 1000),
    "defaultNumberOfNamespaceBundles": 16,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeduplicationEnabled": "true",
}
"""Of brokers under this load."""
PERIOD_SECONDS: Final = float(os.environ.get("PERIOD_SECONDS", "1"))
"""Between two messages of a topic. One client sends them all: where it has little of a processor,
many topics need a longer period, and outages are known by that much less exactly."""
OPENED_AT_ONCE: Final = 64
"""Producers and consumers; each has to be there within the client's time for an operation."""


class TopicLoad:
    """One topic: what was sent and confirmed, what was received, and when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.confirmed: dict[int, MessageId] = {}
        self.times: list[float] = []
        # By number: how often the queue of the consumer had been empty at the receipt.
        self.acknowledged: dict[int, int] = {}
        self.empty_count = 0
        self.came_back: list[int] = []  # sent again after an acknowledgement with a receipt
        self.errors: list[str] = []

    async def publish(
        self, client: Client, opening: asyncio.Semaphore, stop: asyncio.Event
    ) -> None:
        async with opening:
            producer = await client.create_producer(
                self.name, producer_name=f"p-{self.name}", send_timeout_millis=0
            )
        number = 0
        while not stop.is_set():
            try:
                self.confirmed[number] = await producer.send(b"%d" % number)
            except Exception as error:  # noqa: BLE001 - told at the end
                self.errors.append(repr(error))
                return
            self.times.append(time.monotonic())
            number += 1
            await asyncio.sleep(PERIOD_SECONDS)

    async def consume(
        self, client: Client, opening: asyncio.Semaphore, stop: asyncio.Event
    ) -> None:
        async with opening:
            consumer = await client.subscribe(self.name, "s", ack_receipt_enabled=True)
        while not stop.is_set():
            message = await self._next(consumer)
            if message is None:
                continue
            number = int(message.data())
            # A copy that a new owner sent before it got the acknowledgement is in the queue at the
            # receipt already: sent after it was what comes once the queue has been empty.
            if self.acknowledged.get(number, self.empty_count) < self.empty_count:
                self.came_back.append(number)
            with suppress(Exception):
                await consumer.acknowledge(message)
                self.acknowledged.setdefault(number, self.empty_count)

    async def _next(self, consumer: Any) -> Any | None:
        """The next message of the queue, or the next that comes within a second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                return await consumer.receive()
        self.empty_count += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                return await consumer.receive()
        return None

    @property
    def longest_wait(self) -> float:
        """The longest time between two receipts so far, less the period."""
        return max((b - a for a, b in pairwise(self.times)), default=0.0) - PERIOD_SECONDS

    def outage_after(self, moment: float) -> float:
        """The longest wait for a receipt that ended after a moment, less the period."""
        before = [each for each in self.times if each <= moment][-1:] or [moment]
        after = [each for each in self.times if each > moment]
        times = before + after
        return max((b - a for a, b in pairwise(times)), default=0.0) - (PERIOD_SECONDS)


class Load:
    """All topics, from one client."""

    def __init__(
        self,
        brokers: Sequence[OurBroker | ApacheBroker],
        *,
        topics_count: int,
        listener_name: str | None = None,
        prefix: str = "t",
    ) -> None:
        hosts = ",".join(each.service_url.removeprefix("pulsar://") for each in brokers)
        self._url = f"pulsar://{hosts}"
        self._listener_name = listener_name
        self.topics = [
            TopicLoad(f"persistent://public/default/{prefix}{number}")
            for number in range(topics_count)
        ]
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Any = None

    async def start(self) -> None:
        self._client = Client(self._url, listener_name=self._listener_name)
        opening = asyncio.Semaphore(OPENED_AT_ONCE)
        for topic in self.topics:
            for work in (topic.consume, topic.publish):
                self._tasks.append(asyncio.create_task(work(self._client, opening, self._stop)))
        await self.until_all_after(time.monotonic())

    async def until_all_after(self, moment: float, *, seconds: float = 180.0) -> None:
        """Wait until every topic has had two receipts since a moment."""
        async with asyncio.timeout(seconds):
            while not all(
                sum(each > moment for each in topic.times[-3:]) > 1 for topic in self.topics
            ):
                broken = [error for topic in self.topics for error in topic.errors]
                assert not broken, broken[:3]
                for task in self._tasks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.1)

    async def outages_of(self, what: str, act: Callable[[], Awaitable[object]]) -> list[float]:
        """Do something, wait until all topics go on, and tell how long each was out."""
        moment = time.monotonic()
        await act()
        await asyncio.sleep(PERIOD_SECONDS)
        await self.until_all_after(time.monotonic())
        outages = sorted(max(topic.outage_after(moment), 0.0) for topic in self.topics)
        hit = [each for each in outages if each > 1]
        print(
            f"{what}: {len(hit)} of {len(outages)} topics out for more than a second, "
            f"p50 {statistics.median(hit) if hit else 0:.2f} s, max {outages[-1]:.2f} s"
        )
        return hit

    async def finish(self, *, keeps_acknowledgements: bool = True) -> None:
        """Stop, and check that what was promised holds.

        Apache Pulsar's brokers answer an acknowledgement before it is stored.
        """
        self._stop.set()
        await asyncio.gather(*self._tasks)
        for topic in self.topics:
            assert not topic.errors, topic.errors
            assert not (keeps_acknowledgements and topic.came_back), (topic.name, topic.came_back)
            reader = await self._client.create_reader(topic.name, MessageId.earliest)
            places, numbers = {}, []
            while await reader.has_message_available():
                message = await reader.read_next()
                number = int(message.data())
                numbers.append(number)
                places[number] = message.message_id()
            assert numbers == sorted(set(numbers)), (topic.name, numbers)
            for number, place in topic.confirmed.items():
                assert places.get(number) == place or place.ledger_id < 0, (topic.name, number)
            await reader.close()
        await self._client.close()
