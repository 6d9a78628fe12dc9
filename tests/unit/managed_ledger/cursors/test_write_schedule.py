"""WriteSchedule: the playbook `cursor/writing.txt` has the times; here is what it refuses."""

import pytest

from pulsar_py.managed_ledger.cursors.write_schedule import WriteSchedule


def test_only_the_write_under_way_can_end():
    schedule = WriteSchedule(1.0)
    schedule.changed(0.0)
    version = schedule.begin(0.1)
    with pytest.raises(AssertionError):
        schedule.finished(version + 1)
    with pytest.raises(AssertionError):
        schedule.failed(version + 1)


def test_a_change_is_written_at_the_latest_an_interval_after_it():
    schedule = WriteSchedule(1.0)
    for tick in range(1, 200):
        now = tick / 10
        schedule.changed(now)
        assert schedule.due_at() <= now + 1.0
        if (version := schedule.begin(now)) is not None:
            schedule.finished(version)


def test_what_changes_during_a_write_stays_dirty():
    schedule = WriteSchedule(1.0)
    schedule.changed(0.0)
    version = schedule.begin(0.1)
    assert schedule.is_in_flight
    schedule.changed(0.2)
    schedule.finished(version)
    assert schedule.is_dirty
    assert schedule.due_at() == 1.1
    assert schedule.begin(0.3) is None
    forced = schedule.begin(0.3, is_forced=True)
    schedule.finished(forced)
    assert not schedule.is_dirty
    assert schedule.begin(9.0, is_forced=True) is None


def test_another_interval_counts_for_what_waits_already():
    schedule = WriteSchedule(100.0)
    schedule.changed(0.0)
    schedule.finished(schedule.begin(10.0))
    schedule.changed(11.0)
    assert schedule.due_at() == 110.0
    schedule.set_interval(2.0)
    assert schedule.due_at() == 12.0
