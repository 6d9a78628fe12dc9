"""What is refused, not acknowledged or lost with a connection comes again."""

from __future__ import annotations

import asyncio
import itertools

from pulsar_py.client.acknowledging.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition, SubscriptionMode
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from tests.integration.client.consuming import (
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

SHARED = {"consumer_type": ConsumerType.Shared, "initial_position": InitialPosition.Earliest}
EXCLUSIVE = {"initial_position": InitialPosition.Earliest}


async def cut_connection(consumer: Consumer) -> None:
    """Lose the connection; returns when there is another."""
    handler = consumer._handler
    handler.cnx.close("cut by the test")
    assert not consumer.is_connected()
    await handler.wait_connected()


async def test_a_refused_message_comes_again_alone_on_shared(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", negative_ack_redelivery_delay_ms=100, **SHARED)
    await publish(client, numbered(3))
    messages = await receive(consumer, 3)
    consumer.negative_acknowledge(messages[1])
    consumer.negative_acknowledge(messages[2].message_id())
    await consumer.acknowledge(messages[0])
    again = await receive(consumer, 2)
    assert [each.data() for each in again] == numbered(2, 1)
    assert [each.redelivery_count() for each in again] == [1, 1]
    assert await is_drained(consumer)


async def test_a_refused_message_brings_its_batch(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", negative_ack_redelivery_delay_ms=100, **SHARED)
    await publish_batch(client, numbered(3))
    messages = await receive(consumer, 3)
    consumer.negative_acknowledge(messages[1])
    assert await payloads(consumer, 3) == numbered(3)


async def test_with_batch_indexes_only_the_rest_of_the_batch(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", negative_ack_redelivery_delay_ms=100, batch_index_ack_enabled=True, **SHARED
    )
    await publish_batch(client, numbered(3))
    messages = await receive(consumer, 3)
    await consumer.acknowledge([messages[0], messages[2]])
    consumer.negative_acknowledge(messages[1])
    again = await receive(consumer, 1)
    assert again[0].data() == b"1"
    await consumer.acknowledge(again)
    assert await is_drained(consumer)


async def test_refusing_on_exclusive_goes_back_and_keeps_the_order(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", negative_ack_redelivery_delay_ms=100, **EXCLUSIVE)
    await publish(client, numbered(10))
    messages = await receive(consumer, 5)
    await consumer.acknowledge(messages[0])
    consumer.negative_acknowledge(messages[3])
    await asyncio.sleep(0.2)
    assert await payloads(consumer, 9) == numbered(9, 1)
    assert await is_drained(consumer)


async def test_the_backoff_of_refusals_grows(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC,
        "s",
        negative_ack_redelivery_backoff=MultiplierRedeliveryBackoff(50, 1000, 4),
        **SHARED,
    )
    await publish(client, numbered(1))
    loop, times = asyncio.get_running_loop(), []
    for _ in range(4):
        message = await consumer.receive(30_000)
        times.append(loop.time())
        consumer.negative_acknowledge(message)
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert delays[0] >= 0.05
    assert delays[1] >= 0.2
    assert delays[2] >= 0.8


async def test_what_is_not_acknowledged_in_time_comes_again(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", unacked_messages_timeout_ms=1000, unacked_messages_tick_ms=100, **SHARED
    )
    await publish(client, numbered(2))
    messages = await receive(consumer, 2)
    await consumer.acknowledge(messages[0])
    assert consumer.statistics().unacknowledged == 1
    again = await receive(consumer, 1)
    assert again[0].data() == b"1"
    await consumer.acknowledge(again)
    assert consumer.statistics().unacknowledged == 0


async def test_what_waits_in_the_queue_does_not_time_out(client: Client) -> None:
    consumer = await client.subscribe(
        TOPIC, "s", unacked_messages_timeout_ms=1000, unacked_messages_tick_ms=100, **SHARED
    )
    await publish(client, numbered(2))
    await asyncio.sleep(1.5)
    messages = await receive(consumer, 2, is_acknowledged=True)
    assert [each.redelivery_count() for each in messages] == [0, 0]


async def test_all_that_is_unacknowledged_on_request(client: Client) -> None:
    for name, options in (("a", SHARED), ("b", EXCLUSIVE)):
        consumer = await client.subscribe(f"{TOPIC}-{name}", "s", **options)
        await publish(client, numbered(5), topic=f"{TOPIC}-{name}")
        messages = await receive(consumer, 3)
        await consumer.acknowledge(messages[0])
        consumer.redeliver_unacknowledged_messages()
        again = await payloads(consumer, 4)
        assert sorted(again) == numbered(4, 1)
        assert await is_drained(consumer)
        assert consumer._receiver.permits.to_give < 500


async def test_a_new_connection_brings_what_was_not_acknowledged(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EXCLUSIVE)
    await publish(client, numbered(10))
    messages = await receive(consumer, 6)
    await consumer.acknowledge(messages[:4])
    await cut_connection(consumer)
    assert await payloads(consumer, 6) == numbered(6, 4), "pending acks went out first"


async def test_a_receiver_waits_through_a_lost_connection(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EXCLUSIVE)
    waiting = asyncio.create_task(consumer.receive())
    await asyncio.sleep(0)
    await cut_connection(consumer)
    await publish(client, numbered(1))
    assert (await waiting).data() == b"0"


async def test_an_unload_makes_consumers_come_back(client: Client, broker: object) -> None:
    consumer = await client.subscribe(TOPIC, "s", **EXCLUSIVE)
    await publish(client, numbered(4))
    await consumer.acknowledge(await receive(consumer, 2))
    await asyncio.sleep(0.2)
    await broker.service.topics.unload(consumer._handler.topic)
    assert await payloads(consumer, 2) == numbered(2, 2)


async def test_a_non_durable_consumer_goes_on_where_it_was(client: Client) -> None:
    await publish(client, numbered(4))
    await publish_batch(client, numbered(4, 4))
    await publish(client, numbered(2, 8))
    consumer = await Consumer.open(
        client.context,
        TOPIC,
        "reader",
        ConsumerConfig(subscription_mode=SubscriptionMode.NonDurable),
        start_message_id=EARLIEST_MESSAGE_ID,
    )
    seen = []
    for _ in range(10):
        seen += await payloads(consumer, 1)
        await cut_connection(consumer)
    assert seen == numbered(10)
    assert await is_drained(consumer)


async def test_a_non_durable_consumer_that_received_nothing_yet(client: Client) -> None:
    consumer = await client.subscribe(TOPIC, "s", subscription_mode=SubscriptionMode.NonDurable)
    await publish(client, numbered(3))
    while consumer._receiver.queue.head_key() is None:
        await asyncio.sleep(0.01)
    await cut_connection(consumer)
    assert await payloads(consumer, 3) == numbered(3)
