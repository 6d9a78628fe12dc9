"""`TopicWatch`: reports created and deleted topics of a namespace to listeners.

Persistent topics are watched in the metadata store, which also has those of other brokers; the
registry reports non-persistent ones. System topics are left out. If the watch may have missed
changes, each watched namespace is listed and compared with the topics reported so far.

Source: TopicResources in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from pulsar_py.common.errors import (
    InvalidTopicNameError,
    MetadataError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName, TopicName, url_form_decode
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Notification, NotificationType

logger = logging.getLogger(__name__)

OnTopicsChanged = Callable[[Sequence[str], Sequence[str]], None]
"""Called with the full names of created topics and of deleted ones."""

RETRY_SECONDS: Final = 0.5
"""Seconds between two attempts to list topics, while that fails."""

_TOPIC_DEPTH = 5  # slashes in /managed-ledgers/tenant/namespace/persistent/topic


class TopicWatch:
    """The watches of a broker; owned by its `TopicRegistry`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._callbacks: dict[NamespaceName, list[OnTopicsChanged]] = {}
        self._known: dict[NamespaceName, set[str]] = {}  # persistent topics, reported or listed
        # Topics reported while a list is being read: those changes are newer than the list.
        self._told_meanwhile: set[str] | None = None
        self._compares_count = 0  # comparisons that are needed and not begun
        self._tasks = TaskOwner("topic watch")
        self._cancel = metadata.watch(paths.MANAGED_LEDGERS, self._on_notification)

    def watch(self, namespace: NamespaceName, callback: OnTopicsChanged) -> Callable[[], None]:
        """Call `callback` with changes in a namespace; returns what ends that."""
        self._callbacks.setdefault(namespace, []).append(callback)
        if namespace not in self._known:
            self._known[namespace] = set()
            self._tasks.spawn(self._learn(namespace), f"list {namespace}")

        def cancel() -> None:
            callbacks = self._callbacks.get(namespace, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._callbacks.pop(namespace, None)
                self._known.pop(namespace, None)

        return cancel

    async def _learn(self, namespace: NamespaceName) -> None:
        """Read the existing topics before any change is reported."""
        known = self._known.get(namespace)
        while known is not None and known is self._known.get(namespace):
            try:
                names = await self._stored(namespace)
            except MetadataUnavailableError as error:
                logger.info("topics not listed yet", extra={"error": str(error)})
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except MetadataError as error:
                logger.warning("topics not listed", extra={"error": str(error)})
                return
            known.update(names)
            return

    async def _stored(self, namespace: NamespaceName) -> set[str]:
        path = paths.managed_ledgers(namespace)
        await self._metadata.sync(path)
        names = await self._metadata.children(path)
        return {str(namespace.topic(url_form_decode(name))) for name in names}

    def _compare_soon(self) -> None:
        self._compares_count += 1
        if self._compares_count == 1:
            self._tasks.spawn(self._compare_all(), "compare")

    async def _compare_all(self) -> None:
        """List and compare all watched namespaces; again if more changes were missed meanwhile."""
        try:
            while self._compares_count:
                self._compares_count = 1
                waiting = list(self._known)
                while waiting:
                    waiting = [each for each in waiting if not await self._compare(each)]
                    if waiting:
                        await asyncio.sleep(RETRY_SECONDS)
                self._compares_count -= 1
        finally:
            self._compares_count = 0

    async def _compare(self, namespace: NamespaceName) -> bool:
        """Report the missed changes of a namespace; False if that has to be tried again."""
        meanwhile = self._told_meanwhile = set()
        try:
            stored = await self._stored(namespace)
        except MetadataUnavailableError as error:
            logger.info("topics not listed yet", extra={"error": str(error)})
            return False
        except MetadataError as error:
            logger.warning("topics not listed", extra={"error": str(error)})
            return True
        finally:
            self._told_meanwhile = None
        known = self._known.get(namespace, stored)  # not there if nobody watches it any more
        for name in sorted(stored - known - meanwhile):
            self.on_created(TopicName.parse(name))
        for name in sorted(known - stored - meanwhile):
            self.on_deleted(TopicName.parse(name))
        return True

    def on_created(self, name: TopicName) -> None:
        """Report a created topic."""
        if name.is_persistent and name.namespace_name in self._known:
            self._known[name.namespace_name].add(str(name))
        self._tell(name, [str(name)], [])

    def on_deleted(self, name: TopicName) -> None:
        """Report a deleted topic."""
        if name.namespace_name in self._known:
            self._known[name.namespace_name].discard(str(name))
        self._tell(name, [], [str(name)])

    def _tell(self, name: TopicName, created: Sequence[str], deleted: Sequence[str]) -> None:
        if self._told_meanwhile is not None:
            self._told_meanwhile.add(str(name))
        if name.is_system:
            return
        for callback in list(self._callbacks.get(name.namespace_name, ())):
            callback(created, deleted)

    def _on_notification(self, notification: Notification) -> None:
        """Report changes of topics; those of cursors, whose keys are below, are ignored."""
        if notification.type is NotificationType.MODIFIED or not self._callbacks:
            return
        if notification.type is NotificationType.ANYTHING:
            self._compare_soon()
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
        """End all watches."""
        self._cancel()
        self._tasks.abandon()
        self._callbacks.clear()
