"""ClientConnection: the members of a client's connection that topics and dispatchers use.

`connection.ServerCnx` implements it; tests bring their own. Everything here but `check_liveness`
is a plain call on the loop. `send` and `write` only queue: one `writelines` a connection and loop
tick takes what was queued, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_py.common.buffer import Buffer


class ClientConnection(Protocol):
    """One client's connection, as seen from below. Source: TransportCnx in Pulsar's broker."""

    @property
    def remote_address(self) -> str:
        """`/host:port` as Pulsar writes it in stats."""

    @property
    def client_version(self) -> str:
        """What the client called itself in CONNECT."""

    @property
    def protocol_version(self) -> int:
        """The version both sides speak."""

    @property
    def supports_broker_entry_metadata(self) -> bool:
        """The client asked for the broker's block in MESSAGE, and the broker exposes it."""

    @property
    def is_connected(self) -> bool:
        """False once the connection is closed or closing; nothing reaches the client then."""

    @property
    def is_writable(self) -> bool:
        """False while more is queued than the high mark, and once the connection is closed."""

    def send(self, frame: bytes) -> None:
        """Queue one encoded frame; dropped when the connection is closed."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Queue frames cut into pieces, in order; dropped when the connection is closed."""

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call back once, when the queue is below its low mark or the connection is gone.

        The call comes from the loop, never from inside this method; soon if it is writable now.
        """

    async def check_liveness(self) -> bool:
        """Ping unless something came in just now; without an answer in time it gets closed.

        Returns False once the connection is gone and all its producers and consumers removed.
        Callers that ask together share one PING.
        """

    def close(self) -> None:
        """Close the connection; its producers and consumers are removed before this returns."""

    def producer_closed_by_broker(self, producer_id: int) -> None:
        """Send CLOSE_PRODUCER and forget the id; below version 5, close the connection instead."""

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        """Send CLOSE_CONSUMER and forget the id; below version 5, close the connection instead.

        Forgetting does not call `Consumer.close`: the caller has removed the consumer already.
        """
