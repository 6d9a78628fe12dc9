"""Paging: what is written together, what may leave memory, and how it comes back."""

import pytest

from pulsar_py.common.ack_set import MAX_WORDS
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.paging import (
    fits_one_entry,
    leave_memory,
    load,
    may_leave_memory,
    track_pages,
)
from pulsar_py.managed_ledger.cursors.segments import decode_entry, encode_segment, segment_keys
from pulsar_py.managed_ledger.cursors.state import CursorState
from tests.playbooks.ledger_player import ledgers_from

HALF = [0b01]  # an ack set: the second index of a batch is acknowledged
OTHER_HALF = [0b10]


def cursor_with(*acknowledged):
    """A cursor on ledgers 5, 7 and 9, ten entries each, none of which waits for a write."""
    cursor = CursorState(ledgers_from(("5=10", "7=10", "9=10+")), Position(5, -1))
    cursor.acknowledge([Position.parse(each) for each in acknowledged], None, 0.0)
    return cursor


def stored_segments(cursor, ledger_id):
    """The ledger's segments, as a save would write them."""
    found = [
        decode_entry(encode_segment(cursor, key)[0])
        for key in segment_keys(cursor)
        if key.ledger_id == ledger_id
    ]
    track_pages(cursor)
    cursor.pages.dirty.clear()
    cursor.persisted(cursor.changes_due(0.0, is_forced=True))
    return found


def test_few_ranges_fit_one_entry_however_many_entries():
    cursor = cursor_with("7:1", "7:2", "7:3", "7:5", "9:1")
    assert fits_one_entry(cursor, 3)
    assert not fits_one_entry(cursor, 2)


def test_batches_count_beside_ranges():
    cursor = cursor_with("7:1", "7:2", "9:1")
    cursor.acknowledge([Position(7, 4), Position(7, 6)], [HALF, HALF], 0.0)
    assert fits_one_entry(cursor, 4)
    assert not fits_one_entry(cursor, 3)
    assert not fits_one_entry(cursor, 1)


def test_what_is_in_segments_stays_there_until_it_is_much_smaller():
    cursor = cursor_with("7:1", "7:2", "7:3", "7:4")
    track_pages(cursor)
    assert len(cursor.pages.dirty) == 1
    assert not fits_one_entry(cursor, 7)
    assert fits_one_entry(cursor, 8)


def test_a_ledger_leaves_only_when_it_is_written_and_not_the_next_in_turn():
    cursor = cursor_with("5:1", "7:1", "9:1")
    track_pages(cursor)
    assert not may_leave_memory(cursor, 7)
    cursor.pages.dirty.clear()
    assert may_leave_memory(cursor, 7)
    assert not may_leave_memory(cursor, 5)
    cursor.read_through(5, 9)
    cursor.next_run(1, Position(9, 9))
    assert not may_leave_memory(cursor, 7)


def test_what_left_memory_still_counts_and_comes_back_as_it_was():
    cursor = cursor_with("7:1", "7:2", "9:1")
    cursor.acknowledge([Position(7, 5)], [HALF], 0.0)
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    assert not cursor.individual_deleted_messages.has_ledger(7)
    assert (cursor.backlog_count(), cursor.ranges_count(), cursor.batches_count()) == (27, 2, 1)
    assert load(cursor, 7, segments, 1.0) == []
    assert str(cursor.individual_deleted_messages) == "[(7:0..7:2],(9:0..9:1]]"
    assert cursor.batch_ack_set(Position(7, 5)) == HALF
    assert not cursor.is_dirty
    cursor.check()


def test_what_came_meanwhile_is_joined_with_what_was_stored():
    cursor = cursor_with("5:1", "7:1")
    cursor.acknowledge([Position(7, 5)], [HALF], 0.0)
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    cursor.acknowledge([Position(7, 5), Position(7, 2)], [OTHER_HALF, None], 1.0)
    assert cursor.pages.wanted == {7}
    assert load(cursor, 7, segments, 2.0) == [Position(7, 5)]
    assert str(cursor.individual_deleted_messages) == "[(5:0..5:1],(7:0..7:2],(7:4..7:5]]"
    assert not cursor.batch_deleted_indexes
    assert cursor.pages.dirty
    cursor.check()


def test_the_mark_moves_over_what_comes_back():
    cursor = cursor_with("7:0", "7:1")
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    cursor.acknowledge_cumulative(Position(5, 9), None, None, 1.0)
    assert cursor.mark_delete_position == Position(5, 9)
    load(cursor, 7, segments, 2.0)
    assert cursor.mark_delete_position == Position(7, 1)
    cursor.check()


def test_what_is_below_the_mark_by_then_is_left_out():
    cursor = cursor_with("7:1", "7:3", "7:8")
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    cursor.acknowledge_cumulative(Position(7, 4), None, None, 1.0)
    load(cursor, 7, segments, 2.0)
    assert str(cursor.individual_deleted_messages) == "[(7:7..7:8]]"
    cursor.check()


def test_batches_are_left_out_where_their_indexes_are_not_acknowledged():
    cursor = cursor_with("7:1")
    cursor.acknowledge([Position(7, 5)], [HALF], 0.0)
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    cursor.is_batch_index_ack_enabled = False
    load(cursor, 7, segments, 1.0)
    assert not cursor.batch_deleted_indexes


def test_a_corrupt_segment_leaves_a_sound_state():
    cursor = cursor_with("7:1", "9:1")
    segments = stored_segments(cursor, 7)
    leave_memory(cursor, 7)
    with pytest.raises(CorruptDataError):
        load(cursor, 7, [segments[0]._replace(data=b"?")], 1.0)
    assert not cursor.pages.cold
    cursor.check()


def test_what_is_in_memory_is_not_loaded_again():
    cursor = cursor_with("7:1")
    segments = stored_segments(cursor, 7)
    cursor.acknowledge_cumulative(Position(9, 0), None, None, 1.0)
    assert load(cursor, 7, segments, 2.0) == []
    assert not cursor.individual_deleted_messages


def test_large_bit_sets_do_not_fit_one_entry_however_few():
    cursor = cursor_with("7:1")
    largest = (1 << (64 * MAX_WORDS)) - 1
    for entry_id in range(2, 18):
        cursor.batch_deleted_indexes.put(Position(7, entry_id), largest)
    assert fits_one_entry(cursor, 100)
    cursor.batch_deleted_indexes.put(Position(7, 18), largest)
    assert not fits_one_entry(cursor, 100)
