"""`MultiTopicsConsumer` and `PatternConsumer` without `await`: several topics, in any thread."""

from __future__ import annotations

from typing import TypeAlias

from pulsar_py.blocking import absent_names
from pulsar_py.blocking.consumer import Consumer
from pulsar_py.blocking.consumer_calls import ConsumerCalls
from pulsar_py.client.many_topics import multi_topics_consumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.topic_message_id import MultiMessageId, SeekTarget, TopicMessageId
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.message_id import MessageId

__all__ = ["AnyConsumer", "MultiTopicsConsumer", "PatternConsumer"]


@lacks(absent_names.CONSUMER)
class MultiTopicsConsumer(ConsumerCalls[multi_topics_consumer.MultiTopicsConsumer[T_co], T_co]):
    """Receives the messages of several topics for one subscription, with `Consumer`'s methods."""

    def topics(self) -> list[str]:
        """Full names of all topics now, partitions one by one."""
        return self._call(self._inner.topics)

    def acknowledge_cumulative(self, message: Message | MessageId | MultiMessageId) -> None:
        """Acknowledge all messages of a topic up to this one; with a `MultiMessageId`, of several.

        Raises as `Consumer.acknowledge_cumulative`.
        """
        self._run(lambda: self._inner.acknowledge_cumulative(message))

    def seek(self, target: SeekTarget) -> None:
        """Move the subscription; see `pulsar_py.MultiTopicsConsumer.seek`.

        A function among the arguments is called in the client's thread, and must not block.
        """

        async def seek() -> None:
            async with self._prefetch.dropping():
                await self._inner.seek(target)

        self._run(seek)

    def get_last_message_ids(self) -> list[TopicMessageId]:
        """The last message of each topic or partition."""
        return self._run(self._inner.get_last_message_ids)

    def get_last_message_id(self) -> MultiMessageId:
        """The last message of each topic or partition, as one value."""
        return self._run(self._inner.get_last_message_id)


class PatternConsumer(MultiTopicsConsumer[T_co]):
    """Receives the messages of all topics of a namespace whose names match a pattern."""


AnyConsumer: TypeAlias = Consumer[T_co] | MultiTopicsConsumer[T_co]
"""The type of consumers that `Client.subscribe` returns."""
