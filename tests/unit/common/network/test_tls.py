"""TLS contexts by their options, tried out in handshakes in memory."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.network.tls import (
    TRUST_OPTIONS,
    TlsOptions,
    client_ssl_context,
    failure_text,
    refused_certificate,
)
from tests.certificates import Certificate


@pytest.fixture
def broker(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path, "broker")


@pytest.fixture
def client(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path, "client")


def handshake(
    context: ssl.SSLContext,
    broker: Certificate,
    *,
    host: str = "broker.example",
    trusted: Certificate | None = None,
) -> str | None:
    """Shake hands with a broker; returns the common name the client showed, if it was wanted."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(broker.certificate_path, broker.key_path)
    if trusted is not None:
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(trusted.certificate_path)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(down, up, server_hostname=host)
    theirs = server.wrap_bio(up, down, server_side=True)
    for _ in range(5):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = theirs.getpeercert() if trusted is not None else None
    return None if not shown else shown["subject"][0][0][1]  # type: ignore[index, return-value]


def test_a_trusted_broker_is_taken_whatever_its_name(broker: Certificate) -> None:
    options = TlsOptions(tls_trust_certs_file_path=broker.certificate_path)

    handshake(client_ssl_context(options), broker, host="other.example")


def test_the_host_is_verified_where_asked_for(broker: Certificate) -> None:
    options = TlsOptions(
        tls_trust_certs_file_path=broker.certificate_path, tls_validate_hostname=True
    )

    handshake(client_ssl_context(options), broker)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"[Hh]ostname mismatch"):
        handshake(client_ssl_context(options), broker, host="other.example")


def test_a_stranger_is_refused_unless_anybody_is_fine(broker: Certificate) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as raised:
        handshake(client_ssl_context(TlsOptions()), broker)
    assert failure_text(raised.value).endswith(f"the authority that signed it ({TRUST_OPTIONS})")
    assert failure_text(raised.value, "x").endswith("that signed it (x)")
    assert failure_text(raised.value, "") == str(raised.value)
    options = TlsOptions(tls_allow_insecure_connection=True, tls_validate_hostname=True)
    handshake(client_ssl_context(options), broker, host="other.example")


def test_other_failures_get_no_advice_and_are_never_empty() -> None:
    assert failure_text(ConnectionRefusedError(111, "refused")) == "[Errno 111] refused"
    assert failure_text(TimeoutError()) == "TimeoutError"


def test_a_certificate_is_shown(broker: Certificate, client: Certificate) -> None:
    options = TlsOptions(
        tls_trust_certs_file_path=broker.certificate_path,
        tls_certificate_file_path=client.certificate_path,
        tls_private_key_file_path=client.key_path,
    )

    assert handshake(client_ssl_context(options), broker, trusted=client) == "client"


def test_the_authentication_s_certificate_goes_first(
    broker: Certificate, client: Certificate
) -> None:
    options = TlsOptions(
        tls_trust_certs_file_path=broker.certificate_path,
        tls_certificate_file_path=broker.certificate_path,
        tls_private_key_file_path=broker.key_path,
    )

    context = client_ssl_context(options, (client.certificate_path, client.key_path))

    assert handshake(context, broker, trusted=client) == "client"


def test_certificate_and_key_may_be_one_file(
    broker: Certificate, client: Certificate, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(
        Path(client.certificate_path).read_bytes() + Path(client.key_path).read_bytes()
    )
    options = TlsOptions(
        tls_trust_certs_file_path=broker.certificate_path, tls_certificate_file_path=str(both)
    )

    assert handshake(client_ssl_context(options), broker, trusted=client) == "client"


def test_authorities_need_not_pass_strict_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer Pythons set the flag by themselves."""
    make = ssl.SSLContext.__new__

    def strict(kind: type[ssl.SSLContext], *args: int) -> ssl.SSLContext:
        context = make(kind, *args)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl.SSLContext, "__new__", strict)
    assert ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).verify_flags & ssl.VERIFY_X509_STRICT
    assert not client_ssl_context(TlsOptions()).verify_flags & ssl.VERIFY_X509_STRICT


def test_old_versions_are_not_spoken() -> None:
    assert client_ssl_context(TlsOptions()).minimum_version is ssl.TLSVersion.TLSv1_2


def test_ciphers_can_be_chosen() -> None:
    context = client_ssl_context(TlsOptions(tls_ciphers="ECDHE-RSA-AES256-GCM-SHA384"))

    names = {cipher["name"] for cipher in context.get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {
        "ECDHE-RSA-AES256-GCM-SHA384"
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tls_trust_certs_file_path": "/nowhere"}, "tls_trust_certs_file_path: /nowhere: No such"),
        ({"tls_certificate_file_path": "/nowhere"}, "tls_certificate_file_path: /nowhere"),
        ({"tls_private_key_file_path": "/k"}, "needs tls_certificate_file_path"),
        ({"tls_ciphers": "nonsense"}, "tls_ciphers: nonsense"),
    ],
)
def test_what_can_not_be_used_is_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=problem):
        client_ssl_context(TlsOptions(**options))  # type: ignore[arg-type]


def test_files_without_certificates_are_named(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")

    with pytest.raises(InvalidConfigurationError, match="tls_trust_certs_file_path"):
        client_ssl_context(TlsOptions(tls_trust_certs_file_path=str(path)))
    with pytest.raises(InvalidConfigurationError, match="AuthenticationTLS"):
        client_ssl_context(TlsOptions(), (str(path), str(path)))


def test_a_refusal_is_found_among_the_causes_of_an_error() -> None:
    alert = ssl.SSLError(1, "alert")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    error = OSError("lost")
    error.__cause__ = alert
    assert refused_certificate(error) == (
        "the server wants a certificate, and none was shown (TLSV13_ALERT_CERTIFICATE_REQUIRED)"
    )
    assert refused_certificate(OSError("lost")) is None
    assert refused_certificate(None) is None
