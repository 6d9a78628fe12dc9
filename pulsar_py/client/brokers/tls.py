"""The TLS context that the client's options ask for (edge: reads certificates).

`ssl` is imported when the first context is made, not with the client. A context is made for each
connection, so that certificates replaced on disk are taken up by the next one.

Source: the `tls_...` options of the official Python client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    import ssl

    from pulsar_py.client.security.authentication import Authentication

__all__ = ["TlsOptions", "client_ssl_context"]


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The options by their official names."""

    tls_trust_certs_file_path: str | None = None
    """Certificates of those who may sign the broker's (PEM); None: those of the system."""
    tls_allow_insecure_connection: bool = False
    """Take any certificate of the broker, unverified."""
    tls_validate_hostname: bool = False
    """Whether the broker's certificate has to name the host."""
    tls_certificate_file_path: str | None = None
    """The client's own certificate (PEM), where it is not that of `AuthenticationTLS`."""
    tls_private_key_file_path: str | None = None
    """Its private key (PEM); None: in the same file."""
    tls_ciphers: str | None = None
    """OpenSSL's list of ciphers up to TLS 1.2; None: OpenSSL's own."""


def client_ssl_context(
    options: TlsOptions, authentication: Authentication | None = None
) -> ssl.SSLContext:
    """A context for one connection to a broker; reads the certificates' files.

    Args:
        options: What the client was made with.
        authentication: Its certificate, if it has one, goes before that of the options.

    Raises:
        InvalidConfigurationError: A file can't be read as what it should be; names its option.
    """
    import ssl  # noqa: PLC0415 - 20 ms that clients without TLS don't pay

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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
    _show(context, options, authentication)
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


def _show(
    context: ssl.SSLContext, options: TlsOptions, authentication: Authentication | None
) -> None:
    paths = None if authentication is None else authentication.tls_certificate_paths
    if paths is not None:
        name, (certificate, key) = "AuthenticationTLS", paths
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
