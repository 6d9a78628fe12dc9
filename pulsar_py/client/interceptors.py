"""Interceptors of producers: see, change and watch messages on their way.

Derive from `ProducerInterceptor` and define what you need. What an interceptor raises is logged and
goes no further: the message goes on as it was before.

Source: ProducerInterceptor and ProducerInterceptors in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsar_py.client.message_builder import OutgoingMessage
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.producer import Producer

__all__ = ["ProducerInterceptor", "ProducerInterceptors"]

logger = logging.getLogger(__name__)

_FAILED = "producer interceptor %(interceptor)s failed in %(call)s"


class ProducerInterceptor:
    """Plain calls on the event loop: keep them short. Each does nothing unless defined."""

    def eligible(self, message: OutgoingMessage) -> bool:
        """Whether the other calls want this message."""
        del message
        return True

    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        """The message to send instead, or the same; called before it is encoded and routed."""
        del producer
        return message

    def on_send_acknowledgement(
        self,
        producer: Producer,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        """The message was stored, or it failed: one of the two is None."""

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        """The topic got more partitions."""

    def close(self) -> None:
        """The producer is closed."""


class ProducerInterceptors:
    """All interceptors of one producer, in order."""

    __slots__ = ("_interceptors",)

    def __init__(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        """What the last of them made of `message`."""
        for interceptor in self._interceptors:
            try:
                if interceptor.eligible(message):
                    message = interceptor.before_send(producer, message)
            except Exception:  # foreign code; the message goes on without it
                fields = _fields(interceptor, "before_send")
                logger.exception(_FAILED, fields, extra=fields)
        return message

    def on_send_acknowledgement(
        self,
        producer: Producer,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        """Tell those that want the message."""
        for interceptor in self._interceptors:
            try:
                if interceptor.eligible(message):
                    interceptor.on_send_acknowledgement(producer, message, message_id, error)
            except Exception:  # foreign code; what it does is no matter of the message
                fields = _fields(interceptor, "on_send_acknowledgement")
                logger.exception(_FAILED, fields, extra=fields)

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        """Tell all of them."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_partitions_change(topic, partitions_count)
            except Exception:  # foreign code
                fields = _fields(interceptor, "on_partitions_change")
                logger.exception(_FAILED, fields, extra=fields)

    def close(self) -> None:
        """Tell all of them."""
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:  # foreign code
                fields = _fields(interceptor, "close")
                logger.exception(_FAILED, fields, extra=fields)


def _fields(interceptor: ProducerInterceptor, call: str) -> dict[str, str]:
    return {"interceptor": type(interceptor).__name__, "call": call}
