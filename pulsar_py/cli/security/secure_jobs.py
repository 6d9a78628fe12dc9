"""The work of `pulsar-py secure`: a broker's certificates, keys, tokens and settings (edge).

`initialize` writes a directory that a TLS broker with tokens starts from:

    ca.pem, ca.key.pem                      the authority, which signs broker.pem alone
    broker.pem, broker.key.pem              the broker's certificate and key
    tokens.public.key, tokens.private.key   the pair of keys that checks and signs tokens (DER)
    operator.jwt, client.jwt                a token of a super-user, and of one without any right
    standalone.conf, client.conf            settings of the broker, and of tools that call it

It is written beside its place and moved there whole. What is secret can be read by its owner alone.

Third-party packages it may import: PyJWT, cryptography, click.

Source: RFC 5280 for the certificates; broker.conf and client.conf of Pulsar for the settings.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pulsar_py.admin_client.client import AdminClient
from pulsar_py.admin_client.namespaces import grant_permission
from pulsar_py.admin_client.settings import AdminSettings
from pulsar_py.cli.security.token_jobs import (
    TokenRequest,
    new_key_pair,
    signed,
    signing_key,
    write_public,
    write_secret,
)
from pulsar_py.common.errors import ConfigurationError, ServiceError
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.properties_text import parse_properties

__all__ = ["GrantRequest", "SecureRequest", "grant", "initialize"]

CA_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 825
"""How long a broker's certificate is good for: some clients take no longer ones."""

_SIGNATURE: Final = "ES256"
_BACKDATED: Final = dt.timedelta(hours=1)  # for clients whose clock is late
_PLUGIN: Final = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureRequest:
    """The options of `pulsar-py secure init`.

    Attributes:
        directory: Where; it must not exist, or be empty.
        hosts: Names and addresses of the broker, the one that clients are told first.
        operator: The role of the super-user.
        client: The role of the other token.
        port: Of the binary protocol over TLS.
        web_port: Of HTTPS.
        now: The time, with its zone.
        token_seconds: How long tokens are good for; None: for ever.
    """

    directory: Path
    hosts: Sequence[str]
    operator: str
    client: str
    port: int
    web_port: int
    now: dt.datetime
    token_seconds: int | None


def initialize(request: SecureRequest) -> None:
    """Write the directory.

    Raises:
        ConfigurationError: It is there already, or can't be written.
    """
    place = request.directory.absolute()
    if request.operator == request.client:
        raise ConfigurationError(f"operator and client are both {request.client}: two roles")
    if request.port == request.web_port:
        raise ConfigurationError(f"port and web port are both {request.port}: two ports")
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise ConfigurationError(
                f"{place} is there already, and nothing in it is replaced: name another directory"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))  # of mode 700
        try:
            _write_certificates(draft, request)
            _write_tokens(draft, request)
            write_public(draft / "standalone.conf", _broker_settings(place, request).encode())
            write_public(draft / "client.conf", _client_settings(place, request).encode())
            draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)  # gone, once it has its name
    except OSError as error:
        raise ConfigurationError(f"{place}: {error.strerror}") from None


def _write_certificates(directory: Path, request: SecureRequest) -> None:
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("pulsar-py authority")
    ca = (
        _certificate(issuer, issuer, ca_key.public_key(), request.now, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    broker = (
        _certificate(
            _name(request.hosts[0]), issuer, key.public_key(), request.now, CERTIFICATE_DAYS
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority, critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(each) for each in request.hosts]),
            critical=False,
        )
        .sign(ca_key, hashes.SHA256())
    )
    write_public(directory / "ca.pem", ca.public_bytes(serialization.Encoding.PEM))
    write_secret(directory / "ca.key.pem", _pem(ca_key))
    write_public(directory / "broker.pem", broker.public_bytes(serialization.Encoding.PEM))
    write_secret(directory / "broker.key.pem", _pem(key))


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])  # RFC 5280's bound


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise ConfigurationError(f"--host {host}: neither a name in ASCII nor an address") from None


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_tokens(directory: Path, request: SecureRequest) -> None:
    private, public = new_key_pair(_SIGNATURE)
    write_secret(directory / "tokens.private.key", private)
    write_public(directory / "tokens.public.key", public)
    key = signing_key(None, str(directory / "tokens.private.key"))
    expires_at = None
    if request.token_seconds is not None:
        expires_at = int(request.now.timestamp()) + request.token_seconds
    for name, role in (("operator", request.operator), ("client", request.client)):
        token = signed(TokenRequest(subject=role, expires_at_seconds=expires_at), key)
        write_secret(directory / f"{name}.jwt", token.encode())


def _broker_settings(place: Path, request: SecureRequest) -> str:
    return _properties(
        "A standalone broker with TLS, tokens and authorization; `pulsar-py secure init` made it.",
        {
            "advertisedAddress": request.hosts[0],
            "brokerServicePort": "",
            "brokerServicePortTls": str(request.port),
            "webServicePort": "",
            "webServicePortTls": str(request.web_port),
            "tlsCertificateFilePath": str(place / "broker.pem"),
            "tlsKeyFilePath": str(place / "broker.key.pem"),
            "authenticationEnabled": "true",
            "authenticationProviders": (
                "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
            ),
            "tokenPublicKey": (place / "tokens.public.key").as_uri(),
            "tokenPublicAlg": _SIGNATURE,
            "authorizationEnabled": "true",
            "superUserRoles": request.operator,
            "brokerClientAuthenticationPlugin": _PLUGIN,
            "brokerClientAuthenticationParameters": (place / "operator.jwt").as_uri(),
            "brokerClientTrustCertsFilePath": str(place / "ca.pem"),
        },
    )


def _client_settings(place: Path, request: SecureRequest) -> str:
    host = f"[{request.hosts[0]}]" if ":" in request.hosts[0] else request.hosts[0]
    return _properties(
        "For the operator's tools, Apache Pulsar's, too; `pulsar-py secure init` made it.",
        {
            "webServiceUrl": f"https://{host}:{request.web_port}/",
            "brokerServiceUrl": f"pulsar+ssl://{host}:{request.port}/",
            "authPlugin": _PLUGIN,
            "authParams": (place / "operator.jwt").as_uri(),
            "tlsTrustCertsFilePath": str(place / "ca.pem"),
            "tlsEnableHostnameVerification": "true",
        },
    )


def _properties(comment: str, settings: Mapping[str, str]) -> str:
    lines = [f"{name}={value.replace(chr(92), chr(92) * 2)}" for name, value in settings.items()]
    return "\n".join([f"# {comment}", *lines, ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRequest:
    """A role that is to be allowed something.

    Attributes:
        directory: What `initialize` wrote.
        role: The role.
        namespace: `tenant/namespace`.
        actions: Of `produce` and `consume`.
        web_service_url: A broker's HTTPS address; None: that of `client.conf`.
    """

    directory: Path
    role: str
    namespace: str
    actions: Sequence[str]
    web_service_url: str | None = None


def grant(request: GrantRequest) -> None:
    """Allow a role to produce or consume in a namespace, as the operator.

    Raises:
        ConfigurationError: The directory is none of `secure init`, or the broker refused.
        ClientError: The broker could not be reached.
    """
    namespace = NamespaceName.parse(request.namespace)
    try:
        settings = parse_properties((request.directory / "client.conf").read_text("utf-8"))
        token = (request.directory / "operator.jwt").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{request.directory}: {error}; see `secure init`") from None
    admin_settings = AdminSettings(
        url=request.web_service_url or settings["webServiceUrl"],
        token=token,
        tls_trust_certs_file=request.directory / "ca.pem",
    )
    try:
        with AdminClient(admin_settings) as admin:
            admin.call(grant_permission(str(namespace), request.role, request.actions))
    except ServiceError as error:
        raise ConfigurationError(f"no right was granted to {request.role}: {error}") from None
