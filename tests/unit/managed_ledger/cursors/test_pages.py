"""CursorPages: notes of what changed and of what is not in memory."""

import pytest

from pulsar_py.managed_ledger.cursors.pages import ColdLedger, CursorPages


def with_cold_ledgers():
    pages = CursorPages()
    pages.track([(0, 5, 1)])
    for ledger_id in (6, 7, 9):
        pages.leave_memory(ledger_id, ColdLedger(ledger_id, 2, 1))
    return pages


def test_nothing_is_noted_until_it_tracks():
    pages = CursorPages()
    pages.put_back([(0, 5, 1)])
    assert pages.dirty is None
    assert not pages.is_clean(5)
    pages.track()
    pages.put_back([(0, 5, 1)])
    assert pages.dirty == {(0, 5, 1)}
    assert not pages.is_clean(5)
    assert pages.is_clean(6)
    pages.stop_tracking()
    assert not pages.is_tracking


def test_counts_of_cold_ledgers_stay():
    pages = with_cold_ledgers()
    assert pages.cold_entries_count == 22
    pages.touch(7)
    pages.touch(8)
    assert pages.wanted == {7}
    pages.check()
    assert pages.forget(7)
    assert not pages.forget(7)
    assert (pages.cold_entries_count, pages.wanted) == (15, set())
    pages.forget_before(9)
    assert list(pages.cold) == [9]
    pages.check()


def test_what_is_not_written_does_not_leave():
    with pytest.raises(AssertionError):
        with_cold_ledgers().leave_memory(5, ColdLedger(1, 1, 0))


def test_what_is_cold_keeps_it_tracking():
    with pytest.raises(AssertionError):
        with_cold_ledgers().stop_tracking()
