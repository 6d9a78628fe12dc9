"""`Listener`: a socket that accepts connections of the binary protocol (edge).

A `Listener` has one bound address and makes a `ServerCnx` for each accepted socket. All connections
of a broker are in one `Connections`, which enforces the limits and keep-alive.
"""

from __future__ import annotations

import asyncio
import ssl

from pulsar_py.server.connection.connections import Connections

BACKLOG = 4096
"""Connections that the kernel queues until they are accepted: clients open thousands at once."""


class Listener:
    """One listening address; owned by the broker."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._server: asyncio.Server | None = None  # None unless bound
        self._port = 0

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Bind and accept; port 0 takes a free one.

        Raises:
            OSError: The address can't be bound.
        """
        await self.bind(host, port, tls=tls)
        await self.serve()

    async def bind(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Bind without accepting yet, so that `port` is known before the first connection.

        Raises:
            OSError: The address can't be bound.
        """
        self._server = await asyncio.get_running_loop().create_server(
            self._connections.new_connection,
            host,
            port,
            ssl=tls,
            backlog=BACKLOG,
            start_serving=False,
        )
        self._port = int(self._server.sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Begin to accept connections."""
        assert self._server is not None, "bind was not called"
        await self._server.start_serving()

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._port, "the listener is not started"
        return self._port

    async def close(self) -> None:
        """Stop accepting; open connections stay (close them with `Connections.close`)."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
