"""The bits of what stays."""

from __future__ import annotations

from pulsar_py.server.compaction.survivors import WHOLE, Survivors


def survivors_of(*numbers: int) -> Survivors:
    survivors = Survivors()
    survivors.add(numbers)
    return survivors


def test_nothing_stays_of_what_was_not_added() -> None:
    survivors = survivors_of()
    assert survivors.kept_of(0, 1) is None
    assert survivors.kept_of(0, 9) is None


def test_neighbouring_entries_are_told_apart() -> None:
    survivors = survivors_of(5, 7)
    kept = [number for number in range(10) if survivors.kept_of(number, 1) is not None]
    assert kept == [5, 7]
    assert survivors.kept_of(5, 1) == WHOLE


def test_a_batch_that_stays_whole_has_no_indexes() -> None:
    assert survivors_of(10, 20).kept_of(10, 10) == WHOLE


def test_indexes_do_not_run_into_the_next_entry() -> None:
    survivors = survivors_of(1, 3, 4, 5, 9)
    assert survivors.kept_of(0, 4) == {0, 2}  # numbers 0 to 3
    assert survivors.kept_of(6, 3) is None  # 6 to 8
    assert survivors.kept_of(6, 4) == {2}


def test_a_batch_may_say_that_it_has_as_many_messages_as_a_number_can() -> None:
    most = (1 << 31) - 1
    survivors = survivors_of(most + 1, (1 << 62) + 1)
    assert survivors.kept_of(0, 1 + most) is None
    assert survivors.kept_of(1, 1 + most) == {most - 1}
    assert survivors.kept_of(1 << 62, 1 + most) == {0}
