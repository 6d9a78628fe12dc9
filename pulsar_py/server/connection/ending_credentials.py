"""Closes connections whose credentials have expired or were revoked (edge).

Twice a second all connections are looked at. A client whose credentials have expired is asked for
others, if it can be, and has `authenticationRefreshCheckSeconds` to answer, in which it is not
served; one that can't be asked is closed, as is one whose credentials, or those of its proxy, were
revoked.

Apache Pulsar checks for expired credentials only once in `authenticationRefreshCheckSeconds`, so a
client that can't be asked stays connected for up to that time, and serves those that it has asked
while they have not answered.

Source: ServerCnx.refreshAuthenticationCredentials in Pulsar's broker; PIP-55.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import Authenticated

if TYPE_CHECKING:
    from pulsar_py.wire.connection_state import ConnectionState, Handshake


__all__ = ["LOOK_SECONDS", "CredentialsHolder", "EndingCredentials"]

LOOK_SECONDS: Final = 0.5
"""The time between two looks at all credentials."""


class CredentialsHolder(Protocol):
    """The part of a connection that has credentials to lose."""

    state: ConnectionState
    handshake: Handshake
    original_principal: str | None
    refreshes_original: bool
    credentials: Authenticated | None
    proxy_credentials: Authenticated | None

    @property
    def is_handshake_done(self) -> bool:
        """Whether CONNECTED was sent."""

    @property
    def is_connected(self) -> bool:
        """Whether there is still somebody to answer."""

    def send_refresh_challenge(self) -> None:
        """Ask for other credentials, and serve nothing until they come."""

    def refuse(self, reason: str) -> None:
        """Close the connection; writes one log line."""


class EndingCredentials:
    """Checks the credentials of all connections of a broker; owned by `Connections`."""

    def __init__(
        self,
        open_connections: Callable[[], Iterable[CredentialsHolder]],
        clock: Clock,
        *,
        answer_seconds: float,
    ) -> None:
        """`answer_seconds` is how long a client has to send other credentials."""
        self._open_connections = open_connections
        self._clock = clock
        self._answer_seconds = answer_seconds
        self._timer: asyncio.TimerHandle | None = None
        # When those that were asked have to have answered, in order of asking.
        self._answers_due: dict[CredentialsHolder, float] = {}

    def start(self) -> None:
        """Begin to check."""
        self._timer = self._clock.call_later(LOOK_SECONDS, self._look)

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
        self._answers_due.clear()

    def _look(self) -> None:
        self.start()
        now_millis = self._clock.wall_time_millis()
        for cnx in list(self._open_connections()):
            own = cnx.credentials
            if own is not None and cnx.is_handshake_done and cnx.is_connected:
                self._look_at(cnx, own, now_millis)
        self._forget_those_that_answered()

    def _look_at(self, cnx: CredentialsHolder, own: Authenticated, now_millis: int) -> None:
        proxy = cnx.proxy_credentials
        for each in (own, proxy):
            if each is not None and each.is_revoked is not None and each.is_revoked():
                cnx.refuse("the credentials were revoked")
                return
        if own.reason_to_end(now_millis) is None:
            return
        is_proxied = cnx.original_principal is not None and not cnx.refreshes_original
        if is_proxied or not cnx.handshake.supports_auth_refresh:
            cnx.refuse("the credentials expired, and the client can't refresh them")
        elif not cnx.state.is_challenge_pending:
            self._answers_due[cnx] = self._clock.monotonic_seconds() + self._answer_seconds
            cnx.send_refresh_challenge()
        elif self._answers_due.get(cnx, 0.0) <= self._clock.monotonic_seconds():
            cnx.refuse("the credentials expired and were not refreshed")

    def _forget_those_that_answered(self) -> None:
        for cnx in [
            each
            for each in self._answers_due
            if not each.state.is_challenge_pending or not each.is_connected
        ]:
            del self._answers_due[cnx]
