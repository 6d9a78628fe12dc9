"""Runs one event loop in a thread of each of Spark's processes, with the clients on it (edge).

Spark calls sources and sinks from plain functions, in planners and in workers that are forked
before any module of ours is loaded and then serve many tasks. `LoopThread.call` runs a coroutine on
the loop and waits for its result: cross it once a batch, never once a row. Tasks with the same
settings share a client, because Spark reuses a worker; a client that was unused for
`IDLE_SECONDS` is closed when another is asked for. A process that was forked after the loop began
gets a loop of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from pulsar_py.client import Client
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.loops.loop_thread import LoopThread
from pulsar_py.spark.shared.client_settings import client_arguments
from pulsar_py.spark.shared.logs import show_fields
from pulsar_py.spark.shared.options import ClientOptions

IDLE_SECONDS: Final = 600.0
"""Time after which an unused client may be closed. Source: `spark.pulsar.client.cache.timeout` of
the JVM connector."""

ClientKey = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Cached:
    client: Client
    users_count: int
    # Monotonic seconds when the last user released it; valid only while there are none.
    idle_since_seconds: float


class ClientCache:
    """The clients of one loop. Not thread-safe: used on that loop alone."""

    def __init__(self, clock: Clock, make: Callable[[ClientOptions], Client]) -> None:
        self._clock = clock
        self._make = make
        self._clients: dict[ClientKey, _Cached] = {}

    @asynccontextmanager
    async def client(self, options: ClientOptions) -> AsyncIterator[Client]:
        """A client with these settings, kept open for the next user.

        Raises:
            ConfigurationError: A setting is unknown, or its value can't be read.
        """
        await self._close_idle()
        key = (options.service_url, tuple(sorted(options.client.items())))
        cached = self._clients.get(key)
        if cached is None or cached.client.is_closed:
            cached = self._clients[key] = _Cached(self._make(options), 0, 0.0)
        cached.users_count += 1
        try:
            yield cached.client
        finally:
            cached.users_count -= 1
            cached.idle_since_seconds = self._clock.monotonic_seconds()

    async def _close_idle(self) -> None:
        limit = self._clock.monotonic_seconds() - IDLE_SECONDS
        for key, cached in list(self._clients.items()):
            if not cached.users_count and cached.idle_since_seconds < limit:
                del self._clients[key]
                await cached.client.close()

    async def close(self) -> None:
        """Close all clients."""
        while self._clients:
            _, cached = self._clients.popitem()
            await cached.client.close()


def make_client(options: ClientOptions) -> Client:
    """A client with the settings of a query.

    Raises:
        ConfigurationError: A setting is unknown, or its value can't be read.
    """
    arguments, authentication = client_arguments(options.client)
    # The table of arguments has the names and types of ClientOptions.
    return Client(options.service_url, authentication, **arguments)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Runtime:
    """The loop and the clients of one process."""

    loop: LoopThread
    clients: ClientCache
    process_id: int


class _Holder:
    """Holds the runtime of the process: one for all tasks, since Spark reuses its workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None

    def get(self) -> Runtime:
        with self._lock:
            # A forked child has the parent's object, and no thread that runs its loop.
            if self._runtime is None or self._runtime.process_id != os.getpid():
                show_fields()
                clients = ClientCache(SystemClock(), make_client)
                self._runtime = Runtime(LoopThread(), clients, os.getpid())
            return self._runtime


_HOLDER: Final = _Holder()


def runtime() -> Runtime:
    """The loop and the clients of the process, begun on first use."""
    return _HOLDER.get()
