"""`Maintenance`: runs all periodic work on a broker's topics, in one task (edge).

Each `Chore` has an interval; the task sleeps until the next one is due and runs it over all topics
loaded then, a bounded number at a time, so that ten thousand topics whose chore waits for a network
don't wait for each other. A topic that fails is logged; the others go on.

Source: the schedulers of BrokerService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.server.topics.topic_state import TopicState

if TYPE_CHECKING:
    from pulsar_py.server.topics.topic import Topic


logger = logging.getLogger(__name__)

MAX_CONCURRENT_TOPICS = 32
"""The most topics that one chore works on at the same time."""


class Chore(Struct, frozen=True):
    """Periodic work on every topic; with an interval of 0 it never runs."""

    name: str
    interval_seconds: float
    run: Callable[[Topic], Awaitable[None]]


class Maintenance:
    """Runs a broker's chores; the broker owns its task."""

    def __init__(
        self,
        chores: Sequence[Chore],
        topics: Callable[[], Iterable[Topic]],
        clock: Clock,
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._changed = asyncio.Event()  # Set when the due times have changed.
        now = clock.monotonic_seconds()
        # Chores with the time they are due.
        self._due = [
            (now + each.interval_seconds, each) for each in chores if each.interval_seconds > 0
        ]

    @property
    def intervals(self) -> dict[str, float]:
        """Seconds between two runs of each chore, by name."""
        return {chore.name: chore.interval_seconds for _, chore in self._due}

    def replace_chores(self, chores: Sequence[Chore]) -> None:
        """Use other intervals; an interval that changed begins now."""
        now = self._clock.monotonic_seconds()
        due = {(chore.name, chore.interval_seconds): time for time, chore in self._due}
        self._due = [
            (due.get((each.name, each.interval_seconds), now + each.interval_seconds), each)
            for each in chores
            if each.interval_seconds > 0
        ]
        self._changed.set()

    async def run(self) -> None:
        """Run chores as they fall due, until cancelled."""
        while self._due:
            self._due.sort(key=lambda item: item[0])
            due, chore = self._due[0]
            now = self._clock.monotonic_seconds()
            if due > now:
                await self._wait(due - now)
                continue
            self._due[0] = (now + chore.interval_seconds, chore)
            await self.run_chore(chore)

    async def _wait(self, seconds: float) -> None:
        """Return after that time, or when chores were replaced."""
        self._changed.clear()
        timer = self._clock.call_later(seconds, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    async def run_chore(self, chore: Chore) -> None:
        """Run one chore over all topics now."""

        async def run_for(topic: Topic) -> None:
            if topic.state is not TopicState.OPEN:
                return
            try:
                await chore.run(topic)
            except PulsarError as error:
                logger.warning(
                    "chore failed",
                    extra={"chore": chore.name, "topic": str(topic.name), "error": str(error)},
                )

        await each_result(run_for, self._topics(), at_once=MAX_CONCURRENT_TOPICS)
