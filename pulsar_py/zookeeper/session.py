"""The session of a ZooKeeper client: decides when it is in doubt, and tells its listeners.

A server expires a session from which it received nothing for the time-out. So the proof that the
session was alive is an answer, and it proves that for the time at which its request was *sent*.
Once 5/6 of the time-out have passed since then, by this process's clock, the session is in doubt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata.store import IN_DOUBT_SHARE, Session, SessionEvent, SessionListener

logger = logging.getLogger(__name__)


class ZooKeeperSession(Session):
    """What `open_session` returns; after the session expired it stands for the next one."""

    def __init__(self, clock: Clock, end: Callable[[ZooKeeperSession], Awaitable[None]]) -> None:
        """`end` closes the session at the server."""
        self._clock = clock
        self._end = end
        self._listeners: list[SessionListener] = []
        self._doubt_timer: asyncio.TimerHandle | None = None
        self._is_doubt_told = False
        self._was_used = False  # it had a number
        self._has_overslept = False  # the doubt was told when the time-out was over
        self._last_news_seconds = float("-inf")
        self.number = 0
        """The server's id of the session; 0 before there is one."""
        self.password = bytes(16)
        self.timeout_seconds = 0.0
        """The time-out that the server granted."""
        self.is_open = True
        self.doubts_count = 0
        """How often listeners were told IN_DOUBT."""

    @property
    def session_id(self) -> str:  # type: ignore[override]  # read-only for who uses it
        """The number as ZooKeeper's tools print it."""
        return f"0x{self.number & 0xFFFFFFFFFFFFFFFF:x}"

    @property
    def _good_seconds(self) -> float:
        """The seconds until the session is in doubt; negative if it is."""
        doubt_at = self._last_news_seconds + IN_DOUBT_SHARE * self.timeout_seconds
        return doubt_at - self._clock.monotonic_seconds()

    @property
    def is_good(self) -> bool:
        """Whether less than 5/6 of the time-out passed since the last answered request was sent."""
        return self.is_open and self.number != 0 and self._good_seconds > 0

    @property
    def _silent_seconds(self) -> float:
        """The seconds since the last answered request was sent."""
        return self._clock.monotonic_seconds() - self._last_news_seconds

    @property
    def has_overslept(self) -> bool:
        """Whether this process stood still: the time-out passed before listeners were told."""
        return self._has_overslept or (
            self.number != 0
            and not self._is_doubt_told
            and self._silent_seconds >= self.timeout_seconds
        )

    def listen(self, listener: SessionListener) -> Callable[[], None]:
        """Tell `listener` of every event."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def tell(self, event: SessionEvent) -> None:
        """Tell all listeners; what one raises is logged."""
        for listener in tuple(self._listeners):
            with ErrorsLogged(logger, "session listener failed", extra={"event": event.value}):
                listener(event)

    def begin(
        self, number: int, password: bytes, timeout_seconds: float, sent_seconds: float
    ) -> SessionEvent | None:
        """Take over the session that a server granted; returns the event for listeners."""
        if number == self.number:
            event: SessionEvent | None = SessionEvent.RECONNECTED
        else:
            event = SessionEvent.NEW_SESSION if self._was_used else None
        self._was_used = True
        self.number, self.password, self.timeout_seconds = number, password, timeout_seconds
        self._last_news_seconds = sent_seconds
        self._is_doubt_told = self._has_overslept = False
        self._set_timer()
        return event

    def forget(self) -> None:
        """Forget the id, because the server has expired the session."""
        self.number, self.password = 0, bytes(16)

    def on_news(self, sent_seconds: float) -> None:
        """Note that the server answered a request that was sent then."""
        if sent_seconds > self._last_news_seconds:
            self._last_news_seconds = sent_seconds
            if self._is_doubt_told and self._good_seconds > 0:
                self._is_doubt_told = self._has_overslept = False
                self._set_timer()
                self.tell(SessionEvent.RECONNECTED)

    def _set_timer(self) -> None:
        if self._doubt_timer is not None:
            self._doubt_timer.cancel()
        self._doubt_timer = self._clock.call_later(max(0.0, self._good_seconds), self._look)

    def _look(self) -> None:
        """Tell listeners if the session is in doubt, else check again when it would be."""
        self._doubt_timer = None
        if not self.is_open:
            return
        if self._good_seconds > 0:
            self._set_timer()
        elif not self._is_doubt_told:
            self._has_overslept = self.has_overslept
            self._is_doubt_told = True
            self.doubts_count += 1
            logger.warning(
                "zookeeper session in doubt",
                extra={
                    "session": self.session_id,
                    "timeout_seconds": self.timeout_seconds,
                    "silent_seconds": round(self._silent_seconds, 3),
                },
            )
            self.tell(SessionEvent.IN_DOUBT)

    async def close(self) -> None:
        """Close the session, which deletes its ephemeral keys; the client opens another one."""
        if self.is_open:
            await self._end(self)

    def retire(self) -> None:
        """Mark the session as closed."""
        self.is_open = False
        if self._doubt_timer is not None:
            self._doubt_timer.cancel()
            self._doubt_timer = None
