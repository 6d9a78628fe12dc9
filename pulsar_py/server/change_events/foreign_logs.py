"""`ForeignLogs`: which logs of policy events are followed at brokers of another kind (edge).

Some seconds after one of them serves the log of a namespace that has topics here, or at once when a
policy is asked for or changed, it is followed, and no more when that has ended. Without such a
broker in the cluster there is nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from pulsar_py.common.errors import PulsarError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.change_events.event_decoder import EventDecoder
from pulsar_py.server.change_events.event_parts import EventParts
from pulsar_py.server.change_events.foreign_log import ForeignLog, OpenLog
from pulsar_py.server.change_events.namespace_events import (
    Document,
    NamespaceEvents,
    events_topic,
)

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 3.0
"""Between two looks at who serves what."""


class LogOwner(Enum):
    """Who serves a log."""

    NOBODY = auto()
    THIS_BROKER = auto()
    ANOTHER_OF_OURS = auto()
    ANOTHER_KIND = auto()


class LogOwners(Protocol):
    """What is known of the cluster."""

    def namespaces(self) -> Collection[NamespaceName]:
        """Those of which this broker serves a part, while there are brokers of another kind."""

    async def owner_of(self, log: TopicName, *, settles: bool = False) -> LogOwner:
        """Who serves a log; `settles` has it served by somebody first.

        Raises:
            PulsarError: That can't be found out now.
        """

    async def remove_there(self, log: TopicName, topic: TopicName) -> None:
        """Have the broker of ours that serves a log remove all policies of a topic.

        Raises:
            PulsarError: It refused, or can't be reached.
        """


class _Followed(NamedTuple):
    log: ForeignLog
    task: asyncio.Task[None]


class ForeignLogs:
    """The logs of one broker's namespaces that are followed elsewhere."""

    def __init__(
        self,
        parts: EventParts,
        events_of: Callable[[NamespaceName], NamespaceEvents],
        owners: LogOwners,
        open_log: OpenLog,
        *,
        is_enabled: Callable[[], bool],
    ) -> None:
        """`is_enabled` says whether topics have policies at the moment."""
        self._parts = parts
        self._events_of = events_of
        self._owners = owners
        self._open_log = open_log
        self._is_enabled = is_enabled
        self._followed: dict[NamespaceName, _Followed] = {}

    async def run(self) -> None:
        """Look again and again; ends when it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            wanted = self._owners.namespaces() if self._is_enabled() else ()
            for namespace in [each for each in self._followed if each not in wanted]:
                self._end(namespace)
            for namespace in wanted:
                try:
                    await self._look_at(self._events_of(namespace), namespace)
                except PulsarError as error:
                    _warn(namespace, error)

    async def _look_at(self, events: NamespaceEvents, namespace: NamespaceName) -> None:
        owner = await self._owners.owner_of(events.name)
        if owner is LogOwner.ANOTHER_KIND:
            # Reading a topic that is not there would make it.
            if namespace not in self._followed and await self._parts.topics.exists(events.name):
                self._begin(namespace)
            return
        self._end(namespace)
        if owner is not LogOwner.ANOTHER_OF_OURS and not events.is_absent:
            events.begin()

    def _begin(self, namespace: NamespaceName) -> ForeignLog:
        if namespace in self._followed:
            return self._followed[namespace].log
        events = self._events_of(namespace)
        events.is_absent = False
        log = ForeignLog(events, EventDecoder(events.name, self._parts.schemas))
        task = self._parts.tasks.spawn(
            self._follow(namespace, log), f"follow {events.name} elsewhere"
        )
        self._followed[namespace] = _Followed(log, task)
        return log

    def _end(self, namespace: NamespaceName) -> None:
        followed = self._followed.pop(namespace, None)
        if followed is not None:
            followed.task.cancel()

    async def _follow(self, namespace: NamespaceName, log: ForeignLog) -> None:
        try:
            await log.follow(self._open_log)
        except PulsarError as error:
            _warn(namespace, error)
        finally:
            followed = self._followed.get(namespace)
            if followed is not None and followed.log is log:
                del self._followed[namespace]

    # For who asks or changes

    async def serves(self, namespace: NamespaceName) -> bool:
        """Whether a broker of another kind serves the log of a namespace, or would now.

        Raises:
            PulsarError: That can't be found out now.
        """
        owner = await self._owners.owner_of(events_topic(namespace), settles=True)
        return owner is LogOwner.ANOTHER_KIND

    async def catch_up(self, namespace: NamespaceName) -> None:
        """Return when the copies follow the log, if there is one.

        Raises:
            PulsarError: It can't be read now.
        """
        if await self._parts.topics.exists(events_topic(namespace)):
            await self._begin(namespace).opened()

    async def change(
        self, topic: TopicName, change: Callable[[Document], Document], *, is_global: bool
    ) -> None:
        """Change the policies of a topic; the log is made if there is none.

        Raises:
            PulsarError: It was not made, or is made later.
        """
        await self._begin(topic.namespace_name).change(topic, change, is_global=is_global)

    async def remove(self, topic: TopicName) -> None:
        """Remove all policies of a topic whose log another broker serves, of whichever kind.

        Raises:
            PulsarError: It was not done.
        """
        log = events_topic(topic.namespace_name)
        if await self._owners.owner_of(log) is LogOwner.ANOTHER_KIND:
            await self._begin(topic.namespace_name).remove(topic)
        else:
            await self._owners.remove_there(log, topic)


def _warn(namespace: NamespaceName, error: PulsarError) -> None:
    logger.warning(
        "topic policies not followed yet",
        extra={"namespace": str(namespace), "error": str(error)},
    )
