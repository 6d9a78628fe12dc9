"""`Reachability`: whether another broker accepts TCP connections at this moment (edge).

A connection is opened and closed again. One attempt serves all that ask meanwhile, and its result
counts for `FRESH_SECONDS`, so a broker is asked at most four times a second however many lookups
name it. A broker that does not answer in time counts as one that refuses.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

FRESH_SECONDS: Final = 0.25
"""For which a result counts: clients of a broker that was killed ask again after 0.1 and 0.2 s."""
CONNECT_SECONDS: Final = 2.0
"""After which a connection that is not established counts as refused."""
MAX_ADDRESSES: Final = 10_000
"""Whose results are kept; the oldest goes first."""


class Reachability:
    """Asks brokers; its owner closes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks = TaskOwner("reachability")
        self._results: dict[str, tuple[float, bool]] = {}  # by URL: when, and whether it accepted
        self._attempts: dict[str, asyncio.Task[bool]] = {}  # under way, by URL

    async def accepts(self, url: str) -> bool:
        """Whether the address of `scheme://host:port` accepts a connection.

        Raises:
            ValueError: The text is no such URL.
        """
        known = self._results.get(url)
        if known is not None and self._clock.monotonic_seconds() - known[0] < FRESH_SECONDS:
            return known[1]
        attempt = self._attempts.get(url)
        if attempt is None:
            parts = urlsplit(url)
            if not parts.hostname or not parts.port:
                raise ValueError(f"{url!r} is not the address of a broker: expected host and port")
            attempt = self._tasks.spawn(self._try(url, parts.hostname, parts.port), url)
            self._attempts[url] = attempt
        return await asyncio.shield(attempt)

    async def _try(self, url: str, host: str, port: int) -> bool:
        try:
            is_accepting = await _connects(host, port)
        finally:
            del self._attempts[url]
        self._results.pop(url, None)
        self._results[url] = (self._clock.monotonic_seconds(), is_accepting)
        if len(self._results) > MAX_ADDRESSES:
            del self._results[next(iter(self._results))]
        return is_accepting

    async def close(self) -> None:
        """End attempts under way."""
        await self._tasks.close()


async def _connects(host: str, port: int) -> bool:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
    except OSError:  # TimeoutError is one
        return False
    transport.close()
    return True
