"""One consumer of many topics: a list of them, the partitions of one, or what a pattern finds (edge).

Each topic or partition is a part: a `Consumer` of its own, with its own queue and permits. Parts
tell when they have something; whoever receives takes one message of the next part in turn, so none
starves, and nothing is copied between queues. What is prefetched is bounded by
`max_total_receiver_queue_size_across_partitions`, split evenly.

Acknowledgements, negative ones and seeks by message go to the part the message came from.

Source: MultiTopicsConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pulsar_py.client.client_context import ClientContext
from pulsar_py.client.message import Message
from pulsar_py.client.topic_message_id import MultiMessageId, TopicMessageId
from pulsar_py.common.message_id import MessageId

__all__ = ["MultiTopicsConsumer"]


class MultiTopicsConsumer:
    """The same public face as `Consumer`, over several topics."""

    def __init__(
        self,
        context: ClientContext,
        topics: Sequence[str],
        subscription_name: str,
        **options: Any,  # Any: the fields of ConsumerConfig
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Subscribe to all topics; on a failure none stays open."""
        raise NotImplementedError

    def topic(self) -> str:
        """The topic's name; of several, their names joined by commas."""
        raise NotImplementedError

    def topics(self) -> list[str]:
        """Full names, partitions one by one."""
        raise NotImplementedError

    def subscription_name(self) -> str:
        raise NotImplementedError

    def consumer_name(self) -> str:
        raise NotImplementedError

    def is_connected(self) -> bool:
        """Whether all parts are."""
        raise NotImplementedError

    async def receive(self, timeout_millis: int | None = None) -> Message:
        raise NotImplementedError

    def receive_nowait(self) -> Message | None:
        raise NotImplementedError

    async def batch_receive(self) -> list[Message]:
        raise NotImplementedError

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        raise NotImplementedError

    async def acknowledge_cumulative(self, message: Message | MessageId | MultiMessageId) -> None:
        """All up to it, in its topic only."""
        raise NotImplementedError

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        raise NotImplementedError

    async def reconsume_later(
        self,
        message: Message,
        delay_millis: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        raise NotImplementedError

    def redeliver_unacknowledged_messages(self) -> None:
        raise NotImplementedError

    async def seek(
        self,
        target: MessageId | MultiMessageId | int | Callable[[str], MessageId | int | None],
    ) -> None:
        """Earliest, latest, milliseconds, an id of one topic, ids by topic, or a function of topic."""
        raise NotImplementedError

    async def get_last_message_ids(self) -> list[TopicMessageId]:
        raise NotImplementedError

    async def get_last_message_id(self) -> MultiMessageId:
        raise NotImplementedError

    async def has_message_available(self) -> bool:
        raise NotImplementedError

    def pause_message_listener(self) -> None:
        raise NotImplementedError

    def resume_message_listener(self) -> None:
        raise NotImplementedError

    async def unsubscribe(self, *, force: bool = False) -> None:
        raise NotImplementedError

    def statistics(self) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
