"""Counts permits: how many more messages the broker may send to a consumer (pure).

The broker may send up to `queue_size` messages that the application has not taken. Permits of taken
messages are given back once they make half the queue. With a queue of 0, the consumer asks for one
message for each waiting `receive`. Each method returns the permits to send now, 0 for none. The
broker never divides a batch, so it may exceed its permits; the excess is deducted before any permit
is given back.

Source: increaseAvailablePermits in ConsumerImpl, and ZeroQueueConsumerImpl, in Pulsar's client.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["FlowPermits"]


class FlowPermits:
    """The permits of one consumer on one connection.

    Invariant: the permits that the broker has + the messages in the queue or on their way +
    `to_give` = `queue_size`, unless that is 0.
    """

    __slots__ = ("_broker_has", "_is_paused", "_queue_size", "is_on_demand", "refill_at", "to_give")

    def __init__(self, queue_size: int, *, is_paused: bool = False) -> None:
        self._queue_size = queue_size
        # Whether permits are sent only for waiting receivers: the queue size is 0.
        self.is_on_demand: Final = queue_size == 0
        # The `to_give` at which permits are sent; hot paths compare by themselves.
        self.refill_at = max(queue_size // 2, 1) if queue_size else sys.maxsize
        self._is_paused = is_paused
        # Permits of taken messages, not sent yet; below 0 after the queue was made smaller.
        self.to_give = 0
        # With a queue of 0 only: permits sent less messages that came; may be negative.
        self._broker_has = 0

    @property
    def is_paused(self) -> bool:
        """Whether permits are held back."""
        return self._is_paused

    def opened(self, waiting_count: int) -> int:
        """A new connection, on which the broker has no permits; `waiting_count` receivers wait."""
        self.to_give = self._queue_size
        self._broker_has = 0
        return self._give() if self._queue_size else self.wanted(waiting_count)

    def resize(self, queue_size: int) -> None:
        """Change the queue size; a smaller one takes effect as messages are taken."""
        assert queue_size > 0, f"queue of {queue_size}"
        assert not self.is_on_demand, "a queue of 0 stays one"
        self.to_give += queue_size - self._queue_size
        self._queue_size = queue_size
        self.refill_at = max(queue_size // 2, 1)

    def taken(self, messages_count: int) -> int:
        """The application took messages, or they were dropped."""
        self.to_give += messages_count
        return self._give() if self.to_give >= self.refill_at else 0

    def arrived(self, messages_count: int) -> None:
        """An entry was decoded, and held that many messages that took permits."""
        self._broker_has -= messages_count

    def wanted(self, waiting_count: int) -> int:
        """`waiting_count` receivers wait and find no message; matters for a queue of 0 only."""
        missing = waiting_count - self._broker_has
        if self._queue_size or self._is_paused or missing <= 0:
            return 0
        self._broker_has += missing
        return missing

    def are_out(self, messages_count: int) -> bool:
        """Whether the broker has permits, if `messages_count` came and were not taken."""
        if self.is_on_demand:
            return self._broker_has > 0
        return self._queue_size - self.to_give - messages_count > 0

    def pause(self) -> None:
        """Send no permits until `resume`."""
        self._is_paused = True

    def resume(self, waiting_count: int) -> int:
        """Send the permits that were held back."""
        self._is_paused = False
        return self._give() if self._queue_size else self.wanted(waiting_count)

    def _give(self) -> int:
        if self._is_paused or self.to_give <= 0:
            return 0
        given, self.to_give = self.to_give, 0
        return given
