"""Bookies: one connection to each bookie that is used, made when it is needed (edge).

A `BookieLink` stands for one bookie as long as the store lives. What is sent while there is no
connection waits until it is made, or is answered with `LOST` when that fails. After a failure the
next attempt waits for a moment. A link whose last news was a failure is suspect, so that new
ensembles do without the bookie where they can.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.bookkeeper import frames
from pulsar_py.bookkeeper.connection import (
    BookieConnection,
    BookieRequest,
    ConnectionLimits,
)
from pulsar_py.bookkeeper.opening import open_connection
from pulsar_py.bookkeeper.registry import BookieRegistry
from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import MetadataError, StorageError
from pulsar_py.common.tasks import TaskOwner

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""So long after a failure no connection is made."""


class Bookies:
    """The links of one store."""

    def __init__(
        self, registry: BookieRegistry, clock: Clock, limits: ConnectionLimits | None = None
    ) -> None:
        """`registry` says where bookies listen."""
        self.registry = registry
        self._clock = clock
        self._limits = limits or ConnectionLimits()
        self._tasks = TaskOwner("bookies")
        self._links: dict[str, BookieLink] = {}

    def link(self, bookie_id: str) -> BookieLink:
        """The link to a bookie."""
        link = self._links.get(bookie_id)
        if link is None:
            link = BookieLink(bookie_id, self.registry, self._clock, self._limits, self._tasks)
            self._links[bookie_id] = link
        return link

    def is_suspect(self, bookie_id: str) -> bool:
        """Whether the last that was heard of a bookie was a failure."""
        link = self._links.get(bookie_id)
        return link is not None and link.is_suspect

    @property
    def connected_count(self) -> int:
        """Bookies with a connection."""
        return sum(link.is_connected for link in self._links.values())

    @property
    def waiting_bytes(self) -> int:
        """Of requests without an answer, all bookies together."""
        return sum(link.waiting_bytes for link in self._links.values())

    async def close(self) -> None:
        """End all connections; who waits is answered with `LOST`. May be called again."""
        for link in self._links.values():
            link.close()
        await self._tasks.close()


class BookieLink:
    """The way to one bookie."""

    def __init__(
        self,
        bookie_id: str,
        registry: BookieRegistry,
        clock: Clock,
        limits: ConnectionLimits,
        tasks: TaskOwner,
    ) -> None:
        """Made by `Bookies.link`."""
        self.bookie_id = bookie_id
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._tasks = tasks
        self._connection: BookieConnection | None = None
        self._waiting: list[BookieRequest] = []  # for the connection that is being made
        self._is_connecting = False
        self._is_closed = False
        self._failed_seconds = float("-inf")  # when it last failed, by the monotonic clock

    @property
    def is_suspect(self) -> bool:
        """The last that was heard was a failure."""
        heard = self._connection.heard_seconds if self._connection is not None else float("-inf")
        return self._failed_seconds > heard

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def waiting_bytes(self) -> int:
        """Of requests without an answer."""
        return self._connection.waiting_bytes if self._connection is not None else 0

    def send(self, request: BookieRequest) -> None:
        """Send a request, over a new connection if there is none; its sink hears of it."""
        if self._connection is not None:
            self._connection.send(request)
            return
        self._waiting.append(request)
        if self._is_connecting:
            return
        if self._is_closed:
            asyncio.get_running_loop().call_soon(self._give_up_waiting)
            return
        self._is_connecting = True
        self._tasks.spawn(self._connect(), f"connect {self.bookie_id}")

    async def _connect(self) -> None:
        retry_in_seconds = self._failed_seconds + RETRY_SECONDS - self._clock.monotonic_seconds()
        if retry_in_seconds > 0:
            await self._clock.sleep(retry_in_seconds)
        try:
            async with asyncio.timeout(self._limits.connect_timeout_seconds):
                host, port = await self._registry.address(self.bookie_id)
                connection = await open_connection(
                    lambda: BookieConnection(self._clock, self._limits, self._on_lost),
                    host,
                    port,
                    self._limits.tls,
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
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            connection.send(request)

    def _on_failed(self, reason: str) -> None:
        self._failed_seconds = self._clock.monotonic_seconds()
        logger.info("bookie can't be reached", extra={"bookie": self.bookie_id, "reason": reason})
        self._give_up_waiting()

    def _on_lost(self, reason: str) -> None:
        self._connection = None
        if not self._is_closed:
            self._failed_seconds = self._clock.monotonic_seconds()
            logger.info("bookie lost", extra={"bookie": self.bookie_id, "reason": reason})

    def _give_up_waiting(self) -> None:
        if self._is_connecting:
            return
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if request.sink is not None:
                request.sink.on_answers([(request, request.failed(frames.LOST))])

    def close(self) -> None:
        """End the connection, and make no more."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.lose("the store is closed")
        self._is_connecting = False
        self._give_up_waiting()
