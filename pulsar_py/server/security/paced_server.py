"""`PacedServer`: begins a few connections a turn, for TLS and behind proxies (edge).

`asyncio.Server` accepts all that wait in one turn of the loop, and begins TLS with all that say
hello in one: a crowd holds everybody else up for a large part of a second. Here a turn accepts
some and begins TLS with a few; the others wait in the kernel's queue, or in ours. For a connection
that has not sent a byte there is neither a task nor TLS, and a turn ends a few of those that are
late or left. Once `max_waiting` have not finished their handshake, the oldest makes room: so silent
ones keep nobody out, whose own handshake takes milliseconds.

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
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Final

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.proxy_protocol import (
    MAX_HEADER_BYTES,
    BadProxyHeaderError,
    ProxyHeader,
    header_in,
)
from pulsar_py.server.security.tls import ReloadingContext

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
_ENDED_A_TURN: Final = 64
"""Connections without TLS that a turn closes: those that are late, and those whose peer left."""
_LOOK_SECONDS: Final = 0.01
"""Between two looks at a header of which a part has come."""


class _Silent:
    """An accepted connection that TLS has not begun with; owned by the server."""

    __slots__ = ("accepted", "client", "since")

    def __init__(
        self, accepted: socket.socket, client: tuple[str, int] | None, since: float
    ) -> None:
        """`since` is the loop's time from which on the handshake has its seconds."""
        self.accepted = accepted
        self.client = client
        self.since = since


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
        self._handshake_seconds = handshake_seconds or 0.0  # used with TLS alone
        self._backlog = backlog
        self._header_seconds = header_seconds
        self._max_waiting = max_waiting
        self._silent: dict[_Silent, None] = {}  # TLS has not begun with them; oldest first
        self._spoke: deque[_Silent] = deque()  # those that sent something; may be closed since
        self._begins_soon = False  # whether the next turn looks at `_spoke`
        self._sweep_timer: asyncio.TimerHandle | None = None  # only while there are silent ones
        # Those that read a header or shake hands, and since when; oldest first.
        self._busy: dict[asyncio.Task[None], float] = {}
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
        """Stop accepting; connections stay, but for those on which TLS has not begun."""
        self._tasks.abandon()
        for each in self.sockets:
            each.close()
        for silent in list(self._silent):
            self._drop(silent, "the server was closed")
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None

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
            self._make_room()
            try:
                self._admit(accepted)
            except OSError:  # its peer left already
                accepted.close()
            count += 1
            if count % _ACCEPTED_A_TURN == 0:
                await asyncio.sleep(0)

    def _make_room(self) -> None:
        """End the oldest that has not shaken hands, if there are too many."""
        if len(self._silent) + len(self._busy) < self._max_waiting:
            return
        silent = next(iter(self._silent), None)
        task = next(iter(self._busy), None)
        if silent is not None and (task is None or silent.since <= self._busy[task]):
            self._drop(silent, "made room")
        elif task is not None:
            del self._busy[task]
            task.cancel()

    def _admit(self, accepted: socket.socket) -> None:
        """Find out what an accepted connection waits for.

        Raises:
            OSError: It is not connected any more.
        """
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_trusted is not None and self._is_trusted(accepted.getpeername()[0]):
            self._spawn(self._read_header(accepted), "header")
        else:
            self._go_on(accepted, None)

    def _go_on(self, accepted: socket.socket, client: tuple[str, int] | None) -> None:
        """Connect, with TLS as soon as the client says hello."""
        if self._tls is None:
            self._spawn(self._connect(accepted, client, None), "connect")
            return
        loop = asyncio.get_running_loop()
        silent = _Silent(accepted, client, loop.time())
        self._silent[silent] = None
        loop.add_reader(accepted.fileno(), self._said_hello, silent)
        if self._sweep_timer is None:
            self._sweep_timer = loop.call_at(silent.since + self._handshake_seconds, self._sweep)

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = self._tasks.spawn(work, name)
        self._busy[task] = asyncio.get_running_loop().time()
        task.add_done_callback(lambda each: self._busy.pop(each, None))

    def _drop(self, silent: _Silent, reason: str) -> None:
        del self._silent[silent]
        asyncio.get_running_loop().remove_reader(silent.accepted.fileno())
        silent.accepted.close()
        logger.debug("connection refused", extra={"reason": reason})

    def _sweep(self) -> None:
        """End some of those that are late, and come back for the next."""
        self._sweep_timer = None
        loop = asyncio.get_running_loop()
        for silent in list(islice(self._silent, _ENDED_A_TURN)):
            if silent.since + self._handshake_seconds > loop.time():
                break
            self._drop(silent, "timed out")
        if self._silent:
            ends_at = next(iter(self._silent)).since + self._handshake_seconds
            self._sweep_timer = loop.call_at(ends_at, self._sweep)

    def _said_hello(self, silent: _Silent) -> None:
        """Something came, or the end: the connection stands in the queue."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(silent.accepted.fileno())
        self._spoke.append(silent)
        if not self._begins_soon:
            self._begins_soon = True
            loop.call_soon(self._begin_some)

    def _begin_some(self) -> None:
        """Begin TLS with the first few in the queue."""
        left, ended = _BEGUN_A_TURN, 0
        while self._spoke and left and ended < _ENDED_A_TURN:
            silent = self._spoke.popleft()
            if silent not in self._silent:  # it was late, or made room
                ended += 1
            elif _has_left(silent.accepted):
                self._drop(silent, "closed before its first byte")
                ended += 1
            else:
                del self._silent[silent]
                ends_at = silent.since + self._handshake_seconds
                self._spawn(self._connect(silent.accepted, silent.client, ends_at), "connect")
                left -= 1
        self._begins_soon = bool(self._spoke)
        if self._begins_soon:
            asyncio.get_running_loop().call_soon(self._begin_some)

    async def _read_header(self, accepted: socket.socket) -> None:
        """Take a trusted peer's header, which names the client, and go on."""
        try:
            async with asyncio.timeout(self._header_seconds):
                client = await _client_of(accepted)
            self._go_on(accepted, client)
        except (OSError, BadProxyHeaderError) as error:  # TimeoutError, too
            level = logging.INFO if isinstance(error, BadProxyHeaderError) else logging.DEBUG
            logger.log(level, "connection refused", extra={"reason": str(error) or "timed out"})
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    async def _connect(
        self, accepted: socket.socket, client: tuple[str, int] | None, ends_at: float | None
    ) -> None:
        """Make a connection of the socket; `ends_at` is when TLS has to be done."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: self._new_protocol(client),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=None if ends_at is None else max(0.1, ends_at - loop.time()),
            )
            if isinstance(self._tls, ReloadingContext):
                self._tls.shook_hands(accepted, transport.get_extra_info("ssl_object"))
        except OSError as error:  # ssl.SSLError, too; the socket belongs to the loop
            logger.debug("no handshake", extra={"reason": str(error) or "timed out"})


def _has_left(accepted: socket.socket) -> bool:
    """Whether the peer closed the connection without a byte before."""
    try:
        return not accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


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
