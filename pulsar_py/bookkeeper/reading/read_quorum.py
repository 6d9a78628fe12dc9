"""Decides when enough bookies have answered a read or a recovery (pure).

`Coverage`: all bookies of an ensemble are asked for their last entry. Enough have answered once, of
each write set that an entry can have, fewer bookies than an ack quorum have not. Then every
confirmed entry is on a bookie that answered; and if the bookies were fenced with the question, no
further entry can be confirmed.

`EntrySearch`: recovery asks the bookies of one entry's write set, one after the other. The entry is
found if one of them has it undamaged. It can't have been confirmed once so many do not have it that
fewer than an ack quorum remain. A bookie that can't tell (no answer, another error, a wrong digest)
counts for neither.

Source: RoundRobinDistributionSchedule, LedgerRecoveryOp in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set


class Coverage:
    """Tracks which bookies of an ensemble have answered."""

    def __init__(self, *, ensemble_size: int, write_quorum_size: int, ack_quorum_size: int) -> None:
        self._ack_quorum_size = ack_quorum_size
        self._sets = [
            write_set(entry_id, ensemble_size, write_quorum_size)
            for entry_id in range(ensemble_size)
        ]
        self._is_unknown = [True] * ensemble_size
        self._asked_count = ensemble_size

    def on_answer(self, index: int, *, is_known: bool) -> None:
        """Note, once, that the bookie at this place answered or failed."""
        self._asked_count -= 1
        self._is_unknown[index] = not is_known

    @property
    def is_covered(self) -> bool:
        """Whether every confirmed entry is on a bookie that answered."""
        return all(
            sum(self._is_unknown[index] for index in each) < self._ack_quorum_size
            for each in self._sets
        )

    @property
    def is_over(self) -> bool:
        """Whether all bookies have answered or failed."""
        return self._asked_count == 0


class EntryFate(Enum):
    """The results of a search."""

    UNDECIDED = "undecided"
    FOUND = "found"
    ABSENT = "absent"
    """The entry can't have been confirmed."""
    UNKNOWN = "unknown"
    """All bookies were asked, and the entry may have been confirmed."""


class EntrySearch:
    """The search of one entry in its write set."""

    def __init__(self, places: Sequence[int], *, ack_quorum_size: int) -> None:
        """`places` are its write set, in the order they are to be asked."""
        self._left = list(places)
        self._absent_needed = len(places) - ack_quorum_size + 1
        self._is_found = False

    def next_place(self) -> int:
        """The place of the bookie to ask next; call it only while the search is undecided."""
        return self._left.pop(0)

    def on_found(self) -> None:
        """Note that a bookie has the entry undamaged."""
        self._is_found = True

    def on_absent(self) -> None:
        """Note that a bookie answered that it does not have the entry."""
        self._absent_needed -= 1

    @property
    def fate(self) -> EntryFate:
        """The result so far."""
        if self._is_found:
            return EntryFate.FOUND
        if self._absent_needed <= 0:
            return EntryFate.ABSENT
        return EntryFate.UNDECIDED if self._left else EntryFate.UNKNOWN
