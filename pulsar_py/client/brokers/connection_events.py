"""Tells of the places at brokers that a client's parts get, lose and give up (edge).

Each producer, consumer and watcher has a place at a broker. What happens to it is logged at INFO
with who it is, and handed to the client's `connection_listener`: so a service can show that it is
cut off, or end when one of its parts has given up. Calls come from the event loop and must not
block; what a listener raises is logged.
"""

from __future__ import annotations

import logging
from typing import Protocol

from pulsar_py.common.failures import ErrorsLogged

__all__ = ["ConnectionListener", "PlaceEvents"]

logger = logging.getLogger(__name__)


class ConnectionListener(Protocol):
    """Implement it, and give it as the client's `connection_listener`.

    `who` is a text such as `producer p-1 of persistent://…`, or `consumer c-1 of s on persistent://…`.
    """

    def connected(self, who: str, broker: str) -> None:
        """It has its place for the first time, at the broker `host:port`."""
        del who, broker  # a body: who derives may leave it out

    def disconnected(self, who: str, reason: str) -> None:
        """It lost its place, and looks for another one by itself."""
        del who, reason

    def reconnected(self, who: str, broker: str) -> None:
        """It has a place again."""
        del who, broker

    def given_up(self, who: str, error: Exception) -> None:
        """It had a place, and will have none any more; its calls raise `error` from now on."""
        del who, error


class PlaceEvents:
    """Logs and hands on the events of one handler's place."""

    def __init__(self, listener: ConnectionListener | None, who: str) -> None:
        self._listener = listener
        self._who = who
        self._was_connected = False

    def connected(self, broker: str) -> None:
        """The handler's owner is registered at the broker."""
        again = " again" if self._was_connected else ""
        self._log(f"connected to {broker}{again}", broker=broker)
        if self._listener is not None:
            with self._guarded():
                if self._was_connected:
                    self._listener.reconnected(self._who, broker)
                else:
                    self._listener.connected(self._who, broker)
        self._was_connected = True

    def disconnected(self, reason: str) -> None:
        """It is registered no more."""
        self._log(f"disconnected: {reason}", reason=reason)
        if self._listener is not None:
            with self._guarded():
                self._listener.disconnected(self._who, reason)

    def delayed(self, error: Exception, delay_seconds: float) -> None:
        """An attempt failed, and the next one comes later."""
        self._log(f"not connected, again in {delay_seconds:.1f} s: {error}", error=str(error))

    def given_up(self, error: Exception) -> None:
        """There will be no attempt any more."""
        self._log(f"given up: {error}", error=str(error))
        if self._listener is not None:
            with self._guarded():
                self._listener.given_up(self._who, error)

    def _log(self, text: str, **fields: object) -> None:
        logger.info("%s: %s", self._who, text, extra={"who": self._who, **fields})

    def _guarded(self) -> ErrorsLogged:
        extra = {"who": self._who}
        return ErrorsLogged(logger, "%s: connection listener failed", self._who, extra=extra)
