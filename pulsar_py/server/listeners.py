"""Sockets (edge): where connections of the binary protocol come in.

A `Listener` is one bound address; what it accepts becomes a `ServerCnx`. All connections of a
broker are in one `Connections`, which keeps the limits and drives keep-alive with one timer.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.server.connection.connections import Connections


class Listener:
    """One listening address; owned by the broker."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Bind and accept; port 0 takes a free one.

        Raises:
            OSError: The address can't be bound.
        """
        raise NotImplementedError

    @property
    def port(self) -> int:
        """The port bound."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop accepting; open connections stay (close them with `Connections.close`)."""
        raise NotImplementedError
