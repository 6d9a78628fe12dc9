"""What a consumer of several topics has sent in advance, and partitions that come up."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.errors import ClientTimeoutError
from tests.simulated_client import World, simulated
from tests.unit.client.many_topics_world import P, data, receive, subscribe


def test_partitions_that_come_up_are_read_from_their_beginning() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 1)
        async with await subscribe(world, "p") as consumer:
            await world.grow("p", 3)
            await world.send(f"{P}-partition-2", "early")
            assert (await consumer.receive(61_000)).data() == b"early"
            assert len(consumer.topics()) == 3

    simulated(work)


def test_noticing_partitions_can_be_turned_off() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 1)
        async with await subscribe(world, "p", auto_update_partitions=False) as consumer:
            await world.grow("p", 3)
            await asyncio.sleep(200)
            assert len(consumer.topics()) == 1

    simulated(work)


def test_the_queue_is_shared_among_the_parts() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 4)
        async with await subscribe(
            world, "p", max_total_receiver_queue_size_across_partitions=40
        ) as consumer:
            for index in range(4):
                await world.send(f"{P}-partition-{index}", *(str(n) for n in range(30)))
            await asyncio.sleep(5)
            assert consumer.statistics().receiver_queue_size == 40
            assert len(await receive(consumer, 120)) == 120
            assert consumer.statistics().total_messages_received == 120

    simulated(work)


def test_the_queue_stays_shared_when_partitions_come_up() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 1)
        async with await subscribe(
            world, "p", max_total_receiver_queue_size_across_partitions=40
        ) as consumer:
            await world.grow("p", 4)
            await asyncio.sleep(61)
            for index in range(4):
                await world.send(f"{P}-partition-{index}", *(str(n) for n in range(100)))
            assert len(await receive(consumer, 200)) == 200
            await asyncio.sleep(1)
            assert consumer.statistics().receiver_queue_size <= 40
            assert len(await receive(consumer, 200)) == 200

    simulated(work)


def test_pausing_stops_permits() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b", receiver_queue_size=4) as consumer:
            consumer.pause()
            await world.send("a", *(f"a{n}" for n in range(10)))
            await receive(consumer, 4)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(1000)
            consumer.resume()
            assert len(await receive(consumer, 6)) == 6

    simulated(work)


@pytest.mark.parametrize("start_paused", [False, True])
def test_a_partition_that_comes_up_is_paused_as_the_others_are_by_then(
    start_paused: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 1)
        async with await subscribe(world, "p", start_paused=start_paused) as consumer:
            consumer.resume()
            await world.grow("p", 2)
            await asyncio.sleep(61)
            await world.send(f"{P}-partition-1", "resumed")
            assert (await consumer.receive(1000)).data() == b"resumed"
            consumer.pause()
            await world.grow("p", 3)
            await asyncio.sleep(61)
            assert len(consumer.topics()) == 3
            await world.send(f"{P}-partition-2", "paused")
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(1000)
            consumer.resume()
            assert (await consumer.receive(1000)).data() == b"paused"

    simulated(work)


def test_pausing_while_parts_are_opened_counts_for_them() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 1)
        await world.grow("p", 2)
        for topic in (f"{P}-partition-0", f"{P}-partition-1"):
            await world.send(topic, "old")
        consumer = MultiTopicsConsumer(
            world.client.context,
            ["p"],
            "sub",
            ConsumerConfig(initial_position=InitialPosition.Earliest),
        )
        async with asyncio.TaskGroup() as group:
            starting = group.create_task(consumer.start())
            await asyncio.sleep(0.004)
            assert not starting.done()
            consumer.pause()
        async with consumer:
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(1000)
            consumer.resume()
            assert data(await receive(consumer, 2)) == [b"old", b"old"]

    simulated(work)
