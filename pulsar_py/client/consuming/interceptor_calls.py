"""`InterceptorCalls`: how the parts of a consumer call its interceptors (interface).

`ConsumerInterceptors` implements it and adds the consumer to each call, which the parts don't know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.common.message_id import MessageId

__all__ = ["InterceptorCalls"]


class InterceptorCalls(Protocol):
    """All interceptors of one consumer. No call raises; see `ConsumerInterceptor` for each."""

    def __bool__(self) -> bool:
        """Whether there is any interceptor; hot paths ask before they call."""

    def before_consume(self, message: Message) -> Message:
        """A message is about to be handed out; returns what is handed out instead."""

    def on_acknowledge(self, message_id: MessageId, error: Exception | None) -> None:
        """A message was acknowledged, or the attempt failed."""

    def on_acknowledge_cumulative(self, message_id: MessageId, error: Exception | None) -> None:
        """All messages up to this one were acknowledged, or the attempt failed."""

    def on_negative_acks_send(self, entries: Sequence[EntryKey]) -> None:
        """Entries are asked for again, because they were negatively acknowledged."""

    def on_ack_timeout_send(self, entries: Sequence[EntryKey]) -> None:
        """Entries are asked for again, because they were not acknowledged in time."""

    def close(self) -> None:
        """The consumer closed."""
