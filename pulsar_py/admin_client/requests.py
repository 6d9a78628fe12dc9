"""Sends REST requests to an admin URL from an event loop (edge).

An admin URL may name several hosts, separated by commas: where one can't be reached, the next one
is asked. Redirects to the broker that owns a topic are followed. An answer with an error status is
raised as the error that the binary protocol has for it.

Source: PulsarAdminException in Pulsar's admin client.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin_client.call import NO_BODY, Reply, encoded
from pulsar_py.admin_client.settings import (
    MAX_REDIRECTS,
    TRUST_OPTIONS,
    AdminSettings,
    status_error,
)
from pulsar_py.common.errors import (
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    RemoteProtocolError,
)
from pulsar_py.common.network.http_client import (
    HttpClient,
    HttpRedirectError,
    HttpRequest,
    HttpResponse,
)

_JSON_TYPE: Final = {"Content-Type": "application/json"}


class Requests:
    """Sends requests from one event loop; made and closed by `AsyncAdminClient`."""

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
            trust_options=TRUST_OPTIONS,
        )

    @property
    def url(self) -> str:
        """The URL that was given."""
        return self._settings.url

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
        reply = await self.exchange(method, path, NO_BODY if body is None else body)
        return reply.json()

    async def exchange(self, method: str, path: str, body: object = NO_BODY) -> Reply:
        """The whole answer; arguments and errors are those of `send`, but for `body`."""
        data = encoded(body)
        answer = await self._send_to_any(method, path, data)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise status_error(f"{method} {path}", answer.status, answer.reason())
        return Reply(
            answer.status,
            answer.headers,
            answer.body,
            lambda: answer.json() if answer.body.strip() else None,
        )

    async def _send_to_any(self, method: str, path: str, data: bytes) -> HttpResponse:
        headers = self._headers | (_JSON_TYPE if data else {})
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
