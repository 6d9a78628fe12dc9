"""`AckReceipts`: answers a consumer's acknowledgements once they are durable (edge).

One group of acknowledgements has one write, and here one call and one buffer for the socket: at a
high rate some hundred receipts.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.common.errors import PersistenceError
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.wire import commands
from pulsar_py.wire.command_codec import encode_ack_receipts


class AckReceipts:
    """What the subscription of a consumer calls. Owned by the consumer, as long as it lives."""

    __slots__ = ("_connection", "_consumer_id")

    def __init__(self, connection: ClientConnection, consumer_id: int) -> None:
        self._connection = connection
        self._consumer_id = consumer_id

    def __call__(self, request_ids: Sequence[int], error: Exception | None) -> None:
        """Answer these ACKs: they are durable, or may not be."""
        if error is None:
            self._connection.write((encode_ack_receipts(self._consumer_id, request_ids),))
            return
        reason = PersistenceError(f"the acknowledgement may not be on disk: {error}")
        for request_id in request_ids:
            self._connection.send(
                commands.ack_response(
                    self._consumer_id, request_id, code=reason.code, message=str(reason)
                )
            )
