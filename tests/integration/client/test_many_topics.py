"""Many topics, patterns, letters, readers and table views, on real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.errors import ClientTimeoutError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.common.names import TopicName
from pulsar_py.standalone import Broker

TOPIC = "persistent://public/default/t"
TIMEOUT_MILLIS = 20_000


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as started:
        yield started


@pytest_asyncio.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url, operation_timeout_seconds=60) as made:
        yield made


async def create_partitioned(broker: Broker, topic: str, count: int) -> None:
    await broker.service.topics.partitioned.create(TopicName.parse(topic), count)


async def send(client: Client, topic: str, *contents: str, **options: Any) -> None:
    async with await client.create_producer(topic) as producer:
        for content in contents:
            await producer.send(content.encode(), **options)


async def receive(consumer: Any, count: int) -> list[bytes]:
    data = []
    for _ in range(count):
        message = await consumer.receive(TIMEOUT_MILLIS)
        data.append(message.data())
        await consumer.acknowledge(message)
    return data


async def test_a_partitioned_topic_in_batches(client: Client, broker: Broker) -> None:
    await create_partitioned(broker, "t", 4)
    async with (
        await client.subscribe("t", "sub") as consumer,
        await client.create_producer(
            "t", batching_enabled=True, max_pending_messages=0
        ) as producer,
    ):
        keys = [f"k{number % 7}" for number in range(2000)]
        sent = [producer.send_nowait(f"{n}".encode(), key=key) for n, key in enumerate(keys)]
        for each in sent:
            await each
        numbers: dict[str, list[int]] = {}
        for _ in range(2000):
            message = await consumer.receive(TIMEOUT_MILLIS)
            numbers.setdefault(message.partition_key(), []).append(int(message.data()))
            await consumer.acknowledge(message)
        assert sum(map(len, numbers.values())) == 2000
        assert all(each == sorted(each) for each in numbers.values())


async def test_a_pattern_and_what_comes_up(client: Client) -> None:
    await send(client, "a-1")
    async with await client.subscribe(re.compile("public/default/a-.*"), "sub") as consumer:
        await send(client, "a-1", "old topic")
        await send(client, "a-2", "new topic")
        assert sorted(await receive(consumer, 2)) == [b"new topic", b"old topic"]


async def test_key_shared_consumers_of_a_partitioned_topic(client: Client, broker: Broker) -> None:
    await create_partitioned(broker, "t", 2)
    options: dict[str, Any] = {"consumer_type": ConsumerType.KeyShared}
    async with (
        await client.subscribe("t", "sub", **options) as one,
        await client.subscribe("t", "sub", **options) as other,
        await client.create_producer("t") as producer,
    ):
        for number in range(100):
            await producer.send(b"%d" % number, partition_key=f"k{number % 10}")
        owners: dict[str, set[str]] = {}
        count = 0
        for consumer in (one, other):
            try:
                while True:
                    message = await consumer.receive(500)
                    owners.setdefault(message.partition_key(), set()).add(consumer.consumer_name())
                    await consumer.acknowledge(message)
                    count += 1
            except ClientTimeoutError:
                pass
        assert count == 100
        assert all(len(names) == 1 for names in owners.values())


async def test_dead_letters(client: Client) -> None:
    async with (
        await client.subscribe(f"{TOPIC}-sub-DLQ", "letters") as letters,
        await client.subscribe(
            "t",
            "sub",
            consumer_type=ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=50,
            dead_letter_policy=ConsumerDeadLetterPolicy(1),
        ) as consumer,
    ):
        await send(client, "t", "bad")
        for _ in range(2):
            consumer.negative_acknowledge(await consumer.receive(TIMEOUT_MILLIS))
        assert await receive(letters, 1) == [b"bad"]


async def test_retry_letters(client: Client) -> None:
    async with await client.subscribe(
        "t", "sub", consumer_type=ConsumerType.Shared, retry_enable=True
    ) as consumer:
        await send(client, "t", "later")
        await consumer.reconsume_later(await consumer.receive(TIMEOUT_MILLIS), 100)
        message = await consumer.receive(TIMEOUT_MILLIS)
        assert (message.data(), message.properties()["RECONSUMETIMES"]) == (b"later", "1")


async def test_a_listener_with_concurrency(client: Client) -> None:
    seen: list[int] = []
    done = asyncio.Event()

    async def listener(consumer: Any, message: Message) -> None:
        await asyncio.sleep(0.001)
        seen.append(int(message.data()))
        await consumer.acknowledge(message)
        if len(seen) == 100:
            done.set()

    async with await client.subscribe(
        "t",
        "sub",
        consumer_type=ConsumerType.Shared,
        message_listener=listener,
        listener_concurrency=10,
    ):
        await send(client, "t", *(str(number) for number in range(100)))
        async with asyncio.timeout(TIMEOUT_MILLIS / 1000):
            await done.wait()
    assert sorted(seen) == list(range(100))


async def test_a_reader_and_a_table_view(client: Client, broker: Broker) -> None:
    await create_partitioned(broker, "t", 3)
    async with await client.create_producer("t") as producer:
        for number in range(60):
            await producer.send(b"%d" % number, partition_key=f"k{number % 20}")
    async with (
        await client.create_reader("t", EARLIEST_MESSAGE_ID) as reader,
        await client.create_table_view("t") as view,
    ):
        count = 0
        while await reader.has_message_available():
            await reader.read_next(TIMEOUT_MILLIS)
            count += 1
        assert count == 60
        assert dict(view) == {f"k{number}": b"%d" % (40 + number) for number in range(20)}
        await send(client, "t", "new", partition_key="k0")
        await view.refresh()
        assert view["k0"] == b"new"


async def test_all_go_on_after_the_broker_was_away(tmp_path: Path) -> None:
    first = Broker(data_dir=tmp_path)
    await first.start()
    port = int(first.service_url.rpartition(":")[2])
    async with Client(first.service_url, max_backoff_interval_ms=500) as client:
        await create_partitioned(first, "t", 2)
        consumer = await client.subscribe(
            ["t", "u"], "sub", initial_position=InitialPosition.Earliest
        )
        view = await client.create_table_view("t")
        await send(client, "t", "before", partition_key="k")
        assert await receive(consumer, 1) == [b"before"]
        await first.stop()
        async with Broker(data_dir=tmp_path, port=port):
            await send(client, "u", "after")
            await send(client, "t", "after", partition_key="k")
            seen = set(await receive(consumer, 2))
            assert seen <= {b"after", b"before"}
            await view.refresh()
            assert view["k"] == b"after"
            await view.close()
            await consumer.close()


async def test_redeliveries_and_retries_are_counted_each_for_itself(
    client: Client, broker: Broker
) -> None:
    """What the guide says of `max_redeliver_count`; who leaves is no redelivery."""
    options: dict[str, Any] = {
        "consumer_type": ConsumerType.Shared,
        "negative_ack_redelivery_delay_ms": 1,
        "retry_enable": True,
        "dead_letter_policy": ConsumerDeadLetterPolicy(1),
    }
    dead = await client.subscribe("t-sub-DLQ", "watch")
    leaving = await client.subscribe("t", "sub", **options)
    await send(client, "t", "job")
    await leaving.receive(TIMEOUT_MILLIS)
    consumer = await client.subscribe("t", "sub", **options)
    await leaving.close()
    counts = []
    for is_retry in (False, True, False, True):
        message = await consumer.receive(TIMEOUT_MILLIS)
        retries = message.properties().get("RECONSUMETIMES")
        counts.append((message.redelivery_count(), retries))
        if is_retry:
            await consumer.reconsume_later(message, delay_millis=0)
        else:
            consumer.negative_acknowledge(message)

    assert counts == [(0, None), (1, None), (0, "1"), (1, "1")]
    assert (await dead.receive(TIMEOUT_MILLIS)).properties()["RECONSUMETIMES"] == "2"
