"""`HostileSession`: a client's session with a service of `hostile_metadata`.

The client counts its time from when it sent the last request that was answered, so it is in doubt
before the server can have given its keys to others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata.store import IN_DOUBT_SHARE, Session, SessionEvent, SessionListener
from pulsar_py.testing.hostile_service import HostileService

logger = logging.getLogger(__name__)


class SessionOwner(Protocol):
    """The calls that a session makes to its client."""

    clock: Clock
    service: HostileService

    async def end_session(self, session: HostileSession) -> None:
        """End the session at the server, and begin another."""


class HostileSession(Session):
    """The one session of a client; after it expired it has another id."""

    def __init__(self, client: SessionOwner, session_id: str) -> None:
        self.session_id = session_id
        self.is_open = True
        self.last_news_seconds = client.clock.monotonic_seconds()
        self.listeners: list[SessionListener] = []
        self._client = client
        self._is_doubt_told = False
        self._has_overslept = False  # the doubt was told when the time-out was over

    @property
    def _timeout_seconds(self) -> float:
        return self._client.service.settings.session_timeout_seconds

    @property
    def _silent_seconds(self) -> float:
        """Since the last answered request was sent."""
        return self._client.clock.monotonic_seconds() - self.last_news_seconds

    @property
    def is_good(self) -> bool:
        """Whether less than 5/6 of the time-out passed since the last answered request was sent."""
        return self.is_open and self._silent_seconds < IN_DOUBT_SHARE * self._timeout_seconds

    @property
    def has_overslept(self) -> bool:
        """Whether the time-out passed before the doubt could be told: the client was frozen."""
        return self._has_overslept or (
            not self._is_doubt_told and self._silent_seconds >= self._timeout_seconds
        )

    def listen(self, listener: SessionListener) -> Callable[[], None]:
        """Call `listener` with every event; returns a function that ends this."""
        self.listeners.append(listener)

        def stop() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return stop

    def tell(self, event: SessionEvent) -> None:
        """Call all listeners; errors that they raise are logged."""
        if event is SessionEvent.IN_DOUBT:
            self._has_overslept, self._is_doubt_told = self.has_overslept, True
        elif event is not SessionEvent.CONNECTION_LOST:
            self._has_overslept = self._is_doubt_told = False
        for listener in tuple(self.listeners):
            with ErrorsLogged(logger, "session listener failed", extra={"event": event.value}):
                listener(event)

    async def close(self) -> None:
        """End the session, which deletes its ephemeral keys; the client begins another one."""
        if self.is_open:
            await self._client.end_session(self)
