"""`TopicPoliciesService`: changes policies of topics, in the log of their namespace and in copies.

REST calls `change` and `remove`; the `TopicRegistry` tells of loaded and deleted topics. The first
topic of a namespace that is loaded has the copies brought up to the log in the background, if there
is one: no load waits for that. Logs that brokers of another kind serve are followed there. Where
`topicLevelPoliciesEnabled` or `systemTopicEnabled` is off, there are no logs, and policies of
deleted topics are removed from the metadata store alone.

Source: TopicPoliciesService, SystemTopicBasedTopicPoliciesService in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import CHANGE_EVENTS, NamespaceName, TopicName
from pulsar_py.server.change_events.event_parts import EventParts

if TYPE_CHECKING:
    from pulsar_py.server.change_events.foreign_log import OpenLog
    from pulsar_py.server.change_events.foreign_logs import ForeignLogs, LogOwners
    from pulsar_py.server.change_events.namespace_events import (
        Document,
        NamespaceEvents,
    )


class TopicPoliciesService:
    """The policies of single topics; one a broker, which makes it."""

    def __init__(self, parts: EventParts, is_enabled: Callable[[], bool]) -> None:
        """`is_enabled` says whether there are such policies at the moment."""
        self._parts = parts
        self._is_enabled = is_enabled
        self._namespaces: dict[NamespaceName, NamespaceEvents] = {}
        self._being_deleted: dict[NamespaceName, None] = {}
        self._others: ForeignLogs | None = None  # None where there are no other brokers

    def _of(self, namespace: NamespaceName) -> NamespaceEvents:
        events = self._namespaces.get(namespace)
        if events is None:
            from pulsar_py.server.change_events.namespace_events import (  # noqa: PLC0415 - at first use
                NamespaceEvents,
            )

            events = self._namespaces[namespace] = NamespaceEvents(namespace, self._parts)
        return events

    def follow_others(self, owners: LogOwners, open_log: OpenLog) -> None:
        """From now on follow logs that brokers of another kind serve, too; call it once."""
        from pulsar_py.server.change_events.foreign_logs import (  # noqa: PLC0415 - of a cluster
            ForeignLogs,
        )

        self._others = ForeignLogs(
            self._parts, self._of, owners, open_log, is_enabled=self._is_enabled
        )
        self._parts.tasks.spawn(self._others.run(), "policies at other brokers")

    async def is_elsewhere(self, namespace: NamespaceName) -> bool:
        """Whether a broker of another kind serves the log of a namespace.

        Then whoever serves a topic changes its policies; else who serves the log.

        Raises:
            PulsarError: That can't be found out now.
        """
        return self._others is not None and await self._others.serves(namespace)

    async def change(
        self, topic: TopicName, change: Callable[[Document], Document], *, is_global: bool = False
    ) -> None:
        """Change a topic's policies, in effect and durable when this returns.

        `change` gets and returns the whole document; `is_global` is for those of all clusters.

        Raises:
            ServiceNotReadyError: Another broker of ours serves the namespace's `__change_events`.
            PulsarError: It was not made, or is made later.
        """
        namespace = topic.namespace_name
        if self._others is not None and await self._others.serves(namespace):
            await self._others.change(topic, change, is_global=is_global)
        else:
            await self._of(namespace).change(topic, change, is_global=is_global)

    async def remove(self, topic: TopicName) -> None:
        """Remove all policies of a topic, those for all clusters, too; fine if there are none.

        Whoever serves the log is asked for it.

        Raises:
            PulsarError: It was not done.
        """
        try:
            await self._of(topic.namespace_name).remove(topic)
        except ServiceNotReadyError:
            if self._others is None:
                raise
            await self._others.remove(topic)

    async def catch_up(self, namespace: NamespaceName) -> None:
        """Bring what is read of a namespace's policies up to its log, if there is one.

        Another broker may have appended to it that keeps no copies, as Apache Pulsar's do not.

        Raises:
            PulsarError: It can't be read now.
        """
        if self._others is not None and await self._others.serves(namespace):
            await self._others.catch_up(namespace)
        else:
            await self._of(namespace).catch_up()

    # What the registry tells

    def on_topic_loaded(self, name: TopicName) -> None:
        """Follow the namespace's log, if that is there and is not followed yet; returns at once."""
        if not self._is_enabled():
            return
        events = self._of(name.namespace_name)
        if name.local_name == CHANGE_EVENTS and name.is_persistent:
            events.is_absent = False
        if not events.is_absent:
            events.begin()

    async def on_topic_deleted(self, name: TopicName) -> None:
        """Remove the policies of a deleted topic.

        Raises:
            PulsarError: They are not removed.
        """
        namespace = name.namespace_name
        if name.is_system or namespace in self._being_deleted or not self._is_enabled():
            await self._remove_copies(name)
        else:
            await self.remove(name)

    async def _remove_copies(self, name: TopicName) -> None:
        await self._parts.resources.topic_policies.delete(name)
        await self._parts.resources.global_topic_policies.delete(name)

    @asynccontextmanager
    async def deleting(self, namespace: NamespaceName) -> AsyncIterator[None]:
        """While a namespace is deleted: nothing is appended; at the end the last copies go.

        Raises:
            MetadataError: Copies can't be removed now.
        """
        self._being_deleted[namespace] = None
        try:
            yield
            resources = self._parts.resources
            for copies in (resources.topic_policies, resources.global_topic_policies):
                for topic in await copies.list(namespace):
                    await copies.delete(topic)
            self._namespaces.pop(namespace, None)
        finally:
            self._being_deleted.pop(namespace, None)
