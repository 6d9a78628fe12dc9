"""proxied_server: sockets of trusted peers may begin with a header, those of others never."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.server.security.proxied_server import ProxiedServer
from tests.certificates import Authority

HEADER = b"PROXY TCP4 192.0.2.1 198.51.100.7 4711 6650\r\n"
SECONDS = 10


class Echo(asyncio.Protocol):
    """Answers with the address that it was told, and what came."""

    def __init__(self, client: tuple[str, int] | None) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(f"{self._client} ".encode() + data)


@contextlib.asynccontextmanager
async def serving(
    *, trusts: bool = True, tls: ssl.SSLContext | None = None, **more: float
) -> AsyncIterator[int]:
    server = ProxiedServer(
        Echo, lambda _: trusts, tls=tls, handshake_seconds=5 if tls else None, backlog=10, **more
    )
    await server.bind("localhost", 0)
    await server.start_serving()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def answer(port: int, *parts: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """What comes back when the parts are sent one after the other; empty: it was closed."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("localhost", port)
        try:
            for part in parts:
                writer.write(part)
                await asyncio.sleep(0.03)
            if tls is not None:
                await writer.start_tls(tls, server_hostname="localhost")
                writer.write(b"hello")
            return await reader.read(1000)
        except OSError:
            return b""
        finally:
            writer.close()


async def test_a_header_names_the_client_and_the_rest_is_the_clients() -> None:
    async with serving() as port:
        assert await answer(port, HEADER + b"hello") == b"('192.0.2.1', 4711) hello"
        assert await answer(port, HEADER[:3], HEADER[3:30], HEADER[30:] + b"x") == (
            b"('192.0.2.1', 4711) x"
        )
        assert await answer(port, b"hello") == b"None hello"
        assert await answer(port, b"P", b"UT /") == b"None PUT /"


async def test_who_is_not_trusted_has_no_header() -> None:
    async with serving(trusts=False) as port:
        assert await answer(port, HEADER + b"hello") == b"None " + HEADER + b"hello"


async def test_the_header_stands_before_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    trusting = ssl.create_default_context(cafile=authority.path)
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    async with serving(tls=context) as port:
        assert await answer(port, HEADER, tls=trusting) == b"('192.0.2.1', 4711) hello"
        assert await answer(port, tls=trusting) == b"None hello"


@pytest.mark.parametrize("data", [b"PROXY nonsense\r\n", b"PROXY ", b"", b"\r\n\r\n\x00"])
async def test_what_is_no_header_or_never_ends_is_closed(data: bytes) -> None:
    async with serving(header_seconds=0.3) as port:
        assert await answer(port, data) == b""


async def test_no_more_wait_for_a_header_than_there_is_room_for() -> None:
    async with serving(max_waiting=2) as port:
        waiting = [await asyncio.open_connection("localhost", port) for _ in range(2)]
        await asyncio.sleep(0.1)
        assert await answer(port, HEADER + b"x") == b""
        for _, writer in waiting:
            writer.close()
        async with asyncio.timeout(SECONDS):
            while await answer(port, HEADER + b"x") == b"":
                pass
