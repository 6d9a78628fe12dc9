"""What an application sees of what it left open, or cut off."""

from __future__ import annotations

import asyncio
import gc
import re
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pulsar_py.admin_client import AdminClient
from pulsar_py.client.client import Client
from pulsar_py.client.messages.message import Message
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.schema import AvroSchema, KeyValueSchema, StringSchema
from pulsar_py.testing.restartable_broker import RestartableBroker
from tests.simulated_client import World
from tests.simulated_client import simulated as in_a_world


@dataclass
class Order:
    number: int


def left_open(work: Callable[[Client], Awaitable[object]]) -> list[str]:
    """The warnings after a loop ended around a client that nobody closed."""

    async def run() -> None:
        async with RestartableBroker() as broker:
            await work(Client(broker.service_url))

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(run())
        gc.collect()
    return [str(each.message) for each in caught if "unclosed client" in str(each.message)]


def test_what_is_left_open_when_the_loop_ends_is_named() -> None:
    async def work(client: Client) -> None:
        await client.create_producer("orders", producer_name="shop")
        await client.subscribe("orders", "billing", consumer_name="bill")

    (found,) = left_open(work)
    assert re.match(
        r"unclosed client of pulsar://127.0.0.1:\d+, with TopicProducer\('shop' on ", found
    )
    assert "Consumer(bill of billing on persistent://public/default/orders" in found
    assert "use `async with`" in found


def test_what_was_closed_or_never_used_is_not_told_of() -> None:
    async def unused(_client: Client) -> None: ...

    async def closed(client: Client) -> None:
        async with client:
            await client.create_producer("orders")

    assert left_open(unused) == left_open(closed) == []


def test_repr_says_what_it_is_and_its_state() -> None:
    async def work(world: World) -> None:
        topic = "persistent://public/default/t"
        await world.create_partitioned("many", 2)
        assert repr(world.client) == "Client(pulsar://broker:6650, open)"
        producer = await world.client.create_producer("t", producer_name="p")
        many = await world.client.create_producer("many", producer_name="p")
        consumers = await world.client.subscribe("many", "s")
        reader = await world.client.create_reader("t")
        view = await world.client.create_table_view("t")
        assert repr(producer) == f"TopicProducer('p' on {topic}, connected)"
        assert repr(many).startswith("PartitionedProducer('p' on persistent://public/default/many")
        assert repr(consumers).endswith(", connected)")
        assert repr(reader) == f"Reader({topic}, connected)"
        assert repr(view) == f"TableView({topic}, 0 keys, open)"
        assert repr(world.client) == "Client(pulsar://broker:6650, open)"
        assert repr(world.broker) == "Broker(pulsar://broker:6650, running)"
        sent = producer.send_nowait(b"x")
        assert repr(sent) == "SendResult(on its way)"
        await sent
        assert re.fullmatch(r"SendResult\(\(?\d+.*\)", repr(sent))
        await world.client.close()
        for each in (producer, many, consumers, reader, view, world.client):
            assert repr(each).endswith("closed)"), repr(each)

    in_a_world(work)


def test_repr_of_values_shows_no_contents() -> None:
    message = OutgoingMessage(b"secret", {"a": "b"}, partition_key="k")
    assert repr(message) == "OutgoingMessage(bytes, key 'k', 1 properties)"
    assert repr(OutgoingMessage(None)) == "OutgoingMessage(null, key None, 0 properties)"
    order = AvroSchema(Order)
    assert repr(order) == "AvroSchema(Order)"
    assert repr(KeyValueSchema(StringSchema(), order)) == (
        "KeyValueSchema(StringSchema(), AvroSchema(Order), INLINE)"
    )
    assert repr(AdminClient("http://localhost:8080")) == "AdminClient(http://localhost:8080)"


def test_a_consumer_drains_the_calls_of_its_listener() -> None:
    async def work(world: World) -> None:
        begun: list[bytes] = []
        done: list[bytes] = []

        async def slow(consumer: object, message: Message) -> None:
            begun.append(message.data())
            await asyncio.sleep(60)
            await consumer.acknowledge(message)  # type: ignore[attr-defined] # any consumer
            done.append(message.data())

        consumer = await world.client.subscribe("t", "s", message_listener=slow)
        await world.send("t", "one", "two")
        await asyncio.sleep(1)
        await consumer.drain()
        assert begun == done == [b"one"]
        assert consumer.is_closed
        again = await world.client.subscribe("t", "s")
        assert (await again.receive(1000)).data() == b"two"

    in_a_world(work)


def test_a_listener_may_drain_its_own_consumer() -> None:
    async def work(world: World) -> None:
        drained = asyncio.Event()

        async def last(consumer: object, message: Message) -> None:
            await consumer.acknowledge(message)  # type: ignore[attr-defined] # any consumer
            await consumer.drain()  # type: ignore[attr-defined] # as above
            drained.set()

        await world.client.subscribe("t", "s", message_listener=last)
        await world.send("t", "one")
        async with asyncio.timeout(60):
            await drained.wait()

    in_a_world(work)


def test_a_producer_drains_what_it_accepted() -> None:
    async def work(world: World) -> None:
        producer = await world.client.create_producer("t", send_timeout_millis=0)
        sent = [producer.send_nowait(b"%d" % number) for number in range(10)]
        await producer.drain()
        assert [(await each).entry_id for each in sent] == list(range(10))
        assert producer.is_closed

    in_a_world(work)
