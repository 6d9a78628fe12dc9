"""One consumer of several topics or partitions, against a broker in memory, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from pulsar_py.client.many_topics.merged_receiver import TURN_MESSAGES
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.topic_message_id import MultiMessageId, TopicMessageId
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConsumerBusyError,
    InvalidConfigurationError,
    InvalidMessageError,
    InvalidTopicNameError,
    OperationNotSupportedError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from tests.simulated_client import World, simulated
from tests.unit.client.many_topics_world import A, B, P, data, receive, subscribe


def test_messages_of_all_topics_are_received_and_acknowledged() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0", "a1")
            await world.send("b", "b0")
            messages = await receive(consumer, 3)
            assert sorted(data(messages)) == [b"a0", b"a1", b"b0"]
            for message in messages:
                await consumer.acknowledge(message)
            await asyncio.sleep(1)
            assert (world.backlog(A, "sub"), world.backlog(B, "sub")) == (0, 0)

    simulated(work)


def test_a_partitioned_topic_is_its_partitions_and_each_keeps_its_order() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 3)
        async with await subscribe(world, "p") as consumer:
            assert consumer.topic() == P
            assert consumer.topics() == [f"{P}-partition-{index}" for index in range(3)]
            for index in range(3):
                await world.send(f"{P}-partition-{index}", *(f"{index}{n}" for n in range(20)))
            messages = await receive(consumer, 60)
            for index in range(3):
                own = [each for each in data(messages) if each.startswith(b"%d" % index)]
                assert own == [b"%d%d" % (index, n) for n in range(20)]

    simulated(work)


def test_no_topic_starves_another() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", *(f"a{n}" for n in range(200)))
            await world.send("b", "b0")
            await asyncio.sleep(1)
            assert b"b0" in data(await receive(consumer, TURN_MESSAGES + 1))

    simulated(work)


def test_lists_and_ids_are_acknowledged_in_their_topics() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0", "a1")
            await world.send("b", "b0", "b1")
            messages = await receive(consumer, 4)
            await consumer.acknowledge([messages[0], messages[1].message_id()])
            await consumer.acknowledge(messages[2].message_id())
            last = messages[3]
            await consumer.acknowledge(
                TopicMessageId.of(last.topic_name(), MessageId.parse(last.message_id().serialize()))
            )
            await asyncio.sleep(1)
            assert (world.backlog(A, "sub"), world.backlog(B, "sub")) == (0, 0)

    simulated(work)


def test_an_id_without_topic_is_refused() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            with pytest.raises(InvalidMessageError, match="has no topic"):
                await consumer.acknowledge(MessageId(1, 1))
            with pytest.raises(InvalidMessageError, match="none of the consumer's 2 topics"):
                await consumer.acknowledge(Message.of(b"", topic="c"))

    simulated(work)


def test_cumulative_acknowledgements_stay_within_their_topic() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            await world.send("a", "a0", "a1", "a2")
            await world.send("b", "b0", "b1")
            messages = {each.data(): each for each in await receive(consumer, 5)}
            await consumer.acknowledge_cumulative(messages[b"a1"])
            await asyncio.sleep(1)
            assert (world.backlog(A, "sub"), world.backlog(B, "sub")) == (1, 2)
            await consumer.acknowledge_cumulative(
                MultiMessageId({A: messages[b"a2"].message_id(), B: messages[b"b0"].message_id()})
            )
            await asyncio.sleep(1)
            assert (world.backlog(A, "sub"), world.backlog(B, "sub")) == (0, 1)

    simulated(work)


def test_receiving_ends_in_time_and_says_of_what() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            with pytest.raises(ClientTimeoutError, match="no message within 100 ms for sub on"):
                await consumer.receive(100)
            assert consumer.receive_nowait() is None

    simulated(work)


def test_a_cancelled_receive_loses_nothing() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await consumer.receive()
            await world.send("a", "a0")
            assert (await consumer.receive(1000)).data() == b"a0"

    simulated(work)


def test_batches_come_from_all_topics() -> None:
    async def work(world: World) -> None:
        policy = ConsumerBatchReceivePolicy(10, -1, 500)
        async with await subscribe(world, "a", "b", batch_receive_policy=policy) as consumer:
            assert await consumer.batch_receive() == []
            await world.send("a", *(f"a{n}" for n in range(6)))
            await world.send("b", *(f"b{n}" for n in range(6)))
            await asyncio.sleep(1)
            assert len(await consumer.batch_receive()) == 10
            assert len(await consumer.batch_receive()) == 2

    simulated(work)


def test_iteration_ends_with_the_consumer() -> None:
    async def work(world: World) -> None:
        consumer = await subscribe(world, "a", "b")
        await world.send("a", "a0")
        seen = []
        async for message in consumer:
            seen.append(message.data())
            await consumer.close()
        assert seen == [b"a0"]
        with pytest.raises(AlreadyClosedError, match="sub on"):
            await consumer.receive()
        await consumer.close()

    simulated(work)


def test_who_waits_hears_of_the_end() -> None:
    async def work(world: World) -> None:
        consumer = await subscribe(world, "a", "b")
        async with asyncio.TaskGroup() as group:

            async def wait() -> None:
                with pytest.raises(AlreadyClosedError):
                    await consumer.receive()

            for _ in range(3):
                group.create_task(wait())
            await asyncio.sleep(1)
            await consumer.close()

    simulated(work)


def test_last_ids_and_what_is_left() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b") as consumer:
            assert not await consumer.has_message_available()
            await world.send("a", "a0", "a1")
            last = await consumer.get_last_message_id()
            assert (last[A].entry_id, last[B].entry_id) == (1, -1)
            assert {each.topic_name for each in await consumer.get_last_message_ids()} == {A, B}
            assert await consumer.has_message_available()
            await receive(consumer, 2)
            assert not await consumer.has_message_available()

    simulated(work)


def test_unsubscribing_deletes_the_subscription_everywhere() -> None:
    async def work(world: World) -> None:
        consumer = await subscribe(world, "a", "b")
        await consumer.unsubscribe()
        assert consumer.is_closed
        async with await subscribe(
            world, "a", "b", initial_position=InitialPosition.Earliest
        ) as again:
            await world.send("a", "a0")
            assert data(await receive(again, 1)) == [b"a0"]

    simulated(work)


def test_a_topic_that_refuses_leaves_none_open() -> None:
    async def work(world: World) -> None:
        async with await world.client.subscribe("b", "sub"):
            with pytest.raises(ConsumerBusyError):
                await subscribe(world, "a", "b")
        async with await subscribe(world, "a", "b"):
            pass

    simulated(work)


def test_cancelling_the_subscribing_leaves_none_open() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 3)
        for step in range(1, 12):
            try:
                async with asyncio.timeout(step * 0.001):
                    consumer = await world.client.subscribe("p", "sub")
            except TimeoutError:
                await asyncio.sleep(1)
            else:
                await consumer.close()
        async with await world.client.subscribe("p", "sub") as consumer:
            assert consumer.is_connected()

    simulated(work)


def test_a_listener_gets_messages_of_all_topics_until_paused() -> None:
    async def work(world: World) -> None:
        seen: list[bytes] = []

        async def listener(consumer: MultiTopicsConsumer, message: Message) -> None:
            seen.append(message.data())
            await consumer.acknowledge(message)

        async with await subscribe(world, "a", "b", message_listener=listener) as consumer:
            with pytest.raises(OperationNotSupportedError, match="not allowed with a message_"):
                await consumer.receive()
            await world.send("a", "a0")
            await world.send("b", "b0")
            await asyncio.sleep(1)
            assert sorted(seen) == [b"a0", b"b0"]
            consumer.pause_message_listener()
            await world.send("a", "a1")
            await asyncio.sleep(1)
            assert len(seen) == 2
            consumer.resume_message_listener()
            await asyncio.sleep(1)
            assert seen[2:] == [b"a1"]
            assert (world.backlog(A, "sub"), world.backlog(B, "sub")) == (0, 0)

    simulated(work)


def test_what_it_is() -> None:
    async def work(world: World) -> None:
        async with await subscribe(world, "a", "b", consumer_name="me") as consumer:
            assert consumer.topic() == f"{A},{B}"
            assert (consumer.subscription_name(), consumer.consumer_name()) == ("sub", "me")
            assert consumer.is_connected()
            assert not consumer.is_closed
            assert not consumer.has_reached_end_of_topic
            with pytest.raises(OperationNotSupportedError, match="message_listener"):
                consumer.pause_message_listener()
            with pytest.raises(OperationNotSupportedError, match="retry_enable"):
                await consumer.reconsume_later(Message.of(b"", topic="a"))
        assert not consumer.is_connected()

    simulated(work)


@pytest.mark.parametrize(
    ("topics", "options", "error"),
    [
        ([], {}, InvalidConfigurationError),
        (["a", "b"], {"receiver_queue_size": 0}, InvalidConfigurationError),
        (["a", "x://b"], {}, InvalidTopicNameError),
    ],
)
def test_what_cannot_be_subscribed_to(
    topics: list[str], options: dict[str, Any], error: type[Exception]
) -> None:
    async def work(world: World) -> None:
        with pytest.raises(error):
            await subscribe(world, *topics, **options)

    simulated(work)


def test_a_cancelled_close_can_be_repeated_and_leaves_nothing() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("p", 3)
        for step in range(12):
            consumer = await world.client.subscribe("p", "sub")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step * 0.0005):
                    await consumer.close()
            await consumer.close()
            await asyncio.sleep(1)
            assert not [each for each in asyncio.all_tasks() if "sub on" in each.get_name()]
        again = await world.client.subscribe("p", "sub")
        await again.close()

    simulated(work)


@pytest.mark.parametrize("call", ["seek", "acknowledge", "last", "batch", "unsubscribe"])
def test_cancelling_any_call_leaves_the_consumer_usable(call: str) -> None:
    async def run(consumer: MultiTopicsConsumer, message: Message) -> None:
        if call == "seek":
            await consumer.seek(EARLIEST_MESSAGE_ID)
        elif call == "acknowledge":
            await consumer.acknowledge(message)
        elif call == "last":
            await consumer.get_last_message_ids()
        elif call == "batch":
            await consumer.batch_receive()
        else:
            await consumer.unsubscribe()

    async def work(world: World) -> None:
        for step in range(10):
            async with await subscribe(world, "a", "b", ack_receipt_enabled=True) as consumer:
                await world.send("a", f"a{step}")
                message = await consumer.receive(30_000)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(step * 0.0005):
                        await run(consumer, message)
                if call != "unsubscribe":
                    await world.send("b", f"b{step}")
                    while (await consumer.receive(10_000)).data() != b"b%d" % step:
                        pass
            await asyncio.sleep(1)

    simulated(work)
