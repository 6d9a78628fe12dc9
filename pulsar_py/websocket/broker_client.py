"""`broker_client`: our own client, connected with the broker of this process (edge).

Its connections to the broker's own addresses are in-process, and have the rights of one caller.
Topics that another broker of the cluster serves are reached by a socket, over TLS where that broker
is reached so, by the settings `brokerClient…`; that needs a cluster without authentication, as
there are no credentials here that would act for the caller.

Source: WebSocketService, which makes a client of the broker's own in Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulsar_py.client.brokers.service_url import BrokerAddress, host_and_port
from pulsar_py.client.client import Client
from pulsar_py.common.errors import ConnectError
from pulsar_py.common.linear_patterns import linear_pattern
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.network.in_process import connect_in_process
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx

__all__ = ["OwnBroker", "broker_client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBroker:
    """The broker of this process, as its clients find it."""

    service_url: str
    addresses: Collection[str]
    """`host:port` of each address by which lookups name it."""
    reaches_others: bool
    """Whether other brokers take connections without credentials."""
    tls: TlsOptions = field(default_factory=TlsOptions)
    """How they are spoken to over TLS."""


def broker_client(
    broker: OwnBroker,
    new_connection: Callable[[], asyncio.BufferedProtocol],
    *,
    clock: Clock,
    peername: tuple[str, int] | None,
) -> Client:
    """A client that acts for the caller whom `new_connection` makes connections for.

    `peername` is the caller's address, which statistics of the broker show.
    """

    async def connect(cnx: ClientCnx, address: BrokerAddress) -> None:
        if address.physical in broker.addresses or address.logical in broker.addresses:
            connect_in_process(cnx, new_connection(), peername=peername)
            return
        if not broker.reaches_others:
            raise ConnectError(
                f"the topic is served by {address.logical}: connect with that broker"
            )
        host, port = host_and_port(address.physical)
        loop = asyncio.get_running_loop()
        if not address.is_tls:
            await loop.create_connection(lambda: cnx, host, port)
            return
        context = await asyncio.to_thread(client_ssl_context, broker.tls)
        await loop.create_connection(lambda: cnx, host, port, ssl=context, server_hostname=host)

    client = Client(broker.service_url, clock=clock, stats_interval_in_seconds=0)
    client.context.pool.connector = connect
    client.context.pattern_compiler = linear_pattern
    return client
