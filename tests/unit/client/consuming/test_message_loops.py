from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.subscribe import AnyConsumer
from pulsar_py.common.errors import AlreadyClosedError
from tests.simulated_client import World
from tests.simulated_client import simulated as in_a_world
from tests.unit.client.consumer_parts import spawn

TOPICS = [["t"], ["t", "other"]]


async def subscribed(world: World, topics: list[str]) -> AnyConsumer:
    return await world.client.subscribe(
        topics if len(topics) > 1 else topics[0], "s", consumer_type=ConsumerType.Shared
    )


async def left(world: World) -> list[bytes]:
    """What the subscription has not acknowledged."""
    consumer = await world.client.subscribe("t", "s", consumer_type=ConsumerType.Shared)
    found = []
    await asyncio.sleep(5)
    while (message := consumer.receive_nowait()) is not None:
        found.append(message.data())
    return found


@pytest.mark.parametrize("topics", TOPICS)
def test_a_loop_ends_with_the_message_at_hand(topics: list[str]) -> None:
    async def work(world: World) -> None:
        consumer = await subscribed(world, topics)
        await world.send("t", "one", "two", "three")
        done: list[bytes] = []

        async def loop() -> None:
            async for message in consumer:
                await asyncio.sleep(60)
                await consumer.acknowledge(message)
                done.append(message.data())

        working = spawn(loop())
        await asyncio.sleep(1)
        await consumer.drain()
        assert done == [b"one"]
        assert working.done()
        assert consumer.is_closed
        assert await left(world) == [b"two", b"three"]

    in_a_world(work)


@pytest.mark.parametrize("topics", TOPICS)
def test_loops_that_wait_end_at_once(topics: list[str]) -> None:
    async def work(world: World) -> None:
        consumer = await subscribed(world, topics)

        async def loop() -> None:
            async for _ in consumer:
                pass

        loops = [spawn(loop()) for _ in range(3)]
        receiving = spawn(consumer.receive())
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await consumer.drain()
        assert asyncio.get_running_loop().time() - began < 1
        await asyncio.gather(*loops)
        with pytest.raises(AlreadyClosedError):
            await receiving
        with pytest.raises(AlreadyClosedError):
            await consumer.receive()

    in_a_world(work)


def test_a_loop_that_was_left_is_not_waited_for() -> None:
    async def work(world: World) -> None:
        consumer = await subscribed(world, ["t"])
        await world.send("t", "one", "two", "three", "four")
        async for _ in consumer:
            break

        async def fails() -> None:
            async for _ in consumer:
                raise KeyError("its own")

        async def hangs() -> None:
            async for _ in consumer:
                await asyncio.Event().wait()

        with pytest.raises(KeyError, match="its own"):
            await spawn(fails())
        hanging = spawn(hangs())
        await asyncio.sleep(1)
        draining = spawn(consumer.drain())
        await asyncio.sleep(100)
        assert not draining.done(), "one loop has a message at hand"
        hanging.cancel()
        async with asyncio.timeout(10):
            await draining

    in_a_world(work)


def test_a_loop_may_drain_its_own_consumer() -> None:
    async def work(world: World) -> None:
        consumer = await subscribed(world, ["t"])
        await world.send("t", "one", "two")
        seen: list[Message] = []
        async with asyncio.timeout(60):
            async for message in consumer:
                seen.append(message)
                await consumer.acknowledge(message)
                await consumer.drain()
        assert [message.data() for message in seen] == [b"one"]
        assert await left(world) == [b"two"]

    in_a_world(work)


def test_cancelled_it_can_be_closed() -> None:
    async def work(world: World) -> None:
        consumer = await subscribed(world, ["t"])
        await world.send("t", "one")
        go_on = asyncio.Event()

        async def loop() -> None:
            async for message in consumer:
                await go_on.wait()
                await consumer.acknowledge(message)

        working = spawn(loop())
        await asyncio.sleep(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await consumer.drain()
        assert not consumer.is_closed
        go_on.set()
        await working
        await consumer.close()
        assert await left(world) == []

    in_a_world(work)
