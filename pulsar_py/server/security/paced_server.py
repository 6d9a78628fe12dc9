"""`PacedServer`: begins a few connections a turn, for TLS and behind proxies (edge).

`asyncio.Server` accepts all that wait in one turn of the loop, and begins TLS with all that say
hello in one: a crowd holds everybody else up for a large part of a second. Here a turn accepts
some and begins TLS with a few; the others wait in the kernel's queue, or in ours. Nothing is made
for a connection that has not sent a byte. Once `max_waiting` have not finished their handshake, the
oldest makes room: so silent ones keep nobody out, whose own handshake takes milliseconds.

The header of the PROXY protocol stands before TLS, so it is read from the socket itself, which then
becomes a connection like any other. Only peers that `is_trusted` says so are asked for one: of the
others the first byte belongs to the client's protocol, which refuses a header. A trusted peer may
connect without, as health checks do; its own address counts then.

What always holds: nothing but the header is taken from the socket; a peer has `header_seconds` to
send it, and `handshake_seconds` for TLS; at most `max_waiting` have not done either.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.proxy_protocol import (
    MAX_HEADER_BYTES,
    BadProxyHeaderError,
    ProxyHeader,
    header_in,
)

__all__ = ["PacedServer"]

logger = logging.getLogger(__name__)

NewProtocol = Callable[[tuple[str, int] | None], asyncio.BaseProtocol]
"""Makes a connection's protocol, for the address that a header named; None: its peer's."""

_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 1.0
"""How long nobody is accepted after the process ran out of files."""
_ACCEPTED_A_TURN: Final = 16
_BEGUN_A_TURN: Final = 4
"""A handshake takes half a millisecond of the loop's time, more or less."""
_LOOK_SECONDS: Final = 0.01
"""Between two looks at a header of which a part has come."""


class PacedServer:
    """The sockets bound for one address; has what is used of `asyncio.Server`."""

    def __init__(
        self,
        new_protocol: NewProtocol,
        is_trusted: Callable[[str], bool] | None,
        *,
        tls: ssl.SSLContext | None,
        handshake_seconds: float | None,
        backlog: int,
        header_seconds: float = 10.0,
        max_waiting: int = 4096,
    ) -> None:
        """Nothing is bound yet. `is_trusted` None: nobody is asked for a header."""
        self._new_protocol = new_protocol
        self._is_trusted = is_trusted
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._backlog = backlog
        self._header_seconds = header_seconds
        self._max_waiting = max_waiting
        self._room = TurnsOfLoop(_BEGUN_A_TURN)
        self._waiting: dict[asyncio.Task[None], None] = {}  # before their handshake; oldest first
        self._tasks = TaskOwner("paced server")
        self.sockets: list[socket.socket] = []

    async def bind(self, host: str, port: int) -> None:
        """Bind every address of the host, without accepting.

        Raises:
            OSError: One can't be bound.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in dict.fromkeys(found):
            made = socket.socket(family, kind, protocol)
            self.sockets.append(made)
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # All have the port that the first one got.
            taken = (
                self.sockets[0].getsockname()[1] if port == 0 and len(self.sockets) > 1 else port
            )
            try:
                made.bind((address[0], taken, *address[2:]))
            except OSError:
                self.close()
                raise

    async def start_serving(self) -> None:
        """Begin to accept."""
        for each in self.sockets:
            each.listen(self._backlog)
            self._tasks.spawn(self._accept(each), "accept")

    def close(self) -> None:
        """Stop accepting; connections stay."""
        self._tasks.abandon()
        for each in self.sockets:
            each.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        count = 0
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno not in _FULL and listening.fileno() < 0:
                    return
                logger.warning("not accepted", extra={"error": str(error)})
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if len(self._waiting) >= self._max_waiting:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                oldest.cancel()
            task = self._tasks.spawn(self._connect(accepted), "connect")
            self._waiting[task] = None
            task.add_done_callback(lambda each: self._waiting.pop(each, None))
            count += 1
            if count % _ACCEPTED_A_TURN == 0:
                await asyncio.sleep(0)

    async def _connect(self, accepted: socket.socket) -> None:
        """Read the header, and make a connection of the socket."""
        try:
            client = await self._named_client(accepted)
            ends_at = await self._hello(accepted)
        except (OSError, BadProxyHeaderError) as error:  # TimeoutError, too
            level = logging.INFO if isinstance(error, BadProxyHeaderError) else logging.DEBUG
            logger.log(level, "connection refused", extra={"reason": str(error) or "timed out"})
            accepted.close()
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self._new_protocol(client),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=None if ends_at is None else max(0.1, ends_at - loop.time()),
            )
        except OSError as error:  # ssl.SSLError, too; the socket belongs to the loop
            logger.debug("no handshake", extra={"reason": str(error) or "timed out"})

    async def _hello(self, accepted: socket.socket) -> float | None:
        """Return when TLS may begin: the loop's time when it has to be done; None without TLS."""
        if self._tls is None:
            return None
        assert self._handshake_seconds is not None, "TLS has its limit"
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._handshake_seconds
        accepted.setblocking(False)
        async with asyncio.timeout_at(ends_at):
            await _readable(loop, accepted)
            await self._room.turn()
        return ends_at

    async def _named_client(self, accepted: socket.socket) -> tuple[str, int] | None:
        """The client that a trusted peer names."""
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_trusted is None or not self._is_trusted(accepted.getpeername()[0]):
            return None
        async with asyncio.timeout(self._header_seconds):
            return await _client_of(accepted)


class TurnsOfLoop:
    """Lets so many go on in each turn of the loop, in the order in which they came."""

    def __init__(self, count: int) -> None:
        """Nobody waits."""
        self._count = count
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    async def turn(self) -> None:
        """Return in the turn of whoever calls."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._let_go)
        await mine

    def _let_go(self) -> None:
        left = self._count
        while self._waiting and left:
            each = self._waiting.popleft()
            if not each.done():  # it was not given up
                each.set_result(None)
                left -= 1
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._let_go)


async def _client_of(accepted: socket.socket) -> tuple[str, int] | None:
    """Take a header from a socket; the address that it names."""
    loop = asyncio.get_running_loop()
    await _readable(loop, accepted)
    while True:
        data = accepted.recv(MAX_HEADER_BYTES, socket.MSG_PEEK)
        if not data:
            raise ConnectionAbortedError("closed before its first byte")
        found = header_in(data)
        if found is None:
            return None
        if isinstance(found, ProxyHeader):
            taken = accepted.recv(found.size)
            assert len(taken) == found.size, "all of it was seen"
            return found.client
        await asyncio.sleep(_LOOK_SECONDS)


async def _readable(loop: asyncio.AbstractEventLoop, accepted: socket.socket) -> None:
    """Return when there is something to read."""
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(accepted.fileno(), wake)
    try:
        await ready
    finally:
        with contextlib.suppress(ValueError):  # the socket was closed
            loop.remove_reader(accepted.fileno())
