"""tls: names of ciphers, and contexts that are made again when files change."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context, refused_certificate
from pulsar_py.server.security.tls import (
    ReloadingContext,
    TlsSettings,
    openssl_cipher_name,
    server_context,
)
from tests.certificates import Authority


@pytest.mark.parametrize(
    ("standard", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_AES_256_GCM_SHA384", ""),
    ],
)
def test_names_of_ciphers(standard: str, openssl: str) -> None:
    assert openssl_cipher_name(standard) == openssl


def settings(authority: Authority, **more: object) -> TlsSettings:
    certificate, key = authority.issue("broker")
    return TlsSettings(certificate_path=certificate, key_path=key, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("is_insecure", "expected"), [(False, ssl.CERT_OPTIONAL), (True, ssl.CERT_NONE)]
)
def test_whose_certificates_are_asked_for(
    tmp_path: Path, *, is_insecure: bool, expected: ssl.VerifyMode
) -> None:
    authority = Authority(tmp_path)
    context = server_context(
        settings(authority, trust_path=authority.path, allows_insecure=is_insecure)
    )
    assert context.verify_mode is expected
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_files_are_read_again_when_they_changed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    found = settings(authority)
    context = ReloadingContext(found)
    assert not context.reload_if_changed()
    authority.issue("broker")
    os.utime(found.certificate_path, (1, 1))
    assert context.reload_if_changed()
    Path(found.key_path).write_text("nonsense")
    assert not context.reload_if_changed()
    assert not context.reload_if_changed()


def test_a_store_of_java_is_refused_with_the_command_that_helps() -> None:
    found = TlsSettings(key_store_path="/a/k.jks", key_store_type="JKS")
    with pytest.raises(ConfigurationError, match=r"keytool .*-destkeystore /a/k\.p12"):
        server_context(found)


def test_a_refused_certificate_is_told_before_the_handshake_fails(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    certificate, key = authority.issue("broker")
    server = server_context(
        TlsSettings(
            certificate_path=certificate,
            key_path=key,
            trust_path=authority.path,
            requires_client_certificate=True,
        )
    )
    client = client_ssl_context(
        TlsOptions(tls_trust_certs_file_path=authority.path), stranger.issue("me")
    )
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(down, up, server_hostname="broker")
    theirs = server.wrap_bio(up, down, server_side=True)
    for side in (ours, theirs):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    ours.do_handshake()  # with TLS 1.3 all is well for the client
    with pytest.raises(ssl.SSLWantReadError):
        theirs.do_handshake()
    with pytest.raises(ssl.SSLError) as told:
        ours.read(1)
    assert "of an authority it does not trust" in (refused_certificate(told.value) or "")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        theirs.do_handshake()
