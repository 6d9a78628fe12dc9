"""`ClientContext`: what the parts of one client share, such as connections, lookups and limits.

`Client` makes it, hands it to every producer, consumer, reader and table view, and closes it with
itself. What always holds: ids are never given twice; `lookup` belongs to the current service URL
and is replaced when that is.

Source: PulsarClientImpl in Pulsar's client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from dataclasses import asdict, replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.brokers.connection_events import PlaceLog
from pulsar_py.client.brokers.connection_pool import ConnectionPool
from pulsar_py.client.brokers.lookup import BinaryLookup, LookupService
from pulsar_py.client.brokers.service_url import ServiceUrl
from pulsar_py.client.shared.memory_limit import MemoryLimit
from pulsar_py.client.shared.statistics import StatisticsReporter
from pulsar_py.common.conditions import Compiler
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientError,
    ConnectionClosedError,
    ForkedProcessError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.security.authentication import Authentication

__all__ = ["ClientContext", "Closable"]

logger = logging.getLogger(__name__)


class Closable(Protocol):
    """An object that closes with its client: a producer, consumer, reader or table view."""

    async def close(self) -> None:
        """End in bounded time; may be called again."""

    def abandon(self) -> None:
        """End at once, without waiting for anybody; may be called again, and after `close`."""


class ClientContext:
    """The shared state of one client, handed to its parts. Made by `Client`, lives as long."""

    def __init__(
        self, service_url: ServiceUrl, config: ClientConfig, *, clock: Clock, chance: Random
    ) -> None:
        self.config = config
        # The option that the client was made with: `update_service_url` may set another one, and
        # goes back to this one where a cluster names none.
        self._own_trust_certs_file_path = config.tls_trust_certs_file_path
        self.clock: Final = clock
        self.random: Final = chance
        self.service_url = service_url
        _warn_of_unused_tls(service_url, config)
        # Tasks of the client itself; parts with tasks have owners of their own.
        self.tasks: Final = TaskOwner("client")
        self.pool: Final = ConnectionPool(self)
        self.place_log: Final = PlaceLog(clock)
        # Of the current service URL: read it each time.
        self.lookup: LookupService = self._new_lookup(service_url)
        self.memory_limit: Final = MemoryLimit(config.memory_limit_bytes)
        self.statistics: Final = StatisticsReporter(clock, config.stats_interval_in_seconds)
        # Why the client can't be used any more (closed, forked); hot paths test it for None.
        self.closed_error: ClientError | None = None
        # Gives ids that no other producer, consumer (or topic watcher), request of this client has.
        self.new_producer_id: Final = count().__next__
        self.new_consumer_id: Final = count().__next__
        self.new_request_id: Final = count().__next__
        # Compiles patterns of topics; None for Python's own, with its flags. A client that acts for
        # others has one whose patterns take no long time.
        self.pattern_compiler: Compiler | None = None
        self._children: dict[Closable, None] = {}  # in the order in which they were made
        # Lookups of clusters that topics migrated to, by service URL.
        self._migrated_lookups: dict[str, LookupService] = {}
        # The loop everything runs on, and its thread's name; None before the first use.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_name = ""

    def _new_lookup(self, url: ServiceUrl) -> LookupService:
        if url.is_http:
            from pulsar_py.client.brokers.http_lookup import HttpLookup  # noqa: PLC0415 - imports http

            return HttpLookup(self, url)
        return BinaryLookup(self, url)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop everything runs on; None before the first use."""
        return self._loop

    def check_usable(self, subject: str = "the client") -> None:
        """Raise if the client can't be used here.

        Raises:
            AlreadyClosedError: It is closed.
            ForkedProcessError: It was made by this process's parent.
            ClientError: It works on another event loop; `subject` begins the message.
        """
        if self.closed_error is not None:
            raise self.closed_error
        self.check_loop(subject)

    def check_loop(self, subject: str) -> None:
        """Raise if this is not the event loop of the client's first use.

        It costs 0.1 us: too much for each message, and little where a wait or a batch begins.

        Raises:
            ClientError: It is another one, or none; with the names of both threads.
        """
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not None and loop is self._loop:
            return
        thread_name = threading.current_thread().name
        if loop is None:
            raise ClientError(
                f"{subject} was used in thread {thread_name!r}, which runs no event loop"
            )
        if self._loop is not None:
            raise ClientError(
                f"{subject} belongs to another event loop, that of thread {self._thread_name!r}, "
                f"and was used in thread {thread_name!r}: make a client for each loop, or "
                f"hand calls over by asyncio.run_coroutine_threadsafe"
            )
        self._loop, self._thread_name = loop, thread_name

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """As `LookupService.partitions_count` of the current service URL.

        Where the URL changes meanwhile, the new one is asked.
        """
        while True:
            lookup = self.lookup
            try:
                return await lookup.partitions_count(topic, may_create=may_create)
            except ConnectionClosedError:
                if lookup is self.lookup or self.closed_error is not None:
                    raise

    def lookup_at(self, service_url: str) -> LookupService:
        """Lookups at another cluster, which a topic migrated to.

        Raises:
            InvalidServiceUrlError: It is not a service URL.
        """
        lookup = self._migrated_lookups.get(service_url)
        if lookup is None:
            lookup = self._new_lookup(ServiceUrl.parse(service_url))
            self._migrated_lookups[service_url] = lookup
        return lookup

    async def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Use another cluster: connections close, producers and consumers come back there.

        Raises:
            InvalidServiceUrlError: It is not a service URL; nothing changed.
        """
        url = ServiceUrl.parse(service_url)
        if authentication is not None:
            self.config = replace(self.config, authentication=authentication)
        path = tls_trust_certs_file_path or self._own_trust_certs_file_path
        self.config = replace(self.config, tls_trust_certs_file_path=path)
        replaced = [self.lookup, *self._migrated_lookups.values()]
        self._migrated_lookups.clear()
        self.service_url = url
        self.lookup = self._new_lookup(url)
        self.pool.close_connections("the service URL changed")
        for lookup in replaced:
            await lookup.close()

    def register_child(self, child: Closable) -> None:
        """Close `child` with the client."""
        self._children[child] = None

    def unregister_child(self, child: Closable) -> None:
        """Forget a child that is closed; unknown ones are ignored."""
        self._children.pop(child, None)

    @property
    def children(self) -> list[Closable]:
        """The objects to close with the client, in the order in which they were made."""
        return list(self._children)

    def abandon(self) -> None:
        """Drop everything at once, without waiting."""
        if self.closed_error is None:
            self.closed_error = AlreadyClosedError("the client is closed")
        self.statistics.close()
        for child in self.children:
            child.abandon()
        self.tasks.abandon()
        for lookup in (self.lookup, *self._migrated_lookups.values()):
            lookup.abandon()
        self.pool.abandon()
        self.place_log.flush()

    async def close(self) -> None:
        """Close connections and tasks, in bounded time."""
        self.abandon()
        for lookup in (self.lookup, *self._migrated_lookups.values()):
            await lookup.close()
        await self.pool.close()
        await self.tasks.close()

    def __del__(self) -> None:
        """Tell of a client whose event loop ended before it was closed, and of what it had open."""
        loop = getattr(self, "_loop", None)
        if loop is None or not loop.is_closed() or self.closed_error is not None:
            return
        left = [*map(repr, self.children)]
        left += [f"a connection to {each.remote_address}" for each in self.pool.connections]
        if not left:
            return
        warnings.warn(
            f"unclosed client of {self.service_url}, with {', '.join(left)}: its loop ended; await"
            " close(), or use `async with`",
            ResourceWarning,
            source=self,
            stacklevel=1,
        )

    def detach_after_fork(self) -> list[int]:
        """In a forked child: become unusable without touching the parent's sockets."""
        self.closed_error = ForkedProcessError(
            f"the client was made in process {os.getppid()}, this is its child {os.getpid()}: "
            "make a new client after the fork"
        )
        self._children.clear()
        return self.pool.detach_after_fork()


def _warn_of_unused_tls(url: ServiceUrl, config: ClientConfig) -> None:
    """Warn of TLS options with a URL without TLS: they would do nothing, unnoticed."""
    authentication = config.authentication
    given = [
        name
        for name, value in asdict(config.tls).items()
        if value not in (None, False)  # each one's default
    ]
    if authentication is not None and authentication.tls_certificate_paths is not None:
        given.append(type(authentication).__name__)
    if given and not url.is_tls:
        names = ", ".join(given)
        logger.warning(
            "%s is not encrypted, so %s has no effect: use pulsar+ssl://",
            url,
            names,
            extra={"service_url": str(url), "unused": names},
        )
