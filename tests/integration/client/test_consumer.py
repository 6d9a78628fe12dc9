"""Receiving and acknowledging, against a real broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import CompressionType, ConsumerType, InitialPosition
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConsumerBusyError,
    CumulativeAcknowledgementNotAllowedError,
    OperationNotSupportedError,
    ServiceMetadataError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.schema import AvroSchema
from pulsar_py.standalone import Broker
from tests.integration.client.consuming import (
    ACK_GROUP_SECONDS,
    TOPIC,
    broker,
    client,
    client_of,
    is_drained,
    numbered,
    payloads,
    publish,
    publish_batch,
    receive,
    until,
)

__all__ = ["broker", "client"]

EARLIEST = {"initial_position": InitialPosition.Earliest}


async def test_messages_come_with_all_that_was_sent(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    async with await client.create_producer(TOPIC, producer_name="me") as producer:
        sent = await producer.send(
            b"hello",
            {"color": "red"},
            partition_key="k",
            ordering_key="o",
            event_timestamp=123,
        )
    message = await consumer.receive(30_000)
    assert (message.data(), message.value()) == (b"hello", b"hello")
    assert message.properties() == {"color": "red"}
    assert (message.partition_key(), message.key(), message.key_bytes()) == ("k", "k", b"k")
    assert (message.ordering_key(), message.has_ordering_key()) == ("o", True)
    assert message.event_timestamp() == 123
    assert message.producer_name() == "me"
    assert message.topic_name() == TOPIC
    assert message.message_id() == sent
    assert message.publish_timestamp() > 1_600_000_000_000
    assert message.redelivery_count() == 0
    assert message.has_null_value() is False


@pytest.mark.parametrize("compression", list(CompressionType))
async def test_batches_of_every_compression(client: Client, compression: CompressionType) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    sent = await publish_batch(client, numbered(50), compression_type=compression)
    messages = await receive(consumer, 50)
    assert [each.data() for each in messages] == numbered(50)
    assert [each.message_id() for each in messages] == sent
    assert [each.batch_index for each in messages] == list(range(50))
    assert [each.sequence_id() for each in messages] == list(range(50))


async def test_large_messages_that_compress_well_come_unless_the_consumer_says_no(
    client: Client,
) -> None:
    anybody = await client.subscribe(TOPIC, "anybody")
    modest = await client.subscribe(TOPIC, "modest", max_uncompressed_message_bytes=1 << 20)
    large = b"x" * (6 << 20)
    async with await client.create_producer(
        TOPIC, compression_type=CompressionType.ZSTD
    ) as producer:
        await producer.send(large)
        await producer.send(b"small")
    assert (await anybody.receive(30_000)).data() == large
    assert (await modest.receive(30_000)).data() == b"small"


async def test_what_is_acknowledged_does_not_come_again(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    await publish(client, numbered(3))
    await publish_batch(client, numbered(3, 3))
    messages = await receive(consumer, 6)
    await consumer.acknowledge(messages[1])
    await consumer.acknowledge([messages[0], messages[2].message_id()])
    for message in messages[3:5]:
        await consumer.acknowledge(message)
    await consumer.close()
    again = await client.subscribe(TOPIC, "s")
    assert await payloads(again, 3) == numbered(3, 3), "the batch is not done yet"
    await again.acknowledge_cumulative(messages[5])
    await again.close()
    last = await client.subscribe(TOPIC, "s")
    assert await is_drained(last)


async def test_ids_that_were_stored_can_be_acknowledged(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EARLIEST)
    await publish_batch(client, numbered(3))
    ids = [each.message_id().serialize() for each in await receive(consumer, 3)]
    await consumer.acknowledge([MessageId.parse(each) for each in ids])
    await consumer.close()
    assert await is_drained(await client.subscribe(TOPIC, "s"))


async def test_batch_indexes_are_acknowledged_one_by_one(client: Client) -> None:
    options = {**EARLIEST, "consumer_type": ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = await client.subscribe(TOPIC, "s", **options)
    await publish_batch(client, numbered(100))
    messages = await receive(consumer, 100)
    await consumer.acknowledge([each for each in messages if each.batch_index % 3])
    await consumer.close()
    again = await client.subscribe(TOPIC, "s", **options)
    rest = await receive(again, 34)
    assert [each.data() for each in rest] == numbered(100)[::3]
    await again.acknowledge(rest)
    assert await is_drained(again)
    await again.close()
    assert await is_drained(await client.subscribe(TOPIC, "s", **options))


async def test_cumulative_batch_indexes(client: Client) -> None:
    options = {**EARLIEST, "batch_index_ack_enabled": True}
    consumer = await client.subscribe(TOPIC, "s", **options)
    await publish_batch(client, numbered(10))
    messages = await receive(consumer, 10)
    await consumer.acknowledge_cumulative(messages[6])
    await consumer.close()
    again = await client.subscribe(TOPIC, "s", **options)
    assert await payloads(again, 3) == numbered(3, 7)


async def test_receipts_say_that_the_broker_knows(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", ack_receipt_enabled=True, **EARLIEST)
    await publish(client, numbered(10))
    messages = await receive(consumer, 10)
    await asyncio.gather(*(consumer.acknowledge(each) for each in messages[:9]))
    await consumer.acknowledge_cumulative(messages[9])
    statistics = await consumer.broker_statistics()
    assert statistics.message_backlog == 0
    assert consumer.statistics().ack_failures == 0


async def test_acknowledgements_wait_for_others(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", ack_grouping_time_ms=60_000, ack_grouping_max_size=5, **EARLIEST
    )
    await publish(client, numbered(7))
    messages = await receive(consumer, 7)
    await consumer.acknowledge(messages)
    statistics = await consumer.broker_statistics()
    assert statistics.message_backlog == 2


async def test_cumulative_is_not_for_shared(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", consumer_type=ConsumerType.Shared)
    await publish(client, numbered(1))
    message = await consumer.receive(30_000)
    with pytest.raises(CumulativeAcknowledgementNotAllowedError, match="Shared"):
        await consumer.acknowledge_cumulative(message)


async def test_receive_ends_with_its_time(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    with pytest.raises(ClientTimeoutError, match=TOPIC):
        await consumer.receive(50)
    with pytest.raises(ClientTimeoutError):
        await consumer.receive(0)
    assert consumer.receive_nowait() is None
    await publish(client, numbered(1))
    assert (await consumer.receive(30_000)).data() == b"0"


@dataclass
class Reading:
    degrees: int


async def test_a_record_is_there_for_who_does_not_wait(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", schema=AvroSchema(Reading))
    producer = await client.create_producer(TOPIC, schema=AvroSchema(Reading))
    await producer.send(Reading(21))
    got: list[Message[Reading]] = []

    def asked() -> bool:
        message = consumer.receive_nowait()
        got.extend([] if message is None else [message])
        return bool(got)

    await until(asked)
    assert got[0].value() == Reading(21)


async def test_receivers_are_served_in_turn(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    waiting = [asyncio.create_task(consumer.receive()) for _ in range(5)]
    await asyncio.sleep(0)
    await publish(client, numbered(5))
    assert [each.data() for each in await asyncio.gather(*waiting)] == numbered(5)


async def test_cancelled_receivers_lose_nothing(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    for number in range(30):
        waiting = [asyncio.create_task(consumer.receive()) for _ in range(3)]
        await asyncio.sleep(0)
        await publish(client, numbered(1, number))
        if number % 2:
            await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        results = await asyncio.gather(*waiting[:2], return_exceptions=True)
        got = [each for each in results if isinstance(each, Message)]
        if got:  # it came before the receivers were cancelled
            waiting[2].cancel()
            await asyncio.wait(waiting)
        else:
            got = [await asyncio.wait_for(waiting[2], 30)]
        assert [each.data() for each in got] == numbered(1, number)


async def test_iteration_ends_when_closed(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, numbered(3))
    seen = []
    async for message in consumer:
        seen.append(message.data())
        if len(seen) == 3:
            await consumer.close()
    assert seen == numbered(3)
    with pytest.raises(AlreadyClosedError, match=TOPIC):
        await consumer.receive()


async def test_closing_wakes_who_waits(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    waiting = asyncio.create_task(consumer.receive())
    await asyncio.sleep(0)
    await consumer.close()
    with pytest.raises(AlreadyClosedError):
        await waiting
    with pytest.raises(AlreadyClosedError):
        await consumer.acknowledge(MessageId(1, 1))
    with pytest.raises(AlreadyClosedError):
        consumer.negative_acknowledge(MessageId(1, 1))
    await consumer.close()


async def test_batch_receive_by_count_bytes_and_time(client: Client) -> None:
    await (await client.subscribe(TOPIC, "s")).close()
    await publish(client, [b"x" * 10] * 10)
    consumer = await client.subscribe(
        TOPIC, "s", batch_receive_policy=ConsumerBatchReceivePolicy(4, 25, 300)
    )
    assert [len(await consumer.batch_receive()) for _ in range(5)] == [2] * 5
    assert await consumer.batch_receive() == []
    await consumer.close()
    consumer = await client.subscribe(
        TOPIC, "s", batch_receive_policy=ConsumerBatchReceivePolicy(4, -1, 300)
    )
    assert [len(await consumer.batch_receive()) for _ in range(4)] == [4, 4, 2, 0]


async def test_a_cancelled_batch_goes_back(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", batch_receive_policy=ConsumerBatchReceivePolicy(10, -1, -1)
    )
    await publish(client, numbered(5))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await consumer.batch_receive()
    assert await payloads(consumer, 5) == numbered(5)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
async def test_small_receiver_queues(client: Client, size: int) -> None:
    consumer = await client.subscribe(TOPIC, "s", receiver_queue_size=size)
    await publish(client, numbered(20))
    await publish_batch(client, numbered(20, 20))
    assert await payloads(consumer, 40) == numbered(40)
    assert await is_drained(consumer)


async def test_a_queue_of_zero_prefetches_nothing(client: Client) -> None:
    options = {"receiver_queue_size": 0, "consumer_type": ConsumerType.Shared}
    first = await client.subscribe(TOPIC, "s", **options)
    second = await client.subscribe(TOPIC, "s", **options)
    await publish(client, numbered(4))
    assert await payloads(first, 3) == numbered(3)
    assert await payloads(second, 1) == [b"3"]
    with pytest.raises(ClientTimeoutError):
        await first.receive(100)
    await publish(client, numbered(1, 4))
    assert await payloads(first, 1) == [b"4"], "the permit of the receive that gave up"


async def test_pause_and_resume(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", receiver_queue_size=2, start_paused=True)
    await publish(client, numbered(10))
    assert await is_drained(consumer)
    consumer.resume()
    assert await payloads(consumer, 4) == numbered(4)
    consumer.pause()
    left = 0
    while not await is_drained(consumer):
        left += 1
    assert left <= 2
    consumer.resume()
    assert await payloads(consumer, 6 - left) == numbered(6 - left, 4 + left)


async def test_an_exclusive_subscription_takes_one(client: Client, broker: Broker) -> None:
    await client.subscribe(TOPIC, "s")
    async with client_of(broker, operation_timeout_seconds=3) as other:
        with pytest.raises(ConsumerBusyError, match=TOPIC):
            await other.subscribe(TOPIC, "s")


async def test_unsubscribe_deletes_the_subscription(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, numbered(1))
    await consumer.unsubscribe()
    assert consumer.is_closed
    assert await is_drained(await client.subscribe(TOPIC, "s"))


async def test_unsubscribe_of_a_subscription_in_use(client: Client) -> None:
    first = await client.subscribe(TOPIC, "s", consumer_type=ConsumerType.Shared)
    second = await client.subscribe(TOPIC, "s", consumer_type=ConsumerType.Shared)
    with pytest.raises(ServiceMetadataError):
        await first.unsubscribe()
    assert first.is_connected()
    await first.unsubscribe(force=True)
    assert first.is_closed
    assert not second.is_closed


async def test_failover_tells_whose_turn_it_is(client: Client) -> None:
    turns: list[tuple[str, bool, int]] = []

    class Listener:
        def became_active(self, consumer: object, partition_index: int) -> None:
            turns.append((consumer.consumer_name(), True, partition_index))

        def became_inactive(self, consumer: object, partition_index: int) -> None:
            turns.append((consumer.consumer_name(), False, partition_index))

    options = {"consumer_type": ConsumerType.Failover, "consumer_event_listener": Listener()}
    first = await client.subscribe(TOPIC, "s", consumer_name="a", **options)
    second = await client.subscribe(TOPIC, "s", consumer_name="b", **options)
    # The broker chooses, and waits a second before each change.
    await until(lambda: first.is_active or second.is_active)
    active, other = (first, second) if first.is_active else (second, first)
    assert not other.is_active
    await active.close()
    await until(lambda: other.is_active)
    assert (active.consumer_name(), True, -1) in turns
    assert turns[-1] == (other.consumer_name(), True, -1)
    await publish(client, numbered(1))
    assert await payloads(other, 1) == [b"0"]


async def test_interceptors_see_and_replace(client: Client) -> None:
    calls: list[str] = []

    class Shouting(ConsumerInterceptor):
        def before_consume(self, consumer: object, message: Message) -> Message:
            calls.append("consume")
            return Message(message.entry, message.batch_index, message.single, b"HELLO")

        def on_acknowledge(self, consumer: object, message_id: MessageId, error: object) -> None:
            calls.append(f"ack {error}")

        def on_acknowledge_cumulative(
            self, consumer: object, message_id: MessageId, error: object
        ) -> None:
            calls.append("cumulative")

        def close(self) -> None:
            calls.append("close")

    class Broken(ConsumerInterceptor):
        def before_consume(self, consumer: object, message: Message) -> Message:
            raise RuntimeError("interceptor")

    consumer = await client.subscribe(TOPIC, "s", interceptors=[Broken(), Shouting()])
    await publish(client, numbered(2))
    first, second = await receive(consumer, 2)
    assert first.data() == b"HELLO"
    await consumer.acknowledge([first])
    await consumer.acknowledge_cumulative(second)
    await consumer.close()
    assert calls == ["consume", "consume", "ack None", "cumulative", "close"]


async def test_broker_statistics_are_cached(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", broker_consumer_stats_cache_time_ms=60_000)
    before = await consumer.broker_statistics()
    assert (before.message_backlog, before.type) == (0, "Exclusive")
    await publish(client, numbered(3))
    assert await consumer.broker_statistics() is before
    fresh = await client.subscribe(TOPIC, "s2", broker_consumer_stats_cache_time_ms=0, **EARLIEST)
    assert (await fresh.broker_statistics()).message_backlog == 3


async def test_statistics(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, [b"x" * 100] * 5)
    messages = await receive(consumer, 3)
    await consumer.acknowledge(messages)
    statistics = consumer.statistics()
    assert statistics.total_messages_received == 3
    assert statistics.total_bytes_received == 300
    assert statistics.total_acks_sent == 3
    assert statistics.receiver_queue_size == 2


async def test_chunked_messages_are_put_together(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", ack_grouping_time_ms=0, **EARLIEST)
    big = bytes(range(256)) * 40
    sent = await publish(
        client, [big, b"small"], chunking_enabled=True, chunk_max_message_size=1000
    )
    first, second = await receive(consumer, 2)
    assert (first.data(), second.data()) == (big, b"small")
    assert first.message_id() == sent[0]
    assert first.message_id().first_chunk is not None
    await consumer.acknowledge([first, second])
    await asyncio.sleep(ACK_GROUP_SECONDS)
    assert (await consumer.broker_statistics()).message_backlog == 0


async def test_reconsume_later_needs_to_be_enabled(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    await publish(client, numbered(1))
    with pytest.raises(OperationNotSupportedError, match="retry_enable"):
        await consumer.reconsume_later(await consumer.receive(30_000), 1000)


async def test_non_persistent_topics(client: Client) -> None:
    topic = "non-persistent://public/default/n"
    consumer = await client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
    await publish(client, numbered(3), topic=topic)
    messages = await receive(consumer, 3, is_acknowledged=True)
    assert [each.data() for each in messages] == numbered(3)


async def test_null_values(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s")
    async with await client.create_producer(TOPIC) as producer:
        await producer.send(None, partition_key="k")
    message = await consumer.receive(30_000)
    assert message.has_null_value()
    assert (message.value(), message.data()) == (None, b"")


async def test_the_client_closes_its_consumers(broker: Broker) -> None:
    async with client_of(broker) as client:
        consumer = await client.subscribe(TOPIC, "s")
    assert consumer.is_closed
