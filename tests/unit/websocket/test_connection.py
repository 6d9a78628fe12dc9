"""Frames on a connection: limits, pings, idle time, and how it ends; in virtual time."""

from __future__ import annotations

import asyncio
import struct
import zlib

import pytest
from wsproto.utilities import RemoteProtocolError

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.in_process import InProcessTransport, connect_in_process
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.websocket.connection import CLOSING_SECONDS, WebSocketConnection, WebSocketLimits
from tests.websocket_client import CLOSE, PING, PONG, TEXT, frame_bytes

HEADERS = [
    (b"host", b"localhost"),
    (b"upgrade", b"websocket"),
    (b"connection", b"Upgrade"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
]
LIMITS = WebSocketLimits(max_text_bytes=100, idle_seconds=0, ping_seconds=0)
COMPRESSED = [*HEADERS, (b"sec-websocket-extensions", b"permessage-deflate")]


class Dialog:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_open(self) -> None:
        self.calls.append("open")

    def on_text(self, text: str) -> None:
        self.calls.append(text)

    def on_closed(self) -> None:
        self.calls.append("closed")


class Socket(asyncio.Protocol):
    """The socket of a connection: what `HttpConnection` is to it."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self.connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, InProcessTransport)
        self.connection.begin(transport)

    def data_received(self, data: bytes) -> None:
        self.connection.data_received(data)

    def pause_writing(self) -> None:
        self.connection.pause_writing()

    def resume_writing(self) -> None:
        self.connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.connection_lost()


class Peer(asyncio.Protocol):
    """The client's end."""

    def __init__(
        self,
        limits: WebSocketLimits = LIMITS,
        headers: list[tuple[bytes, bytes]] = HEADERS,
        ends: tuple[int, str] | None = None,
    ) -> None:
        """`ends` is why the connection is to end before it has begun."""
        self.dialog = Dialog()
        self.connection = WebSocketConnection(headers, "/ws", clock=VirtualClock(), limits=limits)
        self.connection.attach(self.dialog)
        if ends is not None:
            self.connection.close(*ends)
        self.received = bytearray()
        self.is_lost = False
        self.transport = connect_in_process(self, Socket(self.connection))

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True

    async def send(self, payload: bytes, **options: int) -> None:
        self.transport.write(frame_bytes(payload, **options))
        await turns()

    @property
    def frames(self) -> list[tuple[int, bytes]]:
        """Opcode and payload of each short frame behind the head."""
        data = bytes(self.received).partition(b"\r\n\r\n")[2]
        found = []
        while data:
            found.append((data[0] & 15, data[2 : 2 + data[1]]))
            data = data[2 + data[1] :]
        return found


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


def closing(code: int, reason: str = "") -> bytes:
    return struct.pack("!H", code) + reason.encode()


async def test_text_comes_whole_however_it_was_cut() -> None:
    peer = Peer()
    await peer.send(b'{"a', final=False)
    await peer.send(b"between", opcode=PING)
    await peer.send(b'": 1}', opcode=0)
    peer.connection.send_text("answer")
    await turns()
    assert peer.dialog.calls == ["open", '{"a": 1}']
    assert peer.frames == [(PONG, b"between"), (TEXT, b"answer")]


async def test_bytes_are_no_messages() -> None:
    peer = Peer()
    for _ in range(3):
        await peer.send(b"x" * 60, opcode=2)
    assert peer.dialog.calls == ["open"]
    assert peer.connection.is_open


async def test_what_has_ended_before_it_began_ends_at_once() -> None:
    peer = Peer(ends=(1008, "too late"))
    await turns()
    assert peer.frames == [(CLOSE, closing(1008, "too late"))]
    assert peer.dialog.calls == ["closed"]


@pytest.mark.parametrize("pieces", [[b"x" * 101], [b"x" * 60, b"x" * 60]])
async def test_a_message_that_is_too_large_closes(pieces: list[bytes]) -> None:
    peer = Peer()
    for number, piece in enumerate(pieces):
        await peer.send(piece, opcode=0 if number else TEXT, final=False)
    opcode, payload = peer.frames[-1]
    assert (opcode, payload[:2]) == (CLOSE, closing(1009))
    assert peer.dialog.calls == ["open", "closed"]


async def test_what_inflates_beyond_the_limit_is_stopped_early() -> None:
    peer = Peer(headers=COMPRESSED)
    deflater = zlib.compressobj(wbits=-15)
    bomb = deflater.compress(bytes(50_000_000)) + deflater.flush(zlib.Z_SYNC_FLUSH)
    # Zeros are valid UTF-8; the whole would be 50 MB of them.
    await peer.send(bomb[:-4], reserved=4)
    assert peer.frames[-1][1][:2] == closing(1009)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (frame_bytes(b"x", opcode=3), 1002),
        (frame_bytes(b"\xff\xfe", opcode=TEXT), 1007),
        (frame_bytes(b"x", reserved=4), 1002),
        (frame_bytes(b"x", opcode=PING, final=False), 1002),
        (frame_bytes(b"x", opcode=0), 1002),
        (frame_bytes(b"x", mask=False), 1002),
        (frame_bytes(closing(999), opcode=CLOSE), 1002),
    ],
)
async def test_a_broken_frame_closes(frame: bytes, code: int) -> None:
    peer = Peer()
    peer.transport.write(frame)
    await turns()
    assert peer.frames[-1][1][:2] == closing(code)
    assert peer.dialog.calls[-1] == "closed"


@pytest.mark.parametrize("payload", [closing(1000), closing(4321, "own"), b""])
async def test_a_close_is_answered_with_the_same(payload: bytes) -> None:
    peer = Peer()
    await peer.send(payload, opcode=CLOSE)
    assert peer.frames == [(CLOSE, payload)]
    assert peer.is_lost
    assert peer.dialog.calls == ["open", "closed"]


async def test_nothing_is_handed_on_or_sent_after_the_end() -> None:
    peer = Peer()
    peer.connection.close(1011, "why")
    peer.connection.close(1001, "again")
    peer.connection.send_text("late")
    await peer.send(b"late")
    assert peer.frames == [(CLOSE, closing(1011, "why"))]
    assert peer.dialog.calls == ["open", "closed"]


async def test_who_writes_waits_for_a_slow_peer_and_is_released_at_its_end() -> None:
    peer = Peer()
    tasks = TaskOwner("test")
    peer.transport.pause_reading()
    peer.connection.send_text("x" * 100_000)
    waiting = tasks.spawn(peer.connection.until_writable(), "wait")
    await turns()
    assert not waiting.done()
    peer.transport.resume_reading()
    await asyncio.wait_for(waiting, 30)
    peer.transport.pause_reading()
    peer.connection.send_text("x" * 100_000)
    waiting = tasks.spawn(peer.connection.until_writable(), "wait")
    await turns()
    peer.transport.abort()
    await asyncio.wait_for(waiting, 30)


def test_a_silent_connection_ends_and_a_living_one_stays() -> None:
    async def run() -> None:
        peer = Peer(WebSocketLimits(max_text_bytes=100, idle_seconds=3, ping_seconds=0))
        for _ in range(3):
            await asyncio.sleep(2)
            await peer.send(b"alive", opcode=PONG)
        assert peer.connection.is_open
        await asyncio.sleep(2.9)
        assert peer.connection.is_open
        await asyncio.sleep(0.2)
        assert peer.frames == [(CLOSE, closing(1001, "Connection Idle Timeout"))]

    run_virtual(run())


def test_pings_come_at_their_interval() -> None:
    async def run() -> None:
        peer = Peer(WebSocketLimits(max_text_bytes=100, idle_seconds=0, ping_seconds=1))
        await asyncio.sleep(2.5)
        assert peer.frames == [(PING, b"PING")] * 2

    run_virtual(run())


def test_a_peer_that_does_not_answer_a_close_is_dropped() -> None:
    async def run() -> None:
        peer = Peer()
        peer.connection.close(1011, "why")
        await asyncio.sleep(CLOSING_SECONDS - 0.1)
        assert not peer.is_lost
        await asyncio.sleep(0.2)
        assert peer.is_lost

    run_virtual(run())


def test_a_request_that_is_no_handshake_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        WebSocketConnection(HEADERS[:-1], "/ws", clock=VirtualClock(), limits=LIMITS)
