from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.bookkeeper.bookies.add_lanes import AddLanes
from pulsar_py.bookkeeper.bookies.requests import AddRequest
from tests.unit.bookkeeper.bookies.test_connection import Asker


def run(first: int, last: int, ledger_id: int = 7) -> AddRequest:
    return AddRequest(ledger_id, first, last, (), Asker())


def answer(lanes: AddLanes, entry_id: int, ledger_id: int = 7) -> AddRequest | None:
    """The entry is answered; returns what is sent then."""
    request = lanes.answered(ledger_id, entry_id)
    assert request is not None
    return lanes.end(request) if request.is_answered else None


def test_answers_in_order_move_one_number() -> None:
    lanes, request = AddLanes(), run(0, 2)
    assert lanes.begin(request)
    answer(lanes, 0)
    assert (request.next_entry_id, request.early) == (1, None)
    answer(lanes, 1)
    answer(lanes, 2)
    assert not lanes
    assert not lanes.lanes


def test_early_answers_wait_for_those_before_them() -> None:
    lanes, request = AddLanes(), run(0, 3)
    lanes.begin(request)
    answer(lanes, 2)
    answer(lanes, 1)
    assert request.next_entry_id == 0
    answer(lanes, 0)
    assert (request.next_entry_id, request.is_answered) == (3, False)
    answer(lanes, 3)
    assert not lanes


def test_nobody_asked_for_what_was_answered_or_never_sent() -> None:
    lanes = AddLanes()
    lanes.begin(run(3, 5))
    answer(lanes, 4)
    for ledger_id, entry_id in ((7, 4), (7, 2), (7, 6), (8, 3)):
        assert lanes.answered(ledger_id, entry_id) is None
    answer(lanes, 3)
    assert lanes.answered(7, 3) is None


def test_an_add_that_repeats_one_waits_until_the_lane_is_empty_and_later_ones_behind_it() -> None:
    lanes = AddLanes()
    first, again, later, other = run(0, 1), run(1, 1), run(2, 3), run(0, 0, ledger_id=8)
    assert lanes.begin(first)
    assert not lanes.begin(again)
    assert not lanes.begin(later)
    assert lanes.begin(other)
    assert answer(lanes, 0) is None
    assert answer(lanes, 1) is again
    assert answer(lanes, 1) is later
    assert lanes.begin(run(4, 4)), "nothing waits any more"


def test_what_waited_too_long_is_taken_and_the_rest_goes_on() -> None:
    lanes = AddLanes()
    first, late, next_one = run(0, 0), run(0, 0), run(1, 1)
    for request, deadline in ((first, 5.0), (late, 10.0), (next_one, 20.0)):
        request.deadline = deadline
        lanes.begin(request)
    assert lanes.take_late(10.0) == [late]
    assert list(lanes.sent()) == [first]
    assert answer(lanes, 0) is next_one


def test_all_are_taken_at_the_end() -> None:
    lanes = AddLanes()
    requests = [run(0, 1), run(1, 1), run(5, 6, ledger_id=8)]
    for request in requests:
        lanes.begin(request)
    assert lanes.take_all() == [requests[0], requests[2], requests[1]]
    assert not lanes
    assert lanes.take_late(1e9) == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_each_entry_is_answered_once_in_any_order(lengths: list[int], chance: object) -> None:
    lanes, first = AddLanes(), 0
    for length in lengths:
        assert lanes.begin(run(first, first + length - 1))
        first += length
    entry_ids = list(range(first))
    chance.shuffle(entry_ids)  # type: ignore[attr-defined]  # a Random
    for entry_id in entry_ids:
        assert answer(lanes, entry_id) is None
        assert lanes.answered(7, entry_id) is None
    assert not lanes
