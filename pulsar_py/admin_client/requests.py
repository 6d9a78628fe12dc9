"""Sends REST requests to an admin URL and turns error statuses into exceptions (edge).

An admin URL may name several hosts, separated by commas: where one can't be reached, the next one
is asked. Redirects to the broker that owns a topic are followed. An answer with an error status is
raised as the error that the binary protocol has for it.

Source: PulsarAdminException in Pulsar's admin client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ClientTimeoutError,
    ConfigurationError,
    ConnectError,
    ConnectionClosedError,
    RemoteProtocolError,
    ServiceError,
    TopicNotFoundError,
)
from pulsar_py.common.network.http_client import (
    HttpClient,
    HttpRedirectError,
    HttpRequest,
    HttpResponse,
)
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context

if TYPE_CHECKING:
    import ssl

MAX_REDIRECTS: Final = 5
DEFAULT_TIMEOUT_SECONDS: Final = 30.0
_ERRORS: Final[Mapping[int, type[ServiceError]]] = {
    HTTPStatus.UNAUTHORIZED: AuthenticationError,
    HTTPStatus.FORBIDDEN: AuthorizationError,
    HTTPStatus.NOT_FOUND: TopicNotFoundError,
}


class AdminError(ServiceError):
    """The broker answered a REST request with an error status that has no class of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """Where the REST API is, and with which credentials it is called."""

    url: str
    """`http://host:port` or `https://host:port`; more hosts follow after commas."""
    token: str | None = field(default=None, repr=False)
    """A token for `AuthenticationToken`; it takes precedence over `user`."""
    user: str | None = field(default=None, repr=False)
    """`name:password` for basic authentication."""
    tls_trust_certs_file: Path | str | None = None
    """PEM file with the certificates of the authorities to trust; None: the system's."""
    allows_insecure_tls: bool = False
    """Whether any certificate is accepted; otherwise it has to be valid and to name the host."""
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
            ConfigurationError: The file of authorities is missing, or holds no certificates.
        """
        path = self.tls_trust_certs_file
        options = TlsOptions(
            tls_trust_certs_file_path=None if path is None else str(path),
            tls_allow_insecure_connection=self.allows_insecure_tls,
            tls_validate_hostname=True,
        )
        return client_ssl_context(options)


class Requests:
    """Sends requests from one event loop; made and closed by `AdminClient`."""

    def __init__(self, settings: AdminSettings) -> None:
        """Nothing is connected yet; reads certificates.

        Raises:
            ConfigurationError: The URL is not an HTTP URL, or a certificate can't be read.
        """
        self._settings = settings
        # The host that answered last comes first.
        self._base_urls = settings.base_urls()
        self._headers = settings.all_headers()
        is_tls = self._base_urls[0].startswith("https:")
        self._client = HttpClient(
            timeout_seconds=settings.timeout_seconds,
            ssl_context=settings.ssl_context() if is_tls else None,
            max_redirects=MAX_REDIRECTS,
        )

    async def send(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """The JSON of the answer; None for an empty one.

        Args:
            method: `GET`, `PUT`, `POST` or `DELETE`.
            path: From `/admin/v2` on, with its query.
            body: What is sent as JSON; None: nothing.

        Raises:
            ConnectError: No host could be reached, or none answered with HTTP in time.
            AuthenticationError, AuthorizationError, TopicNotFoundError, AdminError: The broker
                refused; the message has the status and the broker's reason.
            RemoteProtocolError: The answer is not JSON.
        """
        data = b"" if body is None else json.dumps(body).encode()
        answer = await self._send_to_any(method, path, data)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            error = _ERRORS.get(answer.status, AdminError)
            raise error(f"{method} {path}: {answer.status} {answer.reason()}")
        return answer.json() if answer.body.strip() else None

    async def _send_to_any(self, method: str, path: str, data: bytes) -> HttpResponse:
        headers = self._headers | ({"Content-Type": "application/json"} if data else {})
        failures = []
        for base_url in list(self._base_urls):
            request = HttpRequest(method=method, url=base_url + path, headers=headers, body=data)
            try:
                answer = await self._client.send(request)
            except (
                ConnectError,
                ConnectionClosedError,
                ClientTimeoutError,
                HttpRedirectError,
                RemoteProtocolError,
            ) as error:
                failures.append(error)
                continue
            self._base_urls.remove(base_url)
            self._base_urls.insert(0, base_url)
            return answer
        reasons = "; ".join(map(str, failures))
        raise ConnectError(f"admin URL {self._settings.url!r}: {reasons}") from failures[-1]

    async def close(self) -> None:
        """Close the connections; the next request opens others."""
        await self._client.close()
