from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set
from pulsar_py.bookkeeper.writing.write_quorum import WriteQuorum


def quorum(
    ensemble_size: int = 3, write_quorum_size: int = 3, ack_quorum_size: int = 2, last: int = -1
) -> WriteQuorum:
    return WriteQuorum(
        ensemble_size=ensemble_size,
        write_quorum_size=write_quorum_size,
        ack_quorum_size=ack_quorum_size,
        last_confirmed=last,
    )


def stored(of: WriteQuorum, *pairs: tuple[int, int]) -> tuple[bool, int, list[int]]:
    for entry_id, index in pairs:
        of.on_stored([entry_id], index)
    has_more = of.advance()
    of.check()
    return has_more, of.last_confirmed, list(of.take_released())


def test_an_entry_is_confirmed_by_its_ack_quorum_and_released_by_its_whole_write_set() -> None:
    of = quorum()
    assert of.add() == 0
    assert stored(of, (0, 1)) == (False, -1, [])
    assert stored(of, (0, 2)) == (True, 0, [])
    assert stored(of, (0, 0)) == (False, 0, [0])
    assert stored(of, (0, 0)) == (False, 0, [])


def test_an_entry_is_settled_when_all_up_to_it_are_confirmed_and_answered_for() -> None:
    of = quorum()
    assert of.last_settled == -1
    for _ in range(3):
        of.add()
    stored(of, (0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2))
    assert (of.last_confirmed, of.last_settled) == (1, -1)
    stored(of, (0, 2))
    assert of.last_settled == 1
    stored(of, (2, 0), (2, 1))
    assert of.last_settled == of.last_confirmed == 2


def test_a_run_goes_to_the_whole_ensemble_as_its_entries_would() -> None:
    of = quorum()
    assert of.goes_everywhere
    assert not quorum(ensemble_size=4).goes_everywhere
    of.do_without([2])
    of.add()
    assert of.add_run(3) == 1
    assert of.add() == 4
    of.on_stored([0, 1, 2, 4], 0)
    of.on_stored([0, 1, 2, 3], 1)
    assert stored(of) == (True, 2, [0, 1, 2])
    of.on_stored([3], 0)
    assert stored(of, (4, 1)) == (True, 4, [3, 4])


def test_one_bookie_counts_once() -> None:
    of = quorum()
    of.add()
    assert stored(of, (0, 1), (0, 1), (0, 1)) == (False, -1, [])


def test_confirmations_come_in_the_order_of_entries() -> None:
    of = quorum()
    for _ in range(3):
        of.add()
    assert stored(of, (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)) == (False, -1, [])
    assert of.pending_count == 3
    assert stored(of, (0, 2), (0, 0)) == (True, 2, [1])
    assert of.pending_count == 0


def test_entries_go_round_robin() -> None:
    of = quorum(3, 2, 2, last=6)
    assert [of.write_set(of.add()) for _ in range(3)] == [(1, 2), (2, 0), (0, 1)]
    assert stored(of, (7, 1), (7, 2)) == (True, 7, [7])


def test_nothing_is_confirmed_while_the_ensemble_changes() -> None:
    of = quorum()
    of.add()
    of.give_up()
    assert stored(of, (0, 0), (0, 1)) == (False, -1, [])
    assert of.restart([2]) == [(0, 2)]
    of.resume()
    assert stored(of) == (True, 0, [])
    assert stored(of, (0, 2)) == (False, 0, [0])


def test_what_a_failed_bookie_had_stored_counts_no_more() -> None:
    of = quorum()
    of.add()
    of.add()
    stored(of, (1, 0), (1, 2))  # complete, and not confirmed
    of.give_up()
    assert of.add() == 2
    assert of.restart([2]) == [(0, 2), (1, 2), (2, 2)]
    of.resume()
    assert stored(of, (0, 0), (0, 1)) == (True, 0, [])
    assert stored(of, (1, 2)) == (True, 1, [])


def test_a_failed_bookie_owes_nothing_of_what_is_confirmed() -> None:
    of = quorum()
    of.add()
    stored(of, (0, 0), (0, 1))
    of.give_up()
    assert not of.take_released(), "perhaps it stays"
    assert of.restart([2]) == []
    assert of.take_released() == [0]
    of.check()


def test_a_bookie_that_stays_is_sent_what_it_owes_and_keeps_what_it_stored() -> None:
    of = quorum()
    for _ in range(3):
        of.add()
    stored(of, (0, 0), (0, 1), (1, 2), (1, 0))
    assert of.last_confirmed == 1
    of.give_up()
    of.add()
    assert of.retry([2]) == [(0, 2), (2, 2), (3, 2)]
    of.resume()
    assert stored(of, (0, 2), (1, 1)) == (False, 1, [0, 1])
    assert stored(of, (2, 2), (2, 1), (3, 2), (3, 0)) == (True, 3, [])


def test_entries_that_do_not_lie_on_a_replaced_bookie_are_not_sent_again() -> None:
    of = quorum(3, 2, 2)
    for _ in range(3):
        of.add()
    of.give_up()
    assert of.restart([0]) == [(0, 0), (2, 0)]


def test_a_place_may_be_done_without_as_long_as_an_ack_quorum_is_left() -> None:
    of = quorum()
    of.add()
    of.give_up()
    of.add()
    assert of.do_without([1])
    of.resume()
    of.add()
    assert stored(of, (0, 0), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2)) == (True, 2, [0, 1, 2])
    of.add()
    of.give_up()
    assert not of.do_without([2])
    assert of.restart([2]) == [(3, 2)]
    of.check()
    assert not quorum(3, 2, 2).do_without([0])


def test_what_is_not_trusted_does_not_confirm() -> None:
    of = quorum()
    of.add()
    of.add()
    assert stored(of, (0, 0), (0, 1), (1, 0)) == (True, 0, [])
    of.give_up()
    of.distrust([0])
    assert of.do_without([0])
    of.resume()
    assert stored(of, (1, 1)) == (False, 0, [])
    assert stored(of, (1, 2)) == (True, 1, [1])


@pytest.mark.parametrize("quorums", [(1, 1, 1), (3, 3, 2), (3, 2, 2), (4, 3, 1), (5, 3, 3)])
@given(data=st.data())
def test_it_agrees_with_a_naive_model(  # noqa: C901, PLR0912 - the model
    data: st.DataObject, quorums: tuple[int, int, int]
) -> None:
    size, write_quorum_size, ack_quorum_size = quorums
    of = quorum(*quorums)
    has: list[dict[int, None]] = []  # by entry: who stored it
    confirmed, failed, released = -1, set[int](), set[int]()
    for _ in range(data.draw(st.integers(0, 40))):
        steps = [
            "add",
            "run",
            "stored",
            "in order",
            "in order",
            "in order",
            "fail",
            "mend",
            "retry",
        ]
        step = data.draw(st.sampled_from(steps))
        if step == "add":
            assert of.add() == len(has)
            has.append({})
        elif step == "run" and of.goes_everywhere:
            count = data.draw(st.integers(1, 5))
            assert of.add_run(count) == len(has)
            has += [{} for _ in range(count)]
        elif step == "in order":
            index = data.draw(st.integers(0, size - 1))
            of_its = [
                each for each in range(len(has)) if index in write_set(each, size, quorums[1])
            ]
            missing = [each for each in of_its if index not in has[each]]
            missing = missing[: data.draw(st.integers(1, 5))]
            if missing and index not in failed:
                run = range(missing[0], missing[-1] + 1)
                of.on_stored(run if list(run) == missing else missing, index)
                for entry_id in missing:
                    has[entry_id][index] = None
        elif step == "stored" and has:
            entry_id = data.draw(st.integers(0, len(has) - 1))
            index = data.draw(st.sampled_from(write_set(entry_id, size, write_quorum_size)))
            if index not in failed:
                of.on_stored([entry_id], index)
                has[entry_id][index] = None
        elif step == "fail":
            failed.add(data.draw(st.integers(0, size - 1)))
            of.give_up()
        elif step == "mend" and failed:
            again = of.restart(failed)
            assert again == [
                (entry_id, index)
                for entry_id in range(confirmed + 1, len(has))
                for index in write_set(entry_id, size, write_quorum_size)
                if index in failed
            ]
            for entry_id, index in again:
                has[entry_id].pop(index, None)
            failed.clear()
            of.resume()
        elif step == "retry" and failed:
            again = of.retry(failed)
            assert [pair for pair in again if pair[0] > confirmed] == [
                (entry_id, index)
                for entry_id in range(confirmed + 1, len(has))
                for index in write_set(entry_id, size, write_quorum_size)
                if index in failed and index not in has[entry_id]
            ]
            failed.clear()
            of.resume()
        while not failed and confirmed + 1 < len(has):
            if len(has[confirmed + 1]) < ack_quorum_size:
                break
            confirmed += 1
        of.advance()
        assert of.last_confirmed == confirmed
        assert of.pending_count == len(has) - confirmed - 1
        of.check()
        for entry_id in of.take_released():
            assert entry_id <= confirmed
            assert entry_id not in released
            released.add(entry_id)
        for entry_id in range(confirmed + 1):
            everybody = len(has[entry_id]) == write_quorum_size
            assert entry_id in released or not everybody or failed


def test_whoever_answers_out_of_order_is_followed_by_entry_until_all_is_in_order_again() -> None:
    of = quorum()
    of.add_run(4)
    of.on_stored(range(4), 0)
    of.on_stored([1, 0], 1)  # of both answers none is lost
    assert stored(of, (0, 2), (1, 2)) == (True, 1, [0, 1])
    assert of.last_settled == 1
    of.on_stored([2, 3], 1)
    assert stored(of) == (True, 3, [])
    of.add_run(2)
    assert stored(of, (2, 2), (3, 2)) == (False, 3, [2, 3])
    of.on_stored(range(4, 6), 1)
    of.on_stored(range(4, 100), 2)
    assert stored(of) == (True, 5, [])
    of.on_stored(range(2, 6), 0)  # some of it again
    assert stored(of) == (False, 5, [4, 5])
