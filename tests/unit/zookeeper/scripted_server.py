"""A ZooKeeper server of a few lines for tests in virtual time: it says what a test tells it to."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from pulsar_py.zookeeper import jute
from pulsar_py.zookeeper.messages import PING_XID, Operation

STAT_BYTES = 68
Handler = Callable[[Operation, jute.RecordReader], tuple[int, bytes] | None]
"""Gives an error and a record, or None for no answer at all."""


def answer(xid: int, error: int = 0, record: bytes = b"", zxid: int = 1) -> bytes:
    return jute.buffer(jute.int32(xid) + jute.int64(zxid) + jute.int32(error) + record)


def stat(version: int = 0, owner: int = 0) -> bytes:
    """Of a node that was made at 10 and changed at 20."""
    return struct.pack(">qqqqiiiqiiq", 1, 2, 10, 20, version, 0, 0, owner, 0, 0, 1)


class ScriptedServer:
    """Serves any number of connections; `handler` answers, the rest is kept."""

    def __init__(self, handler: Handler = lambda _operation, _record: (0, stat())) -> None:
        self.handler = handler
        self.timeout_millis = 6000
        self.next_session = 1
        self.knows_sessions = True
        self.is_mute = False
        self.is_read_only = False
        self.connected: list[tuple[int, int]] = []  # the session asked for and the one given
        self.operations: list[Operation] = []
        self.connections: list[_Connection] = []
        self.connections_count = 0  # since the start

    async def start(self, host: str = "server", port: int = 2181) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port)

    def stop(self) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        for connection in self.connections:
            connection.transport.abort()
        self.connections.clear()

    def push(self, frame: bytes) -> None:
        for connection in self.connections:
            connection.transport.write(frame)

    def grant(self, asked: int) -> int:
        """The session for who asked for one; 0: it has expired."""
        given = asked if asked and self.knows_sessions else 0
        if not asked:
            given, self.next_session = self.next_session, self.next_session + 1
        self.connected.append((asked, given))
        return given


class _Connection(asyncio.Protocol):
    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.buffer = b""
        self.is_greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.append(self)
        self.server.connections_count += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while len(self.buffer) >= 4:
            (size,) = struct.unpack_from(">i", self.buffer)
            if len(self.buffer) < 4 + size:
                return
            frame, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
            self.on_frame(jute.RecordReader(frame))

    def on_frame(self, reader: jute.RecordReader) -> None:
        server = self.server
        if server.is_mute:
            return
        if not self.is_greeted:
            self.is_greeted = True
            reader.int32(), reader.int64(), reader.int32()
            given = server.grant(reader.int64())
            timeout_millis = server.timeout_millis if given else 0
            self.transport.write(
                jute.buffer(
                    jute.int32(0)
                    + jute.int32(timeout_millis)
                    + jute.int64(given)
                    + jute.buffer(bytes(16))
                    + jute.boolean(server.is_read_only)
                )
            )
            return
        xid, operation = reader.int32(), Operation(reader.int32())
        server.operations.append(operation)
        if xid == PING_XID:
            self.transport.write(answer(PING_XID))
        elif (said := server.handler(operation, reader)) is not None:
            self.transport.write(answer(xid, *said))
