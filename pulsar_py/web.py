"""`Web`: one broker's HTTP applications: the REST API, the console, and WebSocket.

It is built before the ports are bound, and learns the broker's addresses when they are. The REST
API is imported by a thread with the first request: it is a tenth of what a broker imports, and a
client of the binary protocol does not need it. WebSocket is imported by its first
handshake, and has the rights of whoever sends it: credentials are those of HTTP, or the parameter
`token`.

Source: WebService, WebSocketService of Pulsar's broker.

Third-party packages it may import: msgspec.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.http_server import Application, HttpLimits, HttpServer
from pulsar_py.admin.request_log import logged
from pulsar_py.admin.upgrades import UPGRADES, Successor
from pulsar_py.common.errors import AuthenticationError, AuthorizationError
from pulsar_py.common.late_imports import import_all
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.security.authentication import (
    METHOD_HEADER,
    PRINCIPAL_HEADER,
    Authenticated,
)
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.peer import UNKNOWN_ADDRESS, Peer
from pulsar_py.server.security_parts import proxy_rules

if TYPE_CHECKING:
    from pulsar_py.admin.app import AdminApp
    from pulsar_py.admin.resources.access import Access
    from pulsar_py.client.client import Client
    from pulsar_py.console.service import Console
    from pulsar_py.websocket.broker_client import OwnBroker
    from pulsar_py.websocket.service import WebSocketService

__all__ = ["Web", "access_of", "http_limits"]

_CONSOLE: Final = ("/console", "/admin/console")
"""Paths that the console serves, with all below them."""


_REST_MODULES: Final = ("pulsar_py.admin.app", "pulsar_py.admin.api.all_routes")
"""What the REST API needs, with all that these import."""


class Web:
    """The HTTP side of one broker, whose composition root owns it."""

    def __init__(
        self,
        service: BrokerService,
        clock: Clock,
        page_rules: PageRules,
        *,
        imports_at_once: bool = False,
    ) -> None:
        """`page_rules` say which pages of a browser may send requests and handshakes.

        With `imports_at_once` no thread is used, which has no place in virtual time.
        """
        config = service.config
        proxies = proxy_rules(config)
        self._service = service
        self._clock = clock
        self._page_rules = page_rules
        self._addresses: LocalAddresses | None = None  # None before the ports are bound
        self._websockets: WebSocketService | None = None  # None before the first handshake
        self._console: Console | None = None  # None before the first request for it
        self._access = access_of(service)
        self._tasks = TaskOwner("web")
        self._admin: AdminApp | None = self._new_admin() if imports_at_once else None
        # Makes it, for the first request and all that come meanwhile.
        self._making: asyncio.Task[None] | None = None
        handle: Application = self._handle if config.consoleEnabled else self._rest
        if config.webServiceRequestLogEnabled:
            handle = logged(handle, clock)
        self.server = HttpServer(
            handle,
            clock=clock,
            limits=http_limits(config),
            upgrades=self._upgrade if config.webSocketServiceEnabled else None,
            proxies=proxies.http,
            forwarders=proxies.forwarded,
        )

    def set_addresses(self, addresses: LocalAddresses) -> None:
        """Say how clients find the broker; before anybody is let in."""
        self._addresses = addresses

    def prepare(self) -> None:
        """Import the REST API behind the back of the loop."""
        if self._admin is None and self._making is None:
            self._making = self._tasks.spawn(self._import_and_make(), "import of the REST API")

    async def close(self) -> None:
        """End WebSocket connections; the server itself is closed with its ports."""
        await self._tasks.close()
        if self._websockets is not None:
            await self._websockets.close()

    async def _handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        """Answer a request, where there is a console."""
        path = target.partition("?")[0]
        if path.startswith(tuple(f"{each}/" for each in _CONSOLE)) or path in _CONSOLE:
            if self._console is None:
                self._console = await self._new_console()
            return await self._console.handle(method, target, headers, body, peer)
        if path == "/" and headers.get("sec-fetch-mode") == "navigate":
            return Response(HTTPStatus.FOUND, headers=(("Location", f"{_CONSOLE[0]}/"),))
        return await self._rest(method, target, headers, body, peer)

    async def _rest(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        """Answer a request to the REST API, the first ones once it is imported."""
        if self._admin is None:
            self.prepare()
            assert self._making is not None, "it was started"
            # A caller that goes away ends its own wait only.
            await asyncio.shield(self._making)
            assert self._admin is not None, "it was made"
        return await self._admin.handle(method, target, headers, body, peer)

    async def _import_and_make(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, import_all, _REST_MODULES)
        self._admin = self._new_admin()

    def _new_admin(self) -> AdminApp:
        from pulsar_py.admin.api.all_routes import all_routes  # noqa: PLC0415 - at first use
        from pulsar_py.admin.app import AdminApp  # noqa: PLC0415 - at first use

        service = self._service
        return AdminApp(
            all_routes(service),
            self._access,
            service.hooks.interceptors,
            page_rules=self._page_rules,
            audit=service.audit,
            clock=self._clock,
        )

    async def _new_console(self) -> Console:
        from pulsar_py.console.service import Console  # noqa: PLC0415 - at first use

        return await Console.open(self._service, self._access, self._page_rules, self._client_for)

    def _client_for(self, caller: Caller, peer: Peer) -> Client:
        """A client within the process that has a caller's rights."""
        from pulsar_py.websocket.broker_client import broker_client  # noqa: PLC0415 - at first use

        handshake = _WebSocketCaller(self._service, caller, peer, None)
        return broker_client(
            self._own_broker(),
            handshake.new_connection,
            clock=self._clock,
            peername=handshake.peername,
        )

    async def _upgrade(
        self, method: str, target: str, headers: Sequence[tuple[bytes, bytes]], peer: Peer
    ) -> Response | Successor:
        if self._websockets is None:
            self._websockets = self._new_websockets()

        async def caller_of(named: Mapping[str, str]) -> _WebSocketCaller:
            proved, caller = await self._caller_of(named, peer)
            return _WebSocketCaller(self._service, caller, peer, proved)

        return await self._websockets.handshake(method, target, headers, caller_of)

    def _new_websockets(self) -> WebSocketService:
        from pulsar_py.websocket.connection import WebSocketLimits  # noqa: PLC0415 - at first use
        from pulsar_py.websocket.service import WebSocketService  # noqa: PLC0415 - at first use

        config = self._service.config
        limits = WebSocketLimits(
            max_text_bytes=config.webSocketMaxTextFrameSize,
            idle_seconds=config.webSocketSessionIdleTimeoutMillis / 1000,
            ping_seconds=config.webSocketPingDurationSeconds,
        )
        return WebSocketService(
            self._own_broker(),
            clock=self._clock,
            limits=limits,
            page_rules=self._page_rules,
        )

    def _own_broker(self) -> OwnBroker:
        """The broker of this process, for clients within it."""
        from pulsar_py.common.network.tls import TlsOptions  # noqa: PLC0415 - at first use
        from pulsar_py.websocket.broker_client import OwnBroker  # noqa: PLC0415 - at first use

        assert self._addresses is not None, "nobody is let in before the ports are bound"
        config = self._service.config
        known = [self._addresses.default, *self._addresses.by_listener.values()]
        urls = [url for each in known for url in (each.broker_url, each.broker_url_tls) if url]
        return OwnBroker(
            service_url=urls[0],
            addresses=frozenset(url.partition("://")[2] for url in urls),
            reaches_others=not self._service.authenticators.is_enabled,
            tls=TlsOptions(
                tls_trust_certs_file_path=config.brokerClientTrustCertsFilePath or None,
                tls_certificate_file_path=config.brokerClientCertificateFilePath or None,
                tls_private_key_file_path=config.brokerClientKeyFilePath or None,
                tls_validate_hostname=config.tlsHostnameVerificationEnabled,
            ),
        )

    async def _caller_of(
        self, headers: Mapping[str, str], peer: Peer
    ) -> tuple[Authenticated | None, Caller]:
        """The caller who sends a handshake, and its credentials.

        Raises:
            AuthenticationError: The credentials are missing or invalid.
            AuthorizationError: It names somebody for whom it may not act.
        """
        service = self._service
        if not service.authenticators.is_enabled:
            return None, Caller(None)
        try:
            proved = await service.authenticators.authenticate_http(headers, peer)
        except AuthenticationError as error:
            service.audit.authentication_refused(
                address=peer.remote_address,
                method_name=headers.get(METHOD_HEADER, ""),
                reason=str(error),
                path=UPGRADES,
            )
            raise AuthenticationError("Failed to authenticate") from None
        original = headers.get(PRINCIPAL_HEADER)
        caller = Caller(proved.role, original)
        if not service.authorization.is_valid(caller, may_name_itself=True):
            service.audit.authorization_refused(
                caller, address=peer.remote_address, action="connect", resource=UPGRADES
            )
            raise AuthorizationError("Invalid roles.")
        return proved, caller if original != proved.role else Caller(proved.role)


class _WebSocketCaller(Struct, frozen=True):
    """The caller of a handshake, for whom connections with the broker are made."""

    service: BrokerService
    caller: Caller
    peer: Peer
    credentials: Authenticated | None  # what proves it; None while authentication is off

    @property
    def peername(self) -> tuple[str, int] | None:
        """The address, if it is known."""
        if self.peer.remote_address == UNKNOWN_ADDRESS:
            return None
        host, _, port = self.peer.remote_address.removeprefix("/").rpartition(":")
        return host, int(port)

    def new_connection(
        self, on_right_lost: Callable[[], None] | None = None
    ) -> asyncio.BufferedProtocol:
        """The broker's end of a connection that has the caller's rights."""
        return self.service.connections.new_connection_for(self.caller, on_right_lost)


def access_of(service: BrokerService) -> Access | None:
    """The guard of HTTP; None while everybody may call everything."""
    if not service.authenticators.is_enabled:
        return None
    from pulsar_py.admin.resources.access import Access  # noqa: PLC0415 - at first use

    return Access(
        service.authenticators,
        service.authorization,
        service.resources,
        service.audit,
        guards_metrics=service.config.authenticateMetricsEndpoint,
    )


def http_limits(config: BrokerConfig) -> HttpLimits:
    """The limits of HTTP requests."""
    limits = HttpLimits(
        header_bytes=config.httpMaxRequestHeaderSize,
        connections_count=config.maxHttpServerConnections,
        host_connections_count=config.maxHttpServerConnectionsPerIp,
        idle_seconds=config.httpServerIdleTimeout / 1000,
    )
    if config.httpMaxRequestSize > 0:
        most = max(limits.all_bodies_bytes, 2 * config.httpMaxRequestSize)
        return replace(limits, body_bytes=config.httpMaxRequestSize, all_bodies_bytes=most)
    return limits
