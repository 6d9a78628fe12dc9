"""`Consumer` without `await`: receives the messages of one topic, in any thread.

Source: `Consumer` of the official Python client.
"""

from __future__ import annotations

from collections.abc import Callable

from pulsar_py.blocking import absent_names
from pulsar_py.blocking.consumer_calls import ConsumerCalls
from pulsar_py.client.consuming import consumer
from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.message_id import MessageId

__all__ = ["Consumer"]


@lacks(absent_names.CONSUMER)
class Consumer(ConsumerCalls[consumer.Consumer[T_co], T_co]):
    """Receives the messages of one topic for one subscription, in any thread."""

    @property
    def is_active(self) -> bool:
        """Whether this is the active consumer of a Failover subscription; True for other types."""
        return self._inner.is_active

    def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Acknowledge all messages of the subscription up to this one.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is ClientParts or KeyShared.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm it.
        """
        self._run(lambda: self._inner.acknowledge_cumulative(message))

    def seek(self, target: MessageId | int | Callable[[str], MessageId | int | None]) -> None:
        """Move the subscription, for all its consumers; see `pulsar_py.Consumer.seek`.

        A function among the arguments is called in the client's thread, and must not block.
        """

        async def seek() -> None:
            async with self._prefetch.dropping():
                await self._inner.seek(target)

        self._run(seek)

    def get_last_message_id(self) -> MessageId:
        """The topic's last message; ledger and entry -1 if it has none.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        return self._run(self._inner.get_last_message_id)

    def resize_receiver_queue(self, size: int) -> None:
        """Set `receiver_queue_size`, at least 1; it must not have been 0 before."""
        self._call(lambda: self._inner.resize_receiver_queue(size))

    def broker_statistics(self) -> BrokerConsumerStatistics:
        """The broker's statistics, cached for `broker_consumer_stats_cache_time_ms`.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        return self._run(self._inner.broker_statistics)
