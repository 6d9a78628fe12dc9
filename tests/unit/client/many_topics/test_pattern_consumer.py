"""A consumer of a pattern follows its namespace, watched or asked; in virtual time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.errors import ClientTimeoutError, InvalidMessageError
from tests.simulated_client import World, simulated

NAMESPACE = "persistent://public/default"
UNWATCHED = {"enableBrokerTopicListWatcher": False}


async def subscribe(world: World, pattern: str = "a-.*", **options: Any) -> PatternConsumer:
    consumer = await world.client.subscribe(re.compile(f"{NAMESPACE}/{pattern}"), "sub", **options)
    assert isinstance(consumer, PatternConsumer)
    return consumer


async def receive(consumer: PatternConsumer, count: int) -> list[bytes]:
    messages = [await consumer.receive(30_000) for _ in range(count)]
    return sorted(each.data() for each in messages)


async def make(world: World, *topics: str) -> None:
    for topic in topics:
        await world.send(topic)


@pytest.mark.parametrize("config", [{}, UNWATCHED], ids=["watched", "asked"])
def test_topics_there_already_are_subscribed_to(config: dict[str, Any]) -> None:
    async def work(world: World) -> None:
        await make(world, "a-1", "a-2", "b-1")
        await world.create_partitioned("a-3", 2)
        async with await subscribe(world) as consumer:
            assert consumer.topics() == [
                f"{NAMESPACE}/a-1",
                f"{NAMESPACE}/a-2",
                f"{NAMESPACE}/a-3-partition-0",
                f"{NAMESPACE}/a-3-partition-1",
            ]
            for topic in ("a-1", "a-2", "a-3", "b-1"):
                await world.send(topic, topic)
            assert await receive(consumer, 3) == [b"a-1", b"a-2", b"a-3"]
            assert consumer.topic() == "public/default/a-.*"

    simulated(work, **config)


def test_a_watch_tells_of_a_new_topic_at_once() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world) as consumer:
            await asyncio.sleep(1)
            await world.send("a-new", "first")
            await world.send("b-new", "other")
            message = await consumer.receive(1000)
            assert message.data() == b"first", "what came before it was noticed counts, too"
            await consumer.acknowledge(message)

    simulated(work)


def test_without_a_watch_the_namespace_is_asked_now_and_then() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, pattern_auto_discovery_period=20) as consumer:
            await asyncio.sleep(1)
            await world.send("a-new", "first")
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(5000)
            assert (await consumer.receive(20_000)).data() == b"first"

    simulated(work, **UNWATCHED)


@pytest.mark.parametrize("config", [{}, UNWATCHED], ids=["watched", "asked"])
def test_a_deleted_topic_leaves_and_others_stay(config: dict[str, Any]) -> None:
    async def work(world: World) -> None:
        await make(world, "a-1", "a-2")
        async with await subscribe(world, pattern_auto_discovery_period=10) as consumer:
            await world.send("a-1", "old")
            message = await consumer.receive(1000)
            await world.delete(f"{NAMESPACE}/a-1")
            await asyncio.sleep(30)
            assert consumer.topics() == [f"{NAMESPACE}/a-2"]
            await consumer.acknowledge(message)  # its topic is gone: nothing left to do
            with pytest.raises(InvalidMessageError):
                await consumer.acknowledge(type(message).of(b"", topic="b"))
            await world.send("a-2", "still here")
            assert (await consumer.receive(1000)).data() == b"still here"

    simulated(work, **config)


def test_a_topic_that_is_made_again_is_read_again() -> None:
    async def work(world: World) -> None:
        await make(world, "a-1")
        async with await subscribe(world, pattern_auto_discovery_period=10) as consumer:
            await world.delete(f"{NAMESPACE}/a-1")
            await asyncio.sleep(1)
            await world.send("a-1", "again")
            assert (await consumer.receive(60_000)).data() == b"again"

    simulated(work)


@pytest.mark.parametrize("config", [{}, UNWATCHED], ids=["watched", "asked"])
def test_partitions_of_a_topic_that_grows_are_found(config: dict[str, Any]) -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("a-1", 1)
        async with await subscribe(world, pattern_auto_discovery_period=10) as consumer:
            await world.grow("a-1", 2)
            await world.send("a-1-partition-1", "grown")
            assert (await consumer.receive(61_000)).data() == b"grown"

    simulated(work, **config)


@pytest.mark.parametrize("start_paused", [False, True])
def test_a_topic_that_comes_up_is_paused_as_the_others_are_by_then(
    start_paused: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, start_paused=start_paused) as consumer:
            await asyncio.sleep(1)
            consumer.resume()
            await world.send("a-1", "resumed")
            assert (await consumer.receive(1000)).data() == b"resumed"
            consumer.pause()
            await world.send("a-2", "paused")
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(1000)
            assert len(consumer.topics()) == 2
            consumer.resume()
            assert (await consumer.receive(1000)).data() == b"paused"

    simulated(work)


def test_a_watch_is_taken_up_again_after_the_connection_was_lost() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world) as consumer:
            await asyncio.sleep(1)
            for connection in list(asyncio.get_running_loop().network.connections):  # type: ignore[attr-defined] # of SimulatedLoop
                connection.abort()
            await world.send("a-new", "first")
            assert (await consumer.receive(20_000)).data() == b"first"

    simulated(work)


def test_modes_choose_the_domain() -> None:
    async def work(world: World) -> None:
        fleeting = await world.client.subscribe("non-persistent://public/default/a-1", "other")
        await make(world, "a-2")
        pattern = re.compile("public/default/a-.*")
        for mode, expected in {
            RegexSubscriptionMode.PersistentOnly: ["persistent://public/default/a-2"],
            RegexSubscriptionMode.NonPersistentOnly: ["non-persistent://public/default/a-1"],
            RegexSubscriptionMode.AllTopics: [
                "non-persistent://public/default/a-1",
                "persistent://public/default/a-2",
            ],
        }.items():
            async with await world.client.subscribe(
                pattern, f"sub-{mode.name}", regex_subscription_mode=mode
            ) as consumer:
                assert isinstance(consumer, PatternConsumer)
                assert consumer.topics() == expected
        await fleeting.close()

    simulated(work)


def test_a_pattern_that_the_broker_does_not_take_is_applied_here() -> None:
    async def work(world: World) -> None:
        await make(world, "a-1", "b-1")
        long = "(" + "|".join(["a-.*", *(f"never-{n}" for n in range(20))]) + ")"
        async with await subscribe(world, long, pattern_auto_discovery_period=5) as consumer:
            assert consumer.topics() == [f"{NAMESPACE}/a-1"]
            await world.send("a-2", "found")
            assert (await consumer.receive(10_000)).data() == b"found"

    simulated(work)


def test_nothing_matches_yet() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world) as consumer:
            assert consumer.topics() == []
            assert await consumer.batch_receive() == []
            assert not await consumer.has_message_available()

    simulated(work)


def test_unsubscribing_a_pattern() -> None:
    async def work(world: World) -> None:
        await make(world, "a-1", "a-2")
        consumer = await subscribe(world)
        await consumer.unsubscribe()
        assert consumer.is_closed
        await consumer.close()

    simulated(work)
