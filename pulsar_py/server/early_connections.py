"""`EarlyConnections`: sockets that are accepted before what serves them is imported (edge).

A broker that nobody has talked to yet does without half of its modules: connections, topics,
subscriptions. With the first client a thread imports them, while the loop goes on. Until then the
sockets that come are not read; then each becomes a connection like any other.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pulsar_py.common.failures import OnFailure
from pulsar_py.common.late_imports import import_all
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.connection.connections import Connections

__all__ = ["SERVING_MODULES", "EarlyConnections"]

SERVING_MODULES: Final = (
    "pulsar_py.server.connection.server_cnx",
    "pulsar_py.server.topics.persistent",
    "pulsar_py.server.change_events.namespace_events",
)
"""With all that they import, what serves a client that publishes and consumes."""


class EarlyConnections:
    """Those of one `Listener`, which owns it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting: dict[_Unread, None] = {}  # in order of connecting
        self._tasks = TaskOwner("early connections")
        self._is_begun = False  # whether the import was begun
        self._is_imported = False
        self._is_closed = False

    def import_now(self) -> None:
        """Import without a thread, which has no place in virtual time."""
        import_all(SERVING_MODULES)
        self._is_begun = self._is_imported = True

    def new_connection(self, client: tuple[str, int] | None = None) -> asyncio.BaseProtocol:
        """A protocol object for one accepted socket, whose client a proxy may have named."""
        if self._is_imported:
            return self._connections.new_proxied_connection(client)
        if not self._is_begun:
            self._is_begun = True
            self._tasks.spawn(self._import(), "import of what serves clients")
        return _Unread(self, client)

    def connected(self, unread: _Unread) -> None:
        """Serve a socket, or have it wait. With TLS it may be connected after the import."""
        if unread.is_closing:
            return
        if self._is_imported:
            unread.hand_over_to(self._connections)
        elif self._is_closed:
            unread.drop()
        else:
            self._waiting[unread] = None
            unread.pause()

    def lost(self, unread: _Unread) -> None:
        """Forget a socket that left."""
        self._waiting.pop(unread, None)

    async def _import(self) -> None:
        loop = asyncio.get_running_loop()
        with OnFailure(self._give_up):
            await loop.run_in_executor(None, import_all, SERVING_MODULES)
        self._is_imported = True
        waiting, self._waiting = self._waiting, {}
        for unread in waiting:
            unread.hand_over_to(self._connections)

    async def close(self) -> None:
        """Drop those that wait."""
        self._is_closed = True
        await self._tasks.close()
        self._give_up()

    def _give_up(self) -> None:
        """Drop those that wait; the next one tries again."""
        self._is_begun = self._is_imported
        for unread in list(self._waiting):
            unread.drop()


class _Unread(asyncio.Protocol):
    """A socket that is not read until what serves it is imported."""

    def __init__(self, owner: EarlyConnections, client: tuple[str, int] | None) -> None:
        self._owner = owner
        self._client = client
        self._transport: asyncio.Transport | None = None  # None until it is connected
        self._received = b""

    @property
    def is_closing(self) -> bool:
        """Whether it is being closed, or is."""
        return self._connected.is_closing()

    @property
    def _connected(self) -> asyncio.Transport:
        assert self._transport is not None, "it is connected"
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the next turn: uvloop begins to read after this call, whatever is said in it."""
        self._transport = cast("asyncio.Transport", transport)
        asyncio.get_running_loop().call_soon(self._owner.connected, self)

    def data_received(self, data: bytes) -> None:
        """Keep what was read before the pause: what comes in a turn of the loop."""
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        del exc
        self._owner.lost(self)

    def pause(self) -> None:
        """Read no further."""
        self._connected.pause_reading()

    def hand_over_to(self, connections: Connections) -> None:
        """Become a connection, which reads from now on."""
        transport = self._connected
        if transport.is_closing():
            return
        cnx = connections.new_proxied_connection(self._client)
        transport.set_protocol(cnx)
        cnx.connection_made(transport)
        if self._received and not transport.is_closing():
            cnx.data_received(self._received)
        if not transport.is_closing():  # as one beyond the limits is
            transport.resume_reading()

    def drop(self) -> None:
        """End it without an answer."""
        self._connected.abort()
