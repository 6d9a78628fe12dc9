"""The administration's calls that our tools need, typed (edge).

One connection, one caller at a time. Names are full ones: `public/default` for a namespace,
`persistent://public/default/t` for a topic; what has a short form gets its full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from pulsar_py.admin_client.requests import AdminSettings, Requests
from pulsar_py.admin_client.stats import InternalStats, TopicStats
from pulsar_py.common.names import TopicName


class AdminClient:
    """Calls over HTTP; use it with `with`."""

    def __init__(self, settings: AdminSettings | str) -> None:
        """Nothing is connected yet; a text is the URL.

        Raises:
            ConfigurationError: The URL makes no sense.
        """
        if isinstance(settings, str):
            settings = AdminSettings(url=settings)
        self._requests = Requests(settings)

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
        """Close the connection."""
        self._requests.close()

    def tenants(self) -> Sequence[str]:
        """All tenants; raises as `Requests.send`, like all calls here."""
        return sorted(self._get("/admin/v2/tenants"))

    def namespaces(self, tenant: str) -> Sequence[str]:
        """A tenant's namespaces, as `tenant/namespace`."""
        return sorted(self._get(f"/admin/v2/namespaces/{_quoted(tenant)}"))

    def topics(self, namespace: str) -> Sequence[str]:
        """A namespace's persistent topics: each partition by itself, no system topics."""
        found = self._get(f"/admin/v2/persistent/{_path_of(namespace)}")
        return sorted(each for each in found if not TopicName.parse(each).is_system)

    def partitions_of(self, topic: str) -> Sequence[str]:
        """The partitions of a topic, or itself where it has none."""
        answer = self._get(f"{_topic_path(topic)}/partitions")
        count = int(answer.get("partitions", 0)) if answer else 0
        name = TopicName.parse(topic)
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    def stats(self, topic: str) -> TopicStats:
        """Rates and backlogs of one topic partition."""
        query = "getPreciseBacklog=true&subscriptionBacklogSize=true&getEarliestTimeInBacklog=true"
        return TopicStats.of(self._get(f"{_topic_path(topic)}/stats?{query}"))

    def internal_stats(self, topic: str) -> InternalStats:
        """Ledgers and cursors of one topic partition."""
        return InternalStats.of(self._get(f"{_topic_path(topic)}/internalStats"))

    def create_partitioned_topic(self, topic: str, partitions_count: int) -> None:
        """Make a topic with partitions; AdminError if it is there."""
        self._requests.send("PUT", f"{_topic_path(topic)}/partitions", partitions_count)

    def _get(self, path: str) -> Any:  # Any: what JSON holds
        return self._requests.send("GET", path)


def _quoted(part: str) -> str:
    return quote(part, safe="")


def _path_of(name: str) -> str:
    return "/".join(_quoted(part) for part in name.split("/"))


def _topic_path(topic: str) -> str:
    name = TopicName.parse(topic)
    namespace = _path_of(str(name.namespace_name))
    return f"/admin/v2/{name.domain}/{namespace}/{_quoted(name.local_name)}"
