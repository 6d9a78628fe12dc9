"""`TopicListBudget`: bytes of topic lists under way to clients, of all connections (edge).

Both of the binary protocol and of REST, where Apache Pulsar counts the first alone.

A list is taken account of before it is made, with the size of its namespace's last one, and until
its client has been sent it. One that does not fit waits in line; the line is bounded, and so is the
time in it. A list that is larger than the whole budget goes out alone.

Source: TopicListMemoryLimiter, AsyncDualMemoryLimiterImpl in Pulsar's broker; its limit of direct
memory has no counterpart, because a list is not copied on its way to the socket.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection
from functools import partial
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import TooManyRequestsError
from pulsar_py.common.loops.clock import Clock

FIRST_GUESS_BYTES: Final = 10 * 1024
"""What the first list of a namespace is taken for."""

LISTED_BYTES: Final = 60
"""What a name of a list takes in memory beside its characters."""

GUESSES_COUNT: Final = 1000
"""Namespaces whose last size is known."""


class TopicListLimits(Struct, frozen=True, kw_only=True):
    """The settings of broker.conf that the comments name."""

    max_bytes: int = 100 * 1024 * 1024  # maxTopicListInFlightHeapMemSizeMB
    max_waiting: int = 10_000  # …PermitsAcquireQueueSize
    max_wait_seconds: float = 25.0  # …PermitsAcquireTimeoutMillis


class TopicListBudget:
    """Owned by the broker's `Connections`."""

    def __init__(self, clock: Clock, limits: TopicListLimits) -> None:
        self._clock = clock
        self._limits = limits
        self.in_flight_bytes = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._guesses: OrderedDict[str, int] = OrderedDict()

    async def acquire(self, namespace: str) -> int:
        """Wait until there is room for a list of the namespace; returns the bytes to give back.

        Raises:
            TooManyRequestsError: There was no room in time, or too many wait.
        """
        size_bytes = self._guesses.get(namespace, FIRST_GUESS_BYTES)
        if self._waiting or not self._fits(size_bytes):
            if len(self._waiting) >= self._limits.max_waiting:
                raise _too_many()
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((room, size_bytes))
            timer = self._clock.call_later(self._limits.max_wait_seconds, partial(_expire, room))
            try:
                await room
            except asyncio.CancelledError:
                if not room.cancelled() and room.exception() is None:
                    self.give_back(size_bytes)  # it had been admitted already
                raise
            finally:
                timer.cancel()
        else:
            self.in_flight_bytes += size_bytes
        return size_bytes

    def correct(self, namespace: str, acquired_bytes: int, size_bytes: int) -> int:
        """Take account of a list's real size; returns the bytes to give back."""
        self._guesses[namespace] = size_bytes
        self._guesses.move_to_end(namespace)
        if len(self._guesses) > GUESSES_COUNT:
            self._guesses.popitem(last=False)
        self.in_flight_bytes += size_bytes - acquired_bytes
        self._admit()
        return size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Note that a list is with its client, or given up."""
        self.in_flight_bytes -= size_bytes
        assert self.in_flight_bytes >= 0
        self._admit()

    def _fits(self, size_bytes: int) -> bool:
        return (
            self.in_flight_bytes == 0 or self.in_flight_bytes + size_bytes <= self._limits.max_bytes
        )

    def _admit(self) -> None:
        while self._waiting:
            room, size_bytes = self._waiting[0]
            if not room.done():
                if not self._fits(size_bytes):
                    return
                self.in_flight_bytes += size_bytes
                room.set_result(None)
            self._waiting.popleft()


def list_bytes(topics: Collection[str]) -> int:
    """What a list of full names takes in memory."""
    return sum(map(len, topics)) + LISTED_BYTES * len(topics)


def _expire(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_exception(_too_many())


def _too_many() -> TooManyRequestsError:
    return TooManyRequestsError("too many bytes of topic lists are under way in this broker")
