"""A WebSocket client for tests: sends any frames, also those that RFC 6455 forbids.

It shares nothing with the library that the broker uses, so that both don't err alike.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_MASK = b"\x11\x22\x33\x44"
_USUAL = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
_TWO_BYTES, _EIGHT_BYTES = 126, 127


@dataclass(frozen=True)
class Frame:
    """A whole frame that came."""

    opcode: int
    payload: bytes

    @property
    def close_code(self) -> int | None:
        """The code of a close frame, None if it has none."""
        return struct.unpack("!H", self.payload[:2])[0] if self.payload else None


def frame_bytes(
    payload: bytes, *, opcode: int = TEXT, final: bool = True, reserved: int = 0, mask: bool = True
) -> bytes:
    """A client's frame."""
    first = (0x80 if final else 0) | reserved << 4 | opcode
    size = len(payload)
    if size < _TWO_BYTES:
        head = struct.pack("!BB", first, (0x80 if mask else 0) | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, (0x80 if mask else 0) | _TWO_BYTES, size)
    else:
        head = struct.pack("!BBQ", first, (0x80 if mask else 0) | _EIGHT_BYTES, size)
    if not mask:
        return head + payload
    key = int.from_bytes((_MASK * (size // 4 + 1))[:size], "big")
    masked = (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")
    return head + _MASK + masked


class WebSocketClient:
    """One connection, or one that was refused: `status` tells."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.status = status
        self.headers = headers
        self.body = body
        self.is_at_end = False

    @classmethod
    async def open(
        cls,
        port: int,
        path: str,
        *,
        headers: Mapping[str, str | None] | None = None,
        method: str = "GET",
        host: str = "127.0.0.1",
        tls: object = None,
    ) -> WebSocketClient:
        """Shake hands; a header that is None is left out."""
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=1 << 22)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}"]
        for name, value in {**_USUAL, **(headers or {})}.items():
            if value is not None:
                lines.append(f"{name}: {value}")
        if method == "POST":
            lines.append("Content-Length: 0")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, *rest = head.splitlines()
        fields = dict(line.lower().split(": ", 1) for line in rest if line)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        client = cls(reader, writer, int(status.split()[1]), fields, body)
        if client.status != 101:
            await client.drop()
        return client

    def send(self, text: str) -> None:
        """Send a message."""
        self.writer.write(frame_bytes(text.encode()))

    async def receive(self) -> Frame | None:
        """The next frame; None once the socket has ended."""
        try:
            _, size = await self.reader.readexactly(2)
            return await self._rest(_, size)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_at_end = True
            return None

    async def _rest(self, first: int, size: int) -> Frame:
        assert not size & 0x80, "a server masks nothing"
        if size == _TWO_BYTES:
            (size,) = struct.unpack("!H", await self.reader.readexactly(2))
        elif size == _EIGHT_BYTES:
            (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
        return Frame(first & 15, await self.reader.readexactly(size))

    async def drop(self) -> None:
        """Close the socket without a word."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()
