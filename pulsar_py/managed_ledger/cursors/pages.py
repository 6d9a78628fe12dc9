"""`CursorPages`: tracks the parts of a large cursor not written yet, or not in memory (pure).

A cursor whose state is stored in segments notes the pages that changed, so that a save writes only
those. Acknowledgements in data ledgers that were not used for long may leave memory once they are
stored; of such a *cold* ledger only counts stay, which keep the backlog exact.

An acknowledgement in a cold ledger is kept in memory beside the stored ones, and the ledger is then
*wanted*: it has to be loaded before the next save, and before any entry of it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class ColdLedger(NamedTuple):
    """Counts of a ledger's acknowledgements that are stored and not in memory."""

    entries_count: int  # acknowledged as a whole, above the mark-delete position
    ranges_count: int
    batches_count: int  # acknowledged partly


class CursorPages:
    """The changed pages and cold ledgers of one cursor. Owned by a CursorState.

    Invariant: nothing is cold or dirty unless `is_tracking`.
    """

    __slots__ = ("cold", "cold_entries_count", "dirty", "wanted")

    def __init__(self) -> None:
        # (kind, ledger id, page) of changed pages; None while the state fits one entry.
        self.dirty: set[tuple[int, int, int]] | None = None
        self.cold: dict[int, ColdLedger] = {}  # data ledgers that are only stored, ascending
        self.cold_entries_count = 0  # of all of them
        self.wanted: set[int] = set()  # cold ones that have to be loaded

    @property
    def is_tracking(self) -> bool:
        """Whether the state is stored in segments."""
        return self.dirty is not None

    def track(self, dirty: Iterable[tuple[int, int, int]] = ()) -> None:
        """Note changed pages from now on; `dirty` are those not written yet."""
        self.dirty = set(dirty)

    def stop_tracking(self) -> None:
        """Stop noting changes: the state fits one entry."""
        assert not self.cold, "what is cold has to be loaded first"
        self.dirty = None

    def put_back(self, keys: Iterable[tuple[int, int, int]]) -> None:
        """Note these pages as changed again: their write failed."""
        if self.dirty is not None:
            self.dirty.update(keys)

    def is_clean(self, ledger_id: int) -> bool:
        """Whether every change of a ledger was written, or is in a write under way."""
        return self.dirty is not None and all(key[1] != ledger_id for key in self.dirty)

    def touch(self, ledger_id: int) -> None:
        """Note that a ledger is used: a cold one becomes wanted."""
        if ledger_id in self.cold:
            self.wanted.add(ledger_id)

    def leave_memory(self, ledger_id: int, left: ColdLedger) -> None:
        """Note that a ledger is cold from now on, with the counts of its acknowledgements."""
        assert self.is_clean(ledger_id), f"ledger {ledger_id} is not written"
        self.cold[ledger_id] = left
        self.cold_entries_count += left.entries_count

    def forget(self, ledger_id: int) -> bool:
        """Note that a ledger is loaded, or not needed any more; False if it was not cold."""
        self.wanted.discard(ledger_id)
        left = self.cold.pop(ledger_id, None)
        if left is None:
            return False
        self.cold_entries_count -= left.entries_count
        return True

    def forget_before(self, ledger_id: int) -> None:
        """Forget the ledgers before this one: they are acknowledged as a whole."""
        for each in [each for each in self.cold if each < ledger_id]:
            self.forget(each)

    def check(self) -> None:
        """Assert the invariants; for tests."""
        assert self.is_tracking or not self.cold
        assert self.wanted <= self.cold.keys()
        assert self.cold_entries_count == sum(each.entries_count for each in self.cold.values())
