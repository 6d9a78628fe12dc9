"""CursorChangeLog: what changed since the last write, as it is by now."""

from benchmarks.micro_cursor import ledgers_of
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors import change_log
from pulsar_py.managed_ledger.cursors.change_log import CursorChangeLog
from pulsar_py.managed_ledger.cursors.state import CursorState


def made(count=100):
    state = CursorState(ledgers_of(1, count), Position(1, -1))
    return state, CursorChangeLog(state)


def touched(state, *entry_ids, bits=None):
    positions = [Position(1, entry_id) for entry_id in entry_ids]
    state.acknowledge(positions, None if bits is None else [[bits]] * len(positions), 0.0)


def test_nothing_is_noted_before_a_whole_state():
    state, log = made()
    touched(state, 5)
    assert not log.is_complete
    log.begin()
    assert log.is_complete
    assert not log.take().individual_deleted_messages


def test_changes_are_what_the_state_says_by_now():
    state, log = made()
    log.begin()
    touched(state, 5, 9)
    touched(state, 7, bits=0b110)
    touched(state, 9, bits=0b111)  # whole already
    touched(state, 0)
    changes = log.take()
    assert changes.mark_delete_position == Position(1, 0)
    assert str(changes.individual_deleted_messages) == "[(1:4..1:5],(1:8..1:9]]"
    assert dict(changes.batch_deleted_indexes.items()) == {Position(1, 7): 0b110}
    touched(state, 7, bits=0b001)
    changes = log.take()
    assert str(changes.individual_deleted_messages) == "[(1:6..1:7]]"
    assert not changes.batch_deleted_indexes


def test_a_reset_takes_back_what_was_touched_before():
    state, log = made()
    log.begin()
    touched(state, 5)
    state.become(state.reset_target(Position(1, 0), None), 0.0)
    assert not log.take().individual_deleted_messages


def test_it_is_long_after_many_entries_or_bytes():
    _, log = made()
    log.begin()
    log.stored(100 << 20)
    log.written(30 << 20)
    assert not log.is_long
    log.written(30 << 20)
    assert log.is_long
    log.begin()
    assert not log.is_long
    for _ in range(change_log.MAX_ENTRIES):
        log.written(1)
    assert log.is_long


def test_too_many_positions_end_it(monkeypatch):
    monkeypatch.setattr(change_log, "MAX_NOTED", 3)
    state, log = made()
    log.begin()
    touched(state, 2, 4, 6)
    assert log.is_complete
    touched(state, 8)
    assert not log.is_complete
