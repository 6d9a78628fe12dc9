"""Chooses the next consumer of Shared, by priority in turns, and the active one of Failover (pure).

Shared: let `index` be the place after the last consumer served, and `p` the priority of the
consumer there. First comes any available consumer of a better priority than `p`, then round robin
inside `p`, then those after it in the list. So with C1(0, 2 permits) C2(0,1) C3(0,1) C4(1,2)
C5(1,1), one entry a turn, the order is C1, C2, C3, C1, C4, C5, C4.

A consumer without permits is at rest: nobody looks at it until it is woken. So what an entry costs
does not grow with the consumers that wait for it.

Source: AbstractDispatcherMultipleConsumers.getNextConsumer,
AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer in Pulsar's broker.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import count
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


_Key = tuple[int, int]
"""A consumer's place in the order: its priority, and its number among all that ever joined."""


class PriorityRoundRobin(Generic[C]):
    """The consumers of a Shared subscription, best priority first, in the order they joined.

    What always holds: a consumer is at rest only while `may_rest` is true of it; whoever makes it
    false calls `wake`.
    """

    __slots__ = (
        "_index",
        "_key_of",
        "_keys",
        "_may_rest",
        "_member",
        "_numbers",
        "_ready",
        "consumers",
    )

    def __init__(self, may_rest: Callable[[C], bool] = lambda _: False) -> None:
        self.consumers: list[C] = []
        self._keys: list[_Key] = []  # of `consumers`
        self._ready: list[_Key] = []  # of those that are not at rest, sorted
        self._member: dict[_Key, C] = {}
        self._key_of: dict[int, _Key] = {}  # by the identity of the consumer
        self._numbers = count()
        self._may_rest = may_rest
        self._index = 0  # Behind the consumer served last.

    def __contains__(self, consumer: object) -> bool:
        return id(consumer) in self._key_of

    def add(self, consumer: C) -> None:
        """Add a consumer behind those of its priority."""
        key = (consumer.priority_level, next(self._numbers))
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self.consumers.insert(place, consumer)
        self._member[key] = consumer
        self._key_of[id(consumer)] = key
        insort(self._ready, key)

    def remove(self, consumer: C) -> None:
        """Remove a consumer."""
        key = self._key_of.pop(id(consumer))
        del self._member[key]
        self._rest(bisect_left(self._ready, key), key)
        index = bisect_left(self._keys, key)
        del self._keys[index], self.consumers[index]
        if index < self._index:
            self._index -= 1

    def _rest(self, place: int, key: _Key) -> None:
        if place < len(self._ready) and self._ready[place] == key:
            del self._ready[place]

    def wake(self, consumer: C) -> None:
        """End a consumer's rest."""
        key = self._key_of[id(consumer)]
        place = bisect_left(self._ready, key)
        if place == len(self._ready) or self._ready[place] != key:
            self._ready.insert(place, key)

    def ready(self) -> Iterator[C]:
        """The consumers that are not at rest; those that may rest are at rest from now on."""
        ready, member = self._ready, self._member
        place = 0
        while place < len(ready):
            consumer = member[ready[place]]
            if self._may_rest(consumer):
                del ready[place]
            else:
                place += 1
                yield consumer

    def next(self, is_available: Callable[[C], bool]) -> C | None:
        """The consumer to serve now, None when none is available."""
        # Hot path: tailing consume.
        keys = self._keys
        if self._index >= len(keys):
            self._index = 0
        if not self._ready:
            return None
        start = keys[self._index]
        priority = start[0]
        # Better ones first, this level round robin, then the rest.
        if self._ready[0] < (priority, -1):
            found = self._first(self._ready[0], (priority, -1), is_available)
            if found is not None:
                return found
        return (
            self._first(start, (priority + 1, -1), is_available)
            or self._first((priority, -1), start, is_available)
            or self._first((priority + 1, -1), None, is_available)
        )

    def _first(self, low: _Key, end: _Key | None, is_available: Callable[[C], bool]) -> C | None:
        """The first available consumer from one place to another."""
        ready = self._ready
        place = bisect_left(ready, low)
        while place < len(ready):
            key = ready[place]
            if end is not None and key >= end:
                break
            consumer = self._member[key]
            if is_available(consumer):
                self._index = bisect_left(self._keys, key) + 1
                return consumer
            if self._may_rest(consumer):
                del ready[place]
            else:
                place += 1
        return None


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
