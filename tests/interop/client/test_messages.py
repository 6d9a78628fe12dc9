"""What one client writes the other one reads: batches, compression, chunks, and all that a message has."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.interop.client.sides import (
    RECEIVED,
    TIMEOUT,
    Official,
    Ours,
    Side,
    data_of,
    nothing_comes,
    receive_all,
)

COMPRESSIONS = ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"]


@pytest.mark.parametrize("batching", [False, True])
async def test_messages_arrive_in_order(
    writer: Side, reader: Side, topic: str, batching: bool
) -> None:
    consumer = await reader.consumer(topic)
    expected = [f"m{i}".encode() for i in range(100)]

    await writer.publish(topic, expected, batching_enabled=batching, batching_max_messages=30)

    assert await data_of(consumer, 100) == expected


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_every_compression_is_understood(
    writer: Side, reader: Side, topic: str, compression: str, batching: bool
) -> None:
    consumer = await reader.consumer(topic)
    expected = [bytes([i]) * 9000 for i in range(5)] + [b"", random.Random(1).randbytes(20_000)]

    await writer.publish(
        topic,
        expected,
        compression_type=f"CompressionType.{compression}",
        batching_enabled=batching,
    )

    assert await data_of(consumer, 7) == expected


@pytest.mark.parametrize("compression", ["NONE", "ZSTD"])
async def test_chunks_are_put_together(
    writer: Side, reader: Side, topic: str, compression: str
) -> None:
    consumer = await reader.consumer(topic)
    large = random.Random(2).randbytes(12_000_000)

    await writer.publish(
        topic,
        [{"content": large, "properties": {"size": "large"}, "partition_key": "k"}, b"small"],
        chunking_enabled=True,
        compression_type=f"CompressionType.{compression}",
    )

    first, second = await receive_all(consumer, 2)
    assert first.data() == large
    assert (first.properties(), first.partition_key()) == ({"size": "large"}, "k")
    assert second.data() == b"small"
    await consumer.close()
    assert await nothing_comes(await reader.consumer(topic))


async def test_chunks_of_two_producers_come_mixed(
    ours: Ours, official: Official, topic: str
) -> None:
    chance = random.Random(3)
    large = {side: chance.randbytes(11_000_000) for side in (ours, official)}
    consumers = [await side.consumer(topic, side.name) for side in (ours, official)]

    await asyncio.gather(
        *(side.publish(topic, [large[side]], chunking_enabled=True) for side in large)
    )

    for consumer in consumers:
        assert sorted(await data_of(consumer, 2)) == sorted(large.values())


@pytest.mark.parametrize("batching", [False, True])
async def test_everything_that_a_message_has_arrives(
    writer: Side, reader: Side, topic: str, batching: bool
) -> None:
    consumer = await reader.consumer(topic)
    messages: list[dict[str, Any]] = [
        {
            "content": b"all",
            "properties": {"a": "1", "ü": "ö" * 100, "empty": ""},
            "partition_key": "schlüssel",
            "ordering_key": "o",
            "event_timestamp": 1_600_000_000_123,
        },
        {"content": b"none"},
        {"content": b"k", "partition_key": "only"},
        {"content": b"o", "ordering_key": "only"},
        {"content": b"e", "event_timestamp": 1},
    ]
    before = int(time.time() * 1000)

    await writer.publish(topic, messages, batching_enabled=batching, producer_name=f"p-{topic}")

    for sent in messages:
        received = await consumer.receive(TIMEOUT)
        assert received.data() == sent["content"]
        assert {name: getattr(received, name)() for name in RECEIVED} == {
            "properties": sent.get("properties", {}),
            "partition_key": sent.get("partition_key", ""),
            "ordering_key": sent.get("ordering_key", ""),
            "event_timestamp": sent.get("event_timestamp", 0),
            "producer_name": f"p-{topic}",
        }
        assert before - 1000 <= received.publish_timestamp() <= time.time() * 1000 + 1000
        assert received.topic_name() == topic
        assert received.redelivery_count() == 0


async def test_null_values_are_null_for_both(ours: Ours, official: Official, topic: str) -> None:
    consumers = [await side.consumer(topic, side.name) for side in (ours, official)]
    for batching in (False, True):
        await ours.publish(
            topic,
            [{"content": None, "partition_key": "k"}, b""],
            batching_enabled=batching,
        )

    for consumer in consumers:
        received = await receive_all(consumer, 4)
        assert [m.has_null_value() for m in received] == [True, False] * 2
        assert [m.data() for m in received] == [b""] * 4


async def test_a_batch_has_the_same_ids_for_both(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [await side.consumer(topic, side.name) for side in (ours, official)]

    await writer.publish(topic, [b"a", b"b", b"c"], batching_enabled=True)

    (mine, theirs) = [await receive_all(consumer, 3) for consumer in consumers]
    for one, other in zip(mine, theirs, strict=True):
        serialized = other.message_id().serialize()
        assert one.message_id().serialize() == serialized
        assert ours.message_id(serialized) == one.message_id()
        again = official.message_id(one.message_id().serialize())
        assert again == other.message_id()
        assert again.batch_index() == one.message_id().batch_index


async def test_the_id_of_a_chunked_message_works_for_both(
    writer: Side, reader: Side, topic: str
) -> None:
    consumer = await writer.consumer(topic)
    large = random.Random(4).randbytes(11_000_000)
    await writer.publish(topic, [b"before", large, b"after"], chunking_enabled=True)
    message_id = (await receive_all(consumer, 2))[1].message_id()

    other = await reader.reader(
        topic, reader.message_id(message_id.serialize()), start_message_id_inclusive=True
    )

    assert (await other.read_next(TIMEOUT)).data() == large
    assert (await other.read_next(TIMEOUT)).data() == b"after"


async def test_delayed_messages_wait(writer: Side, reader: Side, topic: str) -> None:
    consumer = await reader.consumer(topic, consumer_type="ConsumerType.Shared")
    now = time.time()

    await writer.publish(
        topic,
        [
            {"content": b"at", "deliver_at": int((now + 2.5) * 1000)},
            {"content": b"after", "deliver_after": timedelta(seconds=4)},
            b"now",
        ],
    )

    arrived = {}
    for _ in range(3):
        message = await consumer.receive(TIMEOUT)
        arrived[message.data()] = time.time() - now
        await consumer.acknowledge(message)
    assert list(arrived) == [b"now", b"at", b"after"]
    # Unless it is strict, a broker may be early: by its tick (a second) and what it rounds off.
    assert arrived[b"at"] > 0.8
    assert arrived[b"after"] > 2.3


async def test_messages_of_the_largest_size_pass_and_larger_ones_do_not(
    writer: Side, reader: Side, topic: str
) -> None:
    consumer = await reader.consumer(topic)
    largest = bytes(5 * 1024 * 1024 - 1000)
    producer = await writer.producer(topic)

    await producer.send(largest)

    assert await data_of(consumer, 1) == [largest]
    with pytest.raises(Exception, match=r"TooBig|bytes"):
        await producer.send(bytes(6 * 1024 * 1024))


async def test_non_persistent_topics(writer: Side, reader: Side, topic: str) -> None:
    topic = topic.replace("persistent://", "non-persistent://")
    consumer = await reader.consumer(topic)

    await writer.publish(topic, [b"a", b"b"], batching_enabled=True)

    assert await data_of(consumer, 2) == [b"a", b"b"]


async def test_sequence_ids_are_found_again_by_the_other_client(
    writer: Side, reader: Side, topic: str
) -> None:
    await writer.publish(
        topic, [{"content": b"m", "sequence_id": i} for i in (5, 17)], producer_name=topic
    )
    await asyncio.sleep(0.2)

    producer = await reader.producer(topic, producer_name=topic)

    assert await producer.last_sequence_id() in {-1, 17}
    await producer.close()
