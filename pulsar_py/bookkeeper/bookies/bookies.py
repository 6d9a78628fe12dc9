"""`Bookies`: keeps one connection to each bookie in use, opened when it is needed (edge).

A `BookieLink` stands for one bookie as long as the store is open. Requests that are sent while
there is no connection wait until it is made, or are answered with `LOST` if that fails. After a
failure the next attempt waits for `RETRY_SECONDS`. Answers and failures are counted
(`BookieCounters`), and reported to the store's `BookieHealth`, once for all requests that one event
ends.

The requests that wait for one bookie are bounded in bytes, whether it is connected or not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from pulsar_py.bookkeeper.bookies.batch_reads import BatchReads
from pulsar_py.bookkeeper.bookies.bookie_statistics import (
    NO_FAILURES,
    BookieCounters,
    RemoteBookieStatistics,
)
from pulsar_py.bookkeeper.bookies.connection import BookieConnection, ConnectionLimits
from pulsar_py.bookkeeper.bookies.health import BookieHealth
from pulsar_py.bookkeeper.bookies.opening import open_connection
from pulsar_py.bookkeeper.bookies.registry import BookieRegistry
from pulsar_py.bookkeeper.bookies.requests import BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieCode, BookieOperation
from pulsar_py.common.errors import MetadataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""So long after a failure no connection is made."""


class Bookies:
    """The links of one store."""

    def __init__(
        self,
        registry: BookieRegistry,
        clock: Clock,
        limits: ConnectionLimits | None = None,
        health: BookieHealth | None = None,
    ) -> None:
        """`registry` says where bookies listen."""
        self.registry = registry
        self.health = health or BookieHealth()
        self.limits = limits or ConnectionLimits()
        self.on_failing: Callable[[str], None] = lambda _: None
        """Told of each bookie that begins to fail."""
        self.on_back: Callable[[str], None] = lambda _: None
        """Told of each that answers again."""
        self._clock = clock
        self._tasks = TaskOwner("bookies")
        self.batch_reads = BatchReads(registry, clock, self.limits, self._tasks)
        self._links: dict[str, BookieLink] = {}

    def link(self, bookie_id: str) -> BookieLink:
        """The link to a bookie."""
        link = self._links.get(bookie_id)
        if link is None:
            link = BookieLink(bookie_id, self, self._clock, self._tasks)
            self._links[bookie_id] = link
        return link

    def heard(self, bookie_id: str, code: int) -> None:
        """Report the code of a bookie's last answer, or a code that stands for no answer."""
        now = self._clock.monotonic_seconds()
        if code == frames.TOO_MUCH_WAITS:
            self.health.on_slow(bookie_id, now)
        elif code in NO_FAILURES:
            if self.health.on_answered(bookie_id, now):
                self.on_back(bookie_id)
        elif self.health.on_failed(bookie_id, now):
            self.on_failing(bookie_id)

    def is_failing(self, bookie_id: str) -> bool:
        """Whether the last request to a bookie failed."""
        return self.health.is_failing(bookie_id)

    def statistics(self) -> list[RemoteBookieStatistics]:
        """The statistics of all bookies that were used, sorted by id."""
        return [link.statistics() for _, link in sorted(self._links.items())]

    @property
    def connected_count(self) -> int:
        """The number of bookies with a connection."""
        return sum(link.is_connected for link in self._links.values())

    @property
    def waiting_bytes(self) -> int:
        """The bytes of requests without an answer, of all bookies together."""
        return sum(link.waiting_bytes for link in self._links.values())

    async def close(self) -> None:
        """End all connections; unanswered requests get `LOST`. May be called again."""
        for link in self._links.values():
            link.close()
        await self._tasks.close()


class BookieLink:
    """Sends requests to one bookie, over one connection after the other."""

    def __init__(self, bookie_id: str, bookies: Bookies, clock: Clock, tasks: TaskOwner) -> None:
        """Made by `Bookies.link`."""
        self.bookie_id = bookie_id
        self._bookies = bookies
        self._clock = clock
        self._tasks = tasks
        self._counters = BookieCounters(bookies.limits.request_timeout_seconds)
        self._connection: BookieConnection | None = None
        self._waiting: list[BookieRequest] = []  # for the connection that is being made
        self._waiting_bytes = 0  # of those
        self._is_connecting = False
        self._is_closed = False
        self._failed_seconds = float("-inf")  # when it last failed, by the monotonic clock

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def waiting_bytes(self) -> int:
        """The bytes of requests without an answer."""
        connection = self._connection
        return self._waiting_bytes if connection is None else connection.waiting_bytes

    def statistics(self) -> RemoteBookieStatistics:
        """The statistics of this bookie."""
        health, latencies = self._bookies.health, self._counters.latencies
        return RemoteBookieStatistics(
            bookie_id=self.bookie_id,
            adds=latencies[BookieOperation.ADD],
            reads=latencies[BookieOperation.READ],
            errors=self._counters.errors_by_name(),
            pending_bytes=self.waiting_bytes,
            is_connected=self.is_connected,
            is_failing=health.is_failing(self.bookie_id),
            is_quarantined=health.is_quarantined(self.bookie_id, self._clock.monotonic_seconds()),
        )

    def send(self, request: BookieRequest) -> None:
        """Send a request, over a new connection if there is none; its sink gets the answer."""
        if self._connection is not None:
            self._connection.send(request)
            return
        if (
            request.operation == BookieOperation.ADD
            and self._waiting_bytes + request.size_bytes > self._bookies.limits.max_waiting_bytes
        ):
            asyncio.get_running_loop().call_soon(self._refuse, request)
            return
        self._waiting.append(request)
        self._waiting_bytes += request.size_bytes
        if self._is_connecting:
            return
        if self._is_closed:
            asyncio.get_running_loop().call_soon(self._give_up_waiting)
            return
        self._is_connecting = True
        self._tasks.spawn(self._connect(), f"connect {self.bookie_id}")

    def _refuse(self, request: BookieRequest) -> None:
        self._answer([(request, request.failed(frames.TOO_MUCH_WAITS))])

    async def _connect(self) -> None:
        limits = self._bookies.limits
        retry_in_seconds = self._failed_seconds + RETRY_SECONDS - self._clock.monotonic_seconds()
        if retry_in_seconds > 0:
            await self._clock.sleep(retry_in_seconds)
        try:
            async with asyncio.timeout(limits.connect_timeout_seconds):
                host, port = await self._bookies.registry.address(self.bookie_id)
                connection = await open_connection(
                    lambda: BookieConnection(
                        self._clock, limits, self._on_lost, self._on_answers, self._on_stored
                    ),
                    host,
                    port,
                    limits.tls,
                )
        except (OSError, TimeoutError, StorageError, MetadataError) as error:
            self._is_connecting = False
            self._on_failed(str(error) or type(error).__name__)
            return
        self._is_connecting = False
        if connection.is_lost:
            self._give_up_waiting()
            return
        self._connection = connection
        for request in self._take_waiting():
            connection.send(request)

    def _take_waiting(self) -> list[BookieRequest]:
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        return waiting

    def _on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        code = self._counters.count(answers, self._clock.monotonic_seconds())
        if code != frames.LOST:  # of that the loss itself is told
            self._bookies.heard(self.bookie_id, code)

    def _on_stored(self, stored: Sequence[tuple[float, int]]) -> None:
        self._counters.count_stored(stored, self._clock.monotonic_seconds())
        self._bookies.heard(self.bookie_id, BookieCode.EOK)

    def _on_failed(self, reason: str) -> None:
        self._failed_seconds = self._clock.monotonic_seconds()
        if not self._is_closed:
            logger.info(
                "bookie can't be reached", extra={"bookie": self.bookie_id, "reason": reason}
            )
            self._bookies.heard(self.bookie_id, frames.LOST)
        self._give_up_waiting()

    def _on_lost(self, reason: str) -> None:
        self._connection = None
        if not self._is_closed:
            self._failed_seconds = self._clock.monotonic_seconds()
            logger.info("bookie lost", extra={"bookie": self.bookie_id, "reason": reason})
            self._bookies.batch_reads.forget(self.bookie_id)
            self._bookies.heard(self.bookie_id, frames.LOST)

    def _give_up_waiting(self) -> None:
        if self._is_connecting:
            return
        self._answer([(each, each.failed(frames.LOST)) for each in self._take_waiting()])

    def _answer(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        """Answer requests with a code that stands for no answer."""
        if answers:
            self._on_answers(answers)
        for pair in answers:
            sink = pair[0].sink
            if sink is not None:
                sink.on_answers([pair])

    def close(self) -> None:
        """End the connection, and open no other."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.lose("the store is closed")
        self._is_connecting = False
        self._give_up_waiting()
