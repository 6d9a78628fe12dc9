"""One consumer in figures: what it counts itself, and what its broker says of it (edge).

The client's reporter ends an interval now and then and logs it. The broker's answer is kept for a
while, because whoever shows figures asks often.

Source: ConsumerStatsRecorderImpl in Pulsar's Java client; BrokerConsumerStats in the C++ client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pulsar_py.client.consumer_statistics import BrokerConsumerStatistics
from pulsar_py.client.statistics import ConsumerStatistics
from pulsar_py.common.clock import Clock

if TYPE_CHECKING:
    from pulsar_py.client.consumer_session import ConsumerSession

__all__ = ["ConsumerFigures"]


class ConsumerFigures:
    """The figures of one consumer; owned by it, and registered with the client's reporter."""

    def __init__(
        self, session: ConsumerSession, clock: Clock, *, broker_valid_seconds: float
    ) -> None:
        """`broker_valid_seconds`: how long an answer of the broker is used again."""
        self._session = session
        self._counters = session.counters
        self._clock = clock
        self._broker_valid_seconds = broker_valid_seconds
        # What the broker said last, and until when that is good.
        self._broker: tuple[float, BrokerConsumerStatistics] | None = None

    def peek(self) -> ConsumerStatistics:
        """The interval so far, which goes on, and totals."""
        return self._counters.peek(self._clock.monotonic_seconds(), **self._gauges())

    def take_statistics(self, now: float) -> ConsumerStatistics:
        """The interval that ends now; for the client's reporter."""
        return self._counters.take(now, **self._gauges())

    def _gauges(self) -> dict[str, int]:
        receiver, unacked = self._session.receiver, self._session.redeliveries.unacked
        receiver.count()
        return {
            "receiver_queue_size": receiver.queue.messages_count(),
            "unacknowledged": 0 if unacked is None else len(unacked),
        }

    def statistics_fields(self) -> Mapping[str, str]:
        """What tells this consumer from others in the log."""
        return {
            "topic": self._session.topic,
            "subscription": self._session.subscription_name,
            "consumer": self._session.consumer_name,
        }

    async def of_broker(self) -> BrokerConsumerStatistics:
        """What the broker says.

        Raises:
            ServiceError, ClientError: It refused, or did not answer in time.
        """
        now = self._clock.monotonic_seconds()
        if self._broker is not None and self._broker[0] > now:
            return self._broker[1]
        statistics = await self._session.positions.broker_statistics()
        self._broker = (now + self._broker_valid_seconds, statistics)
        return statistics
