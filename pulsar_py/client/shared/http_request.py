"""One HTTP request and its whole answer, on asyncio streams (edge).

Made for a few small JSON answers: a connection for each request, closed after it, and an answer
that has a limit in bytes and in time. Redirects are the caller's, since only it knows which are
fine. `h11` and `ssl` are imported with the first request.

Third-party packages it may import: h11.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pulsar_py.common.errors import (
    ClientError,
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    RemoteProtocolError,
)
from pulsar_py.common.foreign_json import parse_json

if TYPE_CHECKING:
    import ssl

    import h11

__all__ = ["DEFAULT_BODY_LIMIT_BYTES", "HttpRequest", "HttpResponse", "http_request"]

DEFAULT_BODY_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""A namespace of a million topics fits in."""

_READ_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What is asked; the URL is whole, with its query."""

    method: str = "GET"
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    url: str
    """What was asked, for messages."""

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 2xx."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def json(self) -> Any:  # Any: JSON
        """The body's value.

        Raises:
            RemoteProtocolError: It is not JSON.
        """
        try:
            return parse_json(self.body)
        except ValueError as error:
            raise RemoteProtocolError(f"{self.url}: the answer is not JSON: {error}") from error

    def reason(self) -> str:
        """What the server says went wrong: Pulsar's `reason`, or the status."""
        with contextlib.suppress(RemoteProtocolError):
            value = self.json()
            if isinstance(value, dict) and isinstance(value.get("reason"), str):
                return str(value["reason"])
        return f"HTTP status {self.status}"


async def http_request(
    request: HttpRequest,
    *,
    ssl_context: ssl.SSLContext | None,
    timeout_seconds: float,
    body_limit_bytes: int = DEFAULT_BODY_LIMIT_BYTES,
) -> HttpResponse:
    """Ask and read the whole answer.

    Args:
        request: What to ask.
        ssl_context: For `https`; None: the system's trust.
        timeout_seconds: For all of it.
        body_limit_bytes: The largest body.

    Raises:
        InvalidServiceUrlError: The URL has no host, or another scheme.
        ConnectError: Nobody listens there, or the TLS handshake failed.
        ConnectionClosedError: The connection ended before the answer did.
        RemoteProtocolError: The answer is not HTTP, or too large.
        ClientTimeoutError: It took too long.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _ask(request, ssl_context, body_limit_bytes)
    except TimeoutError as error:
        if isinstance(error, ClientError):
            raise
        raise ClientTimeoutError(f"{request.url}: no answer in {timeout_seconds} s") from None


async def _ask(
    request: HttpRequest, ssl_context: ssl.SSLContext | None, body_limit_bytes: int
) -> HttpResponse:
    host, port, is_tls = _address(request.url)
    if is_tls and ssl_context is None:
        import ssl  # noqa: PLC0415 - 20 ms that plain HTTP doesn't pay

        ssl_context = ssl.create_default_context()
    try:
        reader, writer = await asyncio.open_connection(
            host, port, ssl=ssl_context if is_tls else None
        )
    except OSError as error:  # ssl.SSLError is one, too
        raise ConnectError(f"{request.url}: {error}") from error
    try:
        return await _exchange(request, reader, writer, body_limit_bytes)
    except OSError as error:
        raise ConnectionClosedError(f"{request.url}: {error}") from error
    finally:
        writer.close()
        # Only so that no transport outlives the request; its error is no news.
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _address(url: str) -> tuple[str, int, bool]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidServiceUrlError(f"{url}: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidServiceUrlError(f"{url!r} is no http:// or https:// URL")
    is_tls = parts.scheme == "https"
    return host, port or (443 if is_tls else 80), is_tls


async def _exchange(
    request: HttpRequest,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    body_limit_bytes: int,
) -> HttpResponse:
    import h11  # noqa: PLC0415 - 20 ms that binary lookups don't pay

    machine = h11.Connection(h11.CLIENT)
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [
        ("Host", parts.netloc.rpartition("@")[2]),
        ("Accept", "application/json"),
        ("Connection", "close"),
        ("Content-Length", str(len(request.body))),
        *request.headers.items(),
    ]
    try:
        head = h11.Request(method=request.method, target=target, headers=headers)
        for event in (head, h11.Data(data=request.body), h11.EndOfMessage()):
            writer.write(machine.send(event) or b"")
        return await _receive(machine, reader, request.url, body_limit_bytes)
    except h11.LocalProtocolError as error:
        raise InvalidServiceUrlError(f"{request.url}: {error}") from error


async def _receive(
    machine: h11.Connection, reader: asyncio.StreamReader, url: str, body_limit_bytes: int
) -> HttpResponse:
    import h11  # noqa: PLC0415 - see `_exchange`

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
            data = await reader.read(_READ_BYTES)
            has_ended = not data
            machine.receive_data(data)
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > body_limit_bytes:
                raise RemoteProtocolError(f"{url}: an answer of over {body_limit_bytes} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return HttpResponse(status, headers, bytes(body), url)
