"""`NamespaceEvents`: one namespace's log of policy events, and the copies that follow it (edge).

Topics are served by the copies, in the metadata store; `__change_events` says what they should be.
Under one lock a change takes these steps:

    1  what the log has is read to its end, and the copies are brought up to it
    2  the event is appended, and is durable
    3  it is read back, after whatever others appended meanwhile, and the copy is written

So the last one in the log wins, whoever wrote it, and its order is that of the copies. After a
crash between 2 and 3 the next reading repeats step 3: the log is read from its beginning whenever
the topic is loaded. A copy that can't be written now is written again, until the topic is unloaded.

The first time (no property `FOLLOWED_PROPERTY` at the managed ledger) there may be copies that the
log never had, and both may know a topic: then the later one counts, and what the log lacks is
appended. From then on a local copy without an event is one whose removal was cut short, and goes.
Copies for all clusters may be in a store that other clusters write, too: one that is newer than its
event stays, and none is removed for lack of an event.

Source: SystemTopicBasedTopicPoliciesService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsar_py.common.errors import (
    ManagedLedgerError,
    NotAllowedError,
    PulsarError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.common.names import CHANGE_EVENTS, NamespaceName, TopicName
from pulsar_py.server.change_events.event_decoder import LoggedEvent
from pulsar_py.server.change_events.event_log import EventLog
from pulsar_py.server.change_events.event_parts import EventParts
from pulsar_py.server.change_events.policy_copies import Key, PolicyCopies
from pulsar_py.server.policies.policy_events import PolicyEvent
from pulsar_py.server.topics.persistent import PersistentTopic

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""Seconds until what failed in the background is tried again."""

Document = Mapping[str, Any]  # Any: JSON of many shapes


def events_topic(namespace: NamespaceName) -> TopicName:
    """The topic that holds the events of a namespace."""
    return namespace.topic(CHANGE_EVENTS)


class NamespaceEvents:
    """The log of one namespace; made by the `TopicPoliciesService` when it is first needed."""

    def __init__(self, namespace: NamespaceName, parts: EventParts) -> None:
        self._parts = parts
        self.name = events_topic(namespace)
        self.copies = PolicyCopies(namespace, parts.resources)
        self.lock = asyncio.Lock()
        """Held from the reading of a log's end to the writing of copies."""
        self._log: EventLog | None = None  # None until the topic was loaded
        self._pending: dict[str, LoggedEvent] = {}  # read, but not in the copies yet; by key
        self._is_replayed = False  # whether the copies follow `_log`
        self._waiting: EventLog | None = None  # the one that tells when it grows
        self._is_running = False  # whether a task brings the copies up to the log
        self.is_absent = False  # whether there was no such topic when it was last looked for

    @property
    def is_served_here(self) -> bool:
        """Whether this broker has the log open, and brings the copies up to it itself."""
        return self._log is not None and self._log.is_open

    # Changes

    async def change(
        self, topic: TopicName, change: Callable[[Document], Document], *, is_global: bool
    ) -> None:
        """Change the policies of a topic; durable in the log and in effect when this returns.

        Raises:
            ServiceNotReadyError: Another broker serves the log.
            PulsarError: It was not made; or, if the copy can't be written now, it is made later.
        """
        async with self.lock:
            log = await self._up_to_date()
            known = await self.copies.of(is_global=is_global).get(topic.base)
            before: Document = {} if known is None else known.json
            after = dict(change(before))
            if after != before:
                await log.append(PolicyEvent(topic.base, is_global, after))
                await self._catch_up(log)
        self._wait(log)

    async def remove(self, topic: TopicName) -> None:
        """Remove all policies of a topic, those for all clusters, too; fine if there are none.

        Raises:
            PulsarError: As `change`.
        """
        scopes = (False, True)
        async with self.lock:
            if not await self._parts.topics.exists(self.name):
                for is_global in scopes:
                    await self.copies.of(is_global=is_global).delete(topic.base)
                return
            log = await self._up_to_date()
            for is_global in scopes:
                if await self.copies.of(is_global=is_global).get(topic.base) is not None:
                    await log.append(PolicyEvent(topic.base, is_global, None))
            await self._catch_up(log)
        self._wait(log)

    async def catch_up(self) -> None:
        """Bring the copies up to the log, if there is one.

        Raises:
            ServiceNotReadyError: Another broker serves the log.
            PulsarError: It can't be read, or a copy not be written now.
        """
        async with self.lock:
            try:
                log = await self._up_to_date(creates=False)
            except TopicNotFoundError:
                return
        self._wait(log)

    async def _up_to_date(self, *, creates: bool = True) -> EventLog:
        """The log, made if it is missing and `creates`, with the copies brought up to it."""
        parts = self._parts
        if not creates:
            self.is_absent = not await parts.topics.exists(self.name)
            if self.is_absent:
                raise TopicNotFoundError(f"Topic {self.name} does not exist")
        await parts.ownership.ensure_owned(self.name)
        topic = await parts.topics.get_or_load(self.name, create_if_missing=True)
        assert isinstance(topic, PersistentTopic), "its name is that of a persistent one"
        self.is_absent = False
        if self._log is None or self._log.topic is not topic or not self._log.is_open:
            await self._close_log()
            self._log = EventLog(topic, parts.schemas, parts.cluster)
            self._is_replayed = False
        if not self._is_replayed:
            await self._replay(self._log)
            self._is_replayed = True
        await self._catch_up(self._log)
        return self._log

    async def _close_log(self) -> None:
        self._pending.clear()
        if self._log is not None:
            await self._log.close()
            self._log = None

    # Copies

    async def _catch_up(self, log: EventLog) -> None:
        """Read what the log has, and bring the copies up to it."""
        await self._read(log)
        for key, logged in list(self._pending.items()):
            await self.copies.apply(logged.event)
            del self._pending[key]

    async def _read(self, log: EventLog) -> None:
        while (events := await log.read()) is not None:
            for logged in events:
                self._pending[logged.event.key] = logged

    # Reading from the beginning

    async def _replay(self, log: EventLog) -> None:
        """Read the whole log, and reconcile it with the copies there are."""
        await self._read(log)
        known = await self.copies.known()
        if log.is_followed:
            await self.copies.drop_outdated(known, self._pending)
            return
        for key in known:
            await self._migrate(log, key)
        await log.set_followed()

    async def _migrate(self, log: EventLog, key: Key) -> None:
        """Append a copy that the log lacks, or that is newer than what it has."""
        is_global, topic = key
        copies = self.copies.of(is_global=is_global)
        policies = await copies.get(topic)
        if policies is None:
            return
        event = PolicyEvent(topic, is_global, dict(policies.json))
        logged = self._pending.get(event.key)
        if logged is None or (
            logged.event != event and await copies.modified_millis(topic) > logged.published_millis
        ):
            self._pending.pop(event.key, None)
            await log.append(event)

    # Following

    def begin(self) -> None:
        """Bring the copies up to the log in the background, and then whenever it grows.

        It makes no topic, and returns at once where that goes on already.
        """
        is_waiting = self._waiting is not None and self._waiting.is_open
        if not self._is_running and not is_waiting:
            self._is_running = True
            self._parts.tasks.spawn(self._follow(), f"follow {self.name}")

    async def _follow(self) -> None:
        try:
            log = await self._followed()
            while log is None:
                await asyncio.sleep(RETRY_SECONDS)
                log = await self._followed()
        except (ManagedLedgerError, ServiceNotReadyError, TopicNotFoundError, NotAllowedError):
            return  # it is not there, was unloaded, or is another broker's: its next load is told
        finally:
            self._is_running = False
        self._wait(log)

    async def _followed(self) -> EventLog | None:
        """The log, with the copies brought up to it; None if that did not work this time."""
        try:
            async with self.lock:
                return await self._up_to_date(creates=False)
        except (ManagedLedgerError, ServiceNotReadyError, TopicNotFoundError, NotAllowedError):
            raise
        except PulsarError as error:
            logger.warning(
                "topic policies not followed yet",
                extra={"topic": str(self.name), "error": str(error)},
            )
            return None

    def _wait(self, log: EventLog) -> None:
        """Have the log tell when it grows."""
        if self._waiting is not log and log.is_open:
            self._waiting = log
            log.when_more(self._on_more)

    def _on_more(self) -> None:
        self._waiting = None
        self.begin()
