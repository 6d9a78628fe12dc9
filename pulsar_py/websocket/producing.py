"""`ProducerDialog`: publishes each frame of a client, and answers it with its receipt (edge).

Frames are published in their order, without waiting for receipts; answers go out as receipts come.
While `MAX_PENDING` messages or `MAX_PENDING_BYTES` wait for theirs, nothing more is read.

Source: ProducerHandler in Pulsar.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import PulsarError
from pulsar_py.websocket.encryption import encrypted_payload
from pulsar_py.websocket.frames import (
    FrameError,
    NullPropertyError,
    OutgoingFrame,
    error_text,
    number_of,
    outgoing_frame,
    receipt_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.client.producing.send_result import SendResult
    from pulsar_py.websocket.connection import WebSocketConnection

__all__ = ["ProducerDialog"]

MAX_PENDING: Final = 1000
MAX_PENDING_BYTES: Final = 4 * 1024 * 1024
INTERNAL_ERROR: Final = 1011


class ProducerDialog:
    """The dialog of one producer."""

    def __init__(
        self,
        connection: WebSocketConnection,
        producer: Producer[bytes],
        on_end: Callable[[], None],
        *,
        is_encrypted: bool = False,
    ) -> None:
        """`on_end` is told once that the producer is not needed any more.

        With `is_encrypted` the client has encrypted all payloads, and says how in each frame.
        """
        self._connection = connection
        self._producer = producer
        self._on_end = on_end
        self._is_encrypted = is_encrypted
        self._pending_count = 0
        self._pending_bytes = 0
        self._is_full = False  # nothing more is read until receipts have come

    def on_open(self) -> None:
        """Do nothing: the client sends first."""

    def on_text(self, text: str) -> None:
        """Publish a frame, or answer why not."""
        try:
            frame = outgoing_frame(text)
            payload = encrypted_payload(frame) if self._is_encrypted else frame.payload
        except FrameError as error:
            self._connection.send_text(error_text(error.number, str(error), error.context))
            return
        except NullPropertyError as error:
            self._connection.close(INTERNAL_ERROR, str(error))
            return
        try:
            result = self._publish(frame, payload)
        except (PulsarError, ValueError, TypeError) as error:
            self._connection.send_text(error_text(number_of(error), str(error), frame.context))
            return
        self._pending_count += 1
        self._pending_bytes += len(frame.payload)
        result.add_done_callback(partial(self._answer, frame.context, len(frame.payload)))
        self._look_at_room()

    def _publish(self, frame: OutgoingFrame, payload: bytes) -> SendResult:
        delay = frame.deliver_after_millis
        return self._producer.send_nowait(
            payload,
            frame.properties or None,
            partition_key=frame.key,
            replication_clusters=frame.replication_clusters,
            disable_replication=frame.disable_replication,
            event_timestamp=frame.event_time_millis or None,
            deliver_at=frame.deliver_at_millis if frame.deliver_at_millis > 0 else None,
            deliver_after=timedelta(milliseconds=delay) if delay > 0 else None,
        )

    def _answer(self, context: str | None, payload_bytes: int, result: SendResult) -> None:
        self._pending_count -= 1
        self._pending_bytes -= payload_bytes
        try:
            text = receipt_text(result.result(), context)
        except PulsarError as error:
            text = error_text(number_of(error), str(error), context)
        self._connection.send_text(text)
        self._look_at_room()

    def _look_at_room(self) -> None:
        is_full = self._pending_count >= MAX_PENDING or self._pending_bytes >= MAX_PENDING_BYTES
        if is_full == self._is_full:
            return
        self._is_full = is_full
        if is_full:
            self._connection.pause_reading()
        else:
            self._connection.resume_reading()

    def on_closed(self) -> None:
        """Leave the topic."""
        self._on_end()
