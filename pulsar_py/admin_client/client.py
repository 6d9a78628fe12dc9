"""`AdminClient`: typed calls of Pulsar's REST API for plain, blocking code (edge).

Requests run on an event loop in a thread of the client's own, so that the calls work in threads
with and without a loop. Namespaces are named `public/default`, topics
`persistent://public/default/t`; a short form of a topic's name is completed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from pulsar_py.admin_client.requests import AdminSettings, Requests
from pulsar_py.admin_client.stats import InternalStats, TopicStats
from pulsar_py.common.loops.loop_thread import LoopThread
from pulsar_py.common.names import TopicName


class AdminClient:
    """Calls a cluster's REST API; close it, or use it with `with`. Any thread may call.

    Every call may raise what `Requests.send` raises.
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
        self._requests = Requests(settings)
        # Runs the requests; None before the first one, and after `close`.
        self._loop: LoopThread | None = None
        self._lock = threading.Lock()  # guards `_loop`

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and end the thread; the next call begins anew."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call(self._requests.close())
            loop.stop()

    def send(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """Send any request of the REST API; arguments and errors are those of `Requests.send`."""
        with self._lock:
            if self._loop is None:
                self._loop = LoopThread()
            loop = self._loop
        return loop.call(self._requests.send(method, path, body))

    def tenants(self) -> Sequence[str]:
        """The names of all tenants."""
        return sorted(self._get("/admin/v2/tenants"))

    def namespaces(self, tenant: str) -> Sequence[str]:
        """A tenant's namespaces, as `tenant/namespace`."""
        return sorted(self._get(f"/admin/v2/namespaces/{_quoted(tenant)}"))

    def topics(self, namespace: str) -> Sequence[str]:
        """The persistent topics of a namespace, without system topics.

        A partitioned topic is in the list as its partitions.
        """
        found = self._get(f"/admin/v2/persistent/{_path_of(namespace)}")
        return sorted(each for each in found if not TopicName.parse(each).is_system)

    def partitions_of(self, topic: str) -> Sequence[str]:
        """The partitions of a topic; a topic that is not partitioned stands for itself."""
        answer = self._get(f"{_topic_path(topic)}/partitions")
        count = int(answer.get("partitions", 0)) if answer else 0
        name = TopicName.parse(topic)
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    def stats(self, topic: str) -> TopicStats:
        """Rates and backlogs of a topic, or of one partition."""
        query = "getPreciseBacklog=true&subscriptionBacklogSize=true&getEarliestTimeInBacklog=true"
        return TopicStats.of(self._get(f"{_topic_path(topic)}/stats?{query}"))

    def internal_stats(self, topic: str) -> InternalStats:
        """Ledgers and cursors of a topic, or of one partition."""
        return InternalStats.of(self._get(f"{_topic_path(topic)}/internalStats"))

    def create_partitioned_topic(self, topic: str, partitions_count: int) -> None:
        """Create a topic with partitions.

        Raises:
            AdminError: The topic exists (409).
        """
        self.send("PUT", f"{_topic_path(topic)}/partitions", partitions_count)

    def _get(self, path: str) -> Any:  # Any: JSON
        return self.send("GET", path)


def _quoted(part: str) -> str:
    return quote(part, safe="")


def _path_of(name: str) -> str:
    return "/".join(_quoted(part) for part in name.split("/"))


def _topic_path(topic: str) -> str:
    name = TopicName.parse(topic)
    namespace = _path_of(str(name.namespace_name))
    return f"/admin/v2/{name.domain}/{namespace}/{_quoted(name.local_name)}"
