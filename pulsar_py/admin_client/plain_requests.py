"""Sends REST requests to an admin URL over `http.client`, without an event loop (edge).

The same as `requests.Requests` for code that blocks. Connections that are idle are kept, so that
any number of threads may send; `https` is never left by a redirect, and a request is sent twice
only if its method is idempotent and the connection was an idle one.

Nothing here imports asyncio, which takes longer than a whole call.

Source: PulsarAdminException in Pulsar's admin client; RFC 9110 section 9.2.2.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from pulsar_py.admin_client.call import NO_BODY, Reply, encoded
from pulsar_py.admin_client.settings import (
    BODY_LIMIT_BYTES,
    MAX_REDIRECTS,
    TRUST_OPTIONS,
    AdminSettings,
    status_error,
)
from pulsar_py.common.errors import ConnectError, RemoteProtocolError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.network.tls import failure_text

if TYPE_CHECKING:
    import ssl

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
_REASON_LIMIT: Final = 200
_FAILURES: Final = (OSError, http.client.HTTPException, ConnectError)


class Download:
    """An answer that is read piece by piece; its connection is closed with it."""

    def __init__(self, url: str, answer: http.client.HTTPResponse) -> None:
        self._url = url
        self._answer = answer
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in answer.getheaders()
        }

    def read(self, size_bytes: int) -> bytes:
        """The next bytes, fewer than asked for only at the end.

        Raises:
            ConnectError: The answer was cut short, or nothing came in time.
        """
        try:
            return self._answer.read(size_bytes)
        except (OSError, http.client.HTTPException) as error:
            text = "nothing came in time" if isinstance(error, TimeoutError) else str(error)
            raise ConnectError(f"{self._url}: the answer was cut short: {text}") from error


class PlainRequests:
    """Sends requests from any thread; made and closed by `AdminClient`."""

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
        self._ssl_context: ssl.SSLContext | None = settings.ssl_context() if is_tls else None
        # Connections without a request, by the URL of their host.
        self._idle: dict[str, http.client.HTTPConnection] = {}
        self._lock = threading.Lock()  # guards `_idle` and `_base_urls`

    @property
    def url(self) -> str:
        """The URL that was given."""
        return self._settings.url

    def exchange(self, method: str, path: str, body: object = NO_BODY) -> Reply:
        """The whole answer.

        Raises:
            ConnectError: No host could be reached, or none answered with HTTP in time.
            AuthenticationError, AuthorizationError, TopicNotFoundError, AdminError: The broker
                refused; the message has the status and the broker's reason.
        """
        data = encoded(body)
        status, headers, content, url = self._send_to_any(method, path, data)
        if status >= HTTPStatus.BAD_REQUEST:
            raise status_error(f"{method} {path}", status, _reason(status, content))
        return Reply(status, headers, content, lambda: _json(url, content))

    @contextlib.contextmanager
    def download(self, path: str, content_type: str) -> Iterator[Download]:
        """A large answer, over a connection of its own, from the first host that answers.

        Raises:
            ConnectError: No host could be reached, or none answered with HTTP in time.
            ServiceError: As for `exchange`.
        """
        parts = urlsplit(self._base_urls[0])
        url = self._base_urls[0] + path
        connection = self._connection(parts.scheme, parts.netloc)
        try:
            try:
                connection.request("GET", path, None, {**self._headers, "Accept": content_type})
                answer = connection.getresponse()
                failed = answer.status >= HTTPStatus.BAD_REQUEST
                reason = answer.read(BODY_LIMIT_BYTES) if failed else b""
            except _FAILURES as error:
                raise ConnectError(f"{url}: {_failure(error)}") from error
            if failed:
                raise status_error(f"GET {path}", answer.status, _reason(answer.status, reason))
            yield Download(url, answer)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        with self._lock:
            connections = list(self._idle.values())
            self._idle.clear()
        for connection in connections:
            connection.close()

    def _send_to_any(
        self, method: str, path: str, data: bytes
    ) -> tuple[int, dict[str, str], bytes, str]:
        failures: list[Exception] = []
        with self._lock:
            base_urls = list(self._base_urls)
        for base_url in base_urls:
            try:
                answer = self._send_following(method, base_url + path, data)
            except _FAILURES as error:
                failures.append(ConnectError(f"{base_url}{path}: {_failure(error)}"))
                continue
            with self._lock:
                self._base_urls.remove(base_url)
                self._base_urls.insert(0, base_url)
            return answer
        reasons = "; ".join(map(str, failures))
        raise ConnectError(f"admin URL {self._settings.url!r}: {reasons}") from failures[-1]

    def _send_following(
        self, method: str, url: str, data: bytes
    ) -> tuple[int, dict[str, str], bytes, str]:
        first = url
        for _ in range(MAX_REDIRECTS + 1):
            status, headers, content = self._send_once(method, url, data)
            if status not in _REDIRECTS:
                return status, headers, content, url
            target = urljoin(url, headers.get("location", ""))
            if url.startswith("https:") and not target.startswith("https:"):
                raise ConnectError(f"redirect from https to {target}")
            if not target.startswith(("http:", "https:")):
                raise ConnectError(f"redirect to {target!r}, which is no URL")
            url = target
        raise ConnectError(f"{first}: more than {MAX_REDIRECTS} redirects")

    def _send_once(self, method: str, url: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        target = url.removeprefix(host) or "/"
        with self._lock:
            idle = self._idle.pop(host, None)
        if idle is not None and method in _IDEMPOTENT:
            # The server may have closed it while it was idle.
            with contextlib.suppress(ConnectionError, http.client.RemoteDisconnected):
                return self._exchange(host, idle, method, target, data)
        elif idle is not None:
            idle.close()
        return self._exchange(
            host, self._connection(parts.scheme, parts.netloc), method, target, data
        )

    def _connection(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        timeout_seconds = self._settings.timeout_seconds
        if scheme == "https":
            context = self._ssl_context or self._settings.ssl_context()
            return http.client.HTTPSConnection(netloc, timeout=timeout_seconds, context=context)
        return http.client.HTTPConnection(netloc, timeout=timeout_seconds)

    def _exchange(
        self,
        host: str,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        data: bytes,
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {"Accept": "application/json", **self._headers}
        if data:
            headers["Content-Type"] = "application/json"
        is_reusable = False
        try:
            connection.request(method, target, data or None, headers)
            answer = connection.getresponse()
            content = answer.read(BODY_LIMIT_BYTES + 1)
            if len(content) > BODY_LIMIT_BYTES:
                raise http.client.HTTPException(f"an answer above {BODY_LIMIT_BYTES} bytes")
            is_reusable = not answer.will_close
        finally:
            if not is_reusable:
                connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if is_reusable:
            self._keep(host, connection)
        return answer.status, found, content

    def _keep(self, host: str, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            replaced = self._idle.get(host)
            self._idle[host] = connection
        if replaced is not None:
            replaced.close()


def _failure(error: Exception) -> str:
    """Why nobody answered."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return failure_text(error, TRUST_OPTIONS)
    return str(error) or type(error).__name__


def _json(url: str, content: bytes) -> Any:  # Any: JSON
    if not content.strip():
        return None
    try:
        return parse_json(content)
    except ValueError as error:
        raise RemoteProtocolError(f"{url}: the answer is not JSON: {error}") from error


def _reason(status: int, content: bytes) -> str:
    """The server's explanation of an error: Pulsar's `reason`, short text, or the status."""
    with contextlib.suppress(ValueError):
        value: object = parse_json(content)
        if isinstance(value, Mapping) and isinstance(value.get("reason"), str):
            return str(value["reason"])
    text = content.decode(errors="replace").strip()
    if not text or text.startswith("<"):  # a proxy's HTML page says less than its status
        return f"HTTP status {status}"
    return text[:_REASON_LIMIT]
