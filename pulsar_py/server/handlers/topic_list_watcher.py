"""`TopicListWatcher`: reports created and deleted topics that match a pattern to one client.

The client has the list of WATCH_TOPIC_LIST_SUCCESS; every later change is sent as one
WATCH_TOPIC_UPDATE, with the hash of the whole list, so that the client notices a missed one. The
watch starts before the list is read: changes in between are applied to it.

Source: TopicListWatcher, TopicListService in Pulsar's broker; PIP-145.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.handlers.topic_patterns import TopicPattern, topics_hash
from pulsar_py.server.topics.registry import TopicListMode, TopicRegistry
from pulsar_py.wire import commands


class TopicListWatcher:
    """One watcher id of one connection.

    Invariant: `_topics` is the list as sent to the client, once `start` has returned.
    """

    def __init__(
        self,
        cnx: ClientConnection,
        watcher_id: int,
        namespace: NamespaceName,
        pattern: TopicPattern,
    ) -> None:
        self.namespace = namespace
        self._cnx = cnx
        self._watcher_id = watcher_id
        self._pattern = pattern
        self._topics: set[str] = set()
        self._early: (
            list[tuple[Sequence[str], Sequence[str]]] | None
        ) = []  # changes that came before the list was read
        self._end_watch: Callable[[], None] | None = None

    async def start(self, registry: TopicRegistry) -> None:
        """Begin to watch, and read the list."""
        self._end_watch = registry.watch(self.namespace, self._on_changed)
        topics = await registry.list_topics(self.namespace, TopicListMode.PERSISTENT)
        self._topics = set(await self._pattern.filter_many(topics))
        early, self._early = self._early or [], None
        for created, deleted in early:
            self._topics -= set(deleted)
            self._topics |= set(self._matching(created))

    @property
    def topics(self) -> list[str]:
        """The list, sorted."""
        return sorted(self._topics)

    def close(self) -> None:
        """End the watch. May be called again."""
        if self._end_watch is not None:
            self._end_watch()
            self._end_watch = None

    def _matching(self, topics: Sequence[str]) -> list[str]:
        return [
            topic
            for topic in self._pattern.filter(topics)
            if topic.startswith("persistent://") and not TopicName.parse(topic).is_system
        ]

    def _on_changed(self, created: Sequence[str], deleted: Sequence[str]) -> None:
        if self._early is not None:
            self._early.append((created, deleted))
            return
        new = [topic for topic in self._matching(created) if topic not in self._topics]
        gone = [topic for topic in deleted if topic in self._topics]
        if not new and not gone:
            return
        self._topics |= set(new)
        self._topics -= set(gone)
        text_hash = topics_hash(self._topics)
        self._cnx.send(commands.watch_topic_update(self._watcher_id, new, gone, text_hash))
