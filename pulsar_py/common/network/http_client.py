"""Sends HTTP requests on asyncio streams and returns whole answers (edge).

    async with HttpClient(timeout_seconds=30, max_redirects=5) as client:
        answer = await client.send(HttpRequest(url="http://localhost:8080/admin/v2/clusters"))

The SDK's HTTP lookups, OAuth2 and `AdminClient` use it, for a few small JSON answers, each with a
limit in bytes and in time. `HttpClient` keeps one idle connection to each host; `http_request`
opens one, sends one request and closes it. `h11` and `ssl` are imported with the first request.

What always holds: `https` is never left by a redirect, so credentials don't leave TLS; a request is
sent twice only if its method is idempotent (RFC 9110 section 9.2.2) and the connection was an idle
one, which the server may close at any time; a cancelled request closes its connection.

Third-party packages it may import: h11.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPMethod, HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import urljoin, urlsplit

from pulsar_py.common.errors import (
    ClientError,
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    RemoteProtocolError,
)
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.network.tls import (
    TRUST_OPTIONS,
    TlsOptions,
    client_ssl_context,
    failure_text,
)

if TYPE_CHECKING:
    import ssl

    import h11

__all__ = [
    "DEFAULT_BODY_LIMIT_BYTES",
    "HttpClient",
    "HttpRedirectError",
    "HttpRequest",
    "HttpResponse",
    "http_request",
]

DEFAULT_BODY_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""The topics of a namespace with a million of them fit in."""
MAX_IDLE_CONNECTIONS: Final = 8
"""Idle connections that one `HttpClient` keeps; the oldest is closed for another."""
_READ_BYTES: Final = 64 * 1024
_REASON_LIMIT: Final = 200

_REDIRECTS: Final = frozenset(
    {
        HTTPStatus.MOVED_PERMANENTLY,
        HTTPStatus.FOUND,
        HTTPStatus.TEMPORARY_REDIRECT,
        HTTPStatus.PERMANENT_REDIRECT,
    }
)
"""Statuses after which the same request goes to another URL; Pulsar's brokers answer 307."""
_IDEMPOTENT: Final = frozenset(
    {HTTPMethod.GET, HTTPMethod.HEAD, HTTPMethod.PUT, HTTPMethod.DELETE, HTTPMethod.OPTIONS}
)


class HttpRedirectError(ClientError):
    """A redirect that is not followed: one too many, to no URL, or from `https` to `http`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request; its URL is whole, with its query."""

    method: str = "GET"
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    url: str
    """The URL that answered, for messages."""

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 2xx."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def json(self) -> Any:  # Any: JSON
        """The body's value.

        Raises:
            RemoteProtocolError: The body is not JSON.
        """
        try:
            return parse_json(self.body)
        except ValueError as error:
            raise RemoteProtocolError(f"{self.url}: the answer is not JSON: {error}") from error

    def reason(self) -> str:
        """The server's explanation of an error: Pulsar's `reason`, short text, or the status."""
        with contextlib.suppress(RemoteProtocolError):
            value = self.json()
            if isinstance(value, dict) and isinstance(value.get("reason"), str):
                return str(value["reason"])
        text = self.body.decode(errors="replace").strip()
        if not text or text.startswith("<"):  # a proxy's HTML page says less than its status
            return f"HTTP status {self.status}"
        return text[:_REASON_LIMIT]


class _Origin(NamedTuple):
    """The server of a connection; idle connections are kept by it."""

    is_tls: bool
    host: str
    port: int


@dataclass(slots=True)
class _Connection:
    """An open connection, used by one request at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    machine: h11.Connection

    async def close(self) -> None:
        self.writer.close()
        # Awaited so that no transport outlives its owner. By now an error changes nothing: the
        # answer is complete, or its own error is being raised.
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class HttpClient:
    """Sends requests from one event loop; close it, or use it with `async with`.

    Any number of requests may be under way: each has a connection of its own.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout_seconds: float | None = None,
        max_redirects: int = 0,
        body_limit_bytes: int = DEFAULT_BODY_LIMIT_BYTES,
        keeps_connections: bool = True,
        trust_options: str = TRUST_OPTIONS,
    ) -> None:
        """Nothing is connected yet.

        Args:
            timeout_seconds: For each request, from connecting to the last byte of its answer; a
                redirect is another request.
            ssl_context: For `https`; None: the system's authorities, and host names are verified.
            connect_timeout_seconds: For connecting and the TLS handshake alone; None: no other.
            max_redirects: Redirects that are followed for one request; 0: answers of 3xx are
                returned like others.
            body_limit_bytes: The largest body of an answer.
            keeps_connections: Whether connections stay open for the next request.
            trust_options: What the caller calls the file of trusted authorities, for errors.
        """
        self._timeout_seconds = timeout_seconds
        self._ssl_context = ssl_context
        self._connect_timeout_seconds = connect_timeout_seconds
        self._max_redirects = max_redirects
        self._body_limit_bytes = body_limit_bytes
        self._keeps_connections = keeps_connections
        self._trust_options = trust_options
        # Connections without a request; in the order in which they became idle.
        self._idle: dict[_Origin, _Connection] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close idle connections; the client may be used again."""
        while self._idle:
            _, connection = self._idle.popitem()
            await connection.close()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send the request, follow redirects, and return the whole answer, whatever its status.

        Raises:
            InvalidServiceUrlError: The URL has no host or another scheme than `http` and `https`,
                or a header or the method has characters that HTTP doesn't allow.
            ConnectError: Nobody listens there, or the TLS handshake failed.
            ConnectionClosedError: The connection ended before the answer did.
            RemoteProtocolError: The answer is not HTTP, or too large.
            ClientTimeoutError: The answer took too long.
            HttpRedirectError: There were too many redirects, or one that must not be followed.
        """
        for _ in range(self._max_redirects + 1):
            answer = await self._send_in_time(request)
            if not self._max_redirects or answer.status not in _REDIRECTS:
                return answer
            request = replace(request, url=_redirected(answer))
        raise HttpRedirectError(f"{request.url}: more than {self._max_redirects} redirects")

    async def _send_in_time(self, request: HttpRequest) -> HttpResponse:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._send_once(request)
        except TimeoutError as error:
            if isinstance(error, ClientError):
                raise
            raise ClientTimeoutError(
                f"{request.url}: no answer in {self._timeout_seconds} s"
            ) from None

    async def _send_once(self, request: HttpRequest) -> HttpResponse:
        origin = _origin(request.url)
        idle = self._idle.pop(origin, None)
        if idle is not None:
            if request.method in _IDEMPOTENT:
                with contextlib.suppress(ConnectionClosedError):  # closed while it was idle
                    return await self._exchange(origin, idle, request)
            else:
                await idle.close()
        return await self._exchange(origin, await self._connect(origin, request.url), request)

    async def _connect(self, origin: _Origin, url: str) -> _Connection:
        import h11  # noqa: PLC0415 - takes 20 ms, which clients with binary lookups save

        if origin.is_tls and self._ssl_context is None:
            self._ssl_context = await asyncio.to_thread(
                client_ssl_context, TlsOptions(tls_validate_hostname=True)
            )
        try:
            async with asyncio.timeout(self._connect_timeout_seconds):
                reader, writer = await asyncio.open_connection(
                    origin.host, origin.port, ssl=self._ssl_context if origin.is_tls else None
                )
        except OSError as error:  # ssl.SSLError is one, too
            is_late = not str(error)
            text = "no connection in time" if is_late else failure_text(error, self._trust_options)
            raise ConnectError(f"{url}: {text}") from error
        return _Connection(reader, writer, h11.Connection(h11.CLIENT))

    async def _exchange(
        self, origin: _Origin, connection: _Connection, request: HttpRequest
    ) -> HttpResponse:
        is_reusable = False
        try:
            self._write(connection, request)
            answer = await _receive(connection, request.url, self._body_limit_bytes)
            is_reusable = self._keeps_connections and _begin_next(connection.machine)
        except OSError as error:
            raise ConnectionClosedError(f"{request.url}: {error}") from error
        finally:
            if not is_reusable:
                await connection.close()
        await self._keep(origin, connection) if is_reusable else None
        return answer

    def _write(self, connection: _Connection, request: HttpRequest) -> None:
        import h11  # noqa: PLC0415 - see `_connect`

        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = [
            ("Host", parts.netloc.rpartition("@")[2]),
            ("Accept", "application/json"),
            *([] if self._keeps_connections else [("Connection", "close")]),
            ("Content-Length", str(len(request.body))),
            *request.headers.items(),
        ]
        try:
            head = h11.Request(method=request.method, target=target, headers=headers)
            for event in (head, h11.Data(data=request.body), h11.EndOfMessage()):
                connection.writer.write(connection.machine.send(event) or b"")
        except h11.LocalProtocolError as error:
            raise InvalidServiceUrlError(f"{request.url}: {error}") from error

    async def _keep(self, origin: _Origin, connection: _Connection) -> None:
        replaced = self._idle.pop(origin, None)
        if replaced is None and len(self._idle) >= MAX_IDLE_CONNECTIONS:
            replaced = self._idle.pop(next(iter(self._idle)))
        self._idle[origin] = connection
        if replaced is not None:
            await replaced.close()


async def http_request(
    request: HttpRequest,
    *,
    timeout_seconds: float,
    ssl_context: ssl.SSLContext | None = None,
    connect_timeout_seconds: float | None = None,
    max_redirects: int = 0,
    body_limit_bytes: int = DEFAULT_BODY_LIMIT_BYTES,
    trust_options: str = TRUST_OPTIONS,
) -> HttpResponse:
    """Send one request on a connection of its own; arguments and errors are `HttpClient`'s."""
    async with HttpClient(
        timeout_seconds=timeout_seconds,
        ssl_context=ssl_context,
        connect_timeout_seconds=connect_timeout_seconds,
        max_redirects=max_redirects,
        body_limit_bytes=body_limit_bytes,
        keeps_connections=False,
        trust_options=trust_options,
    ) as client:
        return await client.send(request)


def _origin(url: str) -> _Origin:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidServiceUrlError(f"{url}: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidServiceUrlError(f"{url!r}: expected http://host:port or https://host:port")
    is_tls = parts.scheme == "https"
    return _Origin(is_tls, host, port or (443 if is_tls else 80))


def _redirected(answer: HttpResponse) -> str:
    url = urljoin(answer.url, answer.headers.get("location", ""))
    schemes = {"https"} if answer.url.startswith("https:") else {"http", "https"}
    if url == answer.url or urlsplit(url).scheme not in schemes:
        raise HttpRedirectError(f"{answer.url}: a redirect to {url!r} is not followed")
    return url


def _begin_next(machine: h11.Connection) -> bool:
    """Whether the connection can take another request."""
    import h11  # noqa: PLC0415 - see `HttpClient._connect`

    if machine.our_state is not h11.DONE or machine.their_state is not h11.DONE:
        return False
    machine.start_next_cycle()
    return True


async def _receive(connection: _Connection, url: str, body_limit_bytes: int) -> HttpResponse:
    import h11  # noqa: PLC0415 - see `HttpClient._connect`

    machine = connection.machine
    status, headers = 0, {}
    body = bytearray()
    has_ended = False
    while True:
        try:
            event = machine.next_event()
        except h11.RemoteProtocolError as error:
            if has_ended:
                what = error if status else "closed without an answer, is a web service there?"
                raise ConnectionClosedError(f"{url}: {what}") from error
            raise RemoteProtocolError(f"{url}: {error}") from error
        if event is h11.NEED_DATA:
            data = await connection.reader.read(_READ_BYTES)
            has_ended = not data
            machine.receive_data(data)
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > body_limit_bytes:
                raise RemoteProtocolError(
                    f"{url}: the answer has over {body_limit_bytes} bytes, the limit"
                )
        elif isinstance(event, h11.EndOfMessage):
            return HttpResponse(status, headers, bytes(body), url)
        elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            raise ConnectionClosedError(
                f"{url}: closed without an answer; expected the web service's address and port"
            )
