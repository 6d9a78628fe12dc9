"""TLS of the broker's ports: contexts of certificates, keys and authorities, and their renewal.

`ReloadingContext` is what listeners are given. New connections get the files as they were last
read; when they can't be read, the former ones stay in use and the log says so. Open connections
keep what they were opened with, but for those of clients whose authority is trusted no more, which
end (`vouched_connections`).

PKCS#12 stores are read with `cryptography`, Java's own format JKS is not.

Source: TlsKeyStore settings and PulsarSslFactory of Pulsar's broker.
"""

from __future__ import annotations

import logging
import socket
import ssl
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.security.vouched_connections import (
    Authorities,
    VouchedConnections,
    authorities_in,
)
from pulsar_py.server.security.watched_file import WatchedFile

__all__ = ["HANDSHAKE_SECONDS", "ReloadingContext", "TlsSettings", "server_context"]

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10.0
"""Seconds in which a client has to finish the handshake."""

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PKCS12: Final = "PKCS12"
_REFUSED_CERTIFICATE: Final = frozenset(
    {"PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED"}
)
"""OpenSSL's reasons where a handshake fails by the client's certificate."""


class TlsSettings(Struct, frozen=True, kw_only=True):
    """Where a port's certificate, key and authorities are, and whom it lets in.

    Either the three PEM paths count or, if `key_store_path` is set, the stores.
    """

    certificate_path: str = ""
    key_path: str = ""
    trust_path: str = ""
    key_store_path: str = ""
    key_store_type: str = _PKCS12
    key_store_password: str = ""
    trust_store_path: str = ""
    trust_store_type: str = _PKCS12
    trust_store_password: str = ""
    allows_insecure: bool = False
    requires_client_certificate: bool = False
    protocols: frozenset[str] = frozenset()
    ciphers: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files whose changes are noticed."""
        if self.key_store_path:
            found: tuple[str, ...] = (self.key_store_path, self.trust_store_path)
        else:
            found = (self.certificate_path, self.key_path, self.trust_path)
        return tuple(filter(None, found))

    @property
    def secret(self) -> tuple[str, str]:
        """The setting that names the file with the key, and its path."""
        if self.key_store_path:
            return "tlsKeyStore", self.key_store_path
        return "tlsKeyFilePath", self.key_path


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context for a listening port, from the files as they are now.

    Raises:
        ConfigurationError: A setting is missing, or a file can't be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _TellingHandshake
    context.options |= ssl.OP_NO_RENEGOTIATION  # a handshake costs the broker more than its client
    _set_versions(context, settings)
    try:
        _load_certificate(context, settings)
        has_trust = _load_trust(context, settings)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        places = ", ".join(settings.paths) or "no files given"
        raise ConfigurationError(f"TLS can't be set up ({places}): {error}") from error
    # Authorities of users need not have the extensions that RFC 5280 wants.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.requires_client_certificate:
        if not has_trust or settings.allows_insecure:
            raise ConfigurationError(
                "tlsRequireTrustedClientCertOnConnect=true needs authorities to trust "
                "(tlsTrustCertsFilePath), and tlsAllowInsecureConnection=false"
            )
        context.verify_mode = ssl.CERT_REQUIRED
    elif has_trust and not settings.allows_insecure:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [_VERSIONS[name] for name in settings.protocols] or list(_VERSIONS.values())
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    names = [name for name in map(openssl_cipher_name, settings.ciphers) if name]
    if not names:
        return
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"tlsCiphers={','.join(settings.ciphers)}: this OpenSSL knows none of them"
        ) from error


def openssl_cipher_name(name: str) -> str:
    """OpenSSL's name of a cipher suite that has the standard's; empty for those of TLS 1.3.

    `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` is `ECDHE-RSA-AES256-GCM-SHA384`.
    """
    if not name.startswith("TLS_"):
        return name
    exchange, separator, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return ""
    for bits in ("128", "256"):
        cipher = cipher.replace(f"AES_{bits}", f"AES{bits}")
    cipher = cipher.replace("_CBC_", "_").removesuffix(
        "_SHA256" if cipher.startswith("CHACHA20") else "\0"
    )
    parts = [cipher] if exchange == "RSA" else [exchange, cipher]
    return "-".join(parts).replace("_", "-")


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.key_store_path:
        _check_store_type(settings.key_store_type, "tlsKeyStore", settings.key_store_path)
        _load_key_store(context, settings)
        return
    if not (settings.certificate_path and settings.key_path):
        raise ConfigurationError(
            "a port with TLS needs tlsCertificateFilePath and tlsKeyFilePath, or "
            "tlsEnabledWithKeyStore=true with tlsKeyStore"
        )
    context.load_cert_chain(settings.certificate_path, settings.key_path)


def _load_trust(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    """Load the authorities; returns whether there are any."""
    if settings.key_store_path:
        if not settings.trust_store_path:
            return False
        _check_store_type(settings.trust_store_type, "tlsTrustStore", settings.trust_store_path)
        context.load_verify_locations(cadata=_trust_store_text(settings))
        return True
    if not settings.trust_path:
        return False
    context.load_verify_locations(settings.trust_path)
    return True


def _check_store_type(kind: str, name: str, path: str) -> None:
    if kind.upper().replace("#", "") != _PKCS12:
        raise ConfigurationError(
            f"{name}Type={kind}: expected PKCS12; make it with: keytool -importkeystore "
            f"-srckeystore {path} -destkeystore {Path(path).with_suffix('.p12')} "
            "-deststoretype PKCS12"
        )


def _load_key_store(context: ssl.SSLContext, settings: TlsSettings) -> None:
    # Imported late: PEM files need none of it.
    import tempfile  # noqa: PLC0415 - at first use

    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415 - at first use

    data = Path(settings.key_store_path).read_bytes()
    key, certificate, others = pkcs12.load_key_and_certificates(
        data, settings.key_store_password.encode() or None
    )
    if key is None or certificate is None:
        raise ConfigurationError(
            f"tlsKeyStore={settings.key_store_path}: holds no key with its certificate"
        )
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for each in (certificate, *others):
        text += each.public_bytes(serialization.Encoding.PEM)
    # OpenSSL takes a key by path alone: a file that only this user can read, for a moment.
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        context.load_cert_chain(file.name)


def _trust_store_text(settings: TlsSettings) -> str:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415 - at first use

    data = Path(settings.trust_store_path).read_bytes()
    store = pkcs12.load_pkcs12(data, settings.trust_store_password.encode() or None)
    found = [each.certificate for each in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    if not found:
        raise ConfigurationError(
            f"tlsTrustStore={settings.trust_store_path}: holds no certificates"
        )
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found).decode()


class _TellingHandshake(ssl.SSLObject):
    """One connection's TLS, which tells a client why its certificate is refused.

    Event loops drop a connection whose handshake fails together with the alert that OpenSSL made
    for the client, which then can't know that another attempt is in vain. So a refusal first looks
    like a handshake that waits for more: the loop sends the alert, and the client closes, or the
    time for the handshake is over.
    """

    _refusal: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Go on with the handshake; of a refused certificate the next call raises the error."""
        if self._refusal is not None:
            raise self._refusal
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason not in _REFUSED_CERTIFICATE:
                raise
            logger.debug("client certificate refused", extra={"reason": str(error)})
            self._refusal = error
            raise ssl.SSLWantReadError from error


class ReloadingContext(ssl.SSLContext):
    """A context for listeners whose files can be read again; owned by the broker.

    Event loops ask it to wrap each new connection, which the context of the files last read does.
    """

    _current: ssl.SSLContext
    _settings: TlsSettings
    _files: tuple[WatchedFile, ...]
    _authorities: Authorities
    _vouched: VouchedConnections

    def __new__(cls, settings: TlsSettings) -> Self:
        """Read the files.

        Raises:
            ConfigurationError: A setting is missing, or a file can't be read.
        """
        context = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        context._settings = settings
        context._files = tuple(WatchedFile(Path(path)) for path in settings.paths)
        _have_changed(context._files)  # first: what changes meanwhile is read again
        context._current = server_context(settings)
        context._authorities = _authorities(context._current, settings)
        context._vouched = VouchedConnections(context._authorities)
        return context

    def __init__(self, settings: TlsSettings) -> None:
        """Everything is done by `__new__`, as `ssl.SSLContext` has it."""
        del settings

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:  # Any: passed on as they are
        """A new connection's TLS, with the files as they were last read."""
        return self._current.wrap_bio(*args, **kwargs)

    def shook_hands(self, accepted: socket.socket, tls: ssl.SSLObject) -> None:
        """Take note of a connection, which ends when its client's authority is trusted no more."""
        self._vouched.add(accepted, tls, is_current=tls.context is self._current)

    def end_untrusted(self) -> None:
        """End the connections of clients for whom no authority of the current files vouches."""
        self._vouched.trust(self._authorities)

    def reload_if_changed(self) -> bool:
        """Read the files again if one changed; returns whether new ones are in use.

        It blocks for a few small files: call it off the loop, and `end_untrusted` on it afterwards.
        """
        if not _have_changed(self._files):
            return False
        try:
            current = server_context(self._settings)
            self._authorities = _authorities(current, self._settings)
            self._current = current
        except (ConfigurationError, OSError) as error:
            logger.warning("tls files not reloaded", extra={"error": str(error)})
            return False
        logger.info("tls files reloaded", extra={"paths": ", ".join(self._settings.paths)})
        return True


def _authorities(context: ssl.SSLContext, settings: TlsSettings) -> Authorities:
    """The authorities that a context trusts."""
    has_text = settings.trust_path and not settings.key_store_path
    return authorities_in(context, Path(settings.trust_path).read_bytes() if has_text else b"")


def _have_changed(files: tuple[WatchedFile, ...]) -> bool:
    """Whether one says something else, or is gone, since the last call; looks at all of them."""
    changes = [_has_changed(file) for file in files]
    return any(changes)


def _has_changed(file: WatchedFile) -> bool:
    try:
        return file.look() is not None
    except OSError:
        return True
