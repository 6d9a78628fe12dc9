"""Chooses the next consumer of Shared, by priority in turns, and the active one of Failover (pure).

Shared: let `index` be the place after the last consumer served, and `p` the priority of the
consumer there. First comes any available consumer of a better priority than `p`, then round robin
inside `p`, then those after it in the list. So with C1(0, 2 permits) C2(0,1) C3(0,1) C4(1,2)
C5(1,1), one entry a turn, the order is C1, C2, C3, C1, C4, C5, C4.

Source: AbstractDispatcherMultipleConsumers.getNextConsumer,
AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer in Pulsar's broker.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from pulsar_py.common.hashing import murmur3_32

FAILOVER_RING_POINTS = 100


class Prioritized(Protocol):
    """The part of a consumer that the choice depends on."""

    @property
    def name(self) -> str:
        """The consumer's name; may be empty, and is not unique."""

    @property
    def priority_level(self) -> int:
        """The consumer's priority; 0 is the highest."""


C = TypeVar("C", bound=Prioritized)


class PriorityRoundRobin(Generic[C]):
    """The consumers of a Shared subscription, best priority first, in the order they joined."""

    __slots__ = ("_index", "consumers")

    def __init__(self) -> None:
        self.consumers: list[C] = []
        self._index = 0  # Behind the consumer served last.

    def add(self, consumer: C) -> None:
        """Add a consumer behind those of its priority."""
        insort(self.consumers, consumer, key=lambda each: each.priority_level)

    def remove(self, consumer: C) -> None:
        """Remove a consumer."""
        index = self.consumers.index(consumer)
        del self.consumers[index]
        if index < self._index:
            self._index -= 1

    def next(self, is_available: Callable[[C], bool]) -> C | None:
        """The consumer to serve now, None when none is available."""
        consumers = self.consumers
        if not consumers:
            return None
        if self._index >= len(consumers):
            self._index = 0
        start = self._index
        priority = consumers[start].priority_level
        for index in self._candidates(start, priority):
            if is_available(consumers[index]):
                self._index = index + 1
                return consumers[index]
        return None

    def _candidates(self, start: int, priority: int) -> list[int]:
        """Indexes in the order of preference: better ones, this level round robin, the rest."""
        consumers = self.consumers
        first = bisect_left(consumers, priority, key=lambda each: each.priority_level)
        end = bisect_left(consumers, priority + 1, key=lambda each: each.priority_level)
        return [
            *range(first),
            *range(start, end),
            *range(first, start),
            *range(end, len(consumers)),
        ]


def choose_active(
    consumers: Sequence[C], *, topic_name: str, partition_index: int, uses_ring: bool
) -> C:
    """The active consumer of a Failover subscription among at least one.

    Only the best priority level counts, sorted by name. Without the ring it is the one at
    `partition_index` modulo their number, the first on a topic without partitions (-1). With it,
    each consumer has 100 points on a ring of hashes, and the topic's name chooses. Names are hashed
    as UTF-8; Apache Pulsar uses the default charset of its Java, which differs only before Java 18
    and in a locale without UTF-8.
    """
    best_level = min(consumer.priority_level for consumer in consumers)
    candidates = sorted(
        (consumer for consumer in consumers if consumer.priority_level == best_level),
        key=lambda consumer: consumer.name,
    )
    if not uses_ring:
        return candidates[max(partition_index, 0) % len(candidates)]
    ring = {
        murmur3_32(f"{consumer.name}{point}".encode()): consumer
        for consumer in candidates
        for point in range(FAILOVER_RING_POINTS)
    }
    points = sorted(ring)
    index = bisect_left(points, murmur3_32(topic_name.encode()))
    return ring[points[index % len(points)]]
