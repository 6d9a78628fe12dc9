"""`Listener`: the sockets that accept connections of the binary protocol (edge).

A `Listener` has a bound address or more and makes a `ServerCnx` for each accepted socket. All
connections of a broker are in one `Connections`, which enforces the limits and keep-alive.
"""

from __future__ import annotations

import asyncio
import ssl

from pulsar_py.server.connection.connections import Connections
from pulsar_py.server.early_connections import EarlyConnections
from pulsar_py.server.security.paced_server import PacedServer
from pulsar_py.server.security.tls import HANDSHAKE_SECONDS
from pulsar_py.server.security.trusted_proxies import TrustedProxies

BACKLOG = 4096
"""Connections that the kernel queues until they are accepted: clients open thousands at once."""


class Listener:
    """The listening addresses of one broker, which owns it."""

    def __init__(
        self,
        connections: Connections,
        proxies: TrustedProxies | None = None,
        *,
        imports_at_once: bool = False,
    ) -> None:
        """`proxies` may name their clients by a header of the PROXY protocol; None: nobody may.

        With `imports_at_once` no thread is used, which has no place in virtual time.
        """
        self._early = EarlyConnections(connections)
        self._proxies = proxies
        if imports_at_once:
            self._early.import_now()
        self._servers: list[asyncio.Server | PacedServer] = []  # those that are bound

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Bind and accept; port 0 takes a free one; returns the bound port.

        Raises:
            OSError: The address can't be bound.
        """
        bound = await self.bind(host, port, tls=tls)
        await self.serve()
        return bound

    async def bind(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Bind without accepting yet; returns the bound port. May be called for several.

        Raises:
            OSError: The address can't be bound.
        """
        server: asyncio.Server | PacedServer
        if self._proxies or tls is not None:
            server = PacedServer(
                self._early.new_connection,
                self._proxies.includes if self._proxies else None,
                tls=tls,
                handshake_seconds=HANDSHAKE_SECONDS if tls is not None else None,
                backlog=BACKLOG,
            )
            await server.bind(host, port)
        else:
            server = await asyncio.get_running_loop().create_server(
                self._early.new_connection,
                host,
                port,
                backlog=BACKLOG,
                start_serving=False,
            )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Begin to accept connections."""
        assert self._servers, "bind was not called"
        for server in self._servers:
            await server.start_serving()

    @property
    def port(self) -> int:
        """The port that was bound first."""
        assert self._servers, "the listener is not started"
        return int(self._servers[0].sockets[0].getsockname()[1])

    @property
    def bound_addresses(self) -> list[tuple[str, int]]:
        """IP addresses and ports that are bound."""
        names = (each.getsockname() for server in self._servers for each in server.sockets)
        return [(name[0], name[1]) for name in names]

    async def close(self) -> None:
        """Stop accepting; open connections stay (close them with `Connections.close`)."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        await self._early.close()
