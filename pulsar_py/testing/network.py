"""A network in memory: whole brokers and clients in one loop in virtual time, no socket, no thread.

    def work() -> Coroutine: ...            # starts Broker(clock=VirtualClock()), connects clients
    run_simulated(work(), latency_seconds=0.001)

`SimulatedLoop` is a `VirtualTimeLoop` whose `create_server` and `create_connection` meet in its
`network`, so code that only uses those two runs unchanged. What always holds: bytes arrive in the
order of their writes and once; an arrival is a callback of the loop, never a call from within
`write`; the same program does the same steps at the same virtual times, every time, and
`Network.digest` shows whether it did. Work for threads (`run_in_executor`) is done at once, in the
loop, so that time can't run ahead; uses of real time, chance, threads and sockets raise
(`testing.sealing`), and cyclic garbage is collected at fixed virtual times.

Like TCP: a connection has a window, so a peer that pauses reading fills the writer's buffer and
makes it pause writing; `close` sends what is buffered, then the end; `abort` loses what is
buffered, and the peer gets `ConnectionResetError`. Unlike TCP: no TLS, no addresses beyond host and
port (all names of this machine are one host), no limit on the queue of connections not yet
accepted.

`testing.faulty_proxy` adds faults between both ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import zlib
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from pulsar_py.common.buffer import Buffer
from pulsar_py.testing.clock import VirtualTimeLoop
from pulsar_py.testing.sealing import RealityError, sealed, steady_collector

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

Address = tuple[str, int]
ProtocolFactory = Callable[[], asyncio.BaseProtocol]

WINDOW_BYTES: Final = 256 * 1024
"""Most bytes under way or unread in one direction; more stay in the writer's buffer."""
HIGH_WATER_BYTES: Final = 64 * 1024
FIRST_FREE_PORT: Final = 50_000
_THIS_MACHINE: Final = frozenset({"", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1"})  # noqa: S104

_EOF: Final = b""
"""Marks the end in the queues; an empty write is never queued."""


class Network:
    """The listeners by address, and the connections; owned by its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, latency_seconds: float = 0.0) -> None:
        """`latency_seconds` is how long each byte takes from one end to the other."""
        self.loop = loop
        self.latency_seconds = latency_seconds
        # Both ends of each open connection, in the order in which they were made.
        self.connections: dict[MemoryTransport, None] = {}
        self._listeners: dict[Address, MemoryServer] = {}
        self._silent: set[Address] = set()  # where connecting never ends
        self._stalled: dict[
            str, list[Callable[[], object]]
        ] = {}  # stalled host -> calls to make at the end of the stall
        self._next_port = FIRST_FREE_PORT
        self.digest = 0  # CRC-32 of everything that was sent: when, by whom, and what

    def on_sent(self, source: Address, item: bytes | BaseException) -> None:
        """Add a sent piece to the digest."""
        data = item if isinstance(item, bytes) else type(item).__name__.encode()
        place = f"{self.loop.time():.9f} {source} {len(data)} ".encode()
        self.digest = zlib.crc32(data, zlib.crc32(place, self.digest))

    def free_port(self) -> int:
        """A port never given before."""
        self._next_port += 1
        return self._next_port - 1

    def silence(self, host: str, port: int) -> None:
        """Neither accept nor refuse new connections to this address: they hang."""
        self._silent.add(_canonical(host, port))

    def unsilence(self, host: str, port: int) -> None:
        """Undo `silence` for connections that begin later."""
        self._silent.discard(_canonical(host, port))

    def stall(self, host: str) -> None:
        """Hold all bytes from and to a listening host, as if its process were stopped."""
        self._stalled.setdefault(host, [])

    def unstall(self, host: str) -> None:
        """Deliver held bytes, in their order; does nothing if the host is not stalled."""
        for go_on in self._stalled.pop(host, ()):
            go_on()

    def holds(self, address: Address, go_on: Callable[[], object]) -> bool:
        """Whether the host is stalled; if so, `go_on` is called when that ends."""
        held = self._stalled.get(address[0])
        if held is not None:
            held.append(go_on)
        return held is not None

    def listen(self, server: MemoryServer) -> None:
        """Register a server under its address.

        Raises:
            OSError: It is taken.
        """
        if server.address in self._listeners:
            raise OSError(98, f"error while attempting to bind on {server.address}: in use")
        self._listeners[server.address] = server

    def stop_listening(self, server: MemoryServer) -> None:
        """Free the server's address."""
        self._listeners.pop(server.address, None)

    async def connect(self, factory: ProtocolFactory, host: str, port: int) -> MemoryTransport:
        """Make both ends of a connection; returns the client's end.

        Raises:
            ConnectionRefusedError: Nobody listens there.
        """
        address = _canonical(host, port)
        await asyncio.sleep(self.latency_seconds)
        if address in self._silent:
            await self.loop.create_future()
        server = self._listeners.get(address)
        if server is None or not server.is_serving():
            raise ConnectionRefusedError(111, f"Connect call failed {address}")
        source = ("127.0.0.1", self.free_port())
        near = MemoryTransport(self, sockname=source, peername=address)
        far = MemoryTransport(self, sockname=address, peername=source)
        near.peer, far.peer = far, near
        server.accept(far)
        try:
            await asyncio.sleep(self.latency_seconds)
        except asyncio.CancelledError:
            near.start(asyncio.Protocol())
            near.abort()
            raise
        near.start(factory())
        return near


def _canonical(host: str | None, port: int) -> Address:
    return ("127.0.0.1" if (host or "") in _THIS_MACHINE else cast("str", host), port)


class MemoryServer(asyncio.AbstractServer):
    """The result of `create_server`: it has an address at once, and accepts while serving."""

    def __init__(self, network: Network, address: Address, factory: ProtocolFactory) -> None:
        self.address = address
        self._network = network
        self._factory = factory
        self._is_serving = False
        self._is_closed = False

    @property
    def sockets(self) -> tuple[_ListeningSocket, ...]:
        """A socket-like object with the address, while it is open."""
        return () if self._is_closed else (_ListeningSocket(self.address),)

    def accept(self, transport: MemoryTransport) -> None:
        """Start the server's end of a new connection with a new protocol."""
        transport.start(self._factory())

    async def start_serving(self) -> None:
        """Accept from now on."""
        self._is_serving = True

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        await self.start_serving()
        try:
            await self._network.loop.create_future()
        finally:
            self.close()

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._is_serving

    def close(self) -> None:
        """Stop listening; connections stay."""
        if not self._is_closed:
            self._is_closed = True
            self._is_serving = False
            self._network.stop_listening(self)

    async def wait_closed(self) -> None:
        """Return at once: closing takes no time."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The network's loop."""
        return self._network.loop


class _ListeningSocket:
    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address


class MemoryTransport(asyncio.Transport):
    """One end of a connection.

    Invariant: `_window_used_bytes` counts bytes that this end wrote and the peer's protocol has not
    received yet; it is at most `WINDOW_BYTES`, and less only if `_unsent` is empty.
    """

    def __init__(self, network: Network, *, sockname: Address, peername: Address) -> None:
        """Only `Network.connect` calls this."""
        super().__init__({"sockname": sockname, "peername": peername})
        self.peer: MemoryTransport = self  # the other end, once there is one
        self._network = network
        self._sockname = sockname
        self._loop = network.loop
        self._protocol: asyncio.BaseProtocol | None = None  # None before `start`
        self._unsent: deque[bytes] = deque()  # no room in the window for it; may end with _EOF
        self._unsent_bytes = 0
        self._window_used_bytes = 0
        self.under_way: deque[bytes | BaseException] = deque()  # towards this end
        self._received: deque[bytes] = deque()  # arrived while reading was paused
        self._is_reading = True
        self._is_read_due = False
        self._is_closing = False
        self._is_lost = False
        self._is_eof_written = False
        self._is_eof_read = False
        self._is_writing_paused = False
        self._high_bytes, self._low_bytes = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4

    def __repr__(self) -> str:
        here, there = self.get_extra_info("sockname"), self.get_extra_info("peername")
        return f"MemoryTransport({here[0]}:{here[1]} -> {there[0]}:{there[1]})"

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Connect the transport with its protocol."""
        self._protocol = protocol
        self._network.connections[self] = None
        protocol.connection_made(self)
        self._read_soon()

    # --- writing ---------------------------------------------------------------------------

    def write(self, data: Buffer) -> None:
        """Queue bytes; they arrive a latency later, unless the window is full."""
        if self._is_eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_lost or self._is_closing or not data:
            return
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self._send_unsent()
        if self._unsent_bytes > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._call("pause_writing")

    def writelines(self, list_of_data: Any) -> None:  # Any: an iterable of any buffers
        """Write all of them as one."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """End this direction after what is queued."""
        if self._is_eof_written or self._is_closing:
            return
        self._is_eof_written = True
        self._unsent.append(_EOF)
        self._send_unsent()

    def can_write_eof(self) -> bool:
        """True: each direction ends separately."""
        return True

    def get_write_buffer_size(self) -> int:
        """Bytes that found no room in the window."""
        return self._unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Low and high mark in bytes."""
        return self._low_bytes, self._high_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks as asyncio's transports do."""
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must be >= low ({low}) must be >= 0")
        self._high_bytes, self._low_bytes = high, low

    def _send_unsent(self) -> None:
        """Send as many buffered bytes as the window has room for."""
        while self._unsent and self._window_used_bytes < WINDOW_BYTES:
            room = WINDOW_BYTES - self._window_used_bytes
            data = self._unsent.popleft()
            if len(data) > room:
                self._unsent.appendleft(data[room:])
                data = data[:room]
            self._unsent_bytes -= len(data)
            self._window_used_bytes += len(data)
            self._send(data)
        if self._is_writing_paused and self._unsent_bytes <= self._low_bytes:
            self._is_writing_paused = False
            self._call("resume_writing")
        if self._is_closing and not self._unsent:
            self._lose_soon(None)

    def _send(self, item: bytes | BaseException) -> None:
        if not self._network.holds(self._sockname, partial(self._transmit, item)):
            self._transmit(item)

    def _transmit(self, item: bytes | BaseException) -> None:
        # Two timers of the same time may fire in any order, so neither is bound to an item: each
        # takes the next one from the queue.
        self._network.on_sent(self._sockname, item)
        self.peer.under_way.append(item)
        if self._network.latency_seconds:
            self._loop.call_later(self._network.latency_seconds, self.peer.on_arrival)
        else:
            self._loop.call_soon(self.peer.on_arrival)

    def on_window_freed(self, count: int) -> None:
        """The peer's protocol has received `count` bytes: send more."""
        self._window_used_bytes -= count
        if not self._is_lost:
            self._send_unsent()

    # --- reading ---------------------------------------------------------------------------

    def is_reading(self) -> bool:
        """Whether the protocol gets what arrives."""
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        """Keep what arrives until `resume_reading`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Deliver the kept bytes, and those that come."""
        self._is_reading = True
        self._read_soon()

    def on_arrival(self) -> None:
        """The next piece of `under_way` has arrived."""
        if self._network.holds(self._sockname, partial(self._loop.call_soon, self.on_arrival)):
            return
        item = self.under_way.popleft()
        if self._is_lost:
            if isinstance(item, bytes) and item:
                self._send(ConnectionResetError(104, "Connection reset by peer"))
            return
        if isinstance(item, BaseException):
            self._fail(item)
            return
        self._received.append(item)
        if self._protocol is not None and not self._is_read_due:
            self._read()

    def _read_soon(self) -> None:
        if self._received and not self._is_read_due:
            self._is_read_due = True
            self._loop.call_soon(self._read_due)

    def _read_due(self) -> None:
        self._is_read_due = False
        self._read()

    def _read(self) -> None:
        """Deliver all arrived bytes to the protocol, as one piece."""
        if not self._received or not self.is_reading() or self._is_lost:
            return
        is_end = self._received[-1] == _EOF
        data = b"".join(self._received)
        self._received.clear()
        if data:
            self._loop.call_soon(self.peer.on_window_freed, len(data))
            self._call("data_received", data)
        if is_end and not self._is_closing and not self._is_lost:
            self._read_end()

    def _read_end(self) -> None:
        if not self.is_reading():  # the protocol paused when it got the data: the end waits
            self._received.append(_EOF)
        elif not self._is_eof_read:
            self._is_eof_read = True
            if not self._call("eof_received"):
                self.close()

    # --- closing ---------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Whether `close` or `abort` was called, or the connection is gone."""
        return self._is_closing

    def close(self) -> None:
        """Send the buffered bytes, then end; the protocol receives nothing more."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._unsent:
            self._lose_soon(None)

    def abort(self) -> None:
        """End now; buffered bytes are lost, and the peer's connection is reset."""
        self._fail(None)

    def _fail(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._lose_soon(error, is_reset=True)

    def _lose_soon(self, error: BaseException | None, *, is_reset: bool = False) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        if error is None:
            is_reset = is_reset or bool(self._received)
            self._send(ConnectionResetError(104, "Connection reset by peer") if is_reset else _EOF)
        self._received.clear()
        self._loop.call_soon(self._on_lost, error)

    def _on_lost(self, error: BaseException | None) -> None:
        self._network.connections.pop(self, None)
        assert self._protocol is not None
        self._protocol.connection_lost(cast("Exception | None", error))

    # --- the protocol ----------------------------------------------------------------------

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The current protocol."""
        assert self._protocol is not None, "the transport was not started"
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._protocol = protocol

    def _call(self, name: str, *arguments: bytes) -> object:
        """Call the protocol; an error ends the connection, as with asyncio's transports."""
        try:
            if name == "data_received" and isinstance(self._protocol, asyncio.BufferedProtocol):
                _feed(self._protocol, *arguments)
                return None
            return getattr(self._protocol, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - the edge: anything of the protocol's
            self._loop.call_exception_handler(
                {"message": f"Fatal error: protocol.{name}() failed.", "exception": error,
                 "transport": self, "protocol": self._protocol}
            )  # fmt: skip
            self._fail(None)
            return True


def _feed(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    """Copy into the buffers that the protocol gives."""
    view = memoryview(data)
    while view:
        buffer = memoryview(protocol.get_buffer(len(view))).cast("B")
        count = min(len(buffer), len(view))
        buffer[:count] = view[:count]
        view = view[count:]
        protocol.buffer_updated(count)


class SimulatedLoop(VirtualTimeLoop):
    """A loop in virtual time whose network is in memory; nothing outside can wake it."""

    def __init__(self, *, latency_seconds: float = 0.0) -> None:
        super().__init__(is_alone=True)
        self.network = Network(self, latency_seconds=latency_seconds)
        self._thread = threading.get_ident()

    def run_sealed(self, runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end with this loop's runner.

        Raises:
            RealityError: It used real time, chance, threads or sockets.
        """
        with steady_collector(), sealed():
            self._jumping.collects = True
            try:
                return runner.run(work)
            finally:
                self._jumping.collects = False

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """As `call_soon`: there are no other threads.

        Raises:
            RealityError: Another thread calls it.
        """
        if threading.get_ident() != self._thread:
            raise RealityError(f"another thread calls {callback} in a simulated world")
        return super().call_soon_threadsafe(callback, *args, context=context)

    async def create_server(  # type: ignore[override]  # fewer ways to say where
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int = 0,
        *,
        ssl: object = None,
        start_serving: bool = True,
        **_: object,
    ) -> MemoryServer:
        """Listen in memory; what only matters to sockets is ignored.

        Raises:
            NotImplementedError: TLS was asked for.
            OSError: The address is taken.
        """
        _refuse_tls(ssl)
        address = _canonical(host, port or self.network.free_port())
        server = MemoryServer(self.network, address, protocol_factory)
        self.network.listen(server)
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(  # type: ignore[override]  # fewer ways to say where
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int = 0,
        *,
        ssl: object = None,
        **_: object,
    ) -> tuple[MemoryTransport, asyncio.BaseProtocol]:
        """Connect in memory; what only matters to sockets is ignored.

        Raises:
            NotImplementedError: TLS was asked for.
            ConnectionRefusedError: Nobody listens there.
        """
        _refuse_tls(ssl)
        transport = await self.network.connect(protocol_factory, host or "", port)
        return transport, transport.get_protocol()

    async def getaddrinfo(  # type: ignore[override]  # nothing is looked up
        self, host: str, port: int, **_: object
    ) -> list[tuple[int, int, int, str, Address]]:
        """Every name is its own address."""
        return [(2, 1, 6, "", (host, port))]

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Call `func` at once, in the loop: virtual time would jump ahead while a thread works."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 - it is the future's
            future.set_exception(error)
        return future


def _refuse_tls(ssl: object) -> None:
    if ssl:
        raise NotImplementedError("the network in memory has no TLS")


def run_simulated(
    work: Coroutine[Any, Any, T],  # Any: as in asyncio.run
    *,
    latency_seconds: float = 0.0,
) -> T:
    """Run a coroutine to its end on a fresh `SimulatedLoop`.

    Raises:
        RealityError: It asked for real time, chance, threads or sockets.
    """
    loop = SimulatedLoop(latency_seconds=latency_seconds)
    # The loop still runs while the runner closes it: the collector has to wait until then, too.
    with steady_collector(), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return loop.run_sealed(runner, work)
