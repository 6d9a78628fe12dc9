"""What tests of settings share: components given a `BrokerConfig` as the broker gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.server.broker_settings import dispatch_settings
from pulsar_py.server.config import BrokerConfig
from tests.dispatch_parts import Topic
from tests.unit.server.connection.standins import Client, RecordingTransport
from tests.unit.server.topics.rig import Rig


@asynccontextmanager
async def dispatching(
    clock: Clock, *, is_cold: bool = False, **settings: object
) -> AsyncIterator[Topic]:
    """A topic whose subscriptions are tuned with settings of `broker.conf`."""
    topic = Topic(clock)
    topic.dispatch_settings = dispatch_settings(BrokerConfig(**settings))
    await topic.open(is_cold=is_cold)
    try:
        yield topic
    finally:
        await topic.close()


@asynccontextmanager
async def broker(
    clock: Clock, *, ledgers: LedgerStore | None = None, **settings: object
) -> AsyncIterator[Rig]:
    """A broker without listeners."""
    async with Rig(clock, config=BrokerConfig(**settings), ledgers=ledgers) as rig:
        yield rig


async def connect(rig: Rig, **fields: object) -> Client:
    """A connection to the broker, as if by a socket, after its handshake."""
    from pulsar_py.proto.PulsarApi_pb2 import CommandConnect  # noqa: PLC0415

    cnx = rig.broker.connections.new_connection()
    transport = RecordingTransport(cnx, ("127.0.0.1", 50_000))
    cnx.connection_made(transport)
    client = Client(cnx, transport)
    await client.asks(CommandConnect(client_version="test", protocol_version=21, **fields))  # type: ignore[arg-type]
    return client
