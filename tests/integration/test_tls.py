"""Ports with TLS: who gets in, what the broker says where it is, and new files while it runs."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pulsar
import pytest
import uvloop
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from benchmarks.raw_client import entry, frame, send_block
from pulsar_py.admin import http_server
from pulsar_py.client import Client
from pulsar_py.common.errors import ClientError, ConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandLookupTopic,
    CommandProducer,
)
from pulsar_py.server import listeners
from pulsar_py.server.security.tls import HANDSHAKE_SECONDS
from pulsar_py.standalone import Broker
from pulsar_py.testing import BrokerThread
from tests.certificates import Authority
from tests.listening_sockets import listening_ports

PROXY_HEADER = b"PROXY TCP4 192.0.2.1 198.51.100.7 40000 6650\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, **more: object) -> dict[str, object]:
    certificate, key = authority.issue("broker")
    return {
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        **more,
    }


def client_context(authority: Authority, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.path)
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


async def get(url: str, path: str, context: ssl.SSLContext | None) -> bytes:
    """The whole answer over TLS, empty if there is none."""
    address = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(
            address.hostname,
            address.port,
            ssl=context,
            server_hostname="localhost" if context else None,
        )
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
    except (ConnectionError, ssl.SSLError):
        return b""
    return answer


async def serial_of_broker(url: str, authority: Authority) -> str:
    """What tells one certificate of a port from another."""
    address = urlsplit(url)
    _, writer = await asyncio.open_connection(
        address.hostname,
        address.port,
        ssl=client_context(authority),
        server_hostname="localhost",
    )
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return str(certificate["serialNumber"])


@pytest.mark.setting("tlsCertificateFilePath", "tlsKeyFilePath", "brokerServicePortTls")
def test_the_official_client_publishes_over_tls(authority: Authority) -> None:
    with BrokerThread(config=settings(authority)) as broker:
        client = pulsar.Client(
            broker.service_url_tls.replace("127.0.0.1", "localhost"),
            tls_trust_certs_file_path=authority.path,
            tls_validate_hostname=True,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"over tls")
        assert consumer.receive(30_000).data() == b"over tls"
        client.close()


async def test_our_client_publishes_over_tls_to_a_broker_without_a_port_in_clear_text(
    authority: Authority,
) -> None:
    broker = Broker(config=settings(authority), port=None, web_port=None)
    of_others = listening_ports()
    async with broker:
        assert broker.service_url.startswith("pulsar+ssl://")
        assert broker.web_service_url.startswith("https://")
        async with Client(broker.service_url, tls_trust_certs_file_path=authority.path) as client:
            producer = await client.create_producer("t")
            await producer.send(b"x")
        async with Client(broker.service_url, operation_timeout_seconds=1) as stranger:
            with pytest.raises(ClientError, match=r"VERIFY_FAILED.*\(tls_trust_certs_file_path"):
                await stranger.create_producer("t")
        addresses = broker.service.addresses.default
        assert (addresses.broker_url, addresses.http_url) == (None, None)
        cluster = await broker.service.resources.clusters.get("standalone")
        assert cluster is not None
        assert cluster.broker_service_url is None
        assert cluster.broker_service_url_tls == broker.service_url
        assert cluster.service_url_tls == broker.web_service_url
        ports = listening_ports() - of_others
        assert len(ports) == 2
        await nothing_answers_in_clear_text(ports)


async def nothing_answers_in_clear_text(ports: Iterable[int]) -> None:
    """Ask without TLS."""
    for port in ports:
        answer = await get(f"http://127.0.0.1:{port}", "/metrics", None)
        assert not answer.startswith(b"HTTP")


@pytest.mark.setting("webServicePortTls")
async def test_administration_answers_over_tls(authority: Authority) -> None:
    async with Broker(config=settings(authority)) as broker:
        assert broker.web_service_url_tls is not None
        answer = await get(
            broker.web_service_url_tls, "/admin/v2/brokers/version", client_context(authority)
        )
        assert answer.startswith(b"HTTP/1.1 200")
        in_clear = await get(broker.web_service_url, "/admin/v2/brokers/leaderBroker", None)
        assert broker.web_service_url.encode() in in_clear


@pytest.mark.setting(
    "tlsTrustCertsFilePath", "tlsRequireTrustedClientCertOnConnect", "tlsAllowInsecureConnection"
)
@pytest.mark.parametrize(
    ("given", "who_gets_in"),
    [
        ({}, {"none", "ours", "foreign"}),
        ({"trust": True}, {"none", "ours"}),
        ({"trust": True, "tlsRequireTrustedClientCertOnConnect": True}, {"ours"}),
        ({"trust": True, "tlsAllowInsecureConnection": True}, {"none", "ours", "foreign"}),
    ],
)
async def test_client_certificates(
    authority: Authority, tmp_path: Path, given: dict[str, object], who_gets_in: set[str]
) -> None:
    config = settings(authority, **{name: each for name, each in given.items() if name != "trust"})
    if "trust" in given:
        config["tlsTrustCertsFilePath"] = authority.path
    foreign = Authority(tmp_path, "foreign-ca").issue("foreign")
    callers = {"none": None, "ours": authority.issue("ours"), "foreign": foreign}
    async with Broker(config=config) as broker:
        let_in = set()
        for name, pair in callers.items():
            context = client_context(authority, pair)
            url = broker.web_service_url_tls
            assert url is not None
            if (await get(url, "/admin/v2/brokers/ready", context)).startswith(b"HTTP/1.1 200"):
                let_in.add(name)
    assert let_in == who_gets_in


@pytest.mark.setting("tlsCertRefreshCheckDurationSec", "tlsCertificateFilePath", "tlsKeyFilePath")
async def test_new_files_are_used_by_new_connections(authority: Authority, tmp_path: Path) -> None:
    config = settings(authority, tlsCertRefreshCheckDurationSec=1)
    async with Broker(config=config) as broker:
        url = broker.service_url_tls
        assert url is not None
        before = await serial_of_broker(url, authority)
        Path(str(config["tlsKeyFilePath"])).write_text("half written")
        await asyncio.sleep(1.2)
        assert await serial_of_broker(url, authority) == before  # it can't be read: the former one
        authority.issue("broker")
        async with asyncio.timeout(30):
            while await serial_of_broker(url, authority) == before:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_was_sent_before_the_end_of_a_connection_is_stored(
    authority: Authority, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    run(publishing_and_ending(authority))


async def publishing_and_ending(authority: Authority) -> None:
    """Connections that publish as much as may be under way, more than three reads, and end."""
    topics, messages_count = [f"persistent://public/default/t{number}" for number in range(6)], 900

    def publish(url: str, topic: str) -> None:
        address = urlsplit(url)
        opening = [
            BaseCommand(
                type=BaseCommand.CONNECT,
                connect=CommandConnect(client_version="test", protocol_version=21),
            ),
            BaseCommand(
                type=BaseCommand.LOOKUP,
                lookupTopic=CommandLookupTopic(topic=topic, request_id=1),
            ),
            BaseCommand(
                type=BaseCommand.PRODUCER,
                producer=CommandProducer(topic=topic, producer_id=1, request_id=2),
            ),
        ]
        with (
            socket.create_connection((address.hostname, address.port), timeout=20) as plain,
            client_context(authority).wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            for command in opening:
                secure.sendall(frame(command))
                assert secure.recv(1 << 16)
            secure.sendall(send_block(1, 0, messages_count, entry(bytes(1000))))
            secure.shutdown(socket.SHUT_WR)
            while secure.recv(1 << 16):
                pass  # receipts, until the broker has closed as well

    async with Broker(config=settings(authority)) as broker:
        for topic in topics:
            with suppress(ssl.SSLEOFError):  # the broker ends as abruptly
                await asyncio.to_thread(publish, broker.service_url_tls, topic)
        for topic in topics:
            async with asyncio.timeout(20):
                while (stored := await entries_of(broker.web_service_url, topic)) < messages_count:
                    await asyncio.sleep(0.01)
            assert stored == messages_count


async def entries_of(url: str, topic: str) -> int:
    """How many entries a topic has stored since it was loaded."""
    path = f"/admin/v2/{topic.replace('://', '/')}/internalStats"
    body = (await get(url, path, None)).partition(b"\r\n\r\n")[2]
    return int(json.loads(body)["entriesAddedCounter"])


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_connection_ends_when_its_authority_leaves_the_trust_store(
    authority: Authority, tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    run(connections_while_an_authority_leaves(authority, tmp_path))


async def connections_while_an_authority_leaves(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Path(authority.path).read_text() + Path(other.path).read_text())
    config = settings(
        authority, tlsCertRefreshCheckDurationSec=1, tlsTrustCertsFilePath=str(trusted)
    )
    async with Broker(config=config) as broker:
        assert broker.service_url_tls is not None
        assert broker.web_service_url_tls is not None

        async def connect(url: str, pair: tuple[str, str] | None) -> asyncio.StreamReader:
            address = urlsplit(url)
            reader, writer = await asyncio.open_connection(
                address.hostname, address.port, ssl=client_context(authority, pair)
            )
            opened.append(writer)  # which closes when it is collected
            if address.scheme == "https":
                writer.write(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n")
                async with asyncio.timeout(10):
                    assert await reader.readline() == b"HTTP/1.1 200 \r\n"
                    await reader.readuntil(b'["standalone"]')
            return reader

        opened: list[asyncio.StreamWriter] = []
        urls = (broker.service_url_tls, broker.web_service_url_tls)
        staying = [
            await connect(url, pair) for url in urls for pair in (authority.issue("a"), None)
        ]
        ending = [await connect(url, other.issue("b")) for url in urls]
        trusted.write_text(Path(authority.path).read_text())
        async with asyncio.timeout(10):
            for each in ending:
                assert await each.read() == b""
        for each in staying:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await each.read(1)
        for each in opened:
            each.close()


@pytest.mark.parametrize("is_behind_proxy", [False, True])
async def test_who_does_not_finish_the_handshake_is_dropped(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, *, is_behind_proxy: bool
) -> None:
    assert HANDSHAKE_SECONDS == 10
    for module in (listeners, http_server):
        monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.2)
    config = settings(authority)
    if is_behind_proxy:
        config |= {
            "haProxyProtocolEnabled": True,
            "webServiceHaProxyProtocolEnabled": True,
            "trustedProxyAddresses": "127.0.0.1",
        }
    async with Broker(config=config, port=None, web_port=None) as broker:
        for url in (broker.service_url_tls, broker.web_service_url_tls):
            assert url is not None
            for first in (b"", b"\x16\x03\x01\x02\x00\x01"):  # nothing, or how TLS begins
                reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
                writer.write(PROXY_HEADER * is_behind_proxy + first)
                async with asyncio.timeout(10):
                    assert await reader.read() == b""
                writer.close()


@pytest.mark.setting("tlsProtocols", "tlsCiphers")
async def test_versions_and_ciphers_of_the_binary_port(authority: Authority) -> None:
    config = settings(
        authority,
        tlsProtocols="TLSv1.2",
        tlsCiphers="TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    )
    assert await agreed(config, authority, is_http=False) == (
        "TLSv1.2",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    )


@pytest.mark.setting("webServiceTlsProtocols", "webServiceTlsCiphers")
async def test_versions_and_ciphers_of_https(authority: Authority) -> None:
    config = settings(
        authority,
        webServiceTlsProtocols="TLSv1.2",
        webServiceTlsCiphers="ECDHE-ECDSA-CHACHA20-POLY1305",
    )
    assert await agreed(config, authority, is_http=True) == (
        "TLSv1.2",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    )


async def agreed(
    config: dict[str, object], authority: Authority, *, is_http: bool
) -> tuple[str, str]:
    """The version and cipher that a client gets which takes all."""
    async with Broker(config=config) as broker:
        url = broker.web_service_url_tls if is_http else broker.service_url_tls
        assert url is not None
        address = urlsplit(url)
        _, writer = await asyncio.open_connection(
            address.hostname,
            address.port,
            ssl=client_context(authority),
            server_hostname="localhost",
        )
        cipher = writer.get_extra_info("cipher")
        version = writer.get_extra_info("ssl_object").version()
        writer.close()
    return version, cipher[0]


async def test_a_key_that_others_can_read_brings_one_warning(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings(authority)
    key = Path(str(config["tlsKeyFilePath"]))
    for mode, count in ((0o640, 1), (0o600, 1)):
        key.chmod(mode)
        async with Broker(config=config, port=None, web_port=None):
            found = [each for each in caplog.records if "read by others" in each.message]
            assert [(each.setting, each.path) for each in found] == [
                ("tlsKeyFilePath", str(key))
            ] * count


def store(path: Path, pair: tuple[str, str], password: str) -> str:
    """A PKCS#12 file of a certificate and key."""
    certificate = load_pem_x509_certificate(Path(pair[0]).read_bytes())
    key = serialization.load_pem_private_key(Path(pair[1]).read_bytes(), None)
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"broker",
            key,
            certificate,
            None,
            serialization.BestAvailableEncryption(password.encode()),
        )
    )
    return str(path)


@pytest.mark.setting(
    "tlsEnabledWithKeyStore",
    "tlsKeyStore",
    "tlsKeyStoreType",
    "tlsKeyStorePassword",
    "tlsTrustStore",
    "tlsTrustStoreType",
    "tlsTrustStorePassword",
)
async def test_stores_take_the_place_of_pem_files(authority: Authority, tmp_path: Path) -> None:
    trusted = tmp_path / "trust.p12"
    trusted.write_bytes(
        pkcs12.serialize_key_and_certificates(
            None,
            None,
            None,
            [load_pem_x509_certificate(Path(authority.path).read_bytes())],
            serialization.BestAvailableEncryption(b"theirs"),
        )
    )
    config = {
        "webServicePortTls": 0,
        "tlsEnabledWithKeyStore": True,
        "tlsKeyStoreType": "PKCS12",
        "tlsKeyStore": store(tmp_path / "key.p12", authority.issue("broker"), "ours"),
        "tlsKeyStorePassword": "ours",
        "tlsTrustStoreType": "PKCS12",
        "tlsTrustStore": str(trusted),
        "tlsTrustStorePassword": "theirs",
        "tlsRequireTrustedClientCertOnConnect": True,
    }
    async with Broker(config=config) as broker:
        url = broker.web_service_url_tls
        assert url is not None
        path = "/admin/v2/brokers/ready"
        context = client_context(authority, authority.issue("client"))
        assert (await get(url, path, context)).startswith(b"HTTP/1.1 200")
        assert not await get(url, path, client_context(authority))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"tlsCertificateFilePath": "", "tlsKeyFilePath": ""}, "needs tlsCertificateFilePath"),
        ({"tlsKeyFilePath": "/nowhere.pem"}, "/nowhere.pem"),
        ({"tlsRequireTrustedClientCertOnConnect": True}, "tlsTrustCertsFilePath"),
        ({"tlsCiphers": "NO-SUCH-CIPHER"}, "NO-SUCH-CIPHER"),
        (
            {"tlsEnabledWithKeyStore": True, "tlsKeyStore": "/k.jks"},
            "keytool -importkeystore -srckeystore /k.jks -destkeystore /k.p12",
        ),
    ],
)
async def test_what_can_not_be_set_up_is_named(
    authority: Authority, given: dict[str, object], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        await Broker(config=settings(authority, **given)).start()


@pytest.mark.parametrize(("port", "web_port"), [(None, 0), (0, None)])
async def test_a_broker_without_a_port_is_refused(port: int | None, web_port: int | None) -> None:
    with pytest.raises(ConfigurationError, match="are both empty"):
        await Broker(port=port, web_port=web_port).start()
