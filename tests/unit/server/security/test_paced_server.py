"""paced_server: who may begin with a header, and that crowds hold nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.server.security.paced_server import PacedServer
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
    *,
    trusts: bool = True,
    tls: ssl.SSLContext | None = None,
    handshake_seconds: float = 5,
    **more: Any,
) -> AsyncIterator[int]:
    server = PacedServer(
        Echo, lambda _: trusts, tls=tls, handshake_seconds=handshake_seconds, backlog=200, **more
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


def tls_contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's, and that of a client that trusts it."""
    authority = Authority(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    trusting = ssl.create_default_context(cafile=authority.path)
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context, trusting


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
    context, trusting = tls_contexts(tmp_path)
    async with serving(tls=context) as port:
        assert await answer(port, HEADER, tls=trusting) == b"('192.0.2.1', 4711) hello"
        assert await answer(port, tls=trusting) == b"None hello"


@pytest.mark.parametrize("data", [b"PROXY nonsense\r\n", b"PROXY ", b"", b"\r\n\r\n\x00"])
async def test_what_is_no_header_or_never_ends_is_closed(data: bytes) -> None:
    async with serving(header_seconds=0.3) as port:
        assert await answer(port, data) == b""


@pytest.mark.parametrize("is_tls", [False, True])
async def test_the_silent_keep_nobody_out(tmp_path: Path, *, is_tls: bool) -> None:
    contexts = tls_contexts(tmp_path) if is_tls else (None, None)
    async with serving(tls=contexts[0], max_waiting=2) as port:
        silent = [await asyncio.open_connection("localhost", port) for _ in range(2)]
        if is_tls:
            for _, writer in silent:
                writer.write(b"\x16\x03\x01")
        parts = (HEADER,) if is_tls else (HEADER + b"hello",)
        assert await answer(port, *parts, tls=contexts[1]) == b"('192.0.2.1', 4711) hello"
        # The oldest made room. What it had sent was not read, so the system may say so (a reset).
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(SECONDS):
                assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_a_turn_ends_few_of_those_that_are_late_or_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, _ = tls_contexts(tmp_path)
    turn, ended = 0, Counter[int]()
    drop = PacedServer._drop

    def counted(server: PacedServer, silent: Any, reason: str) -> None:
        ended[turn] += 1
        drop(server, silent, reason)

    monkeypatch.setattr(PacedServer, "_drop", counted)
    monkeypatch.setattr(context, "wrap_bio", None)  # nothing is made for who says nothing
    async with serving(trusts=False, tls=context, handshake_seconds=0.5) as port:
        for leaves in (True, False):
            crowd = [socket.create_connection(("localhost", port)) for _ in range(150)]
            if leaves:
                for each in crowd:
                    each.close()
            async with asyncio.timeout(SECONDS):
                while ended.total() < 150:
                    turn += 1
                    await asyncio.sleep(0)
            assert max(ended.values()) <= 64
            for each in crowd:
                assert leaves or each.recv(1) == b""
                each.close()
            ended.clear()


async def test_tls_begins_with_a_few_of_a_crowd_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusting = tls_contexts(tmp_path)
    turns = Counter[int]()
    turn = 0

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        ticking.append(asyncio.get_running_loop().call_soon(count_turns))

    made = context.wrap_bio

    def wrapped(*arguments: Any, **named: Any) -> ssl.SSLObject:
        turns[turn] += 1
        return made(*arguments, **named)

    monkeypatch.setattr(context, "wrap_bio", wrapped)
    ticking: list[asyncio.Handle] = []
    async with serving(trusts=False, tls=context) as port:
        hello = hello_of(trusting)
        crowd = [socket.create_connection(("localhost", port)) for _ in range(40)]
        for each in crowd[:30]:
            each.sendall(hello)
        count_turns()
        async with asyncio.timeout(SECONDS):
            while turns.total() < 30:  # noqa: ASYNC110 - turns are counted
                await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        ticking[-1].cancel()
        for each in crowd:
            each.close()
    assert max(turns.values()) <= 4
    assert turns.total() == 30, "nothing is made for who is silent"


def hello_of(context: ssl.SSLContext) -> bytes:
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()
