"""One subscription, handed from one client to the other: what is acknowledged, where it stands."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.interop.client.sides import (
    TIMEOUT,
    Official,
    Ours,
    Side,
    data_of,
    next_of,
    nothing_comes,
    receive_all,
)

MESSAGES = [b"m%d" % i for i in range(10)]


async def handed_over(consumer: Any, to: Side, topic: str, **options: Any) -> Any:
    """Close one client's consumer, and open the other one's on the same subscription."""
    await asyncio.sleep(0.3)  # acknowledgements are sent in groups
    await consumer.close()
    return await to.consumer(topic, **options)


async def test_single_acknowledgements_stay(writer: Side, reader: Side, topic: str) -> None:
    consumer = await writer.consumer(topic)
    await writer.publish(topic, MESSAGES)
    for message in await receive_all(consumer, 10, acknowledge=False):
        if message.data() in {b"m1", b"m4", b"m5"}:
            await consumer.acknowledge(message)

    consumer = await handed_over(consumer, reader, topic)

    assert await data_of(consumer, 7) == [m for m in MESSAGES if m not in {b"m1", b"m4", b"m5"}]


async def test_cumulative_acknowledgements_stay(writer: Side, reader: Side, topic: str) -> None:
    consumer = await writer.consumer(topic)
    await writer.publish(topic, MESSAGES)
    messages = await receive_all(consumer, 10, acknowledge=False)
    await consumer.acknowledge_cumulative(messages[6])

    consumer = await handed_over(consumer, reader, topic)

    assert await data_of(consumer, 3) == MESSAGES[7:]


@pytest.mark.parametrize("is_cumulative", [False, True])
async def test_indexes_of_a_batch_stay_acknowledged(
    writer: Side, reader: Side, topic: str, is_cumulative: bool
) -> None:
    options = {"batch_index_ack_enabled": True}
    consumer = await writer.consumer(topic, **options)
    await reader.publish(topic, MESSAGES, batching_enabled=True)
    messages = await receive_all(consumer, 10, acknowledge=False)
    done = range(4) if is_cumulative else (0, 3, 9)
    if is_cumulative:
        await consumer.acknowledge_cumulative(messages[3])
    else:
        for index in done:
            await consumer.acknowledge(messages[index])

    consumer = await handed_over(consumer, reader, topic, **options)

    left = [message for index, message in enumerate(MESSAGES) if index not in done]
    assert await data_of(consumer, len(left)) == left
    assert await next_of(consumer) is None


async def test_a_batch_comes_again_whole_without_index_acknowledgements(
    writer: Side, reader: Side, topic: str
) -> None:
    consumer = await writer.consumer(topic)
    await reader.publish(topic, MESSAGES, batching_enabled=True)
    for message in (await receive_all(consumer, 10, acknowledge=False))[:9]:
        await consumer.acknowledge(message)

    consumer = await handed_over(consumer, reader, topic)

    assert await data_of(consumer, 10) == MESSAGES


async def test_message_ids_are_acknowledged_by_the_other_client(
    writer: Side, reader: Side, topic: str
) -> None:
    options = {"consumer_type": "ConsumerType.Shared"}
    consumer = await writer.consumer(topic, **options)
    await writer.publish(topic, MESSAGES)
    ids = [m.message_id().serialize() for m in await receive_all(consumer, 10, acknowledge=False)]
    other = await reader.consumer(topic, **options)

    for serialized in ids[:9]:
        await other.acknowledge(reader.message_id(serialized))

    await asyncio.sleep(0.3)
    await consumer.close()
    assert await data_of(other, 1) == MESSAGES[9:]


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("is_inclusive", [False, True])
async def test_a_reader_begins_where_the_other_client_says(
    writer: Side, reader: Side, topic: str, batching: bool, is_inclusive: bool
) -> None:
    consumer = await writer.consumer(topic)
    await writer.publish(topic, MESSAGES, batching_enabled=batching)
    start = (await receive_all(consumer, 10))[4].message_id().serialize()

    it = await reader.reader(
        topic, reader.message_id(start), start_message_id_inclusive=is_inclusive
    )

    for expected in MESSAGES[4 if is_inclusive else 5 :]:
        assert await it.has_message_available()
        assert (await it.read_next(TIMEOUT)).data() == expected
    assert not await it.has_message_available()


@pytest.mark.parametrize("batching", [False, True])
async def test_both_seek_to_the_same_message(
    writer: Side, ours: Ours, official: Official, topic: str, batching: bool
) -> None:
    await writer.publish(topic, MESSAGES, batching_enabled=batching)
    left = []
    for side in (ours, official):
        consumer = await side.consumer(topic, side.name)
        target = (await receive_all(consumer, 10))[6].message_id()
        await consumer.seek(side.message_id(target.serialize()))
        got = []
        while (message := await next_of(consumer)) is not None:
            got.append(message.data())
        left.append(got)

    assert left == [MESSAGES[7:]] * 2


async def test_both_seek_to_the_same_time(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    await writer.publish(topic, MESSAGES[:5])
    await asyncio.sleep(0.1)
    middle = int(time.time() * 1000)
    await asyncio.sleep(0.1)
    await writer.publish(topic, MESSAGES[5:])

    for side in (ours, official):
        consumer = await side.consumer(topic, side.name)
        await receive_all(consumer, 10)
        await consumer.seek(middle)
        assert await data_of(consumer, 5) == MESSAGES[5:]


async def test_both_seek_to_the_ends(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    await writer.publish(topic, MESSAGES)
    for side in (ours, official):
        consumer = await side.consumer(topic, side.name)
        await receive_all(consumer, 5)
        await consumer.seek(side.module.MessageId.earliest)
        assert await data_of(consumer, 10) == MESSAGES
        await consumer.seek(side.module.MessageId.earliest)
        await consumer.seek(side.module.MessageId.latest)
        assert await next_of(consumer) is None


async def test_both_know_the_last_message(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [await side.consumer(topic, side.name) for side in (ours, official)]
    await writer.publish(topic, MESSAGES, batching_enabled=True)

    mine, theirs = [await consumer.get_last_message_id() for consumer in consumers]

    assert (mine.ledger_id, mine.entry_id) == (theirs.ledger_id(), theirs.entry_id())
    assert mine.batch_index == theirs.batch_index() == 9


async def test_a_rejected_message_goes_to_the_other_client(
    writer: Side, reader: Side, topic: str
) -> None:
    options = {"consumer_type": "ConsumerType.Shared", "negative_ack_redelivery_delay_ms": 100}
    consumer = await writer.consumer(topic, **options)
    await writer.publish(topic, [b"m"])
    message = await consumer.receive(TIMEOUT)

    consumer.inner.negative_acknowledge(message)
    again = await consumer.receive(TIMEOUT)
    assert again.redelivery_count() == 1
    other = await reader.consumer(topic, **options)
    await consumer.close()

    message = await other.receive(TIMEOUT)
    assert message.data() == b"m"
    assert message.redelivery_count() >= 1


async def test_table_views_hold_the_same(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    values = [("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4"), ("ö", b"5")]
    await writer.publish(
        topic,
        [{"content": value, "partition_key": key} for key, value in values],
        batching_enabled=True,
    )
    expected = {"a": b"3", "b": b"2", "c": b"4", "ö": b"5"}

    mine = await ours.client.create_table_view(topic)
    theirs = await official.client.create_table_view(topic)

    assert dict(mine) == expected
    assert {key: theirs.get(key) for key in expected} == expected
    await writer.publish(topic, [{"content": b"6", "partition_key": "a"}])
    deadline = time.monotonic() + 60
    while mine["a"] != b"6" and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert mine["a"] == b"6"


async def test_both_consume_several_topics(writer: Side, reader: Side, topic: str) -> None:
    topics = [f"{topic}-{i}" for i in range(3)]
    consumer = await reader.consumer(topics)
    for number, each in enumerate(topics):
        await writer.publish(each, [b"%d" % number])

    messages = await receive_all(consumer, 3)

    assert {m.topic_name(): m.data() for m in messages} == {
        each: b"%d" % number for number, each in enumerate(topics)
    }


async def test_unsubscribing_by_one_is_final_for_the_other(
    writer: Side, reader: Side, topic: str
) -> None:
    consumer = await writer.consumer(topic)
    await writer.publish(topic, MESSAGES)
    await consumer.unsubscribe()

    consumer = await reader.consumer(topic, initial_position="InitialPosition.Latest")

    assert await nothing_comes(consumer)


@pytest.mark.parametrize(
    "mode", ["ProducerAccessMode.Exclusive", "ProducerAccessMode.ExclusiveWithFencing"]
)
async def test_one_client_s_exclusive_producer_keeps_the_other_out(
    writer: Side, reader: Side, topic: str, mode: str
) -> None:
    producer = await writer.producer(topic, access_mode=mode)

    with pytest.raises(Exception, match=r"(?i)fenced|exclusive|busy"):
        await reader.producer(topic, access_mode="ProducerAccessMode.Exclusive")

    await producer.send(b"still mine")


async def test_fencing_puts_out_the_other_client(writer: Side, reader: Side, topic: str) -> None:
    first = await writer.producer(topic, access_mode="ProducerAccessMode.Exclusive")
    second = await reader.producer(topic, access_mode="ProducerAccessMode.ExclusiveWithFencing")

    await second.send(b"mine now")
    with pytest.raises(Exception, match=r"(?i)fenced|closed|exclusive"):
        await first.send(b"no more")
