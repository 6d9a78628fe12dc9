"""LedgerState: the playbooks have positions, rollover and trimming; here is the rest."""

import pytest

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, LedgerRecord
from pulsar_py.managed_ledger.log.ledger_state import TRANSITIONS, LedgerState, State


def test_transitions_outside_the_table_are_errors_of_ours():
    state = LedgerState(LedgerList([LedgerRecord(5, 1, 1, 1, is_closed=True)]))
    with pytest.raises(AssertionError):
        state.move_to(State.OPENED)
    state.move_to(State.CREATING)
    state.move_to(State.OPENED)
    state.move_to(State.FENCED)
    with pytest.raises(AssertionError):
        state.move_to(State.OPENED)


def test_each_state_has_its_transitions_and_closed_none():
    assert set(TRANSITIONS) == set(State)
    assert not TRANSITIONS[State.CLOSED]
    assert all(State.CLOSED in TRANSITIONS[state] for state in State if state is not State.CLOSED)


def test_a_terminated_list_is_terminated():
    stored = LedgerList([LedgerRecord(5, 1, 1, 1, is_closed=True)], Position(5, 0))
    assert LedgerState(stored).state is State.TERMINATED


def test_absolute_indexes_survive_trimming():
    records = [LedgerRecord(each, 10, 10, 1, is_closed=True) for each in range(10)]
    state = LedgerState(LedgerList(records))
    before = {place: state.position_at(place) for place in range(51, 101)}
    state.ledgers_trimmed(list(range(5)))
    state.check()
    assert all(state.position_at(place) == position for place, position in before.items())
    assert all(state.index_through(position) == place for place, position in before.items())
    with pytest.raises(AssertionError):
        state.position_at(50)


def test_an_empty_list_gets_its_first_ledger():
    state = LedgerState(LedgerList())
    assert state.with_next_ledger(5).ledgers == [LedgerRecord(5)]
    assert state.ledger_created(5, 17) == []
    assert state.last_confirmed_entry == Position(5, -1)
    assert state.last_position == Position(5, -1)
    assert state.opened_millis == 17


def opened(entries_count):
    """A managed ledger with one open ledger, made at time 0."""
    state = LedgerState(LedgerList())
    state.ledger_created(5, 0)
    state.move_to(State.CREATING)
    state.move_to(State.OPENED)
    state.confirmed(entries_count, entries_count)
    return state


def test_idle_is_a_ledger_that_got_nothing_between_two_questions():
    config = ManagedLedgerConfig(inactive_ledger_rollover_seconds=30)
    state = opened(1)
    assert not state.is_rollover_due_by_time(config, 40_000)
    assert not state.is_rollover_due_by_time(config, 70_000)
    assert state.is_rollover_due_by_time(config, 70_001)
    state.confirmed(1, 1)
    assert not state.is_rollover_due_by_time(config, 80_000)
    assert not opened(0).is_rollover_due_by_time(config, 10**9)


def test_only_an_open_ledger_gets_too_old():
    config = ManagedLedgerConfig(maximum_rollover_seconds=700)
    state = opened(1)
    assert not state.is_rollover_due_by_time(config, 699_999)
    assert state.is_rollover_due_by_time(config, 700_000)
    state.move_to(State.CLOSING)
    assert not state.is_rollover_due_by_time(config, 700_000)


@pytest.mark.parametrize(
    ("position", "last"),
    [
        ((9, 7), (8, 1)),
        ((8, 1), (8, 1)),
        ((8, 0), (8, 0)),
        ((8, -1), (6, 2)),
        ((7, 0), (6, 2)),
        ((6, 99), (6, 2)),
        ((6, 0), (6, 0)),
        ((6, -1), (6, -1)),
        ((-1, -1), (6, -1)),
    ],
)
def test_the_last_entry_up_to_a_position(position, last):
    records = [LedgerRecord(6, 3, 3, 1, is_closed=True), LedgerRecord(8, 2, 2, 1, is_closed=True)]
    assert LedgerState(LedgerList(records)).last_entry_up_to(Position(*position)) == Position(*last)


def test_the_last_entry_is_in_a_ledger_before_while_the_last_one_is_empty():
    records = [LedgerRecord(6, 3, 3, 1, is_closed=True)]
    state = LedgerState(LedgerList(records))
    state.ledger_created(8, 0)
    assert state.last_entry_up_to(Position(8, 5)) == state.last_confirmed_entry
    assert state.last_entry_up_to(Position(6, 1)) == Position(6, 1)
