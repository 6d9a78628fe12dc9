"""`Watches`: calls the watchers of a store with changes below their paths.

Both embedded stores own one. An error of one watcher is logged, and the others are still called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import Notification, NotificationType, Watcher

logger = logging.getLogger(__name__)


class Watches:
    """The watchers of one store."""

    def __init__(self) -> None:
        self._watchers: dict[str, list[Watcher]] = {}  # by prefix, in the order they came

    def add(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for changes at or below `prefix`; returns what ends that."""
        paths.check(prefix)
        self._watchers.setdefault(prefix, []).append(watcher)

        def remove() -> None:
            watchers = self._watchers.get(prefix, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(prefix, None)

        return remove

    def notify(self, notifications: Iterable[Notification]) -> None:
        """Call the watchers of each change's path, change by change."""
        if not self._watchers:
            return
        for notification in notifications:
            for prefix in paths.ancestors(notification.path):
                for watcher in tuple(self._watchers.get(prefix, ())):
                    self._tell(watcher, notification)

    def tell_anything(self) -> None:
        """Call every watcher with `ANYTHING` at its own prefix: changes were missed."""
        for prefix, watchers in tuple(self._watchers.items()):
            for watcher in tuple(watchers):
                self._tell(watcher, Notification(NotificationType.ANYTHING, prefix))

    def _tell(self, watcher: Watcher, notification: Notification) -> None:
        # An error of one watcher must not keep the change, which is made, from the others.
        with ErrorsLogged(logger, "watcher failed", extra={"path": notification.path}):
            watcher(notification)
