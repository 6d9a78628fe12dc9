"""Interceptors of producers: see and change messages before they are sent, and learn the result.

Derive from `ProducerInterceptor` and define what you need. An interceptor's error is logged, and
the message goes on as it was before. An interceptor that saw a message before it was sent also gets
its result, even if the message was refused at once.

Source: ProducerInterceptor and ProducerInterceptors in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.common.errors import ClientError
from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.client.producing.send_result import SendResult

__all__ = ["ProducerInterceptor", "ProducerInterceptors"]

logger = logging.getLogger(__name__)

_FAILED = "producer interceptor %(interceptor)s failed in %(call)s"


class ProducerInterceptor:
    """Base class: override the calls of interest. They come from the loop and must not block."""

    def eligible(self, message: OutgoingMessage) -> bool:
        """Whether `before_send` and `on_send_acknowledgement` are to be called for this message."""
        del message
        return True

    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        """Called before a message is encoded and routed; returns it, or another one to send."""
        del producer
        return message

    def on_send_acknowledgement(
        self,
        producer: Producer,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        """The message was stored (`error` is None), or it failed (`message_id` is None)."""

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

    def submit_nowait(
        self,
        producer: Producer,
        message: OutgoingMessage,
        submit: Callable[[OutgoingMessage], SendResult],
    ) -> SendResult:
        """Submit the message as the interceptors changed it, and tell them the result."""
        message = self.before_send(producer, message)
        with self._hearing_of_refusal(producer, message):
            result = submit(message)
        self._watch(producer, message, result)
        return result

    async def submit(
        self,
        producer: Producer,
        message: OutgoingMessage,
        submit: Callable[[OutgoingMessage], Awaitable[SendResult]],
    ) -> SendResult:
        """As `submit_nowait`, with a `submit` that may wait."""
        message = self.before_send(producer, message)
        with self._hearing_of_refusal(producer, message):
            result = await submit(message)
        self._watch(producer, message, result)
        return result

    @contextmanager
    def _hearing_of_refusal(self, producer: Producer, message: OutgoingMessage) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # raised again; one that is no Exception is a cancellation
            refusal = (
                error
                if isinstance(error, Exception)
                else ClientError(f"{producer.topic()}: cancelled before it was accepted")
            )
            self.on_send_acknowledgement(producer, message, None, refusal)
            raise

    def _watch(self, producer: Producer, message: OutgoingMessage, result: SendResult) -> None:
        result.add_done_callback(
            lambda done: self.on_send_acknowledgement(
                producer, message, None if done.exception() else done.result(), done.exception()
            )
        )

    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        """The message, as changed by all interceptors in turn."""
        for interceptor in self._interceptors:
            with _logged(interceptor, "before_send"):
                if interceptor.eligible(message):
                    message = interceptor.before_send(producer, message)
        return message

    def on_send_acknowledgement(
        self,
        producer: Producer,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        """Call the interceptors for which the message is eligible."""
        for interceptor in self._interceptors:
            with _logged(interceptor, "on_send_acknowledgement"):
                if interceptor.eligible(message):
                    interceptor.on_send_acknowledgement(producer, message, message_id, error)

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        """Call all interceptors."""
        for interceptor in self._interceptors:
            with _logged(interceptor, "on_partitions_change"):
                interceptor.on_partitions_change(topic, partitions_count)

    def close(self) -> None:
        """Call all interceptors."""
        for interceptor in self._interceptors:
            with _logged(interceptor, "close"):
                interceptor.close()


def _logged(interceptor: ProducerInterceptor, call: str) -> ErrorsLogged:
    """Logs an interceptor's error, so that the message and other interceptors go on."""
    fields = {"interceptor": type(interceptor).__name__, "call": call}
    return ErrorsLogged(logger, _FAILED, fields, extra=fields)
