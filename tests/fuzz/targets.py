"""What inputs are fed to: the frame decoder, and a broker's commands and routes without sockets (edge).

Commands and requests go to the objects that asyncio makes for each accepted socket, above a transport
that throws the answers away. The broker is a whole one, in memory. A canary sends itself messages
through a socket of its own, all the time.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Final, Self

from google.protobuf.message import DecodeError

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_connection import HttpConnection
from pulsar_py.client import Client, Consumer, MultiTopicsConsumer, Producer
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.documents import NamespacePolicies, TenantInfo
from pulsar_py.server.connection.server_cnx import ServerCnx
from pulsar_py.standalone import Broker
from pulsar_py.web import Web
from pulsar_py.wire.commands import read_command
from pulsar_py.wire.framing import FrameDecoder
from tests.fuzz.inputs import (
    CONNECTED,
    OPENED,
    command_seeds,
    mutate_bytes,
    mutate_commands,
)
from tests.fuzz.requests import mutate_requests, preparing_requests, rest_seeds
from tests.fuzz.run import Kind
from tests.integration.client_commands import command_of, opening_frames
from tests.wire_client import encode

FRAME_BYTES: Final = 20_000
SONG_SECONDS: Final = 0.1
"""How long the canary rests between two messages."""
TURNS: Final = 200
"""Most turns of the loop that an input gets to act in; what waits longer is cut off."""


class DroppedError(Exception):
    """An invariant that an input broke."""


class Sink(asyncio.Transport):
    """A socket whose peer reads everything at once."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.protocol: asyncio.Protocol | None = None
        self.sent_bytes = 0
        self.is_closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It never holds anything."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent_bytes += len(data)

    def pause_reading(self) -> None:
        """The rest of the input waits in its own list."""

    def resume_reading(self) -> None:
        """Nothing waits."""

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The peer does not care."""

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self._lose)

    def abort(self) -> None:
        self.close()

    def _lose(self) -> None:
        if self.protocol is not None:
            self.protocol.connection_lost(None)


class Served:
    """A broker in memory, and its canary."""

    def __init__(self) -> None:
        self.broker = Broker(
            config={"brokerDeleteInactiveTopicsFrequencySeconds": 1, "maxTopicsPerNamespace": 500}
        )
        self._client: Client | None = None  # None before and after
        self._canary: Producer | None = None  # likewise
        self._listener: Consumer[Any] | MultiTopicsConsumer[Any] | None = None  # likewise
        self._turn = asyncio.Lock()
        self._tasks = TaskOwner("canary")
        self._singing: asyncio.Task[None] | None = None  # likewise
        self.songs_count = 0
        """Messages that the canary got back."""

    async def __aenter__(self) -> Self:
        await self.broker.start()
        self._client = Client(self.broker.service_url)
        resources = self.broker.service.resources
        cluster = self.broker.service.config.clusterName
        tenant = TenantInfo(admin_roles=(), allowed_clusters=(cluster,))
        await resources.tenants.create("canary", tenant)
        policies = NamespacePolicies(replication_clusters=(cluster,))
        await resources.namespaces.create_with_bundles(NamespaceName("canary", "own"), policies, 1)
        topic = "persistent://canary/own/t"
        self._listener = await self._client.subscribe(topic, "ears")
        self._canary = await self._client.create_producer(topic)
        self._singing = self._tasks.spawn(self._sing_on(), "song")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._client is not None
        await self._tasks.close()
        await self._client.close()
        await self.broker.stop()

    def new_connection(self) -> tuple[ServerCnx, Sink]:
        """A connection of the broker, and what it writes to."""
        cnx, sink = self.broker.service.connections.new_connection(), Sink()
        sink.protocol = cnx
        cnx.connection_made(sink)
        return cnx, sink

    async def check(self) -> None:
        """Raise unless the canary sang all the time, and still does."""
        assert self._singing is not None
        if self._singing.done():
            await self._singing
        await self._sing()

    async def silence(self) -> None:
        """Close the canary's producer: a test of `check`."""
        assert self._canary is not None
        await self._canary.close()

    async def _sing_on(self) -> None:
        while True:
            await self._sing()
            await asyncio.sleep(SONG_SECONDS)

    async def _sing(self) -> None:
        assert self._canary is not None
        assert self._listener is not None
        async with self._turn, asyncio.timeout(30):
            song = b"song %d" % self.songs_count
            await self._canary.send(song)
            message = await self._listener.receive()
            await self._listener.acknowledge(message)
            if message.data() != song:
                raise DroppedError(f"the canary sang {song!r} and heard {message.data()!r}")
            self.songs_count += 1


async def hung_up(sink: Sink) -> None:
    """Close, and let the broker notice."""
    sink.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


class Frames(Served):
    """The decoder of frames, that of commands, and a connection of the broker that nobody opened."""

    def seeds(self) -> list[bytes]:
        """Streams of good commands."""
        return [each[1:] for each in command_seeds()]

    async def feed(self, data: bytes) -> None:
        """Cut the stream at places that its own bytes name."""
        decoder, position = FrameDecoder(FRAME_BYTES), 0
        cnx, sink = self.new_connection()
        try:
            while position < len(data):
                step = 1 + data[position] % 64
                piece = data[position : position + step]
                cnx.data_received(piece)
                for frame in decoder.decode(piece):
                    with contextlib.suppress(DecodeError):
                        read_command(frame.command)
                position += step
                if decoder.pending_bytes > min(position, FRAME_BYTES):
                    raise DroppedError("the decoder holds more than came")
        except RemoteProtocolError:
            pass
        await hung_up(sink)


class Commands(Served):
    """The command handlers, over a connection for each input."""

    def __init__(self) -> None:
        super().__init__()
        self._connect = encode(command_of(2, with_optional=False))
        self._opening = opening_frames()

    def seeds(self) -> list[bytes]:
        """Every command that has a handler."""
        return command_seeds()

    async def feed(self, data: bytes) -> None:
        """Open the connection, send, and close it when nothing is under way."""
        cnx, sink = self.new_connection()
        flags, stream = data[0] if data else 0, data[1:]
        if flags & CONNECTED:
            cnx.data_received(self._connect)
        if flags & OPENED:
            cnx.data_received(self._opening)
            await until_idle(cnx)
        if not sink.is_closed:
            cnx.data_received(stream)
            await until_idle(cnx)
        await hung_up(sink)


async def until_idle(cnx: ServerCnx) -> None:
    """Return when no request of the connection is under way, or after many turns."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if not cnx.is_connected or not cnx._requests_count:
            return


class Requests(Served):
    """The REST routes, over a connection for each input."""

    def __init__(self) -> None:
        super().__init__()
        self._web: Web | None = None  # None before the first input

    def seeds(self) -> list[bytes]:
        """A request for every route."""
        return rest_seeds(list(all_routes(self.broker.service)))

    async def feed(self, data: bytes) -> None:
        """Send a request, and wait for its whole answer for some turns."""
        if self._web is None:
            self._web = Web(self.broker.service, SystemClock(), PageRules())
        connection, sink = HttpConnection(self._web.server), Sink()
        sink.protocol = connection
        connection.connection_made(sink)
        connection.data_received(data)
        for _ in range(TURNS):
            if sink.is_closed or not connection._is_serving:
                break
            await asyncio.sleep(0)
        await hung_up(sink)

    async def check(self) -> None:
        """Also make again what inputs delete: the rest would only hear that nothing is there."""
        await super().check()
        for request in preparing_requests():
            await self.feed(request)


KINDS: Final = (
    Kind("frames", Frames, mutate_bytes),
    Kind("commands", Commands, mutate_commands),
    Kind("rest", Requests, mutate_requests),
)
