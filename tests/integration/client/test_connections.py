"""A client's connections against a real broker on real sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pulsar_py.client.brokers.client_cnx import ClientCnx
from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.brokers.connection_handler import ConnectionHandler, HandlerState
from pulsar_py.client.client import Client
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionClosedError,
    ForkedProcessError,
    ServiceError,
    TopicNotFoundError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandMessage,
    CommandProducer,
    CommandSubscribe,
)
from pulsar_py.standalone import Broker
from pulsar_py.wire import client_commands, commands
from tests.wire_client import body_of, stored_entry

TOPIC = "persistent://public/default/connections"


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as started:
        yield started


@pytest_asyncio.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url, operation_timeout_seconds=60) as made:
        yield made


class BareHandler:
    """A producer or consumer of the plainest kind."""

    def __init__(self, context: ClientContext, topic: str = TOPIC) -> None:
        self.connection = ConnectionHandler(context, topic, self, description=f"bare {topic}")
        self.context = context
        self.topic = topic
        self.id = context.new_consumer_id()
        self.events: list[object] = []
        self.arrived = asyncio.Event()
        self.opened_count = 0

    def on_connection_failed(self, error: Exception) -> None:
        self.events.append(error)

    def on_connection_closed(self, cnx: ClientCnx) -> None:
        self.events.append("connection closed")
        self.connection.connection_closed(cnx)

    def on_batch_end(self) -> None:
        self.arrived.set()


class BareProducer(BareHandler):
    name = ""

    async def opened(self, cnx: ClientCnx) -> None:
        cnx.register_producer(self.id, self)
        request_id = cnx.next_request_id()
        frame = commands.encode(
            CommandProducer(topic=self.topic, producer_id=self.id, request_id=request_id)
        )
        answer = await cnx.request_producer(request_id, frame, subject=self.topic)
        self.name = answer.producer_success.producer_name
        self.opened_count += 1

    def send(self, body: bytes, sequence_id: int) -> None:
        entry = stored_entry(body, sequence_id)
        head = client_commands.SendEncoder(self.id).encode(sequence_id, len(entry))
        assert self.connection.cnx is not None
        self.connection.cnx.write((head, entry))

    def on_send_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        self.events.append((sequence_id, highest_sequence_id, ledger_id >= 0, entry_id))

    def on_send_receipts(
        self,
        sequence_id: int,
        highest_sequence_id: int,
        ledger_id: int,
        entry_id: int,
        count: int,
    ) -> None:
        for each in range(count):
            self.on_send_receipt(
                sequence_id + each, highest_sequence_id, ledger_id, entry_id + each
            )

    def on_close_producer(self, cnx: ClientCnx, url: str | None, url_tls: str | None) -> None:
        self.events.append("close producer")
        self.connection.connection_closed(cnx, url, url_tls)


class BareConsumer(BareHandler):
    async def opened(self, cnx: ClientCnx) -> None:
        cnx.register_consumer(self.id, self)
        request_id = cnx.next_request_id()
        frame = commands.encode(
            CommandSubscribe(
                topic=self.topic,
                subscription="sub",
                subType=CommandSubscribe.Exclusive,
                consumer_id=self.id,
                request_id=request_id,
                initialPosition=CommandSubscribe.Earliest,
            )
        )
        await cnx.request(request_id, frame, subject=self.topic)
        cnx.send(client_commands.flow(self.id, 1000))
        self.opened_count += 1

    def on_message(
        self, message: CommandMessage, headers_and_payload: bytes, key: EntryKey | None = None
    ) -> None:
        self.events.append(body_of(headers_and_payload[headers_and_payload.index(b"\x0e\x01") :]))

    def on_close_consumer(self, cnx: ClientCnx, url: str | None, url_tls: str | None) -> None:
        self.events.append("close consumer")
        self.connection.connection_closed(cnx, url, url_tls)


async def wait_until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_message_goes_out_and_comes_back(client: Client) -> None:
    producer, consumer = BareProducer(client.context), BareConsumer(client.context)
    await producer.connection.open()
    await consumer.connection.open()

    producer.send(b"hello", 0)
    await wait_until(lambda: producer.events and consumer.events)

    assert producer.name.startswith("standalone")
    assert producer.events == [(0, 0, True, 0)]
    assert consumer.events == [b"hello"]
    assert producer.connection.cnx is consumer.connection.cnx
    await producer.connection.close()
    await consumer.connection.close()


async def test_handlers_are_spread_over_the_connections_of_a_broker(broker: Broker) -> None:
    async with Client(broker.service_url, connections_per_broker=3) as client:
        producers = [BareProducer(client.context) for _ in range(6)]
        for producer in producers:
            await producer.connection.open()

        assert len({id(producer.connection.cnx) for producer in producers}) == 3
        for producer in producers:
            await producer.connection.close()


async def test_who_loses_the_connection_comes_back_by_itself(client: Client) -> None:
    producer = BareProducer(client.context)
    await producer.connection.open()
    assert producer.connection.cnx is not None

    producer.connection.cnx.close("cut")
    assert producer.connection.state is HandlerState.CONNECTING
    cnx = await producer.connection.wait_connected()

    assert cnx.is_connected
    assert producer.opened_count == 2
    assert producer.connection.epoch == 1
    await producer.connection.close()


async def test_who_is_closed_by_the_broker_comes_back(broker: Broker, client: Client) -> None:
    producer, consumer = BareProducer(client.context), BareConsumer(client.context)
    await producer.connection.open()
    await consumer.connection.open()

    await broker.service.topics.unload(producer.topic)
    await wait_until(lambda: producer.opened_count == 2 and consumer.opened_count == 2)

    assert producer.events == ["close producer"]
    assert consumer.events == ["close consumer"]
    await producer.connection.close()
    await consumer.connection.close()


async def test_another_service_url_takes_effect_at_once(broker: Broker, client: Client) -> None:
    async with Broker() as other:
        producer = BareProducer(client.context)
        await producer.connection.open()

        await client.update_service_url(other.service_url)
        cnx = await producer.connection.wait_connected()

        assert cnx.remote_address == other.service_url.removeprefix("pulsar://")
        await producer.connection.close()


async def test_a_host_that_does_not_answer_is_passed_over(broker: Broker) -> None:
    url = broker.service_url + ",127.0.0.1:1"
    for _ in range(4):  # whichever comes first by chance
        async with Client(url) as client:
            assert await client.get_topic_partitions(TOPIC) == [TOPIC]


async def test_partitions_are_named(broker: Broker, client: Client) -> None:
    await broker.service.topics.partitioned.create(TopicName.parse(TOPIC), 2)

    assert await client.get_topic_partitions("connections") == [
        f"{TOPIC}-partition-0",
        f"{TOPIC}-partition-1",
    ]


async def test_errors_name_the_topic(client: Client) -> None:
    consumer = BareConsumer(client.context, "persistent://no/such/namespace")

    with pytest.raises(ServiceError, match="persistent://no/such/namespace"):
        await consumer.connection.open()
    assert consumer.connection.state is HandlerState.FAILED


async def test_nobody_there_is_an_error_in_time() -> None:
    async with Client("pulsar://127.0.0.1:1", operation_timeout_seconds=0.3) as client:
        with pytest.raises(ClientTimeoutError, match=r"connections.*127\.0\.0\.1"):
            await client.get_topic_partitions(TOPIC)


async def test_a_topic_without_schema_has_none(client: Client) -> None:
    producer = BareProducer(client.context)
    await producer.connection.open()

    assert await client.context.lookup.schema(TOPIC) is None
    await producer.connection.close()


async def test_after_close_nothing_is_left(broker: Broker) -> None:
    before = asyncio.all_tasks()
    client = Client(broker.service_url)
    producer = BareProducer(client.context)
    await producer.connection.open()
    cnx = producer.connection.cnx

    await client.close()
    await client.close()
    await producer.connection.close()

    assert cnx is not None
    assert not cnx.is_connected
    with pytest.raises(AlreadyClosedError):
        await client.get_topic_partitions(TOPIC)
    assert {task for task in asyncio.all_tasks() - before if "test" in task.get_name()} == set()


async def test_shutdown_needs_no_await(broker: Broker) -> None:
    client = Client(broker.service_url)
    producer = BareProducer(client.context)
    await producer.connection.open()

    client.shutdown()

    assert "connection closed" in producer.events
    with pytest.raises(AlreadyClosedError):
        await client.get_topic_partitions(TOPIC)
    await client.close()
    await producer.connection.close()


async def test_a_forked_child_is_told_and_the_parent_is_not_disturbed(client: Client) -> None:
    producer = BareProducer(client.context)
    await producer.connection.open()

    child = os.fork()
    if not child:
        try:
            client.context.check_usable()
        except ForkedProcessError:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - it ends at once
    producer.send(b"still here", 0)
    await wait_until(lambda: producer.events)

    assert os.waitstatus_to_exitcode(status) == 7
    assert producer.events == [(0, 0, True, 0)]
    await producer.connection.close()


def test_one_client_serves_one_loop(tmp_path) -> None:
    client = Client("pulsar://127.0.0.1:1", operation_timeout_seconds=0.1)

    async def use() -> None:
        with pytest.raises((ClientTimeoutError, ConnectionClosedError, TopicNotFoundError)):
            await client.get_topic_partitions(TOPIC)

    asyncio.run(use())

    async def use_again() -> None:
        with pytest.raises(Exception, match="another event loop"):
            await client.get_topic_partitions(TOPIC)

    asyncio.run(use_again())
    client.shutdown()
