"""`ClientConnection`: the members of a client's connection that topics and dispatchers use.

`connection.ServerCnx` implements it; tests have their own. Everything here but `check_liveness`
is a plain call on the loop. `send` and `write` only queue: the connection writes all queued frames
in order with one `writelines` at the end of the loop tick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_py.common.buffer import Buffer


class ClientConnection(Protocol):
    """One client's connection. Source: TransportCnx in Pulsar's broker."""

    @property
    def remote_address(self) -> str:
        """`/host:port` as Pulsar writes it in stats."""

    @property
    def client_version(self) -> str:
        """What the client called itself in CONNECT."""

    @property
    def protocol_version(self) -> int:
        """The protocol version that both sides use."""

    @property
    def supports_broker_entry_metadata(self) -> bool:
        """Whether MESSAGE may have broker entry metadata: client and broker settings allow it."""

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
        """Call `callback` once, when the queue is below its low mark or the connection is closed.

        The call comes from the loop, never from inside this method; soon if it is writable now.
        """

    async def check_liveness(self) -> bool:
        """Send PING and wait; without an answer in time the connection is closed.

        Returns False once the connection is closed and all its producers and consumers removed.
        Concurrent calls share one PING.
        """

    def close(self) -> None:
        """Close the connection; its producers and consumers are removed before this returns."""

    def producer_closed_by_broker(self, producer_id: int) -> None:
        """Send CLOSE_PRODUCER and forget the id; below version 5, close the connection instead."""

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        """Send CLOSE_CONSUMER and forget the id; below version 5, close the connection instead.

        Forgetting does not call `Consumer.close`: the caller has removed the consumer already.
        """
