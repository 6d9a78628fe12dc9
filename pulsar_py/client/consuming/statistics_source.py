"""Provides the statistics of one consumer: its own counts, and its broker's figures (edge).

The client's reporter ends the intervals and logs them. The broker's answer is cached for a while,
because applications that show figures ask often.

Source: ConsumerStatsRecorderImpl in Pulsar's Java client; BrokerConsumerStats in the C++ client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
from pulsar_py.client.receiving.receiver import Receiver
from pulsar_py.client.shared.statistics import ConsumerCounters, ConsumerStatistics
from pulsar_py.common.loops.clock import Clock

__all__ = ["ConsumerStatisticsSource"]


class ConsumerStatisticsSource:
    """The statistics of one consumer; owned by it, and registered with the client's reporter."""

    def __init__(
        self,
        counters: ConsumerCounters,
        receiver: Receiver,
        redeliveries: Redeliveries,
        clock: Clock,
        *,
        log_fields: Mapping[str, str],
        ask_broker: Callable[[], Awaitable[BrokerConsumerStatistics]],
        broker_valid_seconds: float,
    ) -> None:
        """Keep the parts, which are the consumer's.

        Args:
            counters: The consumer's counts.
            receiver: Knows the length of its queue.
            redeliveries: Knows how many entries wait for an acknowledgement.
            clock: For the ends of intervals.
            log_fields: Log fields that identify the consumer.
            ask_broker: Asks the broker for its statistics; raises as `of_broker`.
            broker_valid_seconds: Time for which an answer of the broker is cached.
        """
        self._counters = counters
        self._receiver = receiver
        self._redeliveries = redeliveries
        self._clock = clock
        self._log_fields = log_fields
        self._ask_broker = ask_broker
        self._broker_valid_seconds = broker_valid_seconds
        # The broker's last answer, and the time until which it is used again.
        self._broker: tuple[float, BrokerConsumerStatistics] | None = None

    def peek(self) -> ConsumerStatistics:
        """The counts of the current interval, which goes on, and totals."""
        return self._counters.peek(self._clock.monotonic_seconds(), **self._gauges())

    def take_statistics(self, now: float) -> ConsumerStatistics:
        """The counts of the interval, which ends now; for the client's reporter."""
        return self._counters.take(now, **self._gauges())

    def _gauges(self) -> dict[str, int]:
        receiver, unacked = self._receiver, self._redeliveries.unacked
        receiver.count()
        return {
            "receiver_queue_size": receiver.queue.messages_count(),
            "unacknowledged": 0 if unacked is None else len(unacked),
        }

    def statistics_fields(self) -> Mapping[str, str]:
        """Log fields that identify the consumer."""
        return self._log_fields

    async def of_broker(self) -> BrokerConsumerStatistics:
        """The broker's figures.

        Raises:
            ServiceError, ClientError: It refused, or did not answer in time.
        """
        now = self._clock.monotonic_seconds()
        if self._broker is not None and self._broker[0] > now:
            return self._broker[1]
        statistics = await self._ask_broker()
        self._broker = (now + self._broker_valid_seconds, statistics)
        return statistics
