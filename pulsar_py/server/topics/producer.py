"""One producer of one connection on one topic."""

from __future__ import annotations

from pulsar_py.server.dispatch.client_connection import ClientConnection


class Producer:
    """Takes in the SENDs of one producer id; made by `Topic.add_producer`, owned by its topic.

    Attributes read by others: `connection`, `producer_id`, `name`, `epoch`, `topic`, `is_closed`.
    """

    connection: ClientConnection
    producer_id: int
    name: str
    epoch: int
    is_closed: bool

    def publish(
        self,
        sequence_id: int,
        highest_sequence_id: int | None,
        messages_count: int,
        is_chunk: bool,  # noqa: FBT001 - hot path: positional
        is_marker: bool,  # noqa: FBT001
        headers_and_payload: bytes,
    ) -> None:
        """Take one SEND; every answer (SEND_RECEIPT, SEND_ERROR, none) goes to the connection.

        Never raises. Receipts come in order.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Leave the topic after what was published is answered (CLOSE_PRODUCER by the client)."""
        raise NotImplementedError

    def on_connection_lost(self) -> None:
        """Leave the topic at once; nothing is answered any more."""
        raise NotImplementedError
