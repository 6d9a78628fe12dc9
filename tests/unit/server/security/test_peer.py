"""Who is at the other end: over plain sockets and TLS."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pulsar_py.server.security.peer import Peer, PeerCertificate, peer_of


def make_certificate(directory: Path, name: str) -> Path:
    """A certificate that signs itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


async def accepted(
    server_tls: ssl.SSLContext | None, client_tls: ssl.SSLContext | None
) -> tuple[Peer, str]:
    """The peer that a server sees, and the address the client has."""
    seen: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

    class Noting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            seen.set_result(peer_of(transport))

    loop = asyncio.get_running_loop()
    server = await loop.create_server(Noting, "127.0.0.1", 0, ssl=server_tls)
    port = server.sockets[0].getsockname()[1]
    name = None if client_tls is None else "server"
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_tls, server_hostname=name
    )
    host, own_port = writer.get_extra_info("sockname")
    peer = await seen
    writer.close()
    server.close()
    return peer, f"/{host}:{own_port}"


def contexts(
    directory: Path, *, client: str | None, verify: ssl.VerifyMode
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    own = make_certificate(directory, "server")
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(own)
    client_tls = ssl.create_default_context(cafile=str(own))
    server_tls.verify_mode = verify
    if client is not None:
        theirs = make_certificate(directory, client)
        client_tls.load_cert_chain(theirs)
        server_tls.load_verify_locations(theirs)
    return server_tls, client_tls


async def test_a_plain_connection_has_an_address() -> None:
    peer, address = await accepted(None, None)
    assert peer == Peer(address)


async def test_a_verified_certificate_says_who_it_is(tmp_path: Path) -> None:
    tls = contexts(tmp_path, client="alice", verify=ssl.CERT_OPTIONAL)
    peer, address = await accepted(*tls)
    assert peer.remote_address == address
    assert peer.certificate is not None
    assert peer.certificate.common_name == "alice"
    parsed = x509.load_der_x509_certificate(peer.certificate.der)
    assert parsed.serial_number == 1
    assert peer.certificate.expires_at_millis == parsed.not_valid_after_utc.timestamp() * 1000


@pytest.mark.parametrize(
    ("client", "verify"), [(None, ssl.CERT_OPTIONAL), ("alice", ssl.CERT_NONE)]
)
async def test_without_a_certificate_there_is_none(
    tmp_path: Path, client: str | None, verify: ssl.VerifyMode
) -> None:
    """One that nobody asked for is not sent."""
    peer, _ = await accepted(*contexts(tmp_path, client=client, verify=verify))
    assert peer.certificate is None


def test_a_certificate_without_a_verified_subject_names_nobody() -> None:
    assert PeerCertificate(b"der").common_name is None
    assert PeerCertificate(b"der", ((("countryName", "DE"),),)).common_name is None


def test_a_transport_without_an_address_is_unknown() -> None:
    assert peer_of(asyncio.Transport()) == Peer()
