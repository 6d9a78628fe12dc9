"""BatchDeletedIndexes: which messages of partly acknowledged batches still wait.

A bit set an entry, in which a set bit still has to be delivered; entries with all bits set or none
never stand here for long: the cursor acknowledges the latter as a whole. Keyed by ledger first, so
that all below a position goes at once.

Source: batchDeletedIndexes in ManagedCursorImpl.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_py.common.position import Position


class BatchDeletedIndexes:
    """Bit sets of waiting batch indexes by position."""

    __slots__ = ("_count", "_ledgers")

    def __init__(self) -> None:
        self._ledgers: dict[int, dict[int, int]] = {}  # ledger id -> entry id -> bits, none empty
        self._count = 0  # entries in all ledgers

    def __len__(self) -> int:
        """Entries with a bit set."""
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, position: Position) -> bool:
        ledger = self._ledgers.get(position[0])
        return ledger is not None and position[1] in ledger

    def get(self, position: Position) -> int | None:
        """The bits of one entry, None if it has none."""
        ledger = self._ledgers.get(position[0])
        return None if ledger is None else ledger.get(position[1])

    def put(self, position: Position, bits: int) -> None:
        """Store the bits of one entry."""
        ledger = self._ledgers.setdefault(position[0], {})
        self._count += position[1] not in ledger
        ledger[position[1]] = bits

    def discard(self, position: Position) -> bool:
        """Forget one entry; False if it was not there."""
        ledger = self._ledgers.get(position[0])
        if ledger is None or ledger.pop(position[1], None) is None:
            return False
        self._count -= 1
        if not ledger:
            del self._ledgers[position[0]]
        return True

    def remove_through(self, upper: Position) -> None:
        """Forget all entries at or below `upper`."""
        if not self._count:
            return
        for ledger_id in [each for each in self._ledgers if each < upper.ledger_id]:
            self._count -= len(self._ledgers.pop(ledger_id))
        ledger = self._ledgers.get(upper.ledger_id)
        if ledger is not None:
            self._discard_entries(upper.ledger_id, ledger, upper.entry_id)

    def _discard_entries(self, ledger_id: int, ledger: dict[int, int], last: int) -> None:
        gone = [entry_id for entry_id in ledger if entry_id <= last]
        for entry_id in gone:
            del ledger[entry_id]
        self._count -= len(gone)
        if not ledger:
            del self._ledgers[ledger_id]

    def positions(self) -> list[Position]:
        """All entries, in no order."""
        return [
            Position(ledger_id, entry_id)
            for ledger_id, ledger in self._ledgers.items()
            for entry_id in ledger
        ]

    def clear(self) -> None:
        """Forget everything."""
        self._ledgers.clear()
        self._count = 0

    def items(self) -> Iterator[tuple[Position, int]]:
        """All entries and their bits, ascending."""
        for ledger_id in sorted(self._ledgers):
            ledger = self._ledgers[ledger_id]
            for entry_id in sorted(ledger):
                yield Position(ledger_id, entry_id), ledger[entry_id]

    def check(self) -> None:
        """Assert the invariants; for tests."""
        assert self._count == sum(len(ledger) for ledger in self._ledgers.values())
        assert all(self._ledgers.values())
        assert all(bits > 0 for ledger in self._ledgers.values() for bits in ledger.values())
