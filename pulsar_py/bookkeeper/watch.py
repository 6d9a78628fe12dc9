"""`BookieWatch`: notices bookies that are available again, or are not registered any more (edge).

Once for all ledgers of a store: a failing bookie that is registered is asked for an entry that
nobody has, at first after half a second, then less and less often, at least every 5 s. Any answer
ends its failing. A bookie that does not answer, and one whose registration was not there for a
while, is told to the writers of open ledgers: they replace it without waiting for an append.
Otherwise BookKeeper's auto-recovery would do so, after fencing them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Final

from pulsar_py.bookkeeper.bookies.bookies import Bookies
from pulsar_py.bookkeeper.reading.asking import is_answering
from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

logger = logging.getLogger(__name__)

LEAST_PAUSE_SECONDS: Final = 0.1
"""The time between two rounds of probes."""
UNLISTED_SECONDS: Final = 5.0
"""For so long a bookie is not registered before its ledgers do without it: a session that ended
for a moment is no reason. Auto-recovery grants 30 s."""


class BookieWatch:
    """Watches the bookies of one store, which owns it and its tasks."""

    def __init__(
        self,
        bookies: Bookies,
        clock: Clock,
        tasks: TaskOwner,
        *,
        on_gone: Callable[[str], None],
        on_listed: Callable[[Collection[str]], None],
    ) -> None:
        """`on_gone` gets a bookie that stopped answering, `on_listed` all registered ones."""
        self._bookies = bookies
        self._registry = bookies.registry
        self._clock = clock
        self._tasks = tasks
        self._on_gone = on_gone
        self._on_listed = on_listed
        self._told: dict[str, None] = {}  # failing ones that were asked once at least
        self._is_asking = False
        self._is_listing = False

    def on_failing(self, bookie_id: str) -> None:
        """Note that a bookie began to fail."""
        self._told.pop(bookie_id, None)
        self._ask()

    def on_registry_change(self) -> None:
        """Note that the list of bookies may have changed."""
        self._ask()
        if not self._is_listing:
            self._is_listing = self._spawn(self._list_later)

    def _ask(self) -> None:
        if not self._is_asking:
            self._is_asking = self._spawn(self._ask_failing)

    def _spawn(self, work: Callable[[], Coroutine[object, None, None]]) -> bool:
        try:
            self._tasks.spawn(work(), "watch bookies")
        except RuntimeError:
            return False  # the store is closed
        return True

    async def _ask_failing(self) -> None:
        """Probe failing bookies until none of those that are registered is left."""
        try:
            while due := await self._to_be_asked():
                now = self._clock.monotonic_seconds()
                pause_seconds = max(min(due.values()) - now, LEAST_PAUSE_SECONDS)
                await self._clock.sleep(pause_seconds)
                now = self._clock.monotonic_seconds()
                await asyncio.gather(*(self._ask_one(each) for each in due if due[each] <= now))
        finally:
            self._is_asking = False

    async def _to_be_asked(self) -> dict[str, float]:
        try:
            writable = await self._registry.writable()
        except MetadataError:
            logger.debug("bookies can't be listed", exc_info=True)  # the last list will do
        else:
            self._bookies.health.on_listed(writable, self._clock.monotonic_seconds())
        known = (*self._registry.known_writable, *self._registry.known_read_only)
        return {
            bookie_id: due
            for bookie_id, due in self._bookies.health.to_be_asked().items()
            if bookie_id in known or bookie_id not in self._told
        }

    async def _ask_one(self, bookie_id: str) -> None:
        if not await is_answering(self._bookies.link(bookie_id)):
            self._told[bookie_id] = None
            self._on_gone(bookie_id)

    async def _list_later(self) -> None:
        await self._clock.sleep(UNLISTED_SECONDS)
        self._is_listing = False
        try:
            writable = await self._registry.writable()
        except MetadataError:
            logger.info("bookies can't be listed", exc_info=True)
            return
        self._on_listed((*writable, *self._registry.known_read_only))
