"""`PublishThrottle`: holds back what is published to a topic faster than it may be (edge).

    append --> limiters of topic, resource group, broker --> the topic's own append
                    | one has too little
                    v
               held, in order --> as soon as there is enough

An entry that is held is under way like one that is being stored: its connection stops being read at
`maxPendingPublishRequestsPerConnection` of them, or at `MAX_HELD_BYTES`. Until then the connection
serves everything else that comes over it, keep-alive, acknowledgements and other producers, where
Apache Pulsar stops reading at once; beyond that one with consumers is read on for these
(`connection/waiting_publishes.py`).

What always holds: entries of one topic keep their order. Those of a producer that has left are
dropped: its client sends them again.

Source: PublishRateLimiter, ServerCnxThrottleTracker in Pulsar's broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.server.publishing.producer import Append, Producer, PublishContext


class PublishThrottle:
    """The held entries of one topic, which owns it."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._limiters: tuple[RateLimiter, ...] = ()
        self._held: deque[tuple[bytes, PublishContext]] = deque()
        self.limited_count = 0  # how often a limit was reached, so that entries had to be held

    @property
    def is_needed(self) -> bool:
        """Whether entries have to pass here: there is a limit, or some are held."""
        return bool(self._limiters or self._held)

    @property
    def held_count(self) -> int:
        """Entries that wait."""
        return len(self._held)

    def set(self, append: Append, limiters: Sequence[RateLimiter]) -> None:
        """Use another append function and other limiters; what is held waits for these."""
        self._append = append
        for limiter in self._limiters:
            limiter.forget(self._release)
        self._limiters = tuple(limiters)
        self._release()

    def append(self, data: bytes, context: PublishContext) -> None:
        """Append an entry now, or hold it; raises what the topic's append raises."""
        if not self._held and self._may_spend(context):
            self._append(data, context)
            return
        if not self._held:
            self.limited_count += 1
        context[0].in_flight.hold(context[3])
        self._held.append((data, context))

    def _may_spend(self, context: PublishContext) -> bool:
        """Charge an entry if all limiters take it; else wait for the first that does not."""
        messages_count, size_bytes = max(context[4], 1), context[3]
        for limiter in self._limiters:
            if not limiter.takes(messages_count, size_bytes):
                limiter.wait(messages_count, size_bytes, self._release)
                return False
        for limiter in self._limiters:
            limiter.charge(messages_count, size_bytes)
        return True

    def _release(self) -> None:
        while self._held:
            data, context = self._held[0]
            if not self._may_spend(context):
                return
            self._held.popleft()
            producer, sequence_id, highest, size, _, _ = context
            producer.in_flight.release(size)
            try:
                self._append(data, context)
            except PulsarError as error:
                producer.count_out(1, size)
                producer.send_publish_error(sequence_id, highest, error)

    def forget(self, producer: Producer) -> None:
        """Drop what a producer that left has here."""
        if not any(context[0] is producer for _, context in self._held):
            return
        kept = deque(each for each in self._held if each[1][0] is not producer)
        gone = [context for _, context in self._held if context[0] is producer]
        self._held = kept
        for context in gone:
            producer.in_flight.release(context[3])
            producer.count_out(1, context[3])

    def close(self) -> None:
        """Drop everything that is held."""
        for producer in dict.fromkeys(context[0] for _, context in self._held):
            self.forget(producer)
        self.set(self._append, ())
