"""Every await of the public API is cancelled at every step; nothing breaks and nothing leaks.

In virtual time, against a whole broker: after each cancellation the same object has to work, and
when the client is closed in the end, no task, no connection and no reserved byte is left.
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.integration.client.stepping import (
    JUST_ARRIVED,
    MOMENTS,
    cancel_at,
    cancel_at_every_step,
)

TOPIC = "persistent://public/default/cancelled"
PARTITIONED = "persistent://public/default/partitioned"
LATENCY_SECONDS = 0.001
CLOSE_SECONDS = 15.0
"""A client's close never takes longer (its operation timeout is 10 s)."""

Act = Callable[[], Awaitable[Any]]


class Bench:
    """A client with a producer and a consumer of one topic, and a check that they work."""

    def __init__(self, client: Client, broker: Broker) -> None:
        self.client = client
        self.broker = broker
        self.count = 0

    async def open(self, **consumer_options: Any) -> None:
        self.producer = await self.client.create_producer(TOPIC, send_timeout_millis=10_000)
        self.consumer = await self.client.subscribe(
            TOPIC, "sub", initial_position=InitialPosition.Earliest, **consumer_options
        )

    async def works(self) -> None:
        """A message goes through; what was left behind by cancelled calls comes before it."""
        self.count += 1
        sent = b"check %d" % self.count
        message_id = await self.producer.send(sent)
        while True:
            message = await self.consumer.receive(timeout_millis=10_000)
            await self.consumer.acknowledge(message)
            if message.message_id() == message_id:
                break
        assert message.data() == sent


OF_COMMANDS = ("connections/producer ", "connections/subscribe ")
"""Names of the broker's tasks for commands, which end a little later than their connection."""


@asynccontextmanager
async def bench(**options: Any) -> AsyncIterator[Bench]:
    """A broker and a client; at the end the client is closed, and has to leave nothing behind."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    unhandled: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    clock = VirtualClock()
    async with Broker(clock=clock, chance=random.Random(1), port=6650) as broker:
        await broker.service.topics.partitioned.create(TopicName.parse(PARTITIONED), 2)
        before = asyncio.all_tasks()
        client = Client(
            broker.service_url,
            clock=clock,
            chance=random.Random(2),
            operation_timeout_seconds=10,
            **options,
        )
        yield Bench(client, broker)
        begun = loop.time()
        await client.close()
        assert loop.time() - begun <= CLOSE_SECONDS
        check_nothing_left(client, before)
        await asyncio.sleep(1)
        assert not loop.network.connections
        assert not commands_under_way(before)
    gc.collect()  # futures with exceptions that nobody asked for tell now
    assert not unhandled


def commands_under_way(before: set[asyncio.Task[Any]]) -> set[str]:
    """Tasks of the broker that open what the client has asked for."""
    names = (task.get_name() for task in asyncio.all_tasks() - before)
    return {name for name in names if name.startswith(OF_COMMANDS)}


def check_nothing_left(client: Client, before: set[asyncio.Task[Any]]) -> None:
    of_the_broker = ("broker", "connections of", "topic", "server", "ledger ids", "bundle")
    left = [
        task.get_name()
        for task in asyncio.all_tasks() - before
        if not task.get_name().startswith((*of_the_broker, *OF_COMMANDS))
    ]
    assert not left
    assert client.context.memory_limit.current_bytes == 0
    assert client.context.memory_limit.waiters_count == 0
    assert not client.context.children


# --- what is awaited ---------------------------------------------------------------------------


async def send(it: Bench) -> Act:
    return lambda: it.producer.send(b"x", partition_key="k")


async def send_with_everything(it: Bench) -> Act:
    return lambda: it.producer.send(b"x" * 5000, {"a": "b"}, event_timestamp=1, sequence_id=None)


async def batched_send(it: Bench) -> Act:
    producer = await it.client.create_producer(TOPIC, batching_enabled=True)

    async def act() -> None:
        producer.send_nowait(b"1")
        await producer.send(b"2")

    return act


async def chunked_send(it: Bench) -> Act:
    producer = await it.client.create_producer(
        TOPIC, chunking_enabled=True, chunk_max_message_size=1000
    )
    return lambda: producer.send(b"x" * 3500)


async def send_when_full(it: Bench) -> Act:
    producer = await it.client.create_producer(
        TOPIC, max_pending_messages=1, block_if_queue_full=True
    )

    async def act() -> None:
        first = asyncio.get_running_loop().create_task(producer.send(b"1"), name="first")
        try:
            await producer.send(b"2")
        finally:
            await asyncio.gather(first, return_exceptions=True)

    return act


async def partitioned_send(it: Bench) -> Act:
    producer = await it.client.create_producer(PARTITIONED, lazy_start_partitioned_producers=True)
    return lambda: producer.send(b"x", partition_key=str(random.Random(3).random()))


async def awaiting_send_nowait(it: Bench) -> Act:
    async def act() -> None:
        await it.producer.send_nowait(b"x")

    return act


async def flush(it: Bench) -> Act:
    producer = await it.client.create_producer(TOPIC, batching_enabled=True)

    async def act() -> None:
        producer.send_nowait(b"x")
        await producer.flush()

    return act


async def create_producer(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.create_producer(TOPIC, producer_name="the-one")).close()

    return act


async def create_partitioned_producer(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.create_producer(PARTITIONED)).close()

    return act


async def close_producer(it: Bench) -> Act:
    async def act() -> None:
        producer = await it.client.create_producer(TOPIC, batching_enabled=True)
        producer.send_nowait(b"x")
        await producer.close()

    return act


async def receive(it: Bench) -> Act:
    async def act() -> None:
        it.producer.send_nowait(b"x")
        await it.consumer.receive()

    return act


async def receive_with_timeout(it: Bench) -> Act:
    async def act() -> None:
        it.producer.send_nowait(b"x")
        await it.consumer.receive(timeout_millis=60_000)

    return act


async def batch_receive(it: Bench) -> Act:
    async def act() -> None:
        it.producer.send_nowait(b"x")
        await it.consumer.batch_receive()

    return act


async def iterate(it: Bench) -> Act:
    async def act() -> None:
        it.producer.send_nowait(b"x")
        async for _ in it.consumer:
            break

    return act


async def acknowledge(it: Bench) -> Act:
    consumer = await it.client.subscribe(
        TOPIC, "receipts", ack_receipt_enabled=True, consumer_type=ConsumerType.Shared
    )
    message_id = await it.producer.send(b"x")
    return lambda: consumer.acknowledge(message_id)


async def acknowledge_cumulative(it: Bench) -> Act:
    consumer = await it.client.subscribe(TOPIC, "receipts", ack_receipt_enabled=True)
    message_id = await it.producer.send(b"x")
    return lambda: consumer.acknowledge_cumulative(message_id)


async def subscribe(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.subscribe(TOPIC, "another")).close()

    return act


async def subscribe_to_partitions(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.subscribe(PARTITIONED, "another")).close()

    return act


async def subscribe_to_several(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.subscribe([TOPIC, PARTITIONED], "several")).close()

    return act


async def subscribe_to_pattern(it: Bench) -> Act:
    pattern = re.compile("persistent://public/default/c.*")

    async def act() -> None:
        await (await it.client.subscribe(pattern, "pattern")).close()

    return act


async def receive_from_several(it: Bench) -> Act:
    consumer = await it.client.subscribe([TOPIC, PARTITIONED], "several")

    async def act() -> None:
        it.producer.send_nowait(b"x")
        await consumer.acknowledge(await consumer.receive())

    return act


async def reconsume_later(it: Bench) -> Act:
    consumer = await it.client.subscribe(
        TOPIC, "retrying", consumer_type=ConsumerType.Shared, retry_enable=True
    )

    async def act() -> None:
        it.producer.send_nowait(b"x")
        message = await consumer.receive()
        await consumer.reconsume_later(message, delay_millis=0)

    return act


async def seek(it: Bench) -> Act:
    return lambda: it.consumer.seek(MessageId.earliest)


async def get_last_message_id(it: Bench) -> Act:
    return it.consumer.get_last_message_id


async def has_message_available(it: Bench) -> Act:
    return it.consumer.has_message_available


async def unsubscribe(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.subscribe(TOPIC, "to-be-deleted")).unsubscribe()

    return act


async def create_reader(it: Bench) -> Act:
    async def act() -> None:
        await (await it.client.create_reader(TOPIC, MessageId.earliest)).close()

    return act


async def read_next(it: Bench) -> Act:
    reader = await it.client.create_reader(TOPIC, MessageId.latest)

    async def act() -> None:
        it.producer.send_nowait(b"x")
        await reader.read_next()

    return act


async def create_table_view(it: Bench) -> Act:
    await it.producer.send(b"v", partition_key="k")

    async def act() -> None:
        await (await it.client.create_table_view(TOPIC)).close()

    return act


async def get_topic_partitions(it: Bench) -> Act:
    return lambda: it.client.get_topic_partitions(PARTITIONED)


OPERATIONS = [
    send, send_with_everything, batched_send, chunked_send, send_when_full, partitioned_send,
    awaiting_send_nowait, flush, create_producer, create_partitioned_producer, close_producer,
    receive, receive_with_timeout, batch_receive, iterate, acknowledge, acknowledge_cumulative,
    subscribe, subscribe_to_partitions, subscribe_to_several, subscribe_to_pattern,
    receive_from_several, reconsume_later, seek, get_last_message_id, has_message_available,
    unsubscribe, create_reader, read_next, create_table_view, get_topic_partitions,
]  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("prepare", OPERATIONS, ids=lambda each: each.__name__)
def test_a_cancelled_call_leaves_everything_usable(
    prepare: Callable[[Bench], Awaitable[Act]], moment: str
) -> None:
    async def main() -> None:
        async with bench() as it:
            await it.open()
            act = await prepare(it)
            steps = await cancel_at_every_step(act, moment, after=it.works)
            assert steps >= 1 or prepare is send_with_everything

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_first_call_of_a_client_may_be_cancelled(moment: str) -> None:
    """With nothing connected yet: connecting, the handshake and the lookup are cancelled too."""

    async def main() -> None:
        step = 0
        is_reached = True
        while is_reached:
            step += 1
            async with bench() as it:
                is_reached = await cancel_at(
                    lambda it=it: it.client.create_producer(TOPIC), step, moment
                )
                await it.open()
                await it.works()
        assert step > 1

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_cancelled_close_of_a_client_leaves_nothing(moment: str) -> None:
    async def main() -> None:
        step = 0
        is_reached = True
        while is_reached:
            step += 1
            async with bench() as it:
                await it.open()
                it.producer.send_nowait(b"x")
                is_reached = await cancel_at(it.client.close, step, moment)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_a_cancelled_receive_loses_no_message() -> None:
    async def main() -> None:
        async with bench() as it:
            await it.open()
            got: list[int] = []
            for number in range(50):
                it.producer.send_nowait(b"%d" % number)

            async def take() -> None:
                message = await it.consumer.receive()
                got.append(int(message.data()))

            while len(got) < 50:
                for moment in MOMENTS:
                    await cancel_at_every_step(take, moment)
            assert got == list(range(50))

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_a_cancelled_send_goes_out_or_not_but_never_twice() -> None:
    async def main() -> None:
        async with bench() as it:
            await it.open()
            tried = 0

            def act() -> Awaitable[Any]:
                nonlocal tried
                tried += 1
                return it.producer.send(b"%d" % tried)

            for moment in MOMENTS:
                await cancel_at_every_step(act, moment)
            last = await it.producer.send(b"last")
            got = []
            while True:
                message = await it.consumer.receive(timeout_millis=5_000)
                if message.message_id() == last:
                    break
                got.append(int(message.data()))
            assert got == sorted(set(got))

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


# --- closing in any state ----------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("prepare", OPERATIONS, ids=lambda each: each.__name__)
def test_a_client_may_be_closed_while_anything_is_under_way(
    prepare: Callable[[Bench], Awaitable[Act]], moment: str
) -> None:
    """`close` comes at several moments of a call; the call ends, and so does `close`."""

    async def main() -> None:
        for delay in (0.0, 0.001, 0.003) if moment == JUST_ARRIVED else (0.0005, 0.002, 0.0045):
            async with bench() as it:
                await it.open()
                act = await prepare(it)

                async def run(act: Act = act) -> None:
                    await act()

                call = asyncio.get_running_loop().create_task(run(), name="call")
                await asyncio.sleep(delay)
                begun = asyncio.get_running_loop().time()
                await it.client.close()
                assert asyncio.get_running_loop().time() - begun <= CLOSE_SECONDS
                await asyncio.wait([call], timeout=1)
                assert call.done(), f"{prepare.__name__} goes on after close"
                assert isinstance(call.exception(), PulsarError | type(None))

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


@pytest.mark.parametrize("when", ["before", "connecting", "open"])
def test_a_client_whose_broker_vanished_closes_in_time(when: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        async with bench() as it:
            if when == "open":
                await it.open()
            loop.network.silence("localhost", 6650)
            for transport in sorted(loop.network.connections, key=repr):
                transport.abort()
            if when == "connecting":
                call = loop.create_task(it.client.create_producer(TOPIC), name="call")
                await asyncio.sleep(0.5)
                await it.client.close()
                await asyncio.wait([call], timeout=1)
                assert isinstance(call.exception(), PulsarError)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_shutdown_drops_everything_at_once() -> None:
    async def main() -> None:
        async with bench() as it:
            await it.open()
            waiting = asyncio.get_running_loop().create_task(it.consumer.receive(), name="call")
            sending = it.producer.send_nowait(b"x")
            await asyncio.sleep(0)
            it.client.shutdown()
            with pytest.raises(PulsarError):
                await sending
            await asyncio.wait([waiting], timeout=1)
            assert isinstance(waiting.exception(), PulsarError)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)
