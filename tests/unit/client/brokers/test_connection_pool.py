"""Connections by broker."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.brokers.service_url import BrokerAddress
from pulsar_py.common.errors import ConnectError, ConnectionClosedError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


def address_of(broker: ScriptedBroker) -> BrokerAddress:
    return BrokerAddress(broker.address, broker.address)


@simulated
async def test_one_connection_serves_all(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        pool = client.context.pool
        found = await asyncio.gather(*(pool.get(address_of(broker)) for _ in range(5)))
        assert len(set(found)) == 1
        assert await pool.get(address_of(broker), slot=17) is found[0]
        assert pool.connections == [found[0]]
    assert len(broker.ends) == 1


@simulated
async def test_slots_are_given_in_turn_and_have_connections_of_their_own(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker, connections_per_broker=2) as client:
        pool = client.context.pool
        slots = [pool.new_slot() for _ in range(4)]
        found = [await pool.get(address_of(broker), slot) for slot in slots]
        assert slots == [0, 1, 0, 1]
        assert found[0] is found[2] is not found[1]
    assert len(broker.ends) == 2


@simulated
async def test_a_lost_connection_is_made_anew(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        first = await client.context.pool.get(address_of(broker))
        broker.end.cut()
        await asyncio.sleep(1)
        second = await client.context.pool.get(address_of(broker))
        assert not first.is_connected
        assert second.is_connected


@simulated
async def test_nobody_there_is_a_connect_error_with_the_address(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        with pytest.raises(ConnectError, match="nowhere:1"):
            await client.context.pool.get(BrokerAddress("nowhere:1", "nowhere:1"))


@simulated
async def test_a_silent_broker_is_a_connect_error_in_time(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = lambda end, command: None
    async with simulated_client(broker, connection_timeout_ms=3000) as client:
        with pytest.raises(ConnectError, match=r"broker:.* 3 s"):
            await client.context.pool.get(address_of(broker))
        assert asyncio.get_running_loop().time() == 3
        await asyncio.sleep(1)
        assert not broker.open_ends


@simulated
async def test_what_nobody_uses_is_closed_after_a_while(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, connection_max_idle_seconds=10) as client:
        await client.context.pool.get(address_of(broker))
        await asyncio.sleep(15)
        assert len(broker.open_ends) == 1
        await asyncio.sleep(10)
        assert not broker.open_ends


@simulated
async def test_what_is_used_stays_open(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, connection_max_idle_seconds=10) as client:
        for _ in range(10):
            await client.context.pool.get(address_of(broker))
            await asyncio.sleep(9)
        assert len(broker.ends) == 1


@simulated
async def test_idle_connections_can_be_kept(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, connection_max_idle_seconds=0) as client:
        await client.context.pool.get(address_of(broker))
        await asyncio.sleep(1000)
        assert len(broker.open_ends) == 1


@simulated
async def test_closing_ends_attempts_under_way(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = lambda end, command: None
    client = simulated_client(broker)
    attempt = asyncio.get_running_loop().create_task(client.context.pool.get(address_of(broker)))
    await asyncio.sleep(1)

    await client.close()

    with pytest.raises(ConnectionClosedError):
        await attempt
    await asyncio.sleep(1)
    assert not broker.open_ends
    with pytest.raises(ConnectionClosedError):
        await client.context.pool.get(address_of(broker))


@simulated
async def test_a_cancelled_caller_leaves_the_attempt_to_others(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        pool = client.context.pool
        first = asyncio.get_running_loop().create_task(pool.get(address_of(broker)))
        second = asyncio.get_running_loop().create_task(pool.get(address_of(broker)))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).is_connected
    assert len(broker.ends) == 1
