"""A bookie of a few lines for tests in virtual time: it stores and fences, and does what it is told.

It answers as a recording of Apache BookKeeper's does, from memory, and keeps no promise.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation, RequestFlags
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb

HEAD = struct.Struct(">BBH")
IDS = struct.Struct(">qq")
BATCH = struct.Struct(">qqqiq")
Says = Callable[[int, int, int], int | None]
"""Operation, ledger and entry to the code to answer at once; None lets it do what it should."""


def answer(operation: int, code: int, ledger_id: int, entry_id: int, data: bytes = b"") -> bytes:
    body = struct.pack(">BBHiqq", 2, operation, 0, code, ledger_id, entry_id) + data
    return struct.pack(">I", len(body)) + body


class ScriptedBookie:
    """Serves any number of connections."""

    def __init__(self, port: int, host: str = "bookie") -> None:
        self.host, self.port = host, port
        self.entries: dict[int, dict[int, bytes]] = {}  # by ledger and entry
        self.fenced: dict[int, None] = {}
        self.explicit_lacs: dict[int, bytes] = {}  # the bodies that writers sent, by ledger
        self.lac_requests_count = 0
        self.takes_batches = False  # an old one closes the connection instead
        self.asked: list[tuple[int, int, int, int]] = []  # operation, flags, ledger, entry
        self.says: Says = lambda _operation, _ledger, _entry: None
        self.is_mute = False
        self.loses: Callable[[], bool] = lambda: False
        """Whether the next request is neither done nor answered."""
        self.held: list[Callable[[], None]] = []  # answers, while `is_holding`
        self.is_holding = False
        self.delay_seconds = 0.0  # before each answer
        self.connections: list[_Connection] = []
        self.connects_count = 0

    @property
    def bookie_id(self) -> str:
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), self.host, self.port)

    def stop(self) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        for connection in self.connections:
            connection.transport.abort()
        self.connections.clear()

    def release(self) -> None:
        """Send what was held."""
        self.is_holding = False
        held, self.held = self.held, []
        for send in held:
            send()

    def adds(self) -> list[int]:
        return [entry for operation, _, _, entry in self.asked if operation == BookieOperation.ADD]

    def serve(self, frame: bytes) -> bytes | None:
        if frame[0] != 2:
            return self.serve_lac(pb.Request.FromString(frame))
        _, operation, flags = HEAD.unpack_from(frame)
        if operation == BookieOperation.BATCH_READ:
            return self.serve_batch(frame)
        if operation == BookieOperation.ADD:
            stored = frame[HEAD.size + 20 :]
            ledger_id, entry_id = IDS.unpack_from(stored)
        else:
            stored = b""
            ledger_id, entry_id = IDS.unpack_from(frame, HEAD.size)
        self.asked.append((operation, flags, ledger_id, entry_id))
        if self.is_mute or self.loses():
            return None
        code = self.says(operation, ledger_id, entry_id)
        data = b""
        if code is None and operation == BookieOperation.ADD:
            code = self.add(ledger_id, entry_id, flags, stored)
        elif code is None:
            code, data = self.read(ledger_id, entry_id, flags)
        return answer(operation, code, ledger_id, entry_id, data)

    def serve_batch(self, frame: bytes) -> bytes | None:
        if not self.takes_batches:
            raise ConnectionResetError
        ledger_id, first, number, most_count, most_bytes = BATCH.unpack_from(frame, HEAD.size)
        self.asked.append((BookieOperation.BATCH_READ, 0, ledger_id, first))
        if self.is_mute or self.loses():
            return None
        code = self.says(BookieOperation.BATCH_READ, ledger_id, first)
        if code is not None:
            return answer(BookieOperation.BATCH_READ, code, ledger_id, first)
        code, data = self.read(ledger_id, first, 0)
        entries = b""
        left_bytes = most_bytes - 36
        for entry_id in range(first, first + most_count):
            found, data = self.read(ledger_id, entry_id, 0)
            left_bytes -= 4 + len(data)
            if found != BookieCode.EOK or (entries and left_bytes < 0):
                break
            entries += struct.pack(">I", len(data)) + data
        number_bytes = struct.pack(">q", number)
        return answer(BookieOperation.BATCH_READ, code, ledger_id, first, number_bytes + entries)

    def serve_lac(self, request: pb.Request) -> bytes | None:
        self.lac_requests_count += 1
        if self.is_mute:
            return None
        said = pb.Response(header=request.header, status=pb.EOK)
        if request.header.operation == pb.WRITE_LAC:
            ledger_id = request.writeLacRequest.ledgerId
            self.explicit_lacs[ledger_id] = request.writeLacRequest.body
            said.writeLacResponse.CopyFrom(pb.WriteLacResponse(status=pb.EOK, ledgerId=ledger_id))
        else:
            ledger_id = request.readLacRequest.ledgerId
            body = self.explicit_lacs.get(ledger_id)
            said.readLacResponse.CopyFrom(
                pb.ReadLacResponse(
                    status=pb.EOK if body else pb.ENOENTRY, ledgerId=ledger_id, lacBody=body
                )
            )
        data = said.SerializeToString()
        return struct.pack(">I", len(data)) + data

    def add(self, ledger_id: int, entry_id: int, flags: int, stored: bytes) -> int:
        if ledger_id in self.fenced and not flags & RequestFlags.RECOVERY_ADD:
            return BookieCode.EFENCED
        self.entries.setdefault(ledger_id, {})[entry_id] = stored
        return BookieCode.EOK

    def read(self, ledger_id: int, entry_id: int, flags: int) -> tuple[int, bytes]:
        if flags & RequestFlags.FENCE:
            self.fenced[ledger_id] = None
        found = self.entries.get(ledger_id)
        if found is None:
            is_known = ledger_id in self.fenced
            return BookieCode.ENOENTRY if is_known else BookieCode.ENOLEDGER, b""
        asked = max(found) if entry_id == -1 else entry_id
        if asked not in found:
            return BookieCode.ENOENTRY, b""
        return BookieCode.EOK, found[asked]


class _Connection(asyncio.Protocol):
    def __init__(self, bookie: ScriptedBookie) -> None:
        self.bookie = bookie
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.bookie.connections.append(self)
        self.bookie.connects_count += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        out = b""
        while len(self.buffer) >= 4:
            (size,) = struct.unpack_from(">I", self.buffer)
            if len(self.buffer) < 4 + size:
                break
            frame, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
            try:
                out += self.bookie.serve(frame) or b""
            except ConnectionResetError:
                self.transport.abort()
                return
        if not out:
            return
        if self.bookie.is_holding:
            self.bookie.held.append(lambda: self.transport.write(out))
        elif self.bookie.delay_seconds:
            loop = asyncio.get_running_loop()
            loop.call_later(self.bookie.delay_seconds, self.transport.write, out)
        else:
            self.transport.write(out)
