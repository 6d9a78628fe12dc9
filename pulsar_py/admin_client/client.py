"""`AdminClient`: typed calls of Pulsar's REST API for plain, blocking code (edge).

    with AdminClient("http://localhost:8080") as admin:
        admin.call(topics.create_partitioned_topic("my-topic", 4))

Calls are values (`call.Call`), declared once for this client and for `AsyncAdminClient`. They are
sent over `http.client`, in the thread that calls, with and without a loop. Namespaces are named
`public/default`, topics `persistent://public/default/t`; a short form of a topic's name is
completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from pulsar_py.admin_client import clusters, namespaces, topics
from pulsar_py.admin_client.call import NO_BODY, Call
from pulsar_py.admin_client.plain_requests import Download, PlainRequests
from pulsar_py.admin_client.settings import AdminSettings
from pulsar_py.admin_client.stats import InternalStats, TopicStats
from pulsar_py.common.names import TopicName

A = TypeVar("A")


class AdminClient:
    """Calls a cluster's REST API; close it, or use it with `with`. Any thread may call.

    Every call may raise what `call` raises.
    """

    def __init__(self, settings: AdminSettings | str) -> None:
        """Nothing is connected yet.

        Args:
            settings: Where the REST API is; a text is its URL, without credentials.

        Raises:
            ConfigurationError: The URL is not an HTTP URL, or a certificate can't be read.
        """
        if isinstance(settings, str):
            settings = AdminSettings(url=settings)
        self._requests = PlainRequests(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"AdminClient({self._requests.url})"

    def close(self) -> None:
        """Close the connections; the next call opens others."""
        self._requests.close()

    def call(self, call: Call[A]) -> A:
        """Send a call, and return its answer.

        Raises:
            ConnectError: No host could be reached, or none answered with HTTP in time.
            AuthenticationError, AuthorizationError, TopicNotFoundError, AdminError: The broker
                refused; the message has the status and the broker's reason.
            RemoteProtocolError: The answer is not JSON where JSON was expected.
        """
        return call.answer(self._requests.exchange(call.method, call.path, call.body))

    def send(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """The JSON that any request of the REST API is answered with; None for an empty answer.

        Args:
            method: `GET`, `PUT`, `POST` or `DELETE`.
            path: From `/admin/v2` on, with its query.
            body: What is sent as JSON; None: nothing.
        """
        given = NO_BODY if body is None else body
        return self._requests.exchange(method, path, given).json()

    @contextmanager
    def download(self, path: str, content_type: str) -> Iterator[Download]:
        """A large answer, read piece by piece while the context is open.

        Args:
            path: From `/admin/v2` on, with its query.
            content_type: What is asked for.

        Raises:
            ConnectError: The host can't be reached, or does not answer with HTTP in time.
            ServiceError: As for `call`.
        """
        with self._requests.download(path, content_type) as download:
            yield download

    def tenants(self) -> Sequence[str]:
        """The names of all tenants."""
        found = self.call(clusters.tenants())
        return sorted(found)

    def namespaces(self, tenant: str) -> Sequence[str]:
        """A tenant's namespaces, as `tenant/namespace`."""
        found = self.call(namespaces.namespaces(tenant))
        return sorted(found)

    def topics(self, namespace: str) -> Sequence[str]:
        """The persistent topics of a namespace, without system topics.

        A partitioned topic is in the list as its partitions.
        """
        found = self.call(topics.topics(namespace))
        return sorted(each for each in found if not TopicName.parse(each).is_system)

    def partitions_of(self, topic: str) -> Sequence[str]:
        """The partitions of a topic; a topic that is not partitioned stands for itself."""
        count = self.call(topics.partitions(topic)).partitions
        name = TopicName.parse(topic)
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    def stats(self, topic: str) -> TopicStats:
        """Rates and backlogs of a topic, or of one partition."""
        return self.call(topics.stats(topic, precise=True, sizes=True, earliest=True))

    def internal_stats(self, topic: str) -> InternalStats:
        """Ledgers and cursors of a topic, or of one partition."""
        return self.call(topics.internal_stats(topic))

    def create_partitioned_topic(self, topic: str, partitions_count: int) -> None:
        """Create a topic with partitions.

        Raises:
            AdminError: The topic exists (409).
        """
        self.call(topics.create_partitioned_topic(topic, partitions_count))
