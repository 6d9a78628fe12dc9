"""`RedeliveryController`: entries to send again, lowest position first, and their counts (pure).

Positions are added when a consumer asks for redelivery or leaves, when a delayed message is due,
and on Key_Shared when an entry could not be sent to its consumer yet. Each may have its sticky
hash, so that a newer entry of the same hash can be held back. The count of an entry's redeliveries
is kept after it left the set, until the entry is acknowledged.

Source: MessageRedeliveryController and InMemoryRedeliveryTracker in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from sortedcontainers import SortedDict

from pulsar_py.server.dispatch.pending_acks import PositionKey

_MANY = 100  # this many positions or more, added at once, are faster to add if sorted before


class RedeliveryController:
    """The redelivery set of a Shared or Key_Shared subscription. Owned by its dispatcher."""

    __slots__ = ("_counts", "_hash_counts", "_positions")

    def __init__(self) -> None:
        # Sorted positions to their sticky hash, 0 when it is not known. (No types are shipped.)
        self._positions: SortedDict = SortedDict()
        self._hash_counts: dict[int, int] = {}
        self._counts: dict[PositionKey, int] = {}

    def __len__(self) -> int:
        """Positions that wait to be sent again."""
        return len(self._positions)

    def __contains__(self, position: object) -> bool:
        return position in self._positions

    def add(self, position: PositionKey, sticky_hash: int = 0) -> None:
        """Add an entry to send again; adding it twice only fills in an unknown hash."""
        known = self._positions.get(position)
        if known == sticky_hash or (known is not None and not sticky_hash):
            return
        if known:
            self._release_hash(known)
        self._positions[position] = sticky_hash
        if sticky_hash:
            self._hash_counts[sticky_hash] = self._hash_counts.get(sticky_hash, 0) + 1

    def add_all(self, taken: Sequence[tuple[PositionKey, int, int]]) -> None:
        """Add all entries taken from `PendingAcks`; ten times as fast as single `add`s."""
        if len(taken) < _MANY:
            for position, _, sticky_hash in taken:
                self.add(position, sticky_hash)
            return
        positions, counts = self._positions, self._hash_counts
        new = {}
        for position, _, sticky_hash in taken:
            if position in positions:
                self.add(position, sticky_hash)
                continue
            new[position] = sticky_hash
            if sticky_hash:
                counts[sticky_hash] = counts.get(sticky_hash, 0) + 1
        positions.update(new)

    def discard(self, position: PositionKey) -> bool:
        """Remove an entry; returns whether it was in the set."""
        sticky_hash = self._positions.pop(position, None)
        if sticky_hash is None:
            return False
        if sticky_hash:
            self._release_hash(sticky_hash)
        return True

    def discard_up_to(self, position: PositionKey) -> None:
        """Forget entries at or before a mark-delete position, and their counts."""
        for key in list(self._positions.irange(maximum=position)):
            self.discard(key)
        if self._counts:
            for key in [key for key in self._counts if key <= position]:
                del self._counts[key]

    def has_hash(self, sticky_hash: int) -> bool:
        """Whether an entry of this hash waits, so that newer ones have to wait, too."""
        return sticky_hash in self._hash_counts

    @property
    def hashes(self) -> Iterable[int]:
        """The known hashes of positions that wait."""
        return self._hash_counts

    @property
    def lowest(self) -> PositionKey | None:
        """The position that is sent next."""
        return self._positions.peekitem(0)[0] if self._positions else None

    def select(
        self, limit: int, accepts: Callable[[PositionKey, int], bool] | None = None
    ) -> list[PositionKey]:
        """The lowest positions, up to `limit`, for which `accepts(position, hash)` is True.

        They stay in the set until `discard`.
        """
        if accepts is None:
            return list(islice(self._positions, limit))
        selected: list[PositionKey] = []
        for position, sticky_hash in self._positions.items():
            if len(selected) >= limit:
                break
            if accepts(position, sticky_hash):
                selected.append(position)
        return selected

    def count_redelivery(self, positions: Iterable[PositionKey]) -> None:
        """Count one more redelivery of entries that a client asked for again."""
        for position in positions:
            self._counts[position] = self._counts.get(position, 0) + 1

    def redelivery_count(self, position: PositionKey) -> int:
        """How often a client asked for the entry again."""
        return self._counts.get(position, 0)

    @property
    def has_counts(self) -> bool:
        """Whether any entry has a count; if not, the hot path need not look them up."""
        return bool(self._counts)

    def forget(self, positions: Iterable[PositionKey]) -> None:
        """Set the counts of entries to 0 that were acknowledged, perhaps in part."""
        counts = self._counts
        if counts:
            for position in positions:
                counts.pop(position, None)

    def clear(self) -> None:
        """Forget all entries and counts: the last consumer left, or the cursor was reset."""
        self._positions.clear()
        self._hash_counts.clear()
        self._counts.clear()

    def _release_hash(self, sticky_hash: int) -> None:
        left = self._hash_counts[sticky_hash] - 1
        if left:
            self._hash_counts[sticky_hash] = left
        else:
            del self._hash_counts[sticky_hash]

    def check(self) -> None:
        """Assert the invariant that hashes are counted right; for tests."""
        counts: dict[int, int] = {}
        for sticky_hash in self._positions.values():
            if sticky_hash:
                counts[sticky_hash] = counts.get(sticky_hash, 0) + 1
        assert counts == self._hash_counts, "hash counts do not match the positions"
