"""`DrainingHashes`: sticky hashes whose former owner still has unacknowledged entries (pure).

When a consumer joins or leaves, slots get other owners. A slot whose former owner has
unacknowledged entries *drains*: no other consumer gets entries of it until those are acknowledged,
or their consumer has left. If an entry was refused meanwhile the hash is *blocking*: the end of
draining then starts a read.

Invariant: a draining hash has at least one pending entry at the consumer it drains from.

Source: DrainingHashesTracker in Pulsar's broker, PIP-379.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct


class HashHolder(Protocol):
    """The part of a consumer that `DrainingHashes` uses."""

    @property
    def pending_hash_counts(self) -> Mapping[int, int]:
        """Unacknowledged entries of each sticky hash."""


C = TypeVar("C", bound=HashHolder)


class DrainingHash(Struct, frozen=True):
    """One hash that drains from a consumer, for statistics."""

    sticky_hash: int
    unacked_entries_count: int
    refused_count: int
    """How often an entry of it was kept from another consumer."""


class DrainingHashes(Generic[C]):
    """The draining hashes of an ordered AUTO_SPLIT subscription. Owned by its dispatcher."""

    def __init__(self) -> None:
        self._owners: dict[int, C] = {}
        self._blocking: dict[int, int] = {}  # how often each was refused
        self._cleared_total: dict[C, int] = {}

    def __len__(self) -> int:
        """Hashes that drain."""
        return len(self._owners)

    def owner(self, sticky_hash: int) -> C | None:
        """The consumer that a hash drains from."""
        return self._owners.get(sticky_hash)

    def refuses(self, sticky_hash: int, consumer: C) -> bool:
        """Whether the hash drains at another consumer; if so it is blocking from now on."""
        owner = self._owners.get(sticky_hash)
        if owner is None or owner is consumer:
            return False
        self._blocking[sticky_hash] = self._blocking.get(sticky_hash, 0) + 1
        return True

    def reassign(self, consumers: Iterable[C], select: Callable[[int], C | None]) -> bool:
        """Find the draining hashes after slots got other owners.

        A hash drains if a consumer has pending entries of it and `select` returns another one.

        A hash that came back to its drainer stops draining. Returns whether one of those that
        stopped had been blocking.
        """
        has_unblocked = False
        for consumer in consumers:
            for sticky_hash in consumer.pending_hash_counts:
                if select(sticky_hash) is not consumer:
                    # The first holder stays: a second one can only have got entries after it.
                    self._owners.setdefault(sticky_hash, consumer)
                elif self._owners.get(sticky_hash) is consumer:
                    has_unblocked |= self._clear(sticky_hash)
        return has_unblocked

    def on_released(self, consumer: C, sticky_hash: int) -> bool:
        """Note that one entry of a hash less is pending; returns whether it stopped blocking."""
        if self._owners.get(sticky_hash) is not consumer:
            return False
        if sticky_hash in consumer.pending_hash_counts:
            return False
        self._cleared_total[consumer] = self._cleared_total.get(consumer, 0) + 1
        return self._clear(sticky_hash)

    def on_consumer_removed(self, consumer: C) -> bool:
        """Forget a consumer that left; returns whether any hash stopped blocking."""
        has_unblocked = False
        for sticky_hash in [each for each, owner in self._owners.items() if owner is consumer]:
            has_unblocked |= self._clear(sticky_hash)
        self._cleared_total.pop(consumer, None)
        return has_unblocked

    def draining_from(self, consumer: C) -> list[DrainingHash]:
        """The hashes that drain from a consumer (walks all of them)."""
        counts = consumer.pending_hash_counts
        return [
            DrainingHash(each, counts.get(each, 0), self._blocking.get(each, 0))
            for each, owner in self._owners.items()
            if owner is consumer
        ]

    def cleared_total(self, consumer: C) -> int:
        """Hashes that a consumer has drained since it connected."""
        return self._cleared_total.get(consumer, 0)

    def clear(self) -> None:
        """All consumers left."""
        self._owners.clear()
        self._blocking.clear()
        self._cleared_total.clear()

    def _clear(self, sticky_hash: int) -> bool:
        del self._owners[sticky_hash]
        return self._blocking.pop(sticky_hash, None) is not None
