"""Requests of a client of `hostile_metadata`, and the two directions of its connection.

A `Lane` is one direction: messages arrive in order, each after a delay that is drawn from the
service's generator.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulsar_py.testing.hostile_service import HostileService


@dataclass(slots=True, eq=False)
class HostileRequest:
    """A request, and the future of the caller that waits for the answer."""

    work: Callable[[], Any]  # Any: the future's type
    future: asyncio.Future[Any]
    is_change: bool
    session_id: str
    connection: int
    sent_seconds: float  # by the client's clock
    timer: asyncio.TimerHandle | None = None


class Lane:
    """One direction of a connection: messages arrive in order, each after a delay."""

    def __init__(self, service: HostileService) -> None:
        self._service = service
        self._queue: deque[Callable[[], None]] = deque()
        self._last_seconds = 0.0

    def send(self, arrive: Callable[[], None]) -> None:
        """Call `arrive` after a delay, and after all messages that were sent before."""
        loop = asyncio.get_running_loop()
        service = self._service
        due_seconds = loop.time() + service.chance.uniform(*service.settings.delay_seconds)
        self._last_seconds = max(self._last_seconds, due_seconds)
        self._queue.append(arrive)
        if self._last_seconds > loop.time():
            loop.call_at(self._last_seconds, self._pop)
        else:
            loop.call_soon(self._pop)

    def _pop(self) -> None:
        self._queue.popleft()()
