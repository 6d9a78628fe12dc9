"""Interfaces for upgrading an HTTP connection to another protocol, such as WebSocket.

`HttpServer` hands such requests to an `UpgradeHandler`; a connection that goes on in another
protocol is its `Successor`'s from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from pulsar_py.admin.http_messages import Response
from pulsar_py.server.security.peer import Peer

__all__ = ["UPGRADES", "Successor", "UpgradeHandler"]

UPGRADES: Final = "/ws"
"""The first segment of paths whose requests may end in another protocol than HTTP."""


class Successor(Protocol):
    """Another protocol, which takes over a connection; times out by itself."""

    def begin(self, transport: asyncio.Transport) -> None:
        """Write the answer to the request, and go on in one's own protocol."""

    def data_received(self, data: bytes) -> None:
        """Take received bytes, as `data_received` of asyncio's protocols."""

    def connection_lost(self) -> None:
        """The socket is gone, maybe before `begin`; called once."""

    def pause_writing(self) -> None:
        """Write no more for now: the peer does not read what it was sent."""

    def resume_writing(self) -> None:
        """Go on writing: the peer has read."""


UpgradeHandler = Callable[
    [str, str, Sequence[tuple[bytes, bytes]], Peer], Awaitable[Response | Successor]
]
"""Called with method, target, headers (names in lower case) and peer; never raises."""
