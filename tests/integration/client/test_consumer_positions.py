"""Seeking, starting, the last message, keys, compaction, encryption: where a consumer reads."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy, KeyHashRange
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import (
    BatchingType,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    SubscriptionMode,
)
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConsumerAssignError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.standalone import Broker
from pulsar_py.wire.payload import encode_entry
from tests.integration.client.consuming import (
    ACK_GROUP_SECONDS,
    TOPIC,
    broker,
    client,
    is_drained,
    numbered,
    payloads,
    publish,
    publish_batch,
    receive,
)

__all__ = ["broker", "client"]

EARLIEST = {"initial_position": InitialPosition.Earliest}


async def open_reader(client: Client, start: MessageId, **options: object) -> Consumer:
    return await Consumer.open(
        client.context,
        TOPIC,
        "reader",
        ConsumerConfig(subscription_mode=SubscriptionMode.NonDurable, **options),
        start_message_id=start,
    )


async def test_seek_to_a_message(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    sent = await publish(client, numbered(10))
    await receive(consumer, 10, is_acknowledged=True)
    await consumer.seek(sent[3])
    assert await payloads(consumer, 6) == numbered(6, 4)
    await consumer.seek(EARLIEST_MESSAGE_ID)
    assert await payloads(consumer, 10) == numbered(10)
    await consumer.seek(LATEST_MESSAGE_ID)
    assert await is_drained(consumer)
    await publish(client, numbered(1, 10))
    assert await payloads(consumer, 1) == [b"10"]


async def test_seek_inclusive(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", start_message_id_inclusive=True, **EARLIEST)
    sent = await publish(client, numbered(5))
    await receive(consumer, 5, is_acknowledged=True)
    await consumer.seek(sent[3])
    assert await payloads(consumer, 2) == numbered(2, 3)


@pytest.mark.parametrize("is_inclusive", [False, True])
async def test_seek_into_a_batch(client: Client, is_inclusive: bool) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", start_message_id_inclusive=is_inclusive, **EARLIEST
    )
    sent = await publish_batch(client, numbered(10))
    await receive(consumer, 10, is_acknowledged=True)
    await consumer.seek(sent[6])
    first = 6 if is_inclusive else 7
    rest = await receive(consumer, 10 - first, is_acknowledged=True)
    assert [each.data() for each in rest] == numbered(10 - first, first)
    await consumer.close()
    assert await is_drained(await client.subscribe(TOPIC, "s")), "what was left out is done, too"


async def test_seek_to_a_time_and_by_a_function(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    await publish(client, numbered(3))
    messages = await receive(consumer, 3, is_acknowledged=True)
    await asyncio.sleep(0.02)
    await publish(client, numbered(3, 3))
    later = await receive(consumer, 3, is_acknowledged=True)
    await consumer.seek(later[0].publish_timestamp())
    assert await payloads(consumer, 3) == numbered(3, 3)
    topics = []
    await consumer.seek(lambda topic: topics.append(topic) or messages[1].message_id())
    assert topics == [TOPIC]
    assert await payloads(consumer, 4) == numbered(4, 2)
    await consumer.seek(lambda topic: None)
    assert await is_drained(consumer)


async def test_seek_forgets_what_was_in_the_queue_and_acknowledged(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", ack_grouping_time_ms=60_000, **EARLIEST)
    await publish(client, numbered(10))
    messages = await receive(consumer, 4)
    await consumer.acknowledge_cumulative(messages[3])
    await consumer.seek(EARLIEST_MESSAGE_ID)
    assert await payloads(consumer, 10) == numbered(10)


async def test_seek_of_shared_moves_all_consumers(client: Client) -> None:
    options = {"consumer_type": ConsumerType.Shared, **EARLIEST}
    first = await client.subscribe(TOPIC, "s", **options)
    second = await client.subscribe(TOPIC, "s", **options)
    await publish(client, numbered(10))
    await asyncio.sleep(0.1)
    await first.seek(EARLIEST_MESSAGE_ID)
    got: set[bytes] = set()
    while len(got) < 10:  # what `second` had may come twice, until it is registered anew
        _, message = await any_of([first, second])
        got.add(message.data())
    assert sorted(got) == numbered(10)


async def test_a_seek_by_another_consumer_undoes_ones_own(client: Client) -> None:
    shared = {"consumer_type": ConsumerType.Shared}
    first = await client.subscribe(TOPIC, "s", **shared)
    second = await client.subscribe(TOPIC, "s", receiver_queue_size=1, **shared)
    sent = await publish(client, numbered(20))
    await first.seek(sent[9])
    await first.receive(30_000)
    await second.seek(EARLIEST_MESSAGE_ID)
    seen = set()
    async with asyncio.timeout(20):
        while len(seen) < 20:
            for consumer in (first, second):
                try:
                    message = await consumer.receive(100)
                except ClientTimeoutError:
                    continue
                seen.add(message.data())
                await consumer.acknowledge(message)
    assert seen == set(numbered(20))


async def test_a_seek_by_another_consumer_undoes_a_cumulative_acknowledgement(
    client: Client,
) -> None:
    failover = {"consumer_type": ConsumerType.Failover, **EARLIEST}
    active = await client.subscribe(TOPIC, "s", consumer_name="a", **failover)
    other = await client.subscribe(TOPIC, "s", consumer_name="z", **failover)
    await publish(client, numbered(10))
    messages = await receive(active, 6)
    await active.acknowledge_cumulative(messages[-1])
    await asyncio.sleep(2 * ACK_GROUP_SECONDS)
    await other.seek(EARLIEST_MESSAGE_ID)
    received: list[bytes] = []
    while b"0" not in received:  # what was in the queue comes first
        received += await payloads(active, 1)
    assert await payloads(active, 9) == numbered(9, 1)


async def test_a_reader_goes_on_with_a_chunked_message_that_was_not_handed_out(
    client: Client, broker: Broker
) -> None:
    contents = [b"%d" % number * 300 for number in range(3)]
    await publish(client, contents, chunking_enabled=True, chunk_max_message_size=100)
    reader = await client.create_reader(TOPIC, EARLIEST_MESSAGE_ID)
    assert await reader.has_message_available()
    await broker.service.topics.unload(TopicName.parse(TOPIC))
    assert [(await reader.read_next(30_000)).data() for _ in contents] == contents


async def test_seek_of_a_chunked_message(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", start_message_id_inclusive=True, **EARLIEST)
    big = b"x" * 5000
    sent = await publish(
        client, [b"0", big, b"2"], chunking_enabled=True, chunk_max_message_size=1000
    )
    await receive(consumer, 3, is_acknowledged=True)
    await consumer.seek(sent[1])
    assert await payloads(consumer, 2) == [big, b"2"]


async def test_a_cancelled_seek_leaves_the_consumer_usable(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    await publish(client, numbered(5))
    await receive(consumer, 2)
    for _ in range(5):
        seeking = asyncio.create_task(consumer.seek(EARLIEST_MESSAGE_ID))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seeking.cancel()
        await asyncio.wait([seeking])
    await consumer.seek(EARLIEST_MESSAGE_ID)
    assert await payloads(consumer, 5) == numbered(5)


async def test_the_last_message(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    assert (await consumer.get_last_message_id()).entry_id == -1
    assert not await consumer.has_message_available()
    sent = await publish_batch(client, numbered(3))
    assert await consumer.get_last_message_id() == sent[-1]
    for _ in range(3):
        assert await consumer.has_message_available()
        await receive(consumer, 1, is_acknowledged=True)
    assert not await consumer.has_message_available()


async def append_markers(broker: Broker, count: int) -> None:
    """What brokers write for themselves; never delivered."""
    topic = await broker.service.topics.get_or_load(TopicName.parse(TOPIC), create_if_missing=False)
    assert isinstance(topic, PersistentTopic)
    metadata = MessageMetadata(producer_name="b", sequence_id=0, publish_time=1, marker_type=10)
    for _ in range(count):
        await topic.ledger.append_and_wait(encode_entry(metadata, b""))


async def test_markers_are_not_the_last_message(broker: Broker, client: Client) -> None:
    reader = await open_reader(client, EARLIEST_MESSAGE_ID)
    await append_markers(broker, 1)
    assert (await reader.get_last_message_id()).entry_id == -1
    assert not await reader.has_message_available()
    sent = await publish_batch(client, numbered(2))
    await append_markers(broker, 3)
    assert await reader.get_last_message_id() == sent[-1]
    for _ in range(2):
        assert await reader.has_message_available()
        await receive(reader, 1)
    assert not await reader.has_message_available()


async def test_messages_available_after_a_start(client: Client) -> None:
    sent = await publish(client, numbered(3))
    reader = await open_reader(client, sent[2], start_paused=True)
    assert not await reader.has_message_available()
    await reader.close()
    reader = await open_reader(client, sent[2], start_paused=True, start_message_id_inclusive=True)
    assert await reader.has_message_available()
    await reader.close()
    reader = await open_reader(client, EARLIEST_MESSAGE_ID, start_paused=True)
    assert await reader.has_message_available()
    await reader.close()
    reader = await open_reader(client, LATEST_MESSAGE_ID)
    assert not await reader.has_message_available()
    await publish(client, numbered(1, 3))
    assert await reader.has_message_available()


async def test_latest_inclusive_begins_with_the_last_message(client: Client) -> None:
    await publish(client, numbered(3))
    reader = await open_reader(client, LATEST_MESSAGE_ID, start_message_id_inclusive=True)
    assert await reader.has_message_available()
    assert await payloads(reader, 1) == [b"2"]


@pytest.mark.parametrize("is_inclusive", [False, True])
async def test_a_start_within_a_batch(client: Client, is_inclusive: bool) -> None:
    sent = await publish_batch(client, numbered(10))
    reader = await open_reader(client, sent[4], start_message_id_inclusive=is_inclusive)
    first = 4 if is_inclusive else 5
    assert await payloads(reader, 10 - first) == numbered(10 - first, first)


async def test_a_start_some_time_ago(client: Client) -> None:
    await publish(client, numbered(3))
    consumer = await client.subscribe(
        TOPIC,
        "s",
        subscription_mode=SubscriptionMode.NonDurable,
        start_message_rollback_duration_seconds=60,
    )
    assert await payloads(consumer, 3) == numbered(3)


async def test_key_shared_gives_a_key_to_one_consumer(client: Client) -> None:
    options = {"consumer_type": ConsumerType.KeyShared, **EARLIEST}
    consumers = [
        await client.subscribe(TOPIC, "s", consumer_name=f"c{number}", **options)
        for number in range(3)
    ]
    async with await client.create_producer(
        TOPIC, batching_enabled=True, batching_type=BatchingType.KeyBased
    ) as producer:
        for number in range(300):
            producer.send_nowait(b"%d" % number, partition_key=f"k{number % 20}")
        await producer.flush()
    owners: dict[str, set[int]] = {}
    orders: dict[str, list[int]] = {}
    for _ in range(300):
        index, message = await any_of(consumers)
        owners.setdefault(message.partition_key(), set()).add(index)
        orders.setdefault(message.partition_key(), []).append(int(message.data()))
        await consumers[index].acknowledge(message)
    assert all(len(each) == 1 for each in owners.values())
    assert all(each == sorted(each) for each in orders.values())


async def any_of(consumers: list[Consumer]) -> tuple[int, Message]:
    async with asyncio.timeout(30):
        while True:
            for index, consumer in enumerate(consumers):
                if (message := consumer.receive_nowait()) is not None:
                    return index, message
            await asyncio.sleep(0.001)


async def test_sticky_ranges(client: Client) -> None:
    def policy(start: int, end: int) -> ConsumerKeySharedPolicy:
        return ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(start, end)])

    options = {"consumer_type": ConsumerType.KeyShared, **EARLIEST}
    low = await client.subscribe(TOPIC, "s", key_shared_policy=policy(0, 32767), **options)
    high = await client.subscribe(TOPIC, "s", key_shared_policy=policy(32768, 65535), **options)
    with pytest.raises(ConsumerAssignError):
        await client.subscribe(TOPIC, "s", key_shared_policy=policy(5, 6), **options)
    keys = [f"k{number}" for number in range(40)]
    async with await client.create_producer(TOPIC) as producer:
        for key in keys:
            await producer.send(b"x", partition_key=key)
    expected = [key for key in keys if KeyHashRange(0, 32767).contains(key.encode())]
    assert [each.partition_key() for each in await receive(low, len(expected))] == expected
    assert len(await receive(high, len(keys) - len(expected))) == len(keys) - len(expected)


async def test_a_reader_of_a_key_hash_range(client: Client) -> None:
    keys = [f"k{number}" for number in range(40)]
    async with await client.create_producer(TOPIC) as producer:
        for key in keys:
            await producer.send(b"x", partition_key=key)
    reader = await open_reader(
        client,
        EARLIEST_MESSAGE_ID,
        key_shared_policy=ConsumerKeySharedPolicy(
            KeySharedMode.Sticky, sticky_ranges=[KeyHashRange(0, 20000)]
        ),
    )
    expected = [key for key in keys if KeyHashRange(0, 20000).contains(key.encode())]
    assert [each.partition_key() for each in await receive(reader, len(expected))] == expected
    assert await is_drained(reader)


async def test_a_terminated_topic_ends(client: Client, broker: object) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    await publish(client, numbered(2))
    await receive(consumer, 2, is_acknowledged=True)
    assert not consumer.has_reached_end_of_topic
    topic = broker.service.topics.loaded(consumer._handler.topic) or next(
        iter(broker.service.topics.loaded_topics())
    )
    await topic.terminate()
    async with asyncio.timeout(30):
        while not consumer.has_reached_end_of_topic:
            await asyncio.sleep(0.01)


async def test_positions_of_a_closed_consumer(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.close()
    for call in (
        consumer.seek(EARLIEST_MESSAGE_ID),
        consumer.get_last_message_id(),
        consumer.has_message_available(),
        consumer.unsubscribe(),
        consumer.broker_statistics(),
    ):
        with pytest.raises(AlreadyClosedError):
            await call
