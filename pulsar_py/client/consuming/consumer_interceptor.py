"""Interceptors of a consumer: see, and may replace, each message before the application does.

Interceptors run in the order given. An error of one is logged; the others still run, and the
message is delivered.

Source: ConsumerInterceptor and ConsumerInterceptors in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.consuming.consumer import Consumer

__all__ = ["ConsumerInterceptor", "ConsumerInterceptors", "tell_partitions_change"]

logger = logging.getLogger(__name__)


class ConsumerInterceptor:
    """Base class: override the calls of interest. They come from the loop and must not block."""

    def before_consume(self, consumer: Consumer, message: Message) -> Message:
        """A message is about to be handed out; return it, or another one to hand out instead."""
        del consumer
        return message

    def on_acknowledge(
        self, consumer: Consumer, message_id: MessageId, error: Exception | None
    ) -> None:
        """A message was acknowledged, or the attempt failed."""

    def on_acknowledge_cumulative(
        self, consumer: Consumer, message_id: MessageId, error: Exception | None
    ) -> None:
        """All up to a message were acknowledged, or the attempt failed."""

    def on_negative_acks_send(self, consumer: Consumer, entries: Sequence[tuple[int, int]]) -> None:
        """Entries (ledger, entry) are asked for again, because of negative acknowledgements."""

    def on_ack_timeout_send(self, consumer: Consumer, entries: Sequence[tuple[int, int]]) -> None:
        """Entries (ledger, entry) are asked for again: not acknowledged in time."""

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        """A partitioned topic has more partitions now."""

    def close(self) -> None:
        """The consumer closed."""


class ConsumerInterceptors:
    """All interceptors of one consumer, in order; the `InterceptorCalls` of its parts."""

    __slots__ = ("_consumer", "_interceptors")

    def __init__(self, consumer: Consumer, interceptors: Sequence[ConsumerInterceptor]) -> None:
        """`consumer` is the first argument of each call."""
        self._consumer = consumer
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        """Whether there is any; hot paths ask before they call."""
        return bool(self._interceptors)

    def before_consume(self, message: Message) -> Message:
        """The message as the last interceptor left it."""
        for each in self._interceptors:
            with _logged(each):
                message = each.before_consume(self._consumer, message)
        return message

    def on_acknowledge(self, message_id: MessageId, error: Exception | None) -> None:
        """Call all interceptors."""
        _tell(
            self._interceptors,
            lambda each: each.on_acknowledge(self._consumer, message_id, error),
        )

    def on_acknowledge_cumulative(self, message_id: MessageId, error: Exception | None) -> None:
        """Call all interceptors."""
        _tell(
            self._interceptors,
            lambda each: each.on_acknowledge_cumulative(self._consumer, message_id, error),
        )

    def on_negative_acks_send(self, entries: Sequence[EntryKey]) -> None:
        """Call all interceptors."""
        _tell(self._interceptors, lambda each: each.on_negative_acks_send(self._consumer, entries))

    def on_ack_timeout_send(self, entries: Sequence[EntryKey]) -> None:
        """Call all interceptors."""
        _tell(self._interceptors, lambda each: each.on_ack_timeout_send(self._consumer, entries))

    def close(self) -> None:
        """Call all interceptors."""
        _tell(self._interceptors, lambda each: each.close())


def tell_partitions_change(
    interceptors: Sequence[ConsumerInterceptor], topic: str, partitions_count: int
) -> None:
    """Call `on_partitions_change` of all interceptors of a consumer of several topics."""
    _tell(interceptors, lambda each: each.on_partitions_change(topic, partitions_count))


def _tell(
    interceptors: Sequence[ConsumerInterceptor], call: Callable[[ConsumerInterceptor], None]
) -> None:
    for each in interceptors:
        with _logged(each):
            call(each)


def _logged(interceptor: ConsumerInterceptor) -> ErrorsLogged:
    """Logs an interceptor's error, so that the message and other interceptors go on."""
    name = type(interceptor).__name__
    return ErrorsLogged(logger, "interceptor %s failed", name, extra={"interceptor": name})
