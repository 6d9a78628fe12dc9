"""A little HTTP server for tests of HTTP clients: answers as it is told, and notes what was asked.

It listens on whatever loop runs, so also in the network in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import h11


@dataclass
class Asked:
    """One request that came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What is sent back; `raw` instead of a proper answer, or None for silence."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    is_silent: bool = False

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Answer:
        """A JSON document."""
        return cls(status, json.dumps(value).encode())


class HttpServer:
    """Answers by `answer(asked)`, over TLS if it has a context."""

    def __init__(
        self, answer: Callable[[Asked], Answer], tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections_count = 0
        """How many were made."""
        self.port = 0
        self._tls = tls
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://localhost:{self.port}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[HttpServer]:
        """Listen for as long as the context lasts."""
        server = await asyncio.start_server(self._serve, "localhost", self.port, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.close_connections()

    def close_connections(self) -> None:
        """Close those that are open; others can be made."""
        for writer in list(self._connections):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        self.connections_count += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another may follow."""
        asked = await self._receive(reader)
        if asked is None:
            return False
        self.asked.append(asked)
        answer = self.answer(asked)
        if answer.is_silent:
            await reader.read()
        elif answer.raw is not None:
            writer.write(answer.raw)
        else:
            writer.write(_rendered(answer))
            return "close" not in (
                asked.headers.get("connection"),
                answer.headers.get("Connection"),
            )
        return False

    async def _receive(self, reader: asyncio.StreamReader) -> Asked | None:
        machine = h11.Connection(h11.SERVER)
        head, body = None, b""
        while True:
            event = machine.next_event()
            if event is h11.NEED_DATA:
                try:
                    machine.receive_data(await reader.read(65536))
                except OSError:  # a client that is gone
                    return None
            elif isinstance(event, h11.ConnectionClosed):
                return None
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                headers = {name.decode(): value.decode() for name, value in head.headers}
                return Asked(head.method.decode(), head.target.decode(), headers, body)


def _rendered(answer: Answer) -> bytes:
    head = f"HTTP/1.1 {answer.status} Whatever\r\nContent-Length: {len(answer.body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    return head.encode() + b"\r\n" + answer.body
