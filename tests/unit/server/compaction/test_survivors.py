"""The bits of what stays."""

from __future__ import annotations

from pulsar_py.common.position import Position
from pulsar_py.server.compaction.keyed_messages import NO_BATCH_INDEX
from pulsar_py.server.compaction.survivors import Survivors, pack_place

MOST = (1 << 25) - 1
"""The highest index a batch can have."""


def survivors_of(*places: tuple[int, int, int]) -> Survivors:
    survivors = Survivors()
    survivors.add(b"".join(pack_place(Position(*place[:2]), place[2]) for place in places))
    return survivors


def test_nothing_stays_of_what_was_not_added() -> None:
    survivors = Survivors()
    survivors.add(b"")
    assert not survivors.has_entry(Position(0, 0))
    assert survivors.kept_indexes(Position(0, 0)) == frozenset()


def test_entries_of_two_ledgers_are_told_apart() -> None:
    survivors = survivors_of((1, 5, NO_BATCH_INDEX), (2, 6, NO_BATCH_INDEX))
    kept = [
        (ledger, entry)
        for ledger in range(4)
        for entry in range(8)
        if survivors.has_entry(Position(ledger, entry))
    ]
    assert kept == [(1, 5), (2, 6)]


def test_an_entry_that_stays_whole_has_no_indexes_beside_a_batch_in_its_ledger() -> None:
    survivors = survivors_of((1, 5, NO_BATCH_INDEX), (1, 6, 0))
    assert survivors.has_entry(Position(1, 6))
    assert survivors.kept_indexes(Position(1, 5)) == frozenset()
    assert survivors.kept_indexes(Position(2, 6)) == frozenset()


def test_indexes_do_not_run_into_the_next_entry() -> None:
    survivors = survivors_of((1, 5, MOST), (1, 5, 0), (1, 6, 0), (1, 6, 3), (1, 4, MOST))
    assert survivors.kept_indexes(Position(1, 4)) == {MOST}
    assert survivors.kept_indexes(Position(1, 5)) == {0, MOST}
    assert survivors.kept_indexes(Position(1, 6)) == {0, 3}
    assert survivors.kept_indexes(Position(1, 7)) == frozenset()
