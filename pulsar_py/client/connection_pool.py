"""Connections by broker. Implementation follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.client.client_cnx import ClientCnx
    from pulsar_py.client.lookup import BrokerAddress

__all__ = ["ConnectionPool"]


class ConnectionPool:
    """All connections of a client, at most `connections_per_broker` to each broker."""

    async def get(self, address: BrokerAddress, slot: int = 0) -> ClientCnx:
        """A connection that has shaken hands, shared or new."""
        raise NotImplementedError

    def new_slot(self) -> int:
        """Which of a broker's connections the next handler takes."""
        raise NotImplementedError
