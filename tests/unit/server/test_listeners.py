from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConnect
from pulsar_py.server.connection.connections import Connections
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.limits.in_flight import PublishBuffer
from pulsar_py.server.listeners import Listener
from pulsar_py.wire.commands import encode


def connections() -> Connections:
    """Nothing behind them: the handshake needs no topics."""
    return Connections(
        topics=None,  # type: ignore[arg-type]
        namespaces=None,  # type: ignore[arg-type]
        schemas=None,  # type: ignore[arg-type]
        publish_buffer=PublishBuffer(0),
        clock=SystemClock(),
        settings=ConnectionSettings(),
    )


async def test_accepts_on_a_free_port_until_closed() -> None:
    accepted = connections()
    listener = Listener(accepted)
    await listener.start("127.0.0.1", 0)
    port = listener.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(encode(CommandConnect(client_version="x", protocol_version=3)))
    size = int.from_bytes(await reader.readexactly(4), "big")
    answer = BaseCommand.FromString((await reader.readexactly(size))[4:])
    assert answer.connected.protocol_version == 3
    assert accepted.count == 1
    await listener.close()
    await listener.close()
    with pytest.raises(OSError, match=str(port)):
        await asyncio.open_connection("127.0.0.1", port)
    assert accepted.count == 1, "what is open stays"
    await accepted.close()
    assert await reader.read() == b""
    writer.close()
    assert accepted.count == 0


async def test_address_in_use_is_refused() -> None:
    first, second = Listener(connections()), Listener(connections())
    await first.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        await second.start("127.0.0.1", first.port)
    await second.close()
    await first.close()
