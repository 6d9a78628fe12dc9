"""What proxies say of their clients' addresses, and what others say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.standalone import Broker
from tests.certificates import Authority
from tests.integration.test_tls import client_context
from tests.wire_client import encode

HEADER = b"PROXY TCP4 192.0.2.1 198.51.100.7 4711 6650\r\n"
V2 = bytes.fromhex("0d0a0d0a000d0a515549540a2111000cc0000201c6336407126719fa")
SECONDS = 10


def connect_command() -> bytes:
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "test"
    command.connect.protocol_version = 21
    return encode(command)


async def said(url: str, data: bytes) -> bytes:
    """The first bytes of the answer; empty if the connection is closed."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        async with asyncio.timeout(SECONDS):
            writer.write(data)
            return await reader.read(4096)
    except OSError:
        return b""
    finally:
        writer.close()


async def seen(broker: Broker, data: bytes) -> str | None:
    """The address that the broker takes a connection to come from; None if it closes it."""
    address = urlsplit(broker.service_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(data + connect_command())
        answer = b""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(SECONDS):
                answer = await reader.read(4096)
        if not answer:
            return None
        assert BaseCommand.FromString(answer[8:]).type == BaseCommand.CONNECTED
        (cnx,) = broker.service.connections._open
        return cnx.remote_address
    finally:
        writer.close()
        async with asyncio.timeout(SECONDS):
            while broker.service.connections.count:
                await asyncio.sleep(0.01)


@pytest.mark.setting("haProxyProtocolEnabled", "trustedProxyAddresses")
async def test_a_listed_proxy_names_its_client() -> None:
    config = {"haProxyProtocolEnabled": True, "trustedProxyAddresses": "127.0.0.0/8"}
    async with Broker(config=config) as broker:
        assert await seen(broker, HEADER) == "/192.0.2.1:4711"
        assert await seen(broker, V2) == "/192.0.2.1:4711"
        own = await seen(broker, b"")
        assert own is not None
        assert own.startswith("/127.0.0.1:")
        assert await seen(broker, b"PROXY TCP4 nonsense\r\n") is None


async def test_a_header_of_somebody_else_closes_his_connection() -> None:
    config = {"haProxyProtocolEnabled": True, "trustedProxyAddresses": "10.0.0.0/8"}
    for settings in (config, {}):
        async with Broker(config=settings) as broker:
            assert await seen(broker, HEADER) is None
            assert await seen(broker, V2) is None
            assert await seen(broker, b"") is not None


async def test_limits_of_connections_count_the_client_that_was_named() -> None:
    config = {
        "haProxyProtocolEnabled": True,
        "trustedProxyAddresses": "127.0.0.1",
        "brokerMaxConnectionsPerIp": 1,
    }
    async with Broker(config=config) as broker:
        address = urlsplit(broker.service_url)
        writers = []
        for host, is_taken in ((b"192.0.2.1", True), (b"192.0.2.2", True), (b"192.0.2.1", False)):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writers.append(writer)
            writer.write(HEADER.replace(b"192.0.2.1", host) + connect_command())
            async with asyncio.timeout(SECONDS):
                answer = BaseCommand.FromString((await reader.read(4096))[8:])
            assert (answer.type == BaseCommand.CONNECTED) is is_taken
        for writer in writers:
            writer.close()


async def address_in_log(broker: Broker, caplog: pytest.LogCaptureFixture, head: bytes) -> str:
    """The address that the request log has for a request that begins with `head`."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "pulsar_py.requests"):
        answer = await said(broker.web_service_url, head)
    if not answer.startswith(b"HTTP/1.1 200"):
        return ""
    (record,) = [each for each in caplog.records if each.name == "pulsar_py.requests"]
    return str(record.__dict__["remote_address"])


REQUEST = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.mark.setting("webServiceHaProxyProtocolEnabled", "webServiceTrustXForwardedFor")
async def test_http_believes_listed_proxies_alone(caplog: pytest.LogCaptureFixture) -> None:
    forwarded = REQUEST + b"X-Forwarded-For: 9.9.9.9, 192.0.2.9\r\n\r\n"
    config = {
        "webServiceHaProxyProtocolEnabled": True,
        "webServiceTrustXForwardedFor": True,
        "webServiceRequestLogEnabled": True,
    }
    async with Broker(config={**config, "trustedProxyAddresses": "127.0.0.1"}) as broker:
        plain = HEADER + REQUEST + b"\r\n"
        assert await address_in_log(broker, caplog, plain) == "/192.0.2.1:4711"
        assert await address_in_log(broker, caplog, forwarded) == "/192.0.2.9:0"
        # The client that the PROXY header names is no listed proxy: its own word does not count.
        assert await address_in_log(broker, caplog, HEADER + forwarded) == "/192.0.2.1:4711"
    async with Broker(config={**config, "trustedProxyAddresses": "10.0.0.1"}) as broker:
        assert await address_in_log(broker, caplog, HEADER + REQUEST + b"\r\n") == ""
        found = await address_in_log(broker, caplog, forwarded)
        assert found.startswith("/127.0.0.1:")


async def test_the_header_stands_before_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    config = {
        "brokerServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "haProxyProtocolEnabled": True,
        "trustedProxyAddresses": "127.0.0.1",
    }
    async with Broker(config=config) as broker:
        port = urlsplit(broker.service_url_tls or "").port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER)
        await writer.drain()
        await writer.start_tls(client_context(authority), server_hostname="localhost")
        writer.write(connect_command())
        async with asyncio.timeout(SECONDS):
            await reader.read(4096)
        (cnx,) = broker.service.connections._open
        assert cnx.remote_address == "/192.0.2.1:4711"
        writer.close()


@pytest.mark.parametrize(
    "name",
    [
        "haProxyProtocolEnabled",
        "webServiceHaProxyProtocolEnabled",
        "webServiceTrustXForwardedFor",
    ],
)
async def test_without_a_list_the_broker_does_not_start(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}=true needs trustedProxyAddresses"):
        await Broker(config={name: True}).start()
