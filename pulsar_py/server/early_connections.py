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
        return _Unread(self._waiting, client)

    async def _import(self) -> None:
        loop = asyncio.get_running_loop()
        with OnFailure(self._give_up):
            await loop.run_in_executor(None, import_all, SERVING_MODULES)
        self._is_imported = True
        for waiting in list(self._waiting):
            waiting.hand_over_to(self._connections)

    async def close(self) -> None:
        """Drop those that wait."""
        await self._tasks.close()
        self._give_up()

    def _give_up(self) -> None:
        """Drop those that wait; the next one tries again."""
        self._is_begun = self._is_imported
        for waiting in list(self._waiting):
            waiting.drop()


class _Unread(asyncio.Protocol):
    """A connected socket from which nothing is read; keeps itself in `among` while it waits."""

    def __init__(self, among: dict[_Unread, None], client: tuple[str, int] | None) -> None:
        self._among = among
        self._client = client
        self._transport: asyncio.Transport | None = None  # None until it is connected
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait."""
        self._transport = cast("asyncio.Transport", transport)
        self._among[self] = None
        # uvloop begins to read after this call, whatever is said in it.
        asyncio.get_running_loop().call_soon(self._pause)

    def _pause(self) -> None:
        assert self._transport is not None, "it is connected"
        if self in self._among and not self._transport.is_closing():
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Keep what was read before the pause, at most what a TLS record brings along."""
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more: it left."""
        del exc
        self._among.pop(self, None)

    def hand_over_to(self, connections: Connections) -> None:
        """Become a connection, which reads from now on."""
        del self._among[self]
        transport = self._transport
        assert transport is not None, "it is connected"
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
        assert self._transport is not None, "it is connected"
        self._transport.abort()
