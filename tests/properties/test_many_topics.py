"""Random lives of a consumer of many topics, in virtual time, beside a model of what it may receive.

The application receives one by one and in batches, some of which it cancels, acknowledges, refuses
and asks for everything again; connections are lost, topics move, partitions come up. On an exclusive
subscription each topic then goes on with the first message after the last one that isn't
acknowledged, or, once for each reason there was, with the first one of all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.errors import ClientTimeoutError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from tests.simulated_client import World, simulated

PREFIX = "persistent://public/default/"
STEPS_COUNT = 120
QUIET_SECONDS = 60.0
"""Longer than any reason takes to show, and any batch to be full."""


class Topic:
    """What was sent to one topic, and became of it. Messages are numbers from 1 on."""

    def __init__(self) -> None:
        self.sent_count = 0
        self.last = 0
        self.acknowledged: set[int] = set()
        self.received: dict[int, Message] = {}
        # How often it may still begin anew: at most once for each reason.
        self.restarts_left = 0

    def take(self, number: int, message: Message, *, may_restart: bool) -> None:
        """The application got it; `may_restart` unless another of the same batch came before."""
        if number > self.last and not self._waiting(self.last + 1, number):
            pass
        else:
            assert may_restart, f"{number} after {self.last} in one batch"
            assert self.restarts_left, f"{number} after {self.last} without a reason"
            assert not self._waiting(1, number), f"{number} before {self._waiting(1, number)}"
            self.restarts_left -= 1
        self.last = number
        self.received[number] = message

    def _waiting(self, first: int, end: int) -> list[int]:
        return [each for each in range(first, end) if each not in self.acknowledged]

    def waiting(self) -> list[int]:
        """What has to come before the end."""
        return self._waiting(1, self.sent_count + 1)


class Life:
    """One consumer, what happens to it, and the model."""

    def __init__(self, world: World, chance: random.Random, consumer_type: ConsumerType) -> None:
        self.world = world
        self.chance = chance
        self.partitions_count = 2
        self.topics = {PREFIX + name: Topic() for name in ("a", "b")}
        for index in range(self.partitions_count):
            self.topics[f"{PREFIX}p-partition-{index}"] = Topic()
        self.producers: dict[str, Producer] = {}
        self.batch: asyncio.Task[None] | None = None
        self.options = {
            "consumer_type": consumer_type,
            "initial_position": InitialPosition.Earliest,
            "receiver_queue_size": chance.choice([1, 5, 1000]),
            "negative_ack_redelivery_delay_ms": chance.choice([100, 5000]),
            "batch_receive_policy": ConsumerBatchReceivePolicy(
                chance.choice([10, 40]), chance.choice([-1, 20]), chance.choice([1000, 20_000])
            ),
        }

    async def live(self) -> None:
        await self.world.create_partitioned("p", self.partitions_count)
        consumer = await self.world.client.subscribe(["a", "b", "p"], "sub", **self.options)
        assert isinstance(consumer, MultiTopicsConsumer)
        self.consumer = consumer
        steps: dict[Callable[[], Awaitable[None]], int] = {
            self.send: 12,
            self.receive: 12,
            self.receive_batch: 16,
            self.cancel_batch: 5,
            self.acknowledge: 10,
            self.refuse: 4,
            self.ask_again: 2,
            self.lose_connections: 3,
            self.move_topic: 1,
            self.pause_or_resume: 3,
            self.add_partition: 1,
            self.wait: 8,
        }
        async with consumer:
            for _ in range(STEPS_COUNT):
                (step,) = self.chance.choices(list(steps), list(steps.values()))
                await step()
            await self.end()

    def some_topic(self) -> tuple[str, Topic]:
        return self.chance.choice(list(self.topics.items()))

    def reason_to_begin_anew(self, *topics: Topic) -> None:
        for topic in topics or self.topics.values():
            topic.restarts_left += 1

    async def send(self) -> None:
        name, topic = self.some_topic()
        if name not in self.producers:
            self.producers[name] = await self.world.client.create_producer(name)
        for _ in range(self.chance.randint(1, 8)):
            topic.sent_count += 1
            await self.producers[name].send(b"%d" % topic.sent_count)

    def take(self, messages: Sequence[Message]) -> None:
        seen: set[str] = set()
        for message in messages:
            name = message.topic_name()
            self.topics[name].take(int(message.data()), message, may_restart=name not in seen)
            seen.add(name)

    def is_batch_over(self) -> bool:
        """Whether nothing receives now; raises what the last batch found."""
        if self.batch is None or not self.batch.done():
            return self.batch is None
        if not self.batch.cancelled():
            self.batch.result()
        self.batch = None
        return True

    async def receive(self) -> None:
        if self.is_batch_over():
            with suppress(ClientTimeoutError):
                self.take([await self.consumer.receive(self.chance.choice([1, 1000]))])

    async def receive_batch(self) -> None:
        async def run() -> None:
            self.take(await self.consumer.batch_receive())

        if self.is_batch_over():
            self.batch = asyncio.get_running_loop().create_task(run())
            if self.chance.random() < 0.3:
                await asyncio.wait([self.batch])

    async def cancel_batch(self) -> None:
        if self.batch is not None:
            self.batch.cancel()
            await asyncio.wait([self.batch])
        assert self.is_batch_over()

    def some_message(self) -> tuple[Topic, int] | None:
        found = [
            (topic, number)
            for topic in self.topics.values()
            for number in topic.received
            if number not in topic.acknowledged
        ]
        return self.chance.choice(found) if found else None

    async def acknowledge(self) -> None:
        if (found := self.some_message()) is not None:
            topic, number = found
            topic.acknowledged.add(number)
            await self.consumer.acknowledge(topic.received[number])

    async def refuse(self) -> None:
        if (found := self.some_message()) is not None:
            topic, number = found
            self.reason_to_begin_anew(topic)
            self.consumer.negative_acknowledge(topic.received[number])
            if self.chance.random() < 0.3:
                topic.acknowledged.add(number)
                await self.consumer.acknowledge(topic.received[number])

    async def ask_again(self) -> None:
        self.reason_to_begin_anew()
        self.consumer.redeliver_unacknowledged_messages()

    async def lose_connections(self) -> None:
        self.reason_to_begin_anew()
        for connection in list(asyncio.get_running_loop().network.connections):  # type: ignore[attr-defined] # of SimulatedLoop
            connection.abort()

    async def move_topic(self) -> None:
        name, topic = self.some_topic()
        self.reason_to_begin_anew(topic)
        with suppress(TopicNotFoundError):  # it is not loaded since the connections were lost
            await self.world.topics.unload(TopicName.parse(name))

    async def pause_or_resume(self) -> None:
        self.chance.choice([self.consumer.pause, self.consumer.resume])()

    async def add_partition(self) -> None:
        if self.partitions_count < 5:
            self.topics[f"{PREFIX}p-partition-{self.partitions_count}"] = Topic()
            self.partitions_count += 1
            await self.world.grow("p", self.partitions_count)

    async def wait(self) -> None:
        await asyncio.sleep(self.chance.choice([0.001, 0.1, 5, 70]))

    async def end(self) -> None:
        """What is left comes in order, once."""
        await self.cancel_batch()
        self.consumer.resume()
        await asyncio.sleep(2 * QUIET_SECONDS)
        await self.ask_again()
        await asyncio.sleep(QUIET_SECONDS)
        left: dict[str, list[int]] = {name: [] for name in self.topics}
        with suppress(ClientTimeoutError):
            while True:
                message = await self.consumer.receive(10_000)
                number = int(message.data())
                # One whose acknowledgement was lost with a connection comes again.
                if number not in self.topics[message.topic_name()].acknowledged:
                    left[message.topic_name()].append(number)
        assert left == {name: topic.waiting() for name, topic in self.topics.items()}


@pytest.mark.parametrize("seed", range(24))
def test_each_topic_goes_on_where_it_was_or_begins_anew_for_a_reason(seed: int) -> None:
    chance = random.Random(seed)
    consumer_type = chance.choice([ConsumerType.Exclusive, ConsumerType.Failover])
    simulated(lambda world: Life(world, chance, consumer_type).live())
