"""secure_jobs: certificates that strict clients take, with the names of the broker."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from pulsar_py.cli.security.secure_jobs import CERTIFICATE_DAYS, SecureRequest, initialize
from pulsar_py.server.properties_text import parse_properties

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


def made(tmp_path: Path, token_seconds: int | None = None) -> Path:
    directory = tmp_path / "s"
    initialize(
        SecureRequest(
            directory=directory,
            hosts=("b.example", "::1"),
            operator="boss",
            client="app",
            port=7651,
            web_port=9443,
            now=NOW,
            token_seconds=token_seconds,
        )
    )
    return directory


def test_the_authority_signed_the_brokers_certificate_for_its_hosts(tmp_path: Path) -> None:
    directory = made(tmp_path)
    ca, broker = (
        x509.load_pem_x509_certificate((directory / name).read_bytes())
        for name in ("ca.pem", "broker.pem")
    )
    broker.verify_directly_issued_by(ca)
    names = broker.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["b.example"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("::1")]
    assert broker.not_valid_after_utc == NOW + dt.timedelta(days=CERTIFICATE_DAYS)
    identifier = broker.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert identifier.key_identifier == own.digest


def test_tokens_are_of_both_roles_and_end_when_asked(tmp_path: Path) -> None:
    directory = made(tmp_path, token_seconds=60)
    key = serialization.load_der_public_key((directory / "tokens.public.key").read_bytes())
    for file, role in (("operator.jwt", "boss"), ("client.jwt", "app")):
        claims = jwt.decode((directory / file).read_text(), key, algorithms=["ES256"])  # type: ignore[arg-type]
        assert claims == {"sub": role, "exp": int(NOW.timestamp()) + 60}


def test_the_ports_are_those_of_the_broker_and_of_its_tools(tmp_path: Path) -> None:
    directory = made(tmp_path)
    broker = parse_properties((directory / "standalone.conf").read_text())
    assert (broker["brokerServicePort"], broker["webServicePort"]) == ("", "")
    assert (broker["brokerServicePortTls"], broker["webServicePortTls"]) == ("7651", "9443")
    tools = parse_properties((directory / "client.conf").read_text())
    assert tools["brokerServiceUrl"] == "pulsar+ssl://b.example:7651/"
    assert tools["webServiceUrl"] == "https://b.example:9443/"
