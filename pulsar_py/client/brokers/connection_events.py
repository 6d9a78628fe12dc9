"""Tells of the places at brokers that a client's parts get, lose and give up (edge).

Each producer, consumer and watcher has a place at a broker. What happens to it is logged at INFO
with who it is, and handed to the client's `connection_listener`: so a service can show that it is
cut off, or end when one of its parts has given up. Calls come from the event loop and must not
block; what a listener raises is logged.

Parts that share a connection lose and get their places together: what happens to several within a
tenth of a second is one line. Attempts that reach no broker are the connection pool's to tell;
refusals are told once, until there is a place again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.common.errors import ServiceError
from pulsar_py.common.failures import ErrorsLogged

if TYPE_CHECKING:
    import asyncio

    from pulsar_py.common.loops.clock import Clock

__all__ = ["ConnectionListener", "PlaceEvents", "PlaceLog"]

logger = logging.getLogger(__name__)

_TOGETHER_SECONDS: Final = 0.1
_NAMED_COUNT: Final = 3
"""Parts that are named in a line about several."""


class ConnectionListener(Protocol):
    """Implement it, and give it as the client's `connection_listener`.

    `who` is a text such as `producer p-1 of persistent://…`, or `consumer c-1 of s on persistent://…`.
    """

    def connected(self, who: str, broker: str) -> None:
        """It is registered for the first time, at the broker `host:port`."""
        del who, broker  # a body: who derives may leave it out

    def disconnected(self, who: str, reason: str) -> None:
        """It is registered no more, and reconnects by itself."""
        del who, reason

    def reconnected(self, who: str, broker: str) -> None:
        """It is registered again."""
        del who, broker

    def given_up(self, who: str, error: Exception) -> None:
        """It was registered, and will not reconnect; its calls raise `error` from now on."""
        del who, error


@dataclass(slots=True)
class _Line:
    fields: dict[str, object]
    names: list[str] = field(default_factory=list)
    others_count: int = 0


class PlaceLog:
    """The lines about the places of one client's parts. Owned by its ClientContext."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By their text; written when the timer ends.
        self._lines: dict[str, _Line] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, who: str, text: str, **fields: object) -> None:
        """Log `text` about `who`, in one line with all that get it at about the same time."""
        line = self._lines.setdefault(text, _Line(fields))
        if len(line.names) < _NAMED_COUNT:
            line.names.append(who)
        else:
            line.others_count += 1
        if self._timer is None:
            self._timer = self._clock.call_later(_TOGETHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what there is now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, {}
        for text, line in lines.items():
            who = ", ".join(line.names)
            if line.others_count:
                who = f"{who} and {line.others_count} more"
            logger.info("%s: %s", who, text, extra={"who": who, **line.fields})


class PlaceEvents:
    """Logs and hands on the events of one handler's place."""

    def __init__(self, listener: ConnectionListener | None, log: PlaceLog, who: str) -> None:
        self._listener = listener
        self._lines = log
        self._who = who
        self._was_connected = False
        # Whether a refusal was told since it was connected last.
        self._was_refused = False

    def connected(self, broker: str) -> None:
        """The handler's owner is registered at the broker."""
        again = " again" if self._was_connected else ""
        self._was_refused = False
        self._lines.add(self._who, f"connected to {broker}{again}", broker=broker)
        if self._listener is not None:
            with self._guarded():
                if self._was_connected:
                    self._listener.reconnected(self._who, broker)
                else:
                    self._listener.connected(self._who, broker)
        self._was_connected = True

    def disconnected(self, reason: str) -> None:
        """It is registered no more."""
        self._lines.add(self._who, f"disconnected: {reason}", reason=reason)
        if self._listener is not None:
            with self._guarded():
                self._listener.disconnected(self._who, reason)

    def delayed(self, error: Exception, delay_seconds: float) -> None:
        """An attempt failed, and the next one comes later."""
        is_news = isinstance(error, ServiceError) and not self._was_refused
        self._was_refused = self._was_refused or is_news
        self._log(
            f"not connected, again in {delay_seconds:.1f} s: {error}",
            level=logging.INFO if is_news else logging.DEBUG,
            error=str(error),
        )

    def given_up(self, error: Exception) -> None:
        """There will be no attempt any more."""
        self._log(f"given up: {error}", error=str(error))
        if self._listener is not None:
            with self._guarded():
                self._listener.given_up(self._who, error)

    def _log(self, text: str, *, level: int = logging.INFO, **fields: object) -> None:
        self._lines.flush()  # in the order in which it happened
        logger.log(level, "%s: %s", self._who, text, extra={"who": self._who, **fields})

    def _guarded(self) -> ErrorsLogged:
        extra = {"who": self._who}
        return ErrorsLogged(logger, "%s: connection listener failed", self._who, extra=extra)
