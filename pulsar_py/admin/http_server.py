"""`HttpServer`: serves HTTP/1.1 on asyncio, for an application of requests and answers (edge).

Each socket has an `HttpConnection`. There are limits for headers, bodies, all bodies together, the
number of connections, and the time in which a peer has to send a request, read its answer, or send
the next request. One timer closes connections that exceed a time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.upgrades import UpgradeHandler
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.security.paced_server import PacedServer
from pulsar_py.server.security.peer import Peer, named_peer
from pulsar_py.server.security.tls import HANDSHAKE_SECONDS
from pulsar_py.server.security.trusted_proxies import TrustedProxies

if TYPE_CHECKING:
    from pulsar_py.admin.http_connection import HttpConnection

logger = logging.getLogger(__name__)

Application = Callable[[str, str, Mapping[str, str], bytes, Peer], Awaitable[Response]]
"""Called with method, target, headers (names in lower case), body and peer; never raises."""

_BACKLOG: Final = 1024
_SWEEP_SECONDS: Final = 5.0


class HttpLimits(Struct, frozen=True, kw_only=True):
    """The limits of one connection, and of all together."""

    header_bytes: int = 16 * 1024
    body_bytes: int = 16 * 1024 * 1024
    all_bodies_bytes: int = 64 * 1024 * 1024
    """Bytes of the bodies that are being received or served: beyond it only small ones are taken.
    Nobody has to say who he is before his body is there."""
    connections_count: int = 2048
    host_connections_count: int = 0
    """Those from one address; 0 = no limit. A proxy's header PROXY names whose address counts."""
    idle_seconds: float = 60.0
    request_seconds: float = 30.0
    """Seconds from the first byte of a request to its last, and for reading an answer."""


class HttpServer:
    """The listening sockets and their connections; owned by the broker's `Ports`."""

    def __init__(
        self,
        application: Application,
        *,
        clock: Clock,
        limits: HttpLimits | None = None,
        upgrades: UpgradeHandler | None = None,
        proxies: TrustedProxies | None = None,
        forwarders: TrustedProxies | None = None,
    ) -> None:
        """`upgrades` answers what lies below `UPGRADES`; None: the application does.

        `proxies` may name their clients by a header of the PROXY protocol, `forwarders` by the
        header `X-Forwarded-For`; None: nobody may.
        """
        self._application = application
        self._proxies = proxies
        self._forwarders = forwarders
        self._upgrades = upgrades
        self._clock = clock
        self._limits = limits or HttpLimits()
        self._connections: dict[HttpConnection, str] = {}  # with hosts, in order of connecting
        self._per_host = Counter[str]()  # of the connections
        self.bodies_bytes = 0  # being received or served, of all connections
        self._tasks = TaskOwner("http")
        self._servers: list[asyncio.Server | PacedServer] = []  # those that are bound
        self._sweep_timer: asyncio.TimerHandle | None = None  # only while there are connections

    async def bind(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Bind without accepting yet; returns the port, of which 0 takes a free one.

        It may be called for several.

        Raises:
            OSError: The address can't be bound.
        """
        server: asyncio.Server | PacedServer
        if self._proxies or tls is not None:
            server = PacedServer(
                lambda client: self._new_connection(named_peer(client)),
                self._proxies.includes if self._proxies else None,
                tls=tls,
                handshake_seconds=HANDSHAKE_SECONDS if tls is not None else None,
                backlog=_BACKLOG,
            )
            await server.bind(host, port)
        else:
            server = await asyncio.get_running_loop().create_server(
                self._new_connection,
                host,
                port,
                backlog=_BACKLOG,
                start_serving=False,
            )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _new_connection(self, named: Peer | None = None) -> HttpConnection:
        from pulsar_py.admin.http_connection import HttpConnection  # noqa: PLC0415 - at first use

        return HttpConnection(self, named)

    async def serve(self) -> None:
        """Begin to accept connections."""
        assert self._servers, "bind was not called"
        for server in self._servers:
            await server.start_serving()

    @property
    def port(self) -> int:
        """The port that was bound first."""
        assert self._servers, "bind was not called"
        return int(self._servers[0].sockets[0].getsockname()[1])

    @property
    def connections_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def close(self) -> None:
        """Stop accepting, drop the connections, and wait for the requests being served."""
        for server in self._servers:
            server.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self._connections):
            connection.drop()
        await self._tasks.close()

    def _opened(self, connection: HttpConnection, host: str) -> bool:
        """Count a connection, unless there are too many."""
        if len(self._connections) >= self._limits.connections_count:
            logger.warning("too many http connections", extra={"limit": len(self._connections)})
            return False
        most = self._limits.host_connections_count
        if 0 < most <= self._per_host[host]:
            extra = {"host": host, "limit": most}
            logger.warning("too many http connections of one address", extra=extra)
            return False
        self._connections[connection] = host
        self._per_host[host] += 1
        if self._sweep_timer is None:
            self._sweep_timer = self._clock.call_later(_SWEEP_SECONDS, self._sweep)
        return True

    def _lost(self, connection: HttpConnection) -> None:
        """Count a connection no more; one that was refused never counted."""
        host = self._connections.pop(connection, None)
        if host is None:
            return
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    def _sweep(self) -> None:
        self._sweep_timer = None
        now = self._clock.monotonic_seconds()
        for connection in list(self._connections):
            if connection.deadline <= now:
                connection.drop()
        if self._connections:
            self._sweep_timer = self._clock.call_later(_SWEEP_SECONDS, self._sweep)
