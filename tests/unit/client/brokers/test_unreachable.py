"""A broker that nobody reaches: what the log and the errors say."""

import asyncio
import logging

import pytest

from pulsar_py.client.client import Client
from pulsar_py.common.errors import ClientTimeoutError, NotABrokerError
from pulsar_py.testing import BrokerThread


async def _free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_a_refused_connection_is_logged_once_and_the_error_says_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "pulsar_py.client")
    url = f"pulsar://127.0.0.1:{await _free_port()}"
    async with Client(url, operation_timeout_seconds=1) as client:
        with pytest.raises(ClientTimeoutError, match=r"no answer in \d\.\d s, gave up \(oper"):
            await client.create_producer("t")
    broker = url.removeprefix("pulsar://")
    records = [
        each
        for each in caplog.records
        if each.name == "pulsar_py.client.brokers.connection_pool"
        and getattr(each, "broker", None) == broker  # threads of other clients may log, too
    ]
    warnings = [each.getMessage() for each in records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"no connection to {broker}: ")
    assert warnings[0].count(broker) == 1
    repeated = {each.getMessage() for each in records if each.levelno == logging.DEBUG}
    assert repeated == {warnings[0]}
    assert not [each for each in records if each.levelno == logging.INFO]
    assert "closed" not in caplog.text  # there was no connection


async def test_tls_to_a_plain_port_has_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def abort(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(abort, "127.0.0.1", 0)
    url = f"pulsar+ssl://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Client(url, operation_timeout_seconds=30) as client:
        with pytest.raises(NotABrokerError, match="no TLS on that port"):
            await client.create_producer("t")
    assert "no TLS on that port?" in caplog.text


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "http"])
async def test_a_port_of_the_plain_protocol_is_known_at_once(
    session_pulsar_broker: BrokerThread, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = session_pulsar_broker.service_url.removeprefix("pulsar://")
    async with Client(f"{scheme}://{address}", operation_timeout_seconds=30) as client:
        with pytest.raises(NotABrokerError, match=f"use pulsar://{address}"):
            await client.create_producer("t")
    lines = [line for line in caplog.messages if line.startswith(f"no connection to {address}: ")]
    assert len(lines) == (scheme == "pulsar+ssl")  # one attempt
    assert all(line.count(address) == 2 for line in lines)  # where it was, and what to use
