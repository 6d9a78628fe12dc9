"""One HTTP request to an administration URL, and what its answer means (edge).

Several hosts stand in one URL, separated by commas: the next one is tried where a connection fails.
Redirects to the broker that owns a topic are followed, a few of them. Answers with an error status
become the error that the binary protocol would have given.

Source: PulsarAdminException; the status codes of admin's resources.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    ConnectError,
    ServiceError,
    TopicNotFoundError,
)
from pulsar_py.common.foreign_json import parse_json

MAX_REDIRECTS: Final = 5
DEFAULT_TIMEOUT_SECONDS: Final = 30.0
_ERRORS: Final[Mapping[int, type[ServiceError]]] = {
    401: AuthenticationError,
    403: AuthorizationError,
    404: TopicNotFoundError,
}


class AdminError(ServiceError):
    """The administration answered with a status that says no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """How to reach the administration."""

    url: str
    token: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    """`name:password` of basic authentication."""
    tls_trust_certs_file: Path | str | None = None
    allows_insecure_tls: bool = False
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def hosts(self) -> list[tuple[str, str]]:
        """Scheme and `host:port` of each host.

        Raises:
            ConfigurationError: It is no HTTP URL.
        """
        scheme, separator, rest = self.url.partition("://")
        hosts = [each.strip() for each in rest.partition("/")[0].split(",") if each.strip()]
        if scheme not in {"http", "https"} or not separator or not hosts:
            raise ConfigurationError(
                f"admin URL {self.url!r}: expected http://host:port or https://host:port"
            )
        return [(scheme, host) for host in hosts]

    def all_headers(self) -> dict[str, str]:
        """What goes with each request."""
        headers = {"Accept": "application/json", **self.headers}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.user is not None:
            encoded = base64.b64encode(self.user.encode()).decode()
            headers["Authorization"] = f"Basic {encoded}"
        return headers


class Requests:
    """Sends requests, one at a time; keeps the connection of the last one. Not for threads."""

    def __init__(self, settings: AdminSettings) -> None:
        """Nothing is connected yet.

        Raises:
            ConfigurationError: The URL makes no sense, or a certificate can't be read.
        """
        self._settings = settings
        self._hosts = settings.hosts()
        self._headers = settings.all_headers()
        self._tls = _tls_context(settings) if self._hosts[0][0] == "https" else None
        # The open connection and where it goes; None between hosts.
        self._connection: http.client.HTTPConnection | None = None
        self._connected: tuple[str, str] | None = None

    def send(self, method: str, path: str, body: object = None) -> Any:  # Any: what JSON holds
        """The answer's JSON; None for an empty one.

        Raises:
            ConnectError: No host could be reached.
            AuthenticationError, AuthorizationError, TopicNotFoundError, AdminError: It says no.
        """
        data = None if body is None else json.dumps(body).encode()
        status, answer = self._send_to_any(method, path, data)
        if status >= http.HTTPStatus.BAD_REQUEST:
            error = _ERRORS.get(status, AdminError)
            raise error(f"{method} {path}: {status} {reason_of(answer)}")
        return parse_json(answer) if answer.strip() else None

    def _send_to_any(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        failure: Exception | None = None
        hosts = [self._connected] if self._connected is not None else []
        hosts += [each for each in self._hosts if each != self._connected]
        for scheme, host in hosts:
            try:
                return self._send_following(method, scheme, host, path, data)
            except (OSError, http.client.HTTPException) as error:
                failure = error
                self.close()
        names = ", ".join(host for _, host in hosts)
        raise ConnectError(f"admin URL {self._settings.url!r}: {names}: {failure}") from failure

    def _send_following(
        self, method: str, scheme: str, host: str, path: str, data: bytes | None
    ) -> tuple[int, bytes]:
        for _ in range(MAX_REDIRECTS):
            connection = self._connect(scheme, host)
            headers = self._headers | ({"Content-Type": "application/json"} if data else {})
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
            location = response.headers.get("Location")
            if not 300 <= response.status < 400 or location is None:  # noqa: PLR2004 - redirects
                return response.status, answer
            target = urlsplit(urljoin(f"{scheme}://{host}{path}", location))
            scheme, host = target.scheme, target.netloc
            path = target.path + (f"?{target.query}" if target.query else "")
        raise http.client.HTTPException(f"more than {MAX_REDIRECTS} redirects, last to {host}")

    def _connect(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if self._connection is not None and self._connected == (scheme, host):
            return self._connection
        self.close()
        timeout = self._settings.timeout_seconds
        if scheme == "https":
            context = self._tls or _tls_context(self._settings)
            self._connection = http.client.HTTPSConnection(host, timeout=timeout, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, timeout=timeout)
        self._connected = (scheme, host)
        return self._connection

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._connected = None


def reason_of(answer: bytes) -> str:
    """What an answer says of its error: `reason` of its JSON, or its text, cut."""
    text = answer.decode(errors="replace").strip()
    try:
        parsed = parse_json(text)
    except ValueError:
        return text[:200]
    return str(parsed.get("reason", text)) if isinstance(parsed, dict) else text[:200]


def _tls_context(settings: AdminSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.tls_trust_certs_file)
    except OSError as error:
        raise ConfigurationError(f"{settings.tls_trust_certs_file}: {error}") from error
    if settings.allows_insecure_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
