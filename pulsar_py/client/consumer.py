"""The consumer of one topic, or of one partition.

This is the published interface; the bodies follow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pulsar_py.client.consumer_config import ConsumerConfig
from pulsar_py.client.message import EntryKey, Message
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.client_context import ClientContext

__all__ = ["Consumer"]


class Consumer:
    """Receives the messages of one topic for one subscription."""

    on_ready: Callable[[], None] | None
    """Called (plainly, on the loop) when messages may have become available; for whoever merges
    several consumers with `receive_nowait` instead of waiting in `receive`."""
    redelivery_filter: Callable[[Message], bool] | None
    """Called with each message before it is handed out; True: taken over (dead letters), so that
    the consumer neither delivers nor acknowledges it."""

    @classmethod
    async def open(
        cls,
        context: ClientContext,
        topic: str,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        start_message_id: MessageId | None = None,
    ) -> Self:
        """Subscribe; returns when the broker has answered.

        Args:
            context: The client's shared parts.
            topic: Whole name of a topic without partitions, or of a partition.
            subscription_name: May be any text that is not empty.
            config: Options.
            start_message_id: Where a non-durable subscription begins.
        """
        raise NotImplementedError

    def topic(self) -> str:
        """The whole name of the topic."""
        raise NotImplementedError

    def subscription_name(self) -> str:
        """The subscription."""
        raise NotImplementedError

    def consumer_name(self) -> str:
        """The name given, or a generated one."""
        raise NotImplementedError

    def is_connected(self) -> bool:
        """Whether the broker knows the consumer now."""
        raise NotImplementedError

    @property
    def is_closed(self) -> bool:
        """Whether `close` or `unsubscribe` began."""
        raise NotImplementedError

    @property
    def is_active(self) -> bool:
        """Failover: whether this consumer gets the messages; True for other types."""
        raise NotImplementedError

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        raise NotImplementedError

    async def receive(self, timeout_millis: int | None = None) -> Message:
        """The next message; waits for one."""
        raise NotImplementedError

    def receive_nowait(self) -> Message | None:
        """The next message if there is one here, else None; see `on_ready`."""
        raise NotImplementedError

    async def batch_receive(self) -> list[Message]:
        """Several messages, by `batch_receive_policy`; empty if its time passed without any."""
        raise NotImplementedError

    def __aiter__(self) -> AsyncIterator[Message]:
        """Messages until the consumer is closed."""
        raise NotImplementedError

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """These messages are done."""
        raise NotImplementedError

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """All messages up to this one are done."""
        raise NotImplementedError

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Deliver this message again, after the delay that was configured."""
        raise NotImplementedError

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        """Ask for those entries again now (all of them on a subscription that is not shared)."""
        raise NotImplementedError

    def redeliver_unacknowledged_messages(self) -> None:
        """Ask for everything again that was delivered and not acknowledged."""
        raise NotImplementedError

    def pause(self) -> None:
        """Ask the broker for no more messages until `resume`."""
        raise NotImplementedError

    def resume(self) -> None:
        """Ask for messages again."""
        raise NotImplementedError

    async def seek(self, target: MessageId | int | Callable[[str], MessageId | int | None]) -> None:
        """Move the subscription to a message, or to a time in milliseconds."""
        raise NotImplementedError

    async def get_last_message_id(self) -> MessageId:
        """The topic's last message."""
        raise NotImplementedError

    async def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was received."""
        raise NotImplementedError

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close."""
        raise NotImplementedError

    async def close(self) -> None:
        """Leave the subscription."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
