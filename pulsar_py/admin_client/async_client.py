"""`AsyncAdminClient`: the calls of the REST API from an event loop (edge).

    async with AsyncAdminClient("http://localhost:8080") as admin:
        print(await admin.call(topics.stats("my-topic")))

It stands on the HTTP client that the SDK uses too.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar

from pulsar_py.admin_client.call import Call
from pulsar_py.admin_client.requests import Requests
from pulsar_py.admin_client.settings import AdminSettings

A = TypeVar("A")


class AsyncAdminClient:
    """Calls a cluster's REST API from one event loop; close it, or use it with `async with`."""

    def __init__(self, settings: AdminSettings | str) -> None:
        """Nothing is connected yet.

        Args:
            settings: Where the REST API is; a text is its URL, without credentials.

        Raises:
            ConfigurationError: The URL is not an HTTP URL, or a certificate can't be read.
        """
        given = AdminSettings(url=settings) if isinstance(settings, str) else settings
        self._requests = Requests(given)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncAdminClient({self._requests.url})"

    async def close(self) -> None:
        """Close the connections; the next call opens others."""
        await self._requests.close()

    async def call(self, call: Call[A]) -> A:
        """Send a call, and return its answer.

        Raises:
            ConnectError: No host could be reached, or none answered with HTTP in time.
            AuthenticationError, AuthorizationError, TopicNotFoundError, AdminError: The broker
                refused; the message has the status and the broker's reason.
            RemoteProtocolError: The answer is not JSON where JSON was expected.
        """
        return call.answer(await self._requests.exchange(call.method, call.path, call.body))

    async def send(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """Send any request of the REST API; arguments and errors are those of `Requests.send`."""
        return await self._requests.send(method, path, body)
