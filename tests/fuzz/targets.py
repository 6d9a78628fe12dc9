"""What inputs are fed to: the frame decoder, and a broker's commands and routes without sockets (edge).

Commands and requests go to the objects that asyncio makes for each accepted socket, above a transport
that throws the answers away. The broker is a whole one, in memory. A canary publishes through a
socket of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Final, Self

from google.protobuf.message import DecodeError

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_server import HttpConnection
from pulsar_py.client import Client, Producer
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.clock import SystemClock
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
    mutate_requests,
    rest_seeds,
)
from tests.fuzz.run import Kind
from tests.integration.client_commands import command_of, opening_frames
from tests.wire_client import encode

FRAME_BYTES: Final = 20_000
TURNS: Final = 200
"""Most turns of the loop that an input gets to act in; what waits longer is cut off."""


class DroppedError(Exception):
    """An invariant that an input broke."""


class Frames:
    """The decoder of frames, and that of commands."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is open."""

    def seeds(self) -> list[bytes]:
        """Streams of good commands."""
        return [each[1:] for each in command_seeds()]

    async def feed(self, data: bytes) -> None:
        """Cut the stream at places that its own bytes name."""
        decoder, position = FrameDecoder(FRAME_BYTES), 0
        try:
            while position < len(data):
                step = 1 + data[position] % 64
                for frame in decoder.decode(data[position : position + step]):
                    with contextlib.suppress(DecodeError):
                        read_command(frame.command)
                position += step
                if decoder.pending_bytes > min(position, FRAME_BYTES):
                    raise DroppedError("the decoder holds more than came")
        except RemoteProtocolError:
            return

    async def check(self) -> None:
        """Nobody else is served."""


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
        self._broker = Broker(
            config={"brokerDeleteInactiveTopicsFrequencySeconds": 1, "maxTopicsPerNamespace": 500}
        )
        self._client: Client | None = None  # None before and after
        self._canary: Producer | None = None  # likewise

    async def __aenter__(self) -> Self:
        await self._broker.start()
        self._client = Client(self._broker.service_url)
        resources = self._broker.service.resources
        cluster = self._broker.service.config.clusterName
        tenant = TenantInfo(admin_roles=(), allowed_clusters=(cluster,))
        await resources.tenants.create("canary", tenant)
        policies = NamespacePolicies(replication_clusters=(cluster,))
        await resources.namespaces.create_with_bundles(NamespaceName("canary", "own"), policies, 1)
        self._canary = await self._client.create_producer("persistent://canary/own/t")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._client is not None
        await self._client.close()
        await self._broker.stop()

    async def check(self) -> None:
        """Publish."""
        assert self._canary is not None
        await self._canary.send(b"sings")


class Commands(Served):
    """The command handlers, over a connection for each input."""

    def seeds(self) -> list[bytes]:
        """Every command that has a handler."""
        return command_seeds()

    async def feed(self, data: bytes) -> None:
        """Open the connection, send, and close it when nothing is under way."""
        connections = self._broker.service.connections
        cnx, sink = connections.new_connection(), Sink()
        sink.protocol = cnx
        cnx.connection_made(sink)
        flags, stream = data[0] if data else 0, data[1:]
        if flags & CONNECTED:
            cnx.data_received(encode(command_of(2, with_optional=False)))
        if flags & OPENED:
            cnx.data_received(opening_frames())
            await until_idle(cnx)
        if not sink.is_closed:
            cnx.data_received(stream)
            await until_idle(cnx)
        sink.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


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
        return rest_seeds(list(all_routes(self._broker.service)))

    async def feed(self, data: bytes) -> None:
        """Send a request, and wait for its answer for some turns."""
        if self._web is None:
            self._web = Web(self._broker.service, SystemClock(), PageRules())
        connection, sink = HttpConnection(self._web.server), Sink()
        sink.protocol = connection
        connection.connection_made(sink)
        connection.data_received(data)
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if sink.sent_bytes or sink.is_closed:
                break
        sink.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


KINDS: Final = (
    Kind("frames", Frames, mutate_bytes),
    Kind("commands", Commands, mutate_commands),
    Kind("rest", Requests, mutate_requests),
)
