"""A client's connections with TLS, on real sockets."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pulsar_py.client.client import Client
from pulsar_py.client.security.authentication import AuthenticationTLS
from pulsar_py.common.errors import ClientTimeoutError, InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.scripted_broker import ScriptedBroker

TOPIC = "persistent://a/b/c"


def write_certificate(directory: Path, name: str, address: str) -> tuple[str, str]:
    """A self-signed certificate and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = directory / f"{name}.crt", directory / f"{name}.key"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(certificate_path), str(key_path)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    return write_certificate(tmp_path, "broker", "127.0.0.1")


@pytest_asyncio.fixture
async def broker(certificate: tuple[str, str]) -> AsyncIterator[ScriptedBroker]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    started = await ScriptedBroker(host="127.0.0.1").start(ssl=context)
    yield started
    started.close()


def url_of(broker: ScriptedBroker) -> str:
    return f"pulsar+ssl://{broker.address}"


async def test_a_trusted_broker_is_talked_to(
    broker: ScriptedBroker, certificate: tuple[str, str]
) -> None:
    async with Client(
        url_of(broker), tls_trust_certs_file_path=certificate[0], tls_validate_hostname=True
    ) as client:
        assert await client.get_topic_partitions(TOPIC) == [TOPIC]
        address = await client.context.lookup.lookup(TOPIC)
        assert address.is_tls
        assert await client.context.pool.get(address) is client.context.pool.connections[0]


async def test_a_stranger_is_not_trusted(broker: ScriptedBroker) -> None:
    async with Client(url_of(broker), operation_timeout_seconds=0.5) as client:
        with pytest.raises(ClientTimeoutError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get_topic_partitions(TOPIC)


async def test_a_stranger_is_taken_where_that_is_wanted(broker: ScriptedBroker) -> None:
    async with Client(url_of(broker), tls_allow_insecure_connection=True) as client:
        assert await client.get_topic_partitions(TOPIC) == [TOPIC]


async def test_a_certificate_of_another_host_is_refused(
    broker: ScriptedBroker, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    url = url_of(broker).replace("127.0.0.1", "localhost")
    async with Client(
        url,
        operation_timeout_seconds=0.5,
        tls_trust_certs_file_path=certificate[0],
        tls_validate_hostname=True,
    ) as client:
        with pytest.raises(ClientTimeoutError, match="localhost"):
            await client.get_topic_partitions(TOPIC)


async def test_a_file_that_is_no_certificate_is_named(broker: ScriptedBroker) -> None:
    async with Client(url_of(broker), tls_trust_certs_file_path="/no/such") as client:
        with pytest.raises(InvalidConfigurationError, match="/no/such"):
            await client.get_topic_partitions(TOPIC)


async def test_the_clients_own_certificate_is_shown(
    tmp_path: Path, certificate: tuple[str, str]
) -> None:
    ours = write_certificate(tmp_path, "client", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(ours[0])
    context.verify_mode = ssl.CERT_REQUIRED
    broker = await ScriptedBroker(host="127.0.0.1").start(ssl=context)
    async with Client(
        url_of(broker), AuthenticationTLS(*ours), tls_trust_certs_file_path=certificate[0]
    ) as client:
        assert await client.get_topic_partitions(TOPIC) == [TOPIC]
    (connect,) = broker.of(BaseCommand.CONNECT)
    assert connect.connect.auth_method_name == "tls"
    broker.close()
