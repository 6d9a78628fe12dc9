"""`Snapshots`: the statistics of a client, for exporters that ask in threads of their own (edge).

The statistics belong to the client's event loop. An exporter's thread has the loop take them and
waits for a moment; where the loop is the exporter's own, or there is none, they are taken at once;
where it does not answer, or has ended, the last ones are given again. An exporter asks for each
metric: those that follow at once get the same statistics, and don't wait again.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from typing import Final

from pulsar_py.blocking.client import Client as BlockingClient
from pulsar_py.client.client import Client
from pulsar_py.client.shared.statistics import ClientStatistics
from pulsar_py.common.errors import ClientError
from pulsar_py.common.loops.clock import SystemClock

__all__ = ["Snapshots"]

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 1.0
_VALID_SECONDS: Final = 0.1


class Snapshots:
    """Takes the statistics of one client, asyncio's or blocking."""

    def __init__(self, client: Client | BlockingClient) -> None:
        self._client = client
        self._clock = SystemClock()
        self._last: ClientStatistics | None = None
        self._valid_until = 0.0

    @property
    def client(self) -> Client | BlockingClient:
        """Whose statistics they are."""
        return self._client

    def take(self) -> ClientStatistics | None:
        """The statistics now, or the last ones; None before the client was used."""
        if self._clock.monotonic_seconds() < self._valid_until:
            return self._last
        try:
            self._last = self._take()
        except (TimeoutError, ClientError, RuntimeError) as error:
            logger.debug("statistics not taken", extra={"error": str(error)})
        self._valid_until = self._clock.monotonic_seconds() + _VALID_SECONDS
        return self._last

    def _take(self) -> ClientStatistics | None:
        client = self._client
        if isinstance(client, BlockingClient):
            return client.statistics()
        loop = client.context.loop
        if loop is None:
            return None
        if _running() is loop:
            return client.statistics()
        taken: Future[ClientStatistics] = Future()
        loop.call_soon_threadsafe(lambda: taken.set_result(client.statistics()))
        return taken.result(_PATIENCE_SECONDS)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
