"""HostileSession: a client's session with a service of `hostile_metadata`.

The client counts its time from when it sent what was last answered, so it is in doubt before the
server can have given its keys to others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from pulsar_py.common.clock import Clock
from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.metadata.store import IN_DOUBT_SHARE, Session, SessionEvent, SessionListener
from pulsar_py.testing.hostile_service import HostileService

logger = logging.getLogger(__name__)


class SessionOwner(Protocol):
    """What a session needs of its client."""

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

    @property
    def is_good(self) -> bool:
        """Whether 5/6 of the time-out have not passed since what the server last answered."""
        timeout_seconds = self._client.service.settings.session_timeout_seconds
        silent_seconds = self._client.clock.monotonic_seconds() - self.last_news_seconds
        return self.is_open and silent_seconds < IN_DOUBT_SHARE * timeout_seconds

    def listen(self, listener: SessionListener) -> Callable[[], None]:
        """Tell `listener` of every event."""
        self.listeners.append(listener)

        def stop() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return stop

    def tell(self, event: SessionEvent) -> None:
        """Tell all; what a listener raises is logged."""
        for listener in tuple(self.listeners):
            with ErrorsLogged(logger, "session listener failed", extra={"event": event.value}):
                listener(event)

    async def close(self) -> None:
        """Delete its ephemeral keys; the client goes on with another one."""
        if self.is_open:
            await self._client.end_session(self)
