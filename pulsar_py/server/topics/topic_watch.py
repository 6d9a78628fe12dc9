"""TopicWatch: who wants to hear of topics that come and go, by namespace.

Persistent topics are watched in the metadata store, so that other brokers' are heard of too;
non-persistent ones are told by the registry. System topics are left out.

Source: TopicResources in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Notification, NotificationType

logger = logging.getLogger(__name__)

OnTopicsChanged = Callable[[Sequence[str], Sequence[str]], None]
"""Takes full names of created topics and of deleted ones."""

_TOPIC_DEPTH = 5  # slashes in /managed-ledgers/tenant/namespace/persistent/topic


class TopicWatch:
    """One a broker; owned by its `TopicRegistry`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._callbacks: dict[NamespaceName, list[OnTopicsChanged]] = {}
        self._cancel = metadata.watch(paths.MANAGED_LEDGERS, self._on_notification)

    def watch(self, namespace: NamespaceName, callback: OnTopicsChanged) -> Callable[[], None]:
        """Tell `callback` of changes in a namespace; returns what ends that."""
        self._callbacks.setdefault(namespace, []).append(callback)

        def cancel() -> None:
            callbacks = self._callbacks.get(namespace, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._callbacks.pop(namespace, None)

        return cancel

    def on_created(self, name: TopicName) -> None:
        """A topic is there now."""
        self._tell(name, [str(name)], [])

    def on_deleted(self, name: TopicName) -> None:
        """A topic is gone."""
        self._tell(name, [], [str(name)])

    def _tell(self, name: TopicName, created: Sequence[str], deleted: Sequence[str]) -> None:
        if name.is_system:
            return
        for callback in list(self._callbacks.get(name.namespace_name, ())):
            callback(created, deleted)

    def _on_notification(self, notification: Notification) -> None:
        """Cursors lie below topics and change all the time: look at topics alone."""
        if notification.type is NotificationType.MODIFIED or not self._callbacks:
            return
        if notification.path.count("/") != _TOPIC_DEPTH:
            return
        try:
            name = TopicName.from_managed_ledger_name(
                notification.path.removeprefix(paths.MANAGED_LEDGERS + "/")
            )
        except InvalidTopicNameError:
            return  # a managed ledger, but not a topic's
        if notification.type is NotificationType.CREATED:
            self.on_created(name)
        else:
            self.on_deleted(name)

    def close(self) -> None:
        """Tell nobody any more."""
        self._cancel()
        self._callbacks.clear()
