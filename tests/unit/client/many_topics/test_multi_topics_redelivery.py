"""What several topics deliver again: refused, asked for, moved by a seek; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition, SubscriptionMode
from pulsar_py.common.errors import ClientTimeoutError, UnknownServiceError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID
from pulsar_py.common.names import TopicName
from pulsar_py.server.subscriptions.subscription import SubscriptionState
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.simulated_client import World, simulated
from tests.unit.client.consumer_parts import spawn
from tests.unit.client.many_topics_world import A, B, data, receive, subscribe


def test_a_refused_message_comes_again_from_its_topic() -> None:
    async def work(world: World) -> None:
        async with await subscribe(
            world,
            "a",
            "b",
            consumer_type=ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=2000,
        ) as consumer:
            await world.send("a", "a0")
            await world.send("b", "b0")
            for message in await receive(consumer, 2):
                if message.data() == b"a0":
                    consumer.negative_acknowledge(message)
                else:
                    await consumer.acknowledge(message)
            again = await consumer.receive(30_000)
            assert (again.data(), again.redelivery_count()) == (b"a0", 1)

    simulated(work)


def test_everything_unacknowledged_can_be_asked_for_again() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0")
            await world.send("b", "b0")
            await receive(consumer, 2)
            consumer.redeliver_unacknowledged_messages()
            assert sorted(data(await receive(consumer, 2))) == [b"a0", b"b0"]

    simulated(work)


def test_seeking_everywhere() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0")
            await asyncio.sleep(10)
            middle = world.clock.wall_time_millis()
            await asyncio.sleep(10)
            await world.send("a", "a1")
            await world.send("b", "b0")
            for message in await receive(consumer, 3):
                await consumer.acknowledge(message)

            await consumer.seek(EARLIEST_MESSAGE_ID)
            assert sorted(data(await receive(consumer, 3))) == [b"a0", b"a1", b"b0"]
            await consumer.seek(middle)
            assert sorted(data(await receive(consumer, 2))) == [b"a1", b"b0"]
            await consumer.seek(LATEST_MESSAGE_ID)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(3000)

    simulated(work)


def test_seeking_topic_by_topic() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0", "a1")
            await world.send("b", "b0", "b1")
            ids = {each.data(): each.message_id() for each in await receive(consumer, 4)}

            await consumer.seek(ids[b"a0"])
            assert data(await receive(consumer, 1)) == [b"a1"]
            await consumer.seek(lambda topic: EARLIEST_MESSAGE_ID if topic == B else None)
            assert data(await receive(consumer, 2)) == [b"b0", b"b1"]
            await consumer.seek({A: ids[b"a0"], B: ids[b"b0"]})
            assert sorted(data(await receive(consumer, 2))) == [b"a1", b"b1"]

    simulated(work)


@asynccontextmanager
async def collecting(
    world: World, **options: Any
) -> AsyncIterator[tuple[MultiTopicsConsumer, asyncio.Task[list[Message]]]]:
    """A consumer of both topics and its batch in the making, which has what is there."""
    async with await subscribe(
        world,
        "a",
        "b",
        batch_receive_policy=ConsumerBatchReceivePolicy(10, -1, 1500),
        initial_position=InitialPosition.Earliest,
        **options,
    ) as consumer:
        batch = spawn(consumer.batch_receive())
        await asyncio.sleep(0.5)
        yield consumer, batch


def test_a_batch_in_the_making_is_emptied_by_a_seek() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        await world.send("b", "b0", "b1")
        async with collecting(world) as (consumer, batch):
            await consumer.seek(LATEST_MESSAGE_ID)
            assert await batch == []
            again = spawn(consumer.batch_receive())
            await consumer.seek(EARLIEST_MESSAGE_ID)
            assert sorted(data(await again)) == [b"a0", b"a1", b"b0", b"b1"]

    simulated(work)


def test_a_batch_in_the_making_keeps_what_is_of_other_topics_than_the_one_that_seeks() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        await world.send("b", "b0", "b1")
        async with collecting(world) as (consumer, batch):
            await consumer.seek({A: LATEST_MESSAGE_ID})
            await world.send("a", "a2")
            assert data(await batch) == [b"b0", b"b1", b"a2"]

    simulated(work)


def test_a_seek_that_is_refused_takes_nothing_away() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        async with collecting(world) as (consumer, batch):
            topic = world.topics.loaded(TopicName.parse(A))
            assert isinstance(topic, PersistentTopic)
            topic.subscriptions["sub"].state = SubscriptionState.DELETING
            with pytest.raises(UnknownServiceError, match="is being deleted"):
                await consumer.seek(LATEST_MESSAGE_ID)
            assert data(await batch) == [b"a0", b"a1"]

    simulated(work)


def test_a_batch_in_the_making_is_emptied_by_a_cancelled_seek_that_moves_the_subscription() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        async with collecting(world) as (consumer, batch):
            seeking = spawn(consumer.seek(LATEST_MESSAGE_ID))
            await asyncio.sleep(0)
            seeking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await seeking
            await asyncio.sleep(0.1)
            await world.send("a", "a2")
            assert data(await batch) == [b"a2"]

    simulated(work)


@pytest.mark.parametrize("consumer_type", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_a_batch_in_the_making_holds_each_message_once_though_all_are_asked_for_again(
    consumer_type: ConsumerType,
) -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        await world.send("b", "b0", "b1")
        async with collecting(world, consumer_type=consumer_type) as (consumer, batch):
            consumer.redeliver_unacknowledged_messages()
            assert sorted(data(await batch)) == [b"a0", b"a1", b"b0", b"b1"]

    simulated(work)


def test_what_one_topic_had_no_room_for_outlives_the_refusal_of_another() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0")
        async with await subscribe(
            world,
            "a",
            "b",
            batch_receive_policy=ConsumerBatchReceivePolicy(-1, 3, 1500),
            initial_position=InitialPosition.Earliest,
        ) as consumer:
            first = await consumer.receive(1000)
            await world.send("b", "b0", "b1")
            assert data(await consumer.batch_receive()) == [b"b0"]
            consumer.negative_acknowledge(first)
            await consumer.seek({A: EARLIEST_MESSAGE_ID})
            assert (await consumer.receive(1000)).data() == b"b1"

    simulated(work)


def lose_connections() -> None:
    """Cut all connections; clients come back by themselves."""
    for connection in list(asyncio.get_running_loop().network.connections):  # type: ignore[attr-defined] # of SimulatedLoop
        connection.abort()


def test_it_takes_over_after_the_broker_is_back() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            lose_connections()
            await world.send("b", "b0")
            assert (await consumer.receive(30_000)).data() == b"b0"

    simulated(work)


PATIENT = {
    "batch_receive_policy": ConsumerBatchReceivePolicy(3, -1, 60_000),
    "initial_position": InitialPosition.Earliest,
}


def test_a_batch_in_the_making_forgets_what_a_new_registration_brings_again() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        async with await subscribe(world, "a", "b", **PATIENT) as consumer:
            batch = spawn(consumer.batch_receive())
            await asyncio.sleep(1)
            lose_connections()
            await asyncio.sleep(30)
            await world.send("a", "a2")
            assert data(await batch) == [b"a0", b"a1", b"a2"]

    simulated(work)


async def cancel_batch(consumer: MultiTopicsConsumer) -> None:
    """Have it take what is there for a batch, and give that back."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await consumer.batch_receive()


def test_what_a_cancelled_batch_had_comes_once_after_a_new_registration() -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        async with await subscribe(world, "a", "b", **PATIENT) as consumer:
            await cancel_batch(consumer)
            lose_connections()
            await asyncio.sleep(30)
            await world.send("a", "a2")
            assert data(await receive(consumer, 3)) == [b"a0", b"a1", b"a2"]

    simulated(work)


def test_a_subscription_that_is_not_durable_loses_nothing_that_a_batch_in_the_making_had() -> None:
    async def work(world: World) -> None:
        async with await subscribe(
            world,
            "a",
            "b",
            subscription_mode=SubscriptionMode.NonDurable,
            batch_receive_policy=ConsumerBatchReceivePolicy(3, -1, 60_000),
        ) as consumer:
            await world.send("a", "a0", "a1")
            batch = spawn(consumer.batch_receive())
            await asyncio.sleep(1)
            lose_connections()
            await asyncio.sleep(30)
            await world.send("a", "a2")
            assert data(await batch) == [b"a0", b"a1", b"a2"]

    simulated(work)


TYPES = [ConsumerType.Exclusive, ConsumerType.Shared, ConsumerType.Failover]


@pytest.mark.parametrize("consumer_type", TYPES)
def test_what_was_not_handed_out_does_not_time_out(consumer_type: ConsumerType) -> None:
    async def work(world: World) -> None:
        await world.send("a", "a0", "a1")
        async with await subscribe(
            world,
            "a",
            "b",
            consumer_type=consumer_type,
            unacked_messages_timeout_ms=10_000,
            **PATIENT,
        ) as consumer:
            batch = spawn(consumer.batch_receive())
            await asyncio.sleep(30)
            await world.send("a", "a2")
            assert data(await batch) == [b"a0", b"a1", b"a2"]
            await asyncio.sleep(15)
            again = await receive(consumer, 3)
            assert sorted(data(again)) == [b"a0", b"a1", b"a2"], "timed out since"

    simulated(work)


@pytest.mark.parametrize("consumer_type", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_a_batch_in_the_making_begins_anew_with_a_refused_message(
    consumer_type: ConsumerType,
) -> None:
    async def work(world: World) -> None:
        async with await subscribe(
            world,
            "a",
            "b",
            consumer_type=consumer_type,
            negative_ack_redelivery_delay_ms=1000,
            **PATIENT,
        ) as consumer:
            await world.send("a", "a0")
            consumer.negative_acknowledge(await consumer.receive(1000))
            await world.send("a", "a1")
            batch = spawn(consumer.batch_receive())
            await asyncio.sleep(5)
            await world.send("a", "a2")
            assert data(await batch) == [b"a0", b"a1", b"a2"]

    simulated(work)


def test_what_a_cancelled_batch_had_outlives_a_refusal_that_was_taken_back() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b", **PATIENT) as consumer:
            await world.send("a", "a0")
            first = await consumer.receive(1000)
            await world.send("a", "a1")
            await cancel_batch(consumer)
            consumer.negative_acknowledge(first)
            await consumer.acknowledge(first)
            assert (await consumer.receive(120_000)).data() == b"a1"

    simulated(work)
