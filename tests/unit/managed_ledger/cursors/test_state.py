"""CursorState: playbooks and a naive model have the behaviour; here is what needs neither."""

from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.cursors.state import CursorState, ReadRun
from tests.playbooks.ledger_player import ledgers_from


def cursor_on(*words, mark_delete="5:-1"):
    return CursorState(ledgers_from(words), Position.parse(mark_delete))


def test_a_run_says_whether_entries_have_to_be_looked_at():
    cursor = cursor_on("5=3", "7=3+")
    assert cursor.next_run(100, LATEST) == ReadRun(5, 0, 2, has_acknowledged=False)
    cursor.acknowledge([Position(5, 1)], None, 0.0)
    assert cursor.next_run(100, LATEST) == ReadRun(5, 0, 2, has_acknowledged=True)
    assert cursor.next_run(2, LATEST) == ReadRun(5, 0, 1, has_acknowledged=True)


def test_a_forced_seek_may_go_before_the_mark():
    cursor = cursor_on("5=3", "7=3+", mark_delete="7:0")
    cursor.seek(Position(5, 1), is_forced=True)
    assert cursor.next_run(9, LATEST) == ReadRun(5, 1, 2, has_acknowledged=False)


def test_moves_tell_reads_under_way():
    cursor = cursor_on("5=3+")
    before = cursor.read_generation
    cursor.rewind()
    cursor.seek(Position(5, 2))
    assert cursor.read_generation == before + 2


def test_foreign_ids_do_no_harm():
    cursor = cursor_on("5=3", "7=3+")
    strange = [Position(5, 2**40), Position(5, -7), Position(-3, 2**63), Position(6, -1)]
    cursor.acknowledge(strange, None, 0.0)
    assert not any(cursor.is_acknowledged(Position(6, each)) for each in (2**40, -(2**40)))
    assert cursor.backlog_count() == 6
    cursor.check()


def test_properties_make_it_dirty_only_when_they_change():
    cursor = cursor_on("5=3+")
    cursor.set_properties({"a": 1}, 0.0)
    assert cursor.is_dirty
    cursor.persisted(cursor.changes_due(1.0))
    cursor.set_properties({"a": 1}, 2.0)
    assert not cursor.is_dirty


def test_a_backlog_in_bytes_is_all_after_the_mark_delete_position():
    cursor = cursor_on("5=4+")
    assert cursor.backlog_bytes() == 40
    cursor.acknowledge([Position(5, 2)], None, 0.0)  # behind a hole nothing becomes free
    assert cursor.backlog_bytes() == 40
    cursor.acknowledge([Position(5, 0)], None, 0.0)
    assert cursor.backlog_bytes() == 30
    cursor.acknowledge([Position(5, 3)], None, 0.0)
    assert cursor.backlog_bytes() == 30
    cursor.acknowledge_cumulative(Position(5, 2), None, None, 0.0)
    assert cursor.backlog_bytes() == 0
