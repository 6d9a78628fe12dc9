"""Sequence ids: where they begin, own ids, what may be a duplicate."""

from __future__ import annotations

from pulsar_py.client.producing.sequence_ids import SequenceIds


def test_they_begin_at_zero() -> None:
    ids = SequenceIds()
    ids.registered(-1)
    assert [ids.give(), ids.give()] == [0, 1]
    assert ids.last_confirmed == -1


def test_they_go_on_after_what_the_broker_knows() -> None:
    ids = SequenceIds()
    ids.registered(41)
    assert ids.last_confirmed == 41
    assert ids.give() == 42


def test_an_initial_id_beats_the_broker() -> None:
    ids = SequenceIds(10)
    assert ids.last_confirmed == 10
    ids.registered(41)
    assert ids.give() == 11


def test_a_later_registration_changes_nothing() -> None:
    ids = SequenceIds()
    ids.registered(-1)
    ids.give()
    ids.registered(7)
    assert ids.give() == 1
    assert ids.last_confirmed == -1


def test_an_own_id_moves_the_others_behind_it() -> None:
    ids = SequenceIds()
    assert [ids.give(), ids.give(100), ids.give(), ids.give(50), ids.give()] == [
        0,
        100,
        101,
        50,
        102,
    ]


def test_a_run_is_a_run() -> None:
    ids = SequenceIds()
    assert ids.give_run(3) == 0
    assert ids.give() == 3
    assert ids.last_given == 3


def test_what_is_not_above_all_that_went_out_may_be_a_duplicate() -> None:
    ids = SequenceIds()
    ids.give(5)
    assert ids.is_possible_duplicate(5)
    assert ids.is_possible_duplicate(4)
    assert not ids.is_possible_duplicate(6)
    assert not ids.is_possible_duplicate(None)
    ids.reserve(9)
    assert ids.is_possible_duplicate(9)


def test_the_last_confirmed_never_falls() -> None:
    ids = SequenceIds()
    ids.confirmed(5)
    ids.confirmed(3)
    assert ids.last_confirmed == 5
