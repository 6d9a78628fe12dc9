from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.proto.PulsarApi_pb2 import CommandConnect, CommandPing
from pulsar_py.server.handlers.settings import ConnectionSettings
from tests.unit.server.connection.standins import Server, settle

INTERVAL = 2.0


@pytest.fixture
def settings() -> ConnectionSettings:
    return ConnectionSettings(
        keep_alive_interval_seconds=INTERVAL, max_connections=3, max_connections_per_ip=2
    )


async def test_connections_are_counted(server: Server) -> None:
    client = server.open()
    assert server.connections.count == 1
    client.cnx.connection_lost(None)
    client.cnx.connection_lost(None)
    assert (server.connections.count, server.connections.created_count) == (0, 1)


async def test_connection_too_many_is_told_and_closed(server: Server) -> None:
    for host in ("1.1.1.1", "2.2.2.2", "3.3.3.3"):
        assert not server.open(host).is_closed
    fourth = server.open("4.4.4.4")
    assert fourth.is_closed
    (error,) = await fourth.receives()
    assert (error.request_id, error.error) == (2**64 - 1, NotAllowedError.code)
    assert server.connections.count == 3


async def test_address_with_too_many_connections_gets_no_more(server: Server) -> None:
    first = server.open("1.1.1.1")
    server.open("1.1.1.1")
    assert server.open("1.1.1.1").is_closed
    await settle()
    first.cnx.connection_lost(None)
    assert not server.open("1.1.1.1").is_closed


async def test_silent_client_is_asked_and_then_closed(server: Server) -> None:
    client = await server.connect()
    server.connections.start()
    await asyncio.sleep(INTERVAL * 1.2)
    assert [each.DESCRIPTOR.name for each in await client.receives()] == ["CommandPing"]
    await asyncio.sleep(INTERVAL * 1.2)
    assert client.is_closed


async def test_client_that_sends_anything_stays(server: Server) -> None:
    client = await server.connect()
    server.connections.start()
    for _ in range(10):
        await asyncio.sleep(INTERVAL)
        client.sends(CommandPing())
    assert not client.is_closed


async def test_client_that_knows_no_ping_is_left_alone(server: Server) -> None:
    client = await server.connect(version=0)
    server.connections.start()
    await asyncio.sleep(INTERVAL * 5)
    assert not client.is_closed
    assert not await client.receives()


async def test_handshake_never_done_closes_the_connection(server: Server) -> None:
    client = server.open()
    server.connections.start()
    for _ in range(4):
        client.cnx.data_received(b"\x00")
        await asyncio.sleep(INTERVAL * 0.3)
    assert client.is_closed


async def test_client_that_is_not_read_is_not_given_up(server: Server) -> None:
    client = await server.connect()
    server.connections.start()
    client.cnx.in_flight.started(1)
    client.cnx.in_flight.buffer.limit = 1
    client.cnx.in_flight.on_limit()
    assert client.cnx.is_reading_paused
    await asyncio.sleep(INTERVAL * 5)
    assert not client.is_closed


async def test_closed_client_that_takes_nothing_is_cut_off(server: Server) -> None:
    client = await server.connect()
    server.connections.start()
    client.transport.is_client_reading = False
    client.cnx.send(b"last words")
    client.cnx.close()
    await settle()
    assert server.connections.count == 1
    await asyncio.sleep(INTERVAL * 1.2)
    assert client.transport.was_aborted
    assert server.connections.count == 0


async def test_nothing_is_read_any_more_once_the_broker_closes(server: Server) -> None:
    client = await server.connect()
    server.connections.stop_reading()
    assert client.cnx.is_reading_paused
    client.cnx.in_flight.started(1)
    client.cnx.in_flight.finished(1, 0)
    assert client.cnx.is_reading_paused
    await server.connections.close()
    assert client.is_closed


async def test_closing_ends_all_connections_and_refuses_new_ones(server: Server) -> None:
    client = await server.connect()
    stuck = await server.connect()
    stuck.transport.is_client_reading = False
    stuck.cnx.send(b"x")
    server.connections.start()
    await server.connections.close()
    await settle()
    assert client.is_closed
    assert stuck.transport.was_aborted
    late = server.open()
    assert late.is_closed
    late.sends(CommandConnect(client_version="late"))
    assert server.connections.count == 1
