"""Publishing what a consumer gives up or wants later: dead letters and retry letters (edge).

Each `Consumer` of one topic that has a dead-letter policy owns one `Letters`, which decides by
`dead_letter`, makes its producers when they are first needed, and acknowledges a message only when
its copy is stored. What can't be published stays unacknowledged: it is asked for again after a
while, and tried again. Copies carry the payload as it is, the key, ordering key, event time and
properties.

Source: ConsumerImpl.processPossibleToDLQ and doReconsumeLater in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pulsar_py.client.client_context import ClientContext
from pulsar_py.client.dead_letter import DeadLetterPolicy
from pulsar_py.client.message import Message
from pulsar_py.common.message_id import MessageId

__all__ = ["LetterProducer", "LetterSource", "Letters", "MakeProducer"]


class LetterProducer(Protocol):
    """What is needed of a producer."""

    async def send(self, content: Any, **options: Any) -> MessageId:  # Any: as Producer.send
        """Publish; returns when it is stored."""

    async def close(self) -> None:
        """Let go of it."""


class MakeProducer(Protocol):
    """`Client.create_producer`, or what stands for it."""

    def __call__(self, topic: str, **options: Any) -> Awaitable[LetterProducer]:
        """An open producer."""


class LetterSource(Protocol):
    """What is needed of the consumer whose letters these are."""

    async def acknowledge(self, message: Message | MessageId | Sequence[MessageId]) -> None:
        """Acknowledge what was moved."""

    def redeliver(self, message_ids: Sequence[MessageId]) -> None:
        """Ask the broker for them again."""


class Letters:
    """The dead letters and retry letters of one consumer of one topic."""

    def __init__(  # noqa: PLR0913 - a consumer's facts
        self,
        source: LetterSource,
        policy: DeadLetterPolicy,
        *,
        topic: str,
        subscription_name: str,
        consumer_name: str,
        context: ClientContext,
        make_producer: MakeProducer,
        is_retry_enabled: bool,
        schema: Any = None,  # Any: a Schema of whatever type
    ) -> None:
        raise NotImplementedError

    def on_received(self, message: Message) -> bool:
        """Whether to deliver it; False: it is being moved, treat it as taken by the application.

        Call it for each message just before it is handed out.
        """
        raise NotImplementedError

    def on_acknowledged(self, message_ids: Iterable[MessageId]) -> None:
        """The application acknowledged them."""
        raise NotImplementedError

    def on_acknowledged_cumulative(self, message_id: MessageId) -> None:
        """The application acknowledged all up to this one."""
        raise NotImplementedError

    def take_over(self, message_ids: Iterable[MessageId]) -> list[MessageId]:
        """Those that are still to be asked for again; the others are being moved from now on.

        Call it before each redelivery by ids (negative acks, ack time-outs).
        """
        raise NotImplementedError

    def clear(self) -> None:
        """The consumer sought or lost its connection: all that is unacknowledged comes again."""
        raise NotImplementedError

    async def reconsume_later(
        self,
        message: Message,
        delay_millis: int,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Publish a copy to the retry topic, or beyond the limit to the dead-letter topic; then ack.

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: It could not be published; the message stays unacknowledged.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Stop moving, and close the producers. May be called again."""
        raise NotImplementedError
