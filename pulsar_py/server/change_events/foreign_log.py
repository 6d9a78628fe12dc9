"""`ForeignLog`: one log of policy events, while a broker of another kind serves it (edge).

Brokers of ours write the copies when they serve a log; those of Apache Pulsar keep none. So each of
ours that has topics of the namespace reads the log as a client does, from its first event on, and
writes what it says:

    1  the log is read to its end
    2  the last event of each topic is written to the copies
    3  again from 1, until there is nothing new

Several brokers may do so at once. One that is late with an older event finds the newer one in the
next round, so the last one to write has the last event. A property of the topic says that the
copies follow the log, as in `namespace_events.py`; once it is set, a copy without an event goes.
A change is appended as a client does, too, and made when it was read back. One is made at a time,
of what the one before left, for each event has all policies of its topic.

Source: SystemTopicBasedTopicPoliciesService in Pulsar's broker, each of which has such a reader and
such a writer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import TopicName
from pulsar_py.server.change_events.event_decoder import EventDecoder, LoggedEvent
from pulsar_py.server.change_events.event_messages import EventMessage
from pulsar_py.server.change_events.namespace_events import Document, NamespaceEvents
from pulsar_py.server.change_events.policy_copies import without_event
from pulsar_py.server.policies.policy_events import PolicyEvent

logger = logging.getLogger(__name__)

CHANGE_SECONDS: Final = 20.0
"""By which a change was read back, else its caller is told to try again."""

Place = tuple[int, int]
"""Of a message in the log: they grow."""


class OtherBrokersLog(Protocol):
    """A log at the broker that serves it, read from its first message on."""

    @property
    def place(self) -> Place:
        """Of the last message that was read."""

    async def read(self) -> Sequence[EventMessage]:
        """The next messages, at the log's end none.

        Raises:
            PulsarError: They can't be read.
        """

    async def wait(self) -> None:
        """Return when there are more.

        Raises:
            PulsarError: There will be none.
        """

    async def append(self, event: PolicyEvent) -> Place:
        """Append an event; it is durable when this returns.

        Raises:
            PulsarError: It is not stored, or that is unknown.
        """

    async def is_followed(self) -> bool:
        """Whether the copies have followed this log before.

        Raises:
            PulsarError: The broker that serves it does not say.
        """

    async def set_followed(self) -> None:
        """Note durably that from now on the copies follow this log.

        Raises:
            PulsarError: The broker that serves it refused.
        """


OpenLog = Callable[[TopicName], AbstractAsyncContextManager[OtherBrokersLog]]


class ForeignLog:
    """The log of one namespace at another broker, and the copies that follow it."""

    def __init__(self, events: NamespaceEvents, decoder: EventDecoder) -> None:
        """`events` are those of the namespace here, which write no copies meanwhile."""
        self._name = events.name
        self._events = events
        self._decoder = decoder
        self._pending: dict[str, LoggedEvent] = {}  # read, but not in the copies yet; by key
        self._log: OtherBrokersLog | None = None  # None until it was read to its end once
        self._copied: Place = (-1, -1)  # up to which the copies follow it
        self._is_over = False
        self._told = asyncio.Condition()  # when the copies are up to the log, and at the end
        self._changing = asyncio.Lock()  # from what a change is made of to its copy

    async def follow(self, open_log: OpenLog) -> None:
        """Keep the copies up to the log, until this is cancelled or the log served here.

        Raises:
            PulsarError: The log can't be read, or a copy not be written now.
        """
        try:
            async with open_log(self._name) as log:
                await self._read(log)
                await self._reconcile(log)
                while await self._catch_up(log):
                    self._log = log
                    self._copied = log.place
                    await self._tell()
                    await log.wait()
                    await self._read(log)
        finally:
            self._is_over = True
            await self._tell()

    async def _tell(self) -> None:
        async with self._told:
            self._told.notify_all()

    async def _read(self, log: OtherBrokersLog) -> None:
        while messages := await log.read():
            for logged in await self._decoder.events_of(messages, "at another broker"):
                self._pending[logged.event.key] = logged

    async def _reconcile(self, log: OtherBrokersLog) -> None:
        """Make copies of the time before agree with the whole log, which was read."""
        is_followed = await log.is_followed()
        async with self._events.lock:
            if self._events.is_served_here:
                return
            known = await self._events.copies.known()
            if is_followed:
                await self._events.copies.drop_outdated(known, self._pending)
        # What the log lacks is not appended from here: whoever of ours serves it next does that.
        if not is_followed and not without_event(known, self._pending):
            await log.set_followed()

    async def _catch_up(self, log: OtherBrokersLog) -> bool:
        """Write what was read, until the log has no more; False if it is served here by now."""
        while self._pending:
            async with self._events.lock:
                if self._events.is_served_here:
                    return False
                for key, logged in list(self._pending.items()):
                    await self._events.copies.apply(logged.event)
                    del self._pending[key]
            await self._read(log)
        return not self._events.is_served_here

    # For who asks or changes

    async def opened(self) -> OtherBrokersLog:
        """The log, once the copies are up to it.

        Raises:
            ServiceNotReadyError: They are not in time, or it is followed no more.
        """
        await self._until(lambda: self._log is not None)
        assert self._log is not None, "it was waited for"
        return self._log

    async def change(
        self, topic: TopicName, change: Callable[[Document], Document], *, is_global: bool
    ) -> None:
        """Change the policies of a topic; durable in the log and in effect when this returns.

        Raises:
            PulsarError: It was not made, or is made later.
        """
        async with self._alone() as log:
            known = await self._events.copies.of(is_global=is_global).get(topic.base)
            before: Document = {} if known is None else known.json
            after = dict(change(before))
            if after != before:
                await self._append(log, PolicyEvent(topic.base, is_global, after))

    async def remove(self, topic: TopicName) -> None:
        """Remove all policies of a topic, those for all clusters, too; fine if there are none.

        Raises:
            PulsarError: As `change`.
        """
        async with self._alone() as log:
            for is_global in (False, True):
                if await self._events.copies.of(is_global=is_global).get(topic.base) is not None:
                    await self._append(log, PolicyEvent(topic.base, is_global, None))

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[OtherBrokersLog]:
        try:
            async with asyncio.timeout(CHANGE_SECONDS):
                await self._changing.acquire()
        except TimeoutError:
            raise self._late() from None
        try:
            yield await self.opened()
        finally:
            self._changing.release()

    async def _append(self, log: OtherBrokersLog, event: PolicyEvent) -> None:
        place = await log.append(event)
        await self._until(lambda: self._copied >= place)

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(CHANGE_SECONDS), self._told:
                await self._told.wait_for(lambda: self._is_over or condition())
        except TimeoutError:
            raise self._late() from None
        if self._is_over:
            raise ServiceNotReadyError(f"{self._name} moves, or can't be read; try again")

    def _late(self) -> ServiceNotReadyError:
        return ServiceNotReadyError(f"{self._name} was not read in time; try again")
