"""`HttpConnection`: one accepted socket of the server of HTTP, with h11 (edge).

Its requests are served one after the other; while one is being served, no more is read from the
socket. A large answer is written in parts, one in each turn of the loop, as fast as its peer reads
it; one with a stream as it is made. A stream that fails ends its connection, so that nobody takes
the beginning of an answer for all of it.

Below `UPGRADES` requests go to the `UpgradeHandler`, if there is one. It answers, or hands out a
`Successor`, to which the connection passes on from then on whatever its socket has to tell; to the
server it is one connection still.

Invariant: at most one request of a connection is being served, and its whole answer is written.

`HttpServer` imports this with the first connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

import h11

from pulsar_py.admin.http_heads import (
    can_be_read_in_two_ways,
    has_odd_lines,
    head_bytes,
    in_origin_form,
    said_body_bytes,
)
from pulsar_py.admin.http_messages import AnswerEndedError, Response, page_response
from pulsar_py.admin.upgrades import UPGRADES, Successor
from pulsar_py.server.security.peer import Peer, peer_of

if TYPE_CHECKING:
    from pulsar_py.admin.http_server import HttpServer

logger = logging.getLogger(__name__)

PART_BYTES: Final = 256 * 1024
"""Bytes of an answer that are written in one turn of the loop."""

_SMALL_BODY_BYTES: Final = 64 * 1024
"""A body that is taken however much others send."""
_FORWARDED: Final = b"x-forwarded-for"
_BODYLESS: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})

_NO_SNIFFING: Final = ("X-Content-Type-Options", "nosniff")
_PAGE_HEADERS: Final = (
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)
"""Of pages that have no such headers, errors: nothing is run or loaded, nobody frames them."""


class HttpConnection(asyncio.Protocol):
    """One accepted socket, until either side closes it."""

    def __init__(self, server: HttpServer, named: Peer | None = None) -> None:
        """`named` is the client that a proxy named."""
        self._server = server
        self._limits = server._limits  # noqa: SLF001 - its own server
        self._clock = server._clock  # noqa: SLF001
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.header_bytes)
        self._transport: asyncio.Transport | None = None  # None before and after
        self._peer = named or Peer()
        self._request: h11.Request | None = None  # the one being read or served
        self._has_trailers = False  # the last request read had headers behind its body
        self._body = bytearray()
        self._body_bytes = 0  # of the request being read or served; counted by the server
        self._is_serving = False
        self._is_write_paused = False
        self._writable: asyncio.Future[None] | None = None  # a large answer waits for its peer
        self._is_ending = False  # the last answer is written, nothing more is read
        self._successor: Successor | None = None  # None while HTTP is spoken
        self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection to the server, or close it if there are too many."""
        stream = cast("asyncio.Transport", transport)  # uvloop's does not derive from it
        self._peer = peer_of(stream, self._peer)
        if not self._server._opened(self, self._peer.host):  # noqa: SLF001
            stream.abort()
            return
        self._transport = stream

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - either way it ends
        """Remove the connection from the server; the answer to a request in progress is dropped."""
        self._transport = None
        self._is_ending = True
        self._server._lost(self)  # noqa: SLF001
        if not self._is_serving:
            self._forget_body()
        if self._successor is not None:
            self._successor.connection_lost()
        self._wake_writer()

    def drop(self) -> None:
        """Close the connection now, without writing the rest."""
        if self._transport is not None:
            self._transport.abort()

    def pause_writing(self) -> None:
        """Read no further request while the peer does not read its answer."""
        self._is_write_paused = True
        if self._successor is not None:
            self._successor.pause_writing()

    def resume_writing(self) -> None:
        """Go on, since the peer has read enough of its answer."""
        self._is_write_paused = False
        if self._successor is not None:
            self._successor.resume_writing()
            return
        self._wake_writer()
        self._advance()

    def eof_received(self) -> bool:
        """Note that the peer sends no more; the answer to its last request is still written."""
        if self._successor is not None:
            return False
        if self._http.their_state is not h11.MUST_CLOSE:
            self._http.receive_data(b"")
            self._advance()
            is_waited_for = self._is_serving
        else:
            is_waited_for = True
        # Over TLS asyncio closes all the same, and warns of a protocol that does not want that.
        over_tls = self._transport is not None and self._transport.get_extra_info("sslcontext")
        return is_waited_for and not over_tls

    def data_received(self, data: bytes) -> None:
        """Take received bytes, and read on unless a request is being served."""
        if self._successor is not None:
            self._successor.data_received(data)
            return
        self._http.receive_data(data)
        self._advance()

    def _advance(self) -> None:
        """Handle all events that h11 finds in the bytes received so far."""
        while not (self._is_serving or self._is_write_paused or self._is_ending):
            if self._http.their_state is h11.IDLE and has_odd_lines(self._http.trailing_data[0]):
                self._refuse(HTTPStatus.BAD_REQUEST)
                return
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error.error_status_hint or HTTPStatus.BAD_REQUEST)
                return
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.ConnectionClosed):
                self._end()
                return
            self._take(event)

    def _take(self, event: object) -> None:
        if isinstance(event, h11.Request):
            self._request = event
            # h11 applies its limit only to an incomplete head, not to one that comes at once.
            if head_bytes(event.target, event.headers) > self._limits.header_bytes:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                return
            if can_be_read_in_two_ways(event.headers, event.http_version):
                self._refuse(HTTPStatus.BAD_REQUEST)
                return
            if said_body_bytes(event.headers) > self._limits.body_bytes:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return
            self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
        elif isinstance(event, h11.Data):
            self._take_body(event.data)
        elif isinstance(event, h11.EndOfMessage):
            # Lines behind chunks, whose ends are not looked at: nothing may hide behind them.
            self._has_trailers = bool(event.headers)
            self._serve()

    def _take_body(self, data: bytes | bytearray) -> None:
        self._body += data
        self._body_bytes += len(data)
        self._server.bodies_bytes += len(data)
        if self._body_bytes > self._limits.body_bytes:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif (
            self._body_bytes > _SMALL_BODY_BYTES
            and self._server.bodies_bytes > self._limits.all_bodies_bytes
        ):
            logger.warning("too many bodies", extra={"bytes": self._server.bodies_bytes})
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def _forget_body(self) -> None:
        """Free the body that was read, and count it no more."""
        self._body = bytearray()
        self._server.bodies_bytes -= self._body_bytes
        self._body_bytes = 0

    def _serve(self) -> None:
        assert self._request is not None
        assert self._transport is not None
        self._is_serving = True
        self.deadline = float("inf")
        self._transport.pause_reading()
        body, self._body = bytes(self._body), bytearray()
        self._server._tasks.spawn(self._answer(self._request, body), "request")  # noqa: SLF001

    async def _answer(self, request: h11.Request, body: bytes) -> None:
        response = await self._response(request, body)
        self._forget_body()
        if not isinstance(response, Response):
            self._hand_over(response)
            return
        try:
            if self._transport is not None:
                self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds
                await self._send_in_parts(response, is_head=request.method == b"HEAD")
        finally:
            if response.on_ended is not None:
                response.on_ended()
        self._is_serving = False
        if self._transport is not None:
            self._next_request()

    async def _response(self, request: h11.Request, body: bytes) -> Response | Successor:
        path, fields = in_origin_form(request.target, request.headers)
        method, target = request.method.decode("ascii"), path.decode("latin-1")
        upgrades = self._server._upgrades  # noqa: SLF001
        peer = self._peer_of(request)
        if upgrades is not None and f"{target}/".startswith((f"{UPGRADES}/", f"{UPGRADES}?")):
            return await upgrades(method, target, fields, peer)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in fields}
        return await self._server._application(method, target, headers, body, peer)  # noqa: SLF001

    def _peer_of(self, request: h11.Request) -> Peer:
        """The peer that sent a request; a trusted proxy names its client."""
        forwarders = self._server._forwarders  # noqa: SLF001
        if not forwarders or not forwarders.includes(self._peer.host):
            return self._peer
        values = [value.decode("latin-1") for name, value in request.headers if name == _FORWARDED]
        client = forwarders.client_of(self._peer.host, ",".join(values))
        if client == self._peer.host:
            return self._peer
        return Peer(f"/{client}:0", self._peer.certificate)

    def _hand_over(self, successor: Successor) -> None:
        """Go on in another protocol, with what was received behind the request."""
        if self._transport is None:
            successor.connection_lost()
            return
        self._successor = successor
        rest, _ = self._http.trailing_data
        successor.begin(self._transport)
        if self._is_write_paused:
            successor.pause_writing()
        if rest:
            successor.data_received(rest)
        if not self._transport.is_closing():
            self._transport.resume_reading()

    async def _send_in_parts(self, response: Response, *, is_head: bool) -> None:
        """Write an answer, a large body part by part as its peer takes it."""
        if response.stream is not None:
            await self._send_stream(response, response.stream, is_head=is_head)
            return
        self._send_head(response)
        body = b"" if is_head else response.body
        for start in range(0, len(body), PART_BYTES):
            if start:
                await self._until_writable()
            if self._transport is None:
                return
            self._write(h11.Data(data=body[start : start + PART_BYTES]))
        self._write(h11.EndOfMessage())

    async def _send_stream(
        self, response: Response, stream: AsyncGenerator[bytes, None], *, is_head: bool
    ) -> None:
        """Write an answer while it is made, no faster than its peer takes it."""
        async with aclosing(stream):
            self._send_head(response)
            try:
                while not is_head and (part := await anext(stream, None)) is not None:
                    if self._transport is None:
                        return
                    self._write(h11.Data(data=part))
                    await self._until_writable()
                    self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds
            except AnswerEndedError as error:
                logger.info("answer cut short", extra={"reason": str(error)})
                self._cut_short()
            except Exception:  # The outermost edge of a request, whose head is written already.
                logger.exception("answer cut short")
                self._cut_short()
        if self._transport is not None:
            self._write(h11.EndOfMessage())

    def _cut_short(self) -> None:
        """End the connection in the midst of an answer."""
        self.drop()
        self._transport = None

    async def _until_writable(self) -> None:
        """Return when the peer has taken what was written, or is gone; others have a turn."""
        await asyncio.sleep(0)
        if self._is_write_paused and self._transport is not None:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
            self._writable = None
            self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _next_request(self) -> None:
        assert self._transport is not None
        self.deadline = self._clock.monotonic_seconds() + self._limits.idle_seconds
        is_done = self._http.their_state is h11.DONE and not self._has_trailers
        if self._http.our_state is h11.MUST_CLOSE or not is_done:
            self._end()
            return
        self._http.start_next_cycle()
        self._request = None
        self._transport.resume_reading()
        self._advance()

    def _refuse(self, status: int) -> None:
        """Answer a request that can't be read, and close the connection."""
        self._forget_body()
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send(page_response(status, (("Connection", "close"),)))
        self._end()

    def _end(self) -> None:
        """Close once all is written; the sweep drops a peer that does not read it."""
        self._is_ending = True
        self.deadline = self._clock.monotonic_seconds() + self._limits.request_seconds
        if self._transport is not None:
            self._transport.close()

    def _send(self, response: Response) -> None:
        """Write a small answer whole."""
        self._send_head(response)
        is_head = self._request is not None and self._request.method == b"HEAD"
        if response.body and not is_head:
            self._write(h11.Data(data=response.body))
        self._write(h11.EndOfMessage())

    def _send_head(self, response: Response) -> None:
        from email.utils import formatdate  # noqa: PLC0415 - 15 modules, for the first answer

        named = [("Date", formatdate(self._clock.wall_time_millis() / 1000, usegmt=True))]
        named.extend(response.headers)
        if response.content_type is not None:
            named.append(("Content-Type", response.content_type))
            named.append(_NO_SNIFFING)
            if response.content_type.startswith("text/html"):
                known = {name for name, _ in response.headers}
                named.extend(each for each in _PAGE_HEADERS if each[0] not in known)
        if response.status not in _BODYLESS and response.stream is None:
            named.append(("Content-Length", str(len(response.body))))
        headers = [(name.encode(), _header_bytes(text)) for name, text in named]
        self._write(h11.Response(status_code=response.status, headers=headers))

    def _write(self, event: h11.Event) -> None:
        assert self._transport is not None
        data = self._http.send(event)
        if data:
            self._transport.write(data)


def _header_bytes(text: str) -> bytes:
    """Latin-1, as HTTP has it and Apache Pulsar sends names and properties; UTF-8 beyond that."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()
