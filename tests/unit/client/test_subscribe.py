"""Which consumer a topic gets, and what comes with it: letters, listeners; in virtual time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    InvalidConfigurationError,
    OperationNotSupportedError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from tests.simulated_client import World, simulated

TOPIC = "persistent://public/default/t"
SHARED: dict[str, Any] = {
    "consumer_type": ConsumerType.Shared,
    "negative_ack_redelivery_delay_ms": 100,
}


@pytest.mark.parametrize(
    ("topic", "options", "kind"),
    [
        ("t", {}, Consumer),
        (f"{TOPIC}-partition-0", {}, Consumer),
        ("p", {}, MultiTopicsConsumer),
        ("p-partition-1", {}, Consumer),
        (["t"], {}, MultiTopicsConsumer),
        ("t", {"retry_enable": True}, MultiTopicsConsumer),
        (re.compile("public/default/t.*"), {}, PatternConsumer),
    ],
)
def test_kinds_of_consumers(topic: Any, options: dict[str, Any], kind: type[object]) -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 2)
        if topic == f"{TOPIC}-partition-0":
            await world.create_partitioned("t", 1)
        async with await world.client.subscribe(topic, "sub", **options) as consumer:
            assert type(consumer) is kind

    simulated(work)


@pytest.mark.parametrize("topic", ["t", ["t", "u"], re.compile("public/default/t.*")])
def test_the_type_may_be_the_third_argument(topic: Any) -> None:
    async def work(world: World) -> None:
        subscribe = world.client.subscribe
        async with await subscribe(topic, "sub", ConsumerType.Shared) as first:
            async with await subscribe(topic, "sub", ConsumerType.Shared):
                await first.redeliver_unacknowledged_messages()
            with pytest.raises(InvalidConfigurationError, match="consumer_type"):
                await subscribe(topic, "sub", "Shared")  # type: ignore[call-overload]

    simulated(work)


@pytest.mark.parametrize(
    ("topic", "subscription", "options", "why"),
    [
        ("t", "", {}, "subscription_name"),
        ([], "sub", {}, "the list is empty"),
        (re.compile("t.*"), "sub", {"retry_enable": True}, "retry_enable"),
        (
            "t",
            "sub",
            {"dead_letter_policy": ConsumerDeadLetterPolicy(1)},
            "dead_letter_policy: needs Shared",
        ),
    ],
)
def test_what_is_refused(topic: Any, subscription: str, options: dict[str, Any], why: str) -> None:
    async def work(world: World) -> None:
        with pytest.raises(InvalidConfigurationError, match=why):
            await world.client.subscribe(topic, subscription, **options)

    simulated(work)


async def refuse(consumer: Any, times: int) -> None:
    for _ in range(times):
        consumer.negative_acknowledge(await consumer.receive(30_000))


async def letters_of(world: World, topic: str = f"{TOPIC}-sub-DLQ") -> list[Message]:
    letters = []
    async with await world.client.create_reader(topic, EARLIEST_MESSAGE_ID) as reader:
        while await reader.has_message_available():
            letters.append(await reader.read_next(1000))
    return letters


@pytest.mark.parametrize("partitions", [0, 2])
def test_what_is_refused_too_often_becomes_a_dead_letter(partitions: int) -> None:
    async def work(world: World) -> None:
        if partitions:
            await world.create_partitioned("t", partitions)
        async with await world.client.subscribe(
            "t", "sub", **SHARED, dead_letter_policy=ConsumerDeadLetterPolicy(2)
        ) as consumer:
            await world.send("t", "bad", partition_key="k", properties={"a": "b"})
            await refuse(consumer, 3)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(3000)
            (letter,) = await letters_of(world)
            assert (letter.data(), letter.partition_key()) == (b"bad", "k")
            assert letter.properties()["REAL_TOPIC"] == TOPIC
            assert letter.properties()["a"] == "b"
            names = [f"{TOPIC}-partition-{n}" for n in range(partitions)] or [TOPIC]
            assert [world.backlog(name, "sub") for name in names] == [0] * len(names)

    simulated(work)


def test_what_nobody_acknowledges_in_time_becomes_a_dead_letter_too() -> None:
    async def work(world: World) -> None:
        async with await world.client.subscribe(
            "t",
            "sub",
            consumer_type=ConsumerType.Shared,
            unacked_messages_timeout_ms=1000,
            dead_letter_policy=ConsumerDeadLetterPolicy(1),
        ) as consumer:
            await world.send("t", "slow")
            for _ in range(2):
                await consumer.receive(30_000)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(5000)
            assert [each.data() for each in await letters_of(world)] == [b"slow"]
            assert world.backlog(TOPIC, "sub") == 0

    simulated(work)


@pytest.mark.parametrize("batch_index_ack", [False, True])
def test_batches_become_dead_letters_message_by_message(batch_index_ack: bool) -> None:  # noqa: FBT001
    async def work(world: World) -> None:
        async with (
            await world.client.subscribe(
                "t",
                "sub",
                **SHARED,
                batch_index_ack_enabled=batch_index_ack,
                dead_letter_policy=ConsumerDeadLetterPolicy(1),
            ) as consumer,
            await world.client.create_producer("t", batching_enabled=True) as producer,
        ):
            sent = [producer.send_nowait(b"%d" % n) for n in range(4)]
            for each in sent:
                await each
            await refuse(consumer, 8)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(5000)
            assert [each.data() for each in await letters_of(world)] == [
                b"0",
                b"1",
                b"2",
                b"3",
            ]
            assert world.backlog(TOPIC, "sub") == 0

    simulated(work, acknowledgmentAtBatchIndexLevelEnabled=True)


def test_chunked_messages_become_dead_letters_in_one_piece() -> None:
    async def work(world: World) -> None:
        big = bytes(range(256)) * 100
        async with (
            await world.client.subscribe(
                "t", "sub", **SHARED, dead_letter_policy=ConsumerDeadLetterPolicy(1)
            ) as consumer,
            await world.client.create_producer("t", chunking_enabled=True) as producer,
        ):
            await producer.send(big)
            await refuse(consumer, 2)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(5000)
            (letter,) = await letters_of(world)
            assert letter.data() == big
            assert world.backlog(TOPIC, "sub") == 0

    simulated(work, maxMessageSize=10_000)


def test_a_first_subscription_keeps_dead_letters() -> None:
    async def work(world: World) -> None:
        policy = ConsumerDeadLetterPolicy(1, "dead", "keeper")
        async with await world.client.subscribe(
            "t", "sub", **SHARED, dead_letter_policy=policy
        ) as consumer:
            await world.send("t", "bad")
            await refuse(consumer, 2)
            with pytest.raises(ClientTimeoutError):
                await consumer.receive(1000)
            async with await world.client.subscribe("dead", "keeper") as keeper:
                assert (await keeper.receive(1000)).data() == b"bad"

    simulated(work)


@pytest.mark.parametrize("consumer_type", [ConsumerType.Shared, ConsumerType.Failover])
def test_what_is_wanted_later_comes_later_then_ends_as_dead_letter(
    consumer_type: ConsumerType,
) -> None:
    async def work(world: World) -> None:
        async with await world.client.subscribe(
            "t",
            "sub",
            consumer_type=consumer_type,
            retry_enable=True,
            dead_letter_policy=ConsumerDeadLetterPolicy(2),
        ) as consumer:
            assert isinstance(consumer, MultiTopicsConsumer)
            assert consumer.topics() == [TOPIC, f"{TOPIC}-sub-RETRY"]
            await world.send("t", "later", properties={"a": "b"})
            begun_at = asyncio.get_running_loop().time()
            await consumer.reconsume_later(await consumer.receive(1000), 5000, {"why": "busy"})
            again = await consumer.receive(20_000)
            if consumer_type is ConsumerType.Shared:  # the broker's clock for delays is coarse
                assert asyncio.get_running_loop().time() - begun_at >= 3
            assert again.topic_name() == f"{TOPIC}-sub-RETRY"
            properties = again.properties()
            assert properties["RECONSUMETIMES"] == "1"
            assert (properties["why"], properties["a"]) == ("busy", "b")
            assert properties["REAL_TOPIC"] == TOPIC

            await consumer.reconsume_later(again)
            third = await consumer.receive(30_000)
            assert third.properties()["ORIGIN_MESSAGE_ID"] == properties["ORIGIN_MESSAGE_ID"]
            await consumer.reconsume_later(third)
            (letter,) = await letters_of(world)
            assert letter.properties()["RECONSUMETIMES"] == "3"
            await asyncio.sleep(1)
            assert world.backlog(TOPIC, "sub") == 0
            assert world.backlog(f"{TOPIC}-sub-RETRY", "sub") == 0

    simulated(work)


def test_a_partitioned_topic_has_one_retry_topic() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("t", 2)
        async with await world.client.subscribe(
            "t", "sub", consumer_type=ConsumerType.Shared, retry_enable=True
        ) as consumer:
            assert isinstance(consumer, MultiTopicsConsumer)
            assert consumer.topics() == [
                f"{TOPIC}-partition-0",
                f"{TOPIC}-partition-1",
                f"{TOPIC}-sub-RETRY",
            ]
            for n in range(2):
                await world.send(f"{TOPIC}-partition-{n}", str(n))
            for _ in range(2):
                await consumer.reconsume_later(await consumer.receive(1000))
            again = [await consumer.receive(1000) for _ in range(2)]
            assert sorted(each.data() for each in again) == [b"0", b"1"]

    simulated(work)


def test_reconsuming_needs_retry() -> None:
    async def work(world: World) -> None:
        async with await world.client.subscribe("t", "sub") as consumer:
            await world.send("t", "1")
            with pytest.raises(OperationNotSupportedError, match="retry_enable"):
                await consumer.reconsume_later(await consumer.receive(1000), 0)

    simulated(work)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_listener_gets_the_messages_and_its_errors_bring_them_again(concurrency: int) -> None:
    async def work(world: World) -> None:
        seen: list[bytes] = []

        async def listener(consumer: Consumer, message: Message) -> None:
            seen.append(message.data())
            await asyncio.sleep(0.1)
            if message.redelivery_count() == 0 and message.data() == b"1":
                raise ValueError("not now")
            await consumer.acknowledge(message)

        async with await world.client.subscribe(
            "t", "sub", **SHARED, message_listener=listener, listener_concurrency=concurrency
        ) as consumer:
            assert type(consumer) is Consumer
            for receiving in (consumer.receive(), consumer.batch_receive(), anext(consumer)):
                with pytest.raises(OperationNotSupportedError, match="not allowed with a message_"):
                    await receiving
            with pytest.raises(OperationNotSupportedError):
                consumer.receive_nowait()
            await world.send("t", "0", "1", "2")
            await asyncio.sleep(5)
            assert sorted(seen) == [b"0", b"1", b"1", b"2"]
            assert world.backlog(TOPIC, "sub") == 0
            consumer.pause_message_listener()
            await world.send("t", "3")
            await asyncio.sleep(1)
            assert len(seen) == 4
            consumer.resume_message_listener()
            await asyncio.sleep(1)
            assert seen[4:] == [b"3"]

    simulated(work)


def test_a_listener_may_close_its_consumer() -> None:
    async def work(world: World) -> None:
        async def listener(consumer: Consumer, message: Message) -> None:
            await consumer.acknowledge(message)
            await consumer.close()

        for topic in ("t", ["t", "u"]):
            consumer = await world.client.subscribe(topic, "sub", message_listener=listener)
            await world.send("t", "1", "2")
            await asyncio.sleep(1)
            assert consumer.is_closed
            with pytest.raises(AlreadyClosedError):
                await consumer.receive(1)

    simulated(work)


def test_the_client_may_say_how_many_calls_of_a_listener_run_at_once() -> None:
    async def work(world: World) -> None:
        running_count = most = 0

        async def listener(_: Consumer, __: Message) -> None:
            nonlocal running_count, most
            running_count += 1
            most = max(most, running_count)
            await asyncio.sleep(1)
            running_count -= 1

        async with (
            world.another_client(message_listener_threads=3) as client,
            await client.subscribe("t", "sub", **SHARED, message_listener=listener),
        ):
            await world.send("t", *(str(number) for number in range(9)))
            await asyncio.sleep(5)
        assert most == 3

    simulated(work)
