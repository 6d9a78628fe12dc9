"""Makes the TLS contexts of all our clients, from options (edge: reads certificates).

The SDK's connections to brokers, its HTTP requests and the admin client come here; no other module
makes a context. `ssl` is imported with the first one. The SDK makes a context for each connection,
so that certificates replaced on disk count from the next one on.

What always holds: TLS is 1.2 or newer; certificates are verified unless
`tls_allow_insecure_connection` says otherwise.

Source: the `tls_...` options of the official Python client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    import ssl

__all__ = [
    "TRUST_OPTIONS",
    "TlsOptions",
    "client_ssl_context",
    "failure_text",
    "refused_certificate",
]

TRUST_OPTIONS: Final = "tls_trust_certs_file_path, or --tls-trust-cert-path of a command"
"""What names the authorities that our clients trust."""

_UNKNOWN_AUTHORITY: Final = frozenset({18, 19, 20, 21})
"""OpenSSL's X509_V_ERR_… of a certificate that no authority signed which is trusted."""
_OTHER_HOST: Final = frozenset({62, 64})
"""Those of a certificate that is trusted, and names another host or address."""

_REFUSALS: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "wants a certificate, and none was shown",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "wants a certificate, or another cipher",
    "SSLV3_ALERT_BAD_CERTIFICATE": "refuses the certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "refuses the certificate: of a kind it does not take",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "refuses the certificate: revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "refuses the certificate: expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "refuses the certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "refuses the certificate: of an authority it does not trust",
    "TLSV1_ALERT_ACCESS_DENIED": "refuses the certificate: access denied",
    "TLSV1_ALERT_DECRYPT_ERROR": "refuses the certificate: its signature is wrong",
}
"""OpenSSL's reasons for alerts of a server that lets nobody in with that certificate."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The options by the official Python client's names, and with its defaults."""

    tls_trust_certs_file_path: str | None = None
    """PEM file with the certificates of the authorities to trust; None: the system's."""
    tls_allow_insecure_connection: bool = False
    """Whether any certificate of the server is accepted, without verification."""
    tls_validate_hostname: bool = False
    """Whether the server's certificate has to name the host."""
    tls_certificate_file_path: str | None = None
    """The client's own certificate (PEM), where it is not that of `AuthenticationTLS`."""
    tls_private_key_file_path: str | None = None
    """Its private key (PEM); None: in the same file."""
    tls_ciphers: str | None = None
    """OpenSSL's list of ciphers up to TLS 1.2; None: OpenSSL's own."""


def client_ssl_context(
    options: TlsOptions, certificate_paths: tuple[str, str] | None = None
) -> ssl.SSLContext:
    """A context for connections to a server; reads the certificates' files.

    Args:
        options: What to trust and to present.
        certificate_paths: Certificate and private key of `AuthenticationTLS`; they take precedence
            over those of the options.

    Raises:
        InvalidConfigurationError: A file is missing, or does not hold what it should; the message
            names the option.
    """
    import ssl  # noqa: PLC0415 - takes 20 ms, which clients without TLS save

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Authorities of users need not have the extensions that RFC 5280 wants.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = options.tls_validate_hostname
    if options.tls_allow_insecure_connection:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, options)
    if options.tls_ciphers is not None:
        try:
            context.set_ciphers(options.tls_ciphers)
        except ssl.SSLError as error:
            raise _wrong("tls_ciphers", options.tls_ciphers, error) from error
    _present(context, options, certificate_paths)
    return context


def _trust(context: ssl.SSLContext, options: TlsOptions) -> None:
    path = options.tls_trust_certs_file_path
    if path is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:  # SSLError is one, too
        raise _wrong("tls_trust_certs_file_path", path, error) from error


def _present(
    context: ssl.SSLContext, options: TlsOptions, certificate_paths: tuple[str, str] | None
) -> None:
    if certificate_paths is not None:
        name, (certificate, key) = "AuthenticationTLS", certificate_paths
    elif options.tls_certificate_file_path is not None:
        name = "tls_certificate_file_path"
        certificate = options.tls_certificate_file_path
        key = options.tls_private_key_file_path or certificate
    elif options.tls_private_key_file_path is not None:
        raise InvalidConfigurationError(
            f"tls_private_key_file_path: {options.tls_private_key_file_path!r} "
            "needs tls_certificate_file_path beside it"
        )
    else:
        return
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise _wrong(name, f"{certificate}, {key}", error) from error


def _wrong(option: str, value: str, error: OSError) -> InvalidConfigurationError:
    return InvalidConfigurationError(f"{option}: {value}: {error.strerror or error}")


def failure_text(error: OSError, trust_options: str = TRUST_OPTIONS) -> str:
    """Why there is no connection, never empty, and what helps where a certificate was refused.

    `trust_options` are the caller's names for the file of authorities; empty if it has none.
    """
    text = str(error) or type(error).__name__
    code = getattr(error, "verify_code", 0)  # of ssl.SSLCertVerificationError
    if code in _OTHER_HOST:
        return f"{text}: connect by a name that stands in the certificate"
    if code in _UNKNOWN_AUTHORITY and trust_options:
        return f"{text}: name the PEM file of the authority that signed it ({trust_options})"
    return text


def refused_certificate(error: BaseException | None) -> str | None:
    """What a server says of the client's certificate, if that ended the connection.

    With TLS 1.3 it comes when the handshake has long succeeded on the client's side.
    """
    while error is not None:
        if (text := _REFUSALS.get(getattr(error, "reason", None) or "")) is not None:
            return f"the server {text} ({error.reason})"  # type: ignore[attr-defined]
        error = error.__cause__
    return None
