"""The REST API's address and credentials, and the error that stands for a status (values).

Source: PulsarAdminBuilder and PulsarAdminException in Pulsar's admin client.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    ServiceError,
    TopicNotFoundError,
)
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context

if TYPE_CHECKING:
    import ssl

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5
BODY_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""The largest answer; the topics of a namespace with a million of them fit in."""

TRUST_OPTIONS: Final = "tls_trust_certs_file, or --tls-trust-cert-path of a command"
"""What names the authorities to trust, for errors."""

_PHRASES: Final[Mapping[int, str]] = {each.value: each.phrase for each in HTTPStatus}
_ERRORS: Final[Mapping[int, type[ServiceError]]] = {
    HTTPStatus.UNAUTHORIZED: AuthenticationError,
    HTTPStatus.FORBIDDEN: AuthorizationError,
    HTTPStatus.NOT_FOUND: TopicNotFoundError,
}


class AdminError(ServiceError):
    """The broker answered a REST request with an error status that has no class of its own."""


def status_error(request: str, status: int, reason: str) -> ServiceError:
    """The error that stands for an answer with a status of 400 or more.

    Its text has all three; `answer_of_error` has status and reason apart.
    """
    is_bare = reason == f"HTTP status {status}" and status in _PHRASES
    shown = _PHRASES[status] if is_bare else reason
    error = _ERRORS.get(status, AdminError)(f"{request}: {status} {shown}")
    error.__dict__["answer"] = status, reason
    return error


def answer_of_error(error: Exception) -> tuple[int, str] | None:
    """The status and the reason that an error stands for; None if it stands for no answer."""
    found: tuple[int, str] | None = error.__dict__.get("answer")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """The address of the REST API, and the credentials for it."""

    url: str
    """`http://host:port` or `https://host:port`; more hosts follow after commas."""
    token: str | None = field(default=None, repr=False)
    """A token for `AuthenticationToken`; it takes precedence over `user`."""
    user: str | None = field(default=None, repr=False)
    """`name:password` for basic authentication."""
    tls_trust_certs_file: Path | str | None = None
    """PEM file with the certificates of the authorities to trust; None: the system's."""
    tls_certificate_file: Path | str | None = None
    """PEM file with the client's own certificate, for `AuthenticationTls`."""
    tls_key_file: Path | str | None = None
    """PEM file with its private key; None: it is in the same file."""
    allows_insecure_tls: bool = False
    """Whether any certificate is accepted; otherwise it has to be valid."""
    validates_hostname: bool = True
    """Whether the certificate has to name the host, unless any is accepted."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """For each request, from connecting to the last byte of its answer."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that each request carries."""

    def base_urls(self) -> list[str]:
        """The URL of each host, without a path.

        Raises:
            ConfigurationError: `url` is not an HTTP URL.
        """
        scheme, separator, rest = self.url.partition("://")
        hosts = [each.strip() for each in rest.partition("/")[0].split(",") if each.strip()]
        if scheme not in {"http", "https"} or not separator or not hosts:
            raise ConfigurationError(
                f"admin URL {self.url!r}: expected http://host:port or https://host:port"
            )
        return [f"{scheme}://{host}" for host in hosts]

    def all_headers(self) -> dict[str, str]:
        """The headers that each request carries, with credentials."""
        headers = dict(self.headers)
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.user is not None:
            encoded = base64.b64encode(self.user.encode()).decode()
            headers["Authorization"] = f"Basic {encoded}"
        return headers

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS context for `https`; reads certificates.

        Raises:
            ConfigurationError: A file is missing, or does not hold what it should.
        """
        options = TlsOptions(
            tls_trust_certs_file_path=_text(self.tls_trust_certs_file),
            tls_allow_insecure_connection=self.allows_insecure_tls,
            tls_validate_hostname=self.validates_hostname,
            tls_certificate_file_path=_text(self.tls_certificate_file),
            tls_private_key_file_path=_text(self.tls_key_file),
        )
        return client_ssl_context(options)


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)
