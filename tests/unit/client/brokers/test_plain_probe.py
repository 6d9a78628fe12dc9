"""Who speaks Pulsar's protocol without TLS, and who does not."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.brokers import plain_probe
from pulsar_py.client.brokers.plain_probe import speaks_plain_pulsar
from pulsar_py.testing import BrokerThread


async def test_a_broker_does(
    session_pulsar_broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_probe, "_LIMIT_SECONDS", 60)  # however busy the machine is
    host, _, port = session_pulsar_broker.service_url.removeprefix("pulsar://").rpartition(":")
    assert await speaks_plain_pulsar(host, int(port))


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01\x00", b""])
async def test_others_do_not(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert not await speaks_plain_pulsar("127.0.0.1", port)
    assert not await speaks_plain_pulsar("127.0.0.1", port)  # nobody is there any more


async def test_silence_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_probe, "_LIMIT_SECONDS", 0.02)

    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        assert not await speaks_plain_pulsar("127.0.0.1", server.sockets[0].getsockname()[1])
        await ended.wait()
