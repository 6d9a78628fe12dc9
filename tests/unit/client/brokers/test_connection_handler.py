"""Getting a connection, losing it, and getting it back."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.brokers.client_cnx import ClientCnx
from pulsar_py.client.brokers.connection_handler import ConnectionHandler, HandlerState
from pulsar_py.client.client import Client
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionClosedError,
    ConsumerBusyError,
    ServiceNotReadyError,
    TopicTerminatedError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client

TOPIC = "persistent://a/b/c"


class Owner:
    """Registers at once, or fails as it is told."""

    def __init__(self, client: Client) -> None:
        self.handler: ConnectionHandler = ConnectionHandler(
            client.context, TOPIC, self, description=f"owner of {TOPIC}"
        )
        self.cnxs: list[ClientCnx] = []
        self.epochs: list[int] = []
        self.errors: list[Exception] = []
        self.failures: list[Exception] = []
        self.delay_seconds = 0.0

    async def opened(self, cnx: ClientCnx) -> None:
        self.epochs.append(self.handler.epoch)
        await asyncio.sleep(self.delay_seconds)
        if self.errors:
            raise self.errors.pop(0)
        self.cnxs.append(cnx)

    def on_connection_failed(self, error: Exception) -> None:
        self.failures.append(error)


def now() -> float:
    return asyncio.get_running_loop().time()


@simulated
async def test_an_open_handler_has_a_connection(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        assert owner.handler.state is HandlerState.UNINITIALIZED
        await owner.handler.open()
        assert owner.handler.is_connected
        assert owner.handler.cnx is owner.cnxs[0] is await owner.handler.wait_connected()
        await owner.handler.close()
        assert owner.handler.state is HandlerState.CLOSED
        assert owner.handler.cnx is None


@simulated
async def test_what_may_pass_is_tried_again_until_it_does(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        refused = [ServiceNotReadyError("x"), ServiceNotReadyError("y")]
        owner.errors = [*refused, ConnectionClosedError("z")]
        await owner.handler.open()
        assert owner.epochs == [0, 1, 2, 3]
        assert 0.36 <= now() <= 0.4, "0.1 and 0.2 after refusals, 0.1 after a lost connection"
        await owner.handler.close()


@simulated
async def test_what_will_not_pass_fails_at_once(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        owner.errors = [ConsumerBusyError("x")]
        with pytest.raises(ConsumerBusyError):
            await owner.handler.open()
        assert owner.handler.state is HandlerState.FAILED
        assert not owner.failures
        with pytest.raises(ConsumerBusyError):
            await owner.handler.wait_connected()
        await owner.handler.close()


@simulated
async def test_the_first_open_ends_in_time_with_the_reason(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        owner = Owner(client)
        owner.errors = [ServiceNotReadyError("still loading")] * 100
        with pytest.raises(ClientTimeoutError, match=f"owner of {TOPIC}.* 5 s.*still loading"):
            await owner.handler.open()
        assert now() <= 5
        await owner.handler.close()


@simulated
async def test_no_answer_to_the_look_up_ends_in_time_too(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: None
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        with pytest.raises(ClientTimeoutError, match=TOPIC):
            await Owner(client).handler.open()
        assert now() <= 5.1


@simulated
async def test_requests_may_take_what_is_left_of_the_first_open(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        owner = Owner(client)
        owner.delay_seconds = 2
        opening = asyncio.get_running_loop().create_task(owner.handler.open())
        await asyncio.sleep(1)
        assert owner.handler.request_timeout_seconds == 4
        await opening
        assert owner.handler.request_timeout_seconds == 5
        await owner.handler.close()


@simulated
async def test_a_lost_connection_comes_back_after_a_delay(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.cnxs[0].close("cut")
        owner.handler.connection_closed(owner.cnxs[0])
        assert owner.handler.state is HandlerState.CONNECTING
        assert owner.handler.cnx is None
        cnx = await owner.handler.wait_connected()
        assert cnx is owner.cnxs[1]
        assert 0.09 <= now() <= 0.1
        await owner.handler.close()


@simulated
async def test_it_comes_back_however_long_it_takes(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.errors = [ConsumerBusyError("x")] * 15
        owner.cnxs[0].close("cut")
        owner.handler.connection_closed(owner.cnxs[0])
        await owner.handler.wait_connected()
        assert now() > 300
        assert not owner.failures
        await owner.handler.close()


@simulated
async def test_what_ends_it_for_good_is_told_to_the_owner(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.errors = [TopicTerminatedError("x")]
        owner.handler.reconnect()
        with pytest.raises(TopicTerminatedError):
            await owner.handler.wait_connected()
        assert owner.handler.state is HandlerState.FAILED
        assert [type(each) for each in owner.failures] == [TopicTerminatedError]
        await owner.handler.close()


@simulated
async def test_one_that_does_not_reconnect_ends_when_it_is_lost(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        owner.handler.reconnects = False
        await owner.handler.open()
        owner.handler.connection_closed(owner.cnxs[0])
        assert owner.handler.state is HandlerState.FAILED
        assert isinstance(owner.failures[0], ConnectionClosedError)
        with pytest.raises(ConnectionClosedError, match=TOPIC):
            await owner.handler.wait_connected()
        assert len(owner.cnxs) == 1
        await owner.handler.close()


@simulated
async def test_old_news_changes_nothing(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.reconnect()
        await owner.handler.wait_connected()
        old = ClientCnx.__new__(ClientCnx)
        owner.handler.connection_closed(old)
        assert owner.handler.is_connected
        await owner.handler.close()


@simulated
async def test_a_place_lost_while_registering_counts_for_nothing(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        owner.delay_seconds = 1
        opening = asyncio.get_running_loop().create_task(owner.handler.open())
        await asyncio.sleep(0.5)
        owner.handler.connection_closed(client.context.pool.connections[0])
        await opening
        assert owner.epochs == [0, 1]
        await owner.handler.close()


@simulated
async def test_an_assigned_broker_is_taken_at_once_without_a_look_up(
    broker: ScriptedBroker,
) -> None:
    other = await ScriptedBroker(host="other").start()
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.connection_closed(owner.cnxs[0], other.service_url, None)
        cnx = await owner.handler.wait_connected()
        assert cnx.remote_address == other.address
        assert now() == 0
        assert len(broker.of(BaseCommand.LOOKUP)) == 1
        await owner.handler.close()
    other.close()


@simulated
async def test_an_assigned_broker_that_is_not_there_is_looked_up_instead(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.connection_closed(owner.cnxs[0], "pulsar://nowhere:1", None)
        cnx = await owner.handler.wait_connected()
        assert cnx.remote_address == broker.address
        await owner.handler.close()


@simulated
async def test_a_migrated_topic_is_looked_up_in_its_new_cluster(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.topic_migrated(other.service_url, None)
        owner.handler.connection_closed(owner.cnxs[0])
        cnx = await owner.handler.wait_connected()
        assert cnx.remote_address == other.address
        assert len(other.of(BaseCommand.LOOKUP)) == 1
        await owner.handler.close()
    other.close()


@simulated
async def test_another_service_url_goes_before_an_older_migration(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.topic_migrated(other.service_url, None)
        await client.update_service_url(broker.service_url)
        owner.handler.connection_closed(owner.cnxs[0])
        cnx = await owner.handler.wait_connected()
        assert cnx.remote_address == broker.address
        await owner.handler.close()
    other.close()


@simulated
async def test_a_migration_to_no_url_is_ignored(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.handler.topic_migrated("nonsense", None)
        owner.handler.topic_migrated(None, "pulsar+ssl://b:1")
        owner.handler.reconnect()
        await owner.handler.wait_connected()
        await owner.handler.close()


@simulated
async def test_a_cancelled_open_is_over(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: None
    async with simulated_client(broker) as client:
        owner = Owner(client)
        opening = asyncio.get_running_loop().create_task(owner.handler.open())
        await asyncio.sleep(1)
        opening.cancel()
        await asyncio.wait([opening])
        assert owner.handler.state is HandlerState.FAILED
        await owner.handler.close()


@simulated
async def test_closing_ends_a_reconnect_and_whoever_waits(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        owner = Owner(client)
        await owner.handler.open()
        owner.errors = [ServiceNotReadyError("x")] * 100
        owner.handler.reconnect()
        waiting = asyncio.get_running_loop().create_task(owner.handler.wait_connected())
        await asyncio.sleep(10)
        await owner.handler.close()
        await owner.handler.close()
        with pytest.raises(AlreadyClosedError, match=f"owner of {TOPIC}"):
            await waiting
        assert not owner.failures
        assert owner.handler.state is HandlerState.CLOSED


@simulated
async def test_a_client_that_is_shut_down_ends_reconnects(broker: ScriptedBroker) -> None:
    client = simulated_client(broker)
    owner = Owner(client)
    await owner.handler.open()
    client.shutdown()
    owner.handler.connection_closed(owner.cnxs[0])
    await asyncio.sleep(100)
    assert [type(each) for each in owner.failures] == [AlreadyClosedError]
    await client.close()
    await owner.handler.close()
