"""Performs the handshake with a broker, and refreshes credentials when it asks for them (edge).

    run        CONNECT -->
    answer                  <-- AUTH_CHALLENGE    if the broker wants to know more;
               AUTH_RESPONSE -->                  later ones refresh credentials
    run ends                <-- CONNECTED

What always holds: `run` ends with the broker's answer or with the end of the connection, whichever
comes first. If credentials can't be obtained, the connection ends.

Source: ClientCnx.channelActive, handleConnected, handleAuthChallenge in Pulsar's client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pulsar_py.client.brokers.pending_requests import fail
from pulsar_py.common.errors import AuthenticationError, PulsarError
from pulsar_py.wire import client_commands
from pulsar_py.wire.connection_state import ConnectionState

if TYPE_CHECKING:
    from pulsar_py.client.security.authentication import Authentication

__all__ = ["CLIENT_VERSION", "ClientHandshake"]

logger = logging.getLogger(__name__)

CLIENT_VERSION: Final = "pulsar_py-v0.1.0"
"""The client version that brokers show; reading the installed one would cost 46 ms."""


class ClientHandshake:
    """The handshake of one connection, which owns it; answers challenges for as long as that."""

    def __init__(
        self,
        state: ConnectionState,
        *,
        remote_address: str,
        authentication: Authentication | None,
        proxy_to_broker: str | None,
        send: Callable[[bytes], None],
        close: Callable[[str], None],
    ) -> None:
        """Nothing is sent before `run`.

        Args:
            state: The connection's protocol state; it is updated when CONNECT is sent.
            remote_address: `host:port` of the broker, not of a proxy before it; for logs.
            authentication: Provides the credentials; None sends none.
            proxy_to_broker: `host:port` of the broker that the proxy has to connect to, if any.
            send: Queues a frame.
            close: Ends the connection; its argument says why.
        """
        self._state = state
        self._remote_address = remote_address
        self._authentication = authentication
        self._proxy_to_broker = proxy_to_broker
        self._send = send
        self._close = close
        # Done when CONNECTED came, or failed with what came instead; None outside `run`.
        self._connected: asyncio.Future[None] | None = None
        # The error that the connection ended with; None while it has not.
        self._error: PulsarError | None = None

    async def run(self) -> None:
        """Return when the broker sent CONNECTED; the caller sets a time-out.

        Raises:
            ServiceError: The broker refuses, such as AuthenticationError.
            AuthenticationDataError: The credentials could not be obtained.
            ConnectError: The connection was closed meanwhile.
        """
        authentication = self._authentication
        data = None if authentication is None else await authentication.authenticate()
        if self._error is not None:
            raise self._error
        self._connected = asyncio.get_running_loop().create_future()
        self._state.on_connect()
        self._send(
            client_commands.connect(
                CLIENT_VERSION,
                auth_method_name="none" if authentication is None else authentication.method_name,
                auth_data=data,
                proxy_to_broker_url=self._proxy_to_broker,
            )
        )
        try:
            await self._connected
        except AuthenticationError as error:
            raise AuthenticationError(f"{error} ({_told(authentication)})") from error
        finally:
            self._connected = None

    def on_connected(self) -> None:
        """CONNECTED came: `run` returns."""
        if self._connected is not None and not self._connected.done():
            self._connected.set_result(None)

    def on_failed(self, error: PulsarError) -> None:
        """The connection ends, or ended; `run` raises the first reason."""
        self._error = self._error or error
        if self._connected is not None:
            fail(self._connected, error)

    async def answer(self, challenge: bytes) -> None:
        """Send fresh credentials; without any the connection is closed."""
        authentication = self._authentication
        if authentication is None:
            self._close("broker wants credentials, and there is no authentication")
            return
        try:
            data = await authentication.authenticate(challenge)
        except PulsarError as error:
            logger.warning(
                "%s: no credentials to answer a challenge with: %s",
                self._remote_address,
                error,
                extra={"broker": self._remote_address, "error": str(error)},
            )
            self.on_failed(error)
            self._close(f"no fresh credentials: {error}")
            return
        self._send(
            client_commands.auth_response(
                CLIENT_VERSION, auth_method_name=authentication.method_name, auth_data=data
            )
        )


def _told(authentication: Authentication | None) -> str:
    """What the broker was told of who we are, for an error."""
    if authentication is None:
        return "the client has no authentication"
    return f"the client authenticated by {authentication.method_name!r}"
