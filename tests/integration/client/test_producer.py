"""Producers against a whole broker, in virtual time: what was sent is read back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import (
    BatchingType,
    CompressionType,
    ConsumerType,
    InitialPosition,
    ProducerAccessMode,
)
from pulsar_py.common.errors import ProducerBusyError, ProducerFencedError, TopicTerminatedError
from pulsar_py.common.names import TopicName
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop, run_simulated

TOPIC = "persistent://public/default/produced"
PARTITIONED = "persistent://public/default/parts"


@asynccontextmanager
async def standalone(**settings: Any) -> AsyncIterator[tuple[Client, Broker]]:
    clock = VirtualClock()
    async with (
        Broker(clock=clock, chance=random.Random(1), port=6650, **settings) as broker,
        Client(broker.service_url, clock=clock, chance=random.Random(2)) as client,
    ):
        yield client, broker


def simulate(work: Coroutine[Any, Any, None]) -> None:
    run_simulated(work, latency_seconds=0.001)


async def read(client: Client, count: int, topic: str = TOPIC, **options: Any) -> list[Message]:
    """The first messages of a topic."""
    consumer = await client.subscribe(
        topic,
        "reading",
        **{"initial_position": InitialPosition.Earliest, **options},
    )
    messages = [await consumer.receive(timeout_millis=30_000) for _ in range(count)]
    await consumer.close()
    return messages


def cut_all() -> None:
    """Every connection is lost."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    for transport in sorted(loop.network.connections, key=repr):
        transport.abort()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batching_enabled": True, "batching_max_messages": 7},
        {"batching_enabled": True, "batching_type": BatchingType.KeyBased},
        {"batching_enabled": True, "compression_type": CompressionType.ZSTD},
        {"chunking_enabled": True, "chunk_max_message_size": 40},
    ],
    ids=["plain", "batches", "batches by key", "compressed", "chunks"],
)
def test_everything_arrives_in_order_as_it_was_sent(options: dict[str, Any]) -> None:
    async def main() -> None:
        async with standalone() as (client, _):
            producer = await client.create_producer(TOPIC, max_pending_messages=0, **options)
            results = [
                producer.send_nowait(
                    b"%d " % number + b"x" * 50,
                    {"number": str(number)},
                    key=str(number % 3),
                    ordering_key=b"o",
                    event_timestamp=1000 + number,
                )
                for number in range(100)
            ]
            await producer.flush()
            messages = await read(client, 100)
            by_key: dict[str, list[int]] = {}
            for message in messages:
                by_key.setdefault(message.partition_key(), []).append(int(message.data()[:2]))
                number = int(message.data()[:2])
                assert message.properties() == {"number": str(number)}
                assert message.event_timestamp() == 1000 + number
                assert message.message_id() == results[number].result()
            assert by_key == {str(key): list(range(key, 100, 3)) for key in range(3)}

    simulate(main())


def test_what_was_pending_arrives_once_after_a_cut_with_deduplication() -> None:
    async def main() -> None:
        async with standalone(config={"brokerDeduplicationEnabled": True}) as (client, _):
            producer = await client.create_producer(
                TOPIC, producer_name="mine", max_pending_messages=0, batching_enabled=True
            )
            results = []
            for number in range(200):
                results.append(producer.send_nowait(b"%d" % number))
                if number % 20 == 19:
                    await asyncio.sleep(0.0115)
                if number % 50 == 49:
                    cut_all()
            for each in results:
                await each
            assert producer.last_sequence_id() == 199
            messages = await read(client, 200)
            assert [int(each.data()) for each in messages] == list(range(200))
            await producer.close()
            again = await client.create_producer(TOPIC, producer_name="mine")
            assert again.last_sequence_id() == 199
            duplicate = await again.send(b"dropped", sequence_id=150)
            assert (duplicate.ledger_id, duplicate.entry_id) == (-1, -1)
            assert (await again.send(b"stored")).ledger_id >= 0

    simulate(main())


def test_access_modes() -> None:
    async def main() -> None:
        async with standalone() as (client, _):
            first = await client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
            with pytest.raises(ProducerFencedError):
                await client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
            with pytest.raises(ProducerBusyError):
                await client.create_producer(TOPIC)
            waiting = asyncio.get_running_loop().create_task(
                client.create_producer(TOPIC, access_mode=ProducerAccessMode.WaitForExclusive)
            )
            await asyncio.sleep(100)
            assert not waiting.done()
            await first.close()
            second = await waiting
            await second.send(b"x")
            third = await client.create_producer(
                TOPIC, access_mode=ProducerAccessMode.ExclusiveWithFencing
            )
            await third.send(b"y")
            with pytest.raises(ProducerFencedError):
                await second.send(b"z")

    simulate(main())


def test_a_cancelled_wait_for_exclusive_access_leaves_the_place() -> None:
    async def main() -> None:
        async with standalone() as (client, _):
            first = await client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
            waiting = asyncio.get_running_loop().create_task(
                client.create_producer(TOPIC, access_mode=ProducerAccessMode.WaitForExclusive)
            )
            await asyncio.sleep(1)
            waiting.cancel()
            await asyncio.wait([waiting])
            await asyncio.sleep(1)
            await first.close()
            third = await client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
            await third.send(b"x")

    simulate(main())


def test_delayed_messages_come_when_they_are_due() -> None:
    async def main() -> None:
        async with standalone() as (client, _):
            consumer = await client.subscribe(TOPIC, "sub", consumer_type=ConsumerType.Shared)
            producer = await client.create_producer(TOPIC, batching_enabled=True)
            await producer.send(b"later", deliver_after=timedelta(seconds=30))
            await producer.send(b"now")
            begun = asyncio.get_running_loop().time()
            assert (await consumer.receive()).data() == b"now"
            assert (await consumer.receive()).data() == b"later"
            assert 28 <= asyncio.get_running_loop().time() - begun <= 33

    simulate(main())


@pytest.mark.parametrize("is_lazy", [False, True])
def test_partitions_are_used_and_their_growth_is_noticed(is_lazy: bool) -> None:
    async def main() -> None:
        async with standalone() as (client, broker):
            name = TopicName.parse(PARTITIONED)
            await broker.service.topics.partitioned.create(name, 2)
            producer = await client.create_producer(
                PARTITIONED, lazy_start_partitioned_producers=is_lazy
            )
            for number in range(4):
                await producer.send(b"%d" % number)
            await broker.service.topics.partitioned.grow(name, 4)
            await asyncio.sleep(61)
            ids = [await producer.send(b"%d" % number) for number in range(4, 8)]
            assert {each.partition_index for each in ids} == {0, 1, 2, 3}
            messages = await read(client, 8, PARTITIONED)
            assert sorted(int(each.data()) for each in messages) == list(range(8))

    simulate(main())


def test_a_terminated_topic_ends_its_producer() -> None:
    async def main() -> None:
        async with standalone() as (client, broker):
            producer = await client.create_producer(TOPIC)
            await producer.send(b"x")
            topic = broker.service.topics.loaded(TopicName.parse(TOPIC))
            assert topic is not None
            await topic.terminate()
            with pytest.raises(TopicTerminatedError):
                await producer.send(b"y")

    simulate(main())


def test_null_values_and_a_first_subscription() -> None:
    async def main() -> None:
        async with standalone() as (client, _):
            producer = await client.create_producer(TOPIC, initial_subscription_name="early")
            await producer.send(None, key="k")
            consumer = await client.subscribe(TOPIC, "early")
            message = await consumer.receive()
            assert message.partition_key() == "k"
            assert message.value() is None

    simulate(main())
