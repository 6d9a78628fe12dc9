from __future__ import annotations

import pytest

from pulsar_py.server.dispatch.delayed import DelayedDeliveryTracker

NOW = 1_700_000_000_000


def tracker(*, tick_millis: int = 1000, look_ahead: int = 0) -> DelayedDeliveryTracker:
    return DelayedDeliveryTracker(tick_millis=tick_millis, look_ahead=look_ahead)


def test_what_is_due_is_not_kept_and_what_is_due_within_a_tick_is() -> None:
    assert not tracker().add((1, 0), NOW, NOW)
    assert tracker().add((1, 0), NOW + 1, NOW)


def test_entries_come_in_the_order_of_their_times_then_positions() -> None:
    delayed = tracker()
    delayed.add((1, 0), NOW + 60_000, NOW)
    delayed.add((2, 1), NOW + 5_000, NOW)
    delayed.add((1, 3), NOW + 5_000, NOW)
    assert not delayed.has_due(NOW)
    assert delayed.take_due(10, NOW + 4_999) == []
    assert delayed.take_due(10, NOW + 5_512) == [(1, 3), (2, 1)]
    assert len(delayed) == 1


def test_no_more_are_taken_than_asked_for() -> None:
    delayed = tracker()
    for entry_id in range(5):
        delayed.add((1, entry_id), NOW + 5_000, NOW)
    assert delayed.take_due(3, NOW + 9_000) == [(1, 0), (1, 1), (1, 2)]
    assert delayed.take_due(3, NOW + 9_000) == [(1, 3), (1, 4)]
    assert delayed.next_check_millis(NOW) is None


def test_the_same_entry_twice_is_kept_once() -> None:
    delayed = tracker()
    delayed.add((1, 0), NOW + 5_000, NOW)
    delayed.add((1, 0), NOW + 5_000, NOW)
    assert len(delayed) == 1


@pytest.mark.parametrize("tick_millis", [0, 1, 2, 100, 512, 1000, 8000])
@pytest.mark.parametrize("delay_millis", [1, 511, 512, 1001, 1500, 2000, 60_000])
def test_an_entry_is_due_at_its_time_or_less_than_a_tick_later(
    tick_millis: int, delay_millis: int
) -> None:
    delayed = tracker(tick_millis=tick_millis)
    assert delayed.add((1, 0), NOW + delay_millis, NOW)
    wait = delayed.next_check_millis(NOW)
    assert wait is not None
    assert delay_millis <= wait < delay_millis + max(tick_millis, 1)
    assert not delayed.has_due(NOW + wait - 1)
    assert delayed.take_due(10, NOW + wait - 1) == []
    assert delayed.has_due(NOW + wait)
    assert delayed.take_due(10, NOW + wait) == [(1, 0)]


def test_a_new_tick_groups_what_comes_from_then_on() -> None:
    delayed = tracker(tick_millis=8000)
    delayed.add((1, 0), NOW + 10_001, NOW)
    delayed.set_tick_millis(1)
    delayed.add((1, 1), NOW + 10_001, NOW)
    assert delayed.take_due(10, NOW + 10_001) == [(1, 1)]
    assert delayed.take_due(10, NOW + 18_001) == [(1, 0)]


def test_reading_pauses_when_all_delays_are_the_same_and_many_wait() -> None:
    delayed = tracker(look_ahead=3)
    for entry_id in range(3):
        delayed.add((1, entry_id), NOW + 60_000 + entry_id, NOW)
    assert delayed.is_pausing(NOW)
    assert not delayed.is_pausing(NOW + 60_512)


def test_reading_goes_on_when_delays_differ() -> None:
    delayed = tracker(look_ahead=3)
    delayed.add((1, 0), NOW + 60_000, NOW)
    delayed.add((1, 1), NOW + 5_000, NOW)
    delayed.add((1, 2), NOW + 60_000, NOW)
    assert not delayed.is_pausing(NOW)


def test_clear_starts_anew() -> None:
    delayed = tracker(look_ahead=1)
    delayed.add((1, 0), NOW + 60_000, NOW)
    delayed.clear()
    assert (len(delayed), delayed.is_pausing(NOW)) == (0, False)
