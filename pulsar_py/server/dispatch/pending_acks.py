"""`PendingAcks`: entries sent to a Shared or Key_Shared consumer, not yet acknowledged (pure).

A dictionary maps each delivered entry, (ledger id, entry id), to one integer with the number of its
unacknowledged messages (low 32 bits) and its sticky hash (above; 0 is "no hash"). For Key_Shared
the pending entries of each hash are counted, too: a hash that moved to another consumer drains
until that count is 0.

Invariant: the remaining messages of all entries add up to the consumer's unacknowledged messages.

Source: PendingAcksMap in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from pulsar_py.common.position import Position

PositionKey = tuple[int, int]
"""A position as a plain tuple: equal to the `Position`, and an order of magnitude cheaper."""


class Settled(NamedTuple):
    """What became of acknowledged entries at one consumer."""

    messages_count: int
    """Messages of those that were pending."""
    hashes: Sequence[int]
    """The sticky hash of each of them; empty if there are none."""
    others: Sequence[PositionKey]
    """The entries that were not pending."""


_COUNT_MASK = 0xFFFFFFFF
_HASH_SHIFT = 32
_NOT_PENDING = -1


class PendingAcks:
    """The unacknowledged entries of one consumer, which owns it."""

    __slots__ = ("_entries", "_hash_counts")

    def __init__(self) -> None:
        self._entries: dict[PositionKey, int] = {}
        self._hash_counts: dict[int, int] = {}

    def __len__(self) -> int:
        """The number of pending entries."""
        return len(self._entries)

    def __contains__(self, position: object) -> bool:
        return position in self._entries

    def __iter__(self) -> Iterator[PositionKey]:
        """Positions in the order they were sent."""
        return iter(self._entries)

    @property
    def hash_counts(self) -> Mapping[int, int]:
        """Pending entries of each sticky hash; empty on Shared."""
        return self._hash_counts

    @property
    def messages_count(self) -> int:
        """Unacknowledged messages of all entries (walks all of them)."""
        return sum(value & _COUNT_MASK for value in self._entries.values())

    def add(self, position: PositionKey, messages_count: int, sticky_hash: int = 0) -> int:
        """Add an entry that is being sent; one that is pending already is replaced.

        Returns how many more messages are unacknowledged than before.
        """
        before = self._entries.get(position)
        if before is not None:
            self._release_hashes((before >> _HASH_SHIFT,))
        self._entries[position] = sticky_hash << _HASH_SHIFT | messages_count
        if sticky_hash:
            self._hash_counts[sticky_hash] = self._hash_counts.get(sticky_hash, 0) + 1
        return messages_count - (0 if before is None else before & _COUNT_MASK)

    def remaining(self, position: PositionKey) -> int:
        """Unacknowledged messages of an entry, 0 if it is not pending."""
        return self._entries.get(position, 0) & _COUNT_MASK

    def remove(self, position: PositionKey) -> tuple[int, int] | None:
        """Forget an entry; returns (messages, hash), or None if it was not pending."""
        value = self._entries.pop(position, None)
        if value is None:
            return None
        if sticky_hash := value >> _HASH_SHIFT:
            self._release_hashes((sticky_hash,))
        return value & _COUNT_MASK, sticky_hash

    def shrink(self, position: PositionKey, remaining_count: int) -> int:
        """Set the number of unacknowledged messages of a batch; returns by how many it fell."""
        value = self._entries[position]
        before = value & _COUNT_MASK
        if remaining_count >= before:
            return 0
        self._entries[position] = value - before + remaining_count
        return before - remaining_count

    def take(self, positions: Iterable[PositionKey]) -> list[tuple[PositionKey, int, int]]:
        """Forget those of the positions that are pending: (position, messages, hash) each."""
        taken: list[tuple[PositionKey, int, int]] = []
        for position in positions:
            removed = self.remove(position)
            if removed is not None:
                taken.append((position, *removed))
        return taken

    def settle(self, positions: Sequence[PositionKey]) -> Settled:
        """Forget those of the acknowledged entries that are pending."""
        # Hot path: benchmarks/micro_acks. A `remove` for each takes three times as long.
        values = list(map(self._entries.pop, positions, repeat(_NOT_PENDING)))
        others: Sequence[PositionKey] = ()
        if _NOT_PENDING in values:
            pairs = zip(positions, values, strict=True)
            others = [position for position, value in pairs if value == _NOT_PENDING]
            values = [value for value in values if value != _NOT_PENDING]
        if not self._hash_counts:
            return Settled(sum(values), (), others)
        hashes = [value >> _HASH_SHIFT for value in values]
        self._release_hashes(hashes)
        return Settled(sum(values) - (sum(hashes) << _HASH_SHIFT), hashes, others)

    def take_all(self) -> list[tuple[PositionKey, int, int]]:
        """Forget all entries; returns (position, messages, hash) each, in the order sent."""
        taken = [
            (position, value & _COUNT_MASK, value >> _HASH_SHIFT)
            for position, value in self._entries.items()
        ]
        self.clear()
        return taken

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._hash_counts.clear()

    def take_up_to(self, position: Position) -> list[tuple[PositionKey, int, int]]:
        """Forget entries at or before a position; returns (position, messages, hash) each."""
        return self.take([key for key in self._entries if key <= position])

    def _release_hashes(self, sticky_hashes: Iterable[int]) -> None:
        hash_counts = self._hash_counts
        for sticky_hash in sticky_hashes:
            if sticky_hash:
                left = hash_counts[sticky_hash] - 1
                if left:
                    hash_counts[sticky_hash] = left
                else:
                    del hash_counts[sticky_hash]

    def check(self) -> None:
        """Assert the invariants; for tests."""
        counts: dict[int, int] = {}
        for value in self._entries.values():
            if value >> _HASH_SHIFT:
                counts[value >> _HASH_SHIFT] = counts.get(value >> _HASH_SHIFT, 0) + 1
        assert counts == self._hash_counts, "hash counts do not match the entries"
