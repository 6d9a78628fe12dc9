from __future__ import annotations

import pytest

from pulsar_py.client.acknowledging.negative_acks import NegativeAcksTracker
from pulsar_py.client.acknowledging.redelivery_backoff import MultiplierRedeliveryBackoff


def test_an_entry_is_due_after_the_delay_and_a_little() -> None:
    tracker = NegativeAcksTracker(60)
    tracker.add((1, 5), 0, now=100.25)
    due = tracker.next_due()
    assert due is not None
    assert 160.25 <= due <= 161.25
    assert tracker.take_due(due - 0.5) == []
    assert tracker.take_due(due) == [(1, 5)]
    assert len(tracker) == 0
    assert tracker.next_due() is None


def test_entries_refused_within_a_moment_are_due_together_in_order() -> None:
    tracker = NegativeAcksTracker(10)
    for entry_id, now in ((9, 0.30), (2, 0.35), (5, 0.99)):
        tracker.add((1, entry_id), 0, now)
    assert tracker.take_due(11.0) == [(1, 2), (1, 5), (1, 9)]


def test_refusing_again_counts_from_then_on() -> None:
    tracker = NegativeAcksTracker(10)
    tracker.add((1, 5), 0, now=0)
    tracker.add((1, 5), 0, now=5)
    assert len(tracker) == 1
    assert tracker.take_due(12) == []
    assert tracker.take_due(15) == [(1, 5)]


def test_what_is_acknowledged_after_all_is_not_asked_for() -> None:
    tracker = NegativeAcksTracker(10)
    tracker.add((1, 5), 0, now=0)
    tracker.remove((1, 5))
    tracker.remove((1, 6))
    assert tracker.next_due() is None
    assert tracker.take_due(100) == []


def test_the_backoff_chooses_by_the_redelivery_count() -> None:
    tracker = NegativeAcksTracker(60, MultiplierRedeliveryBackoff(1000, 60_000, 2))
    tracker.add((1, 0), 0, now=0)
    tracker.add((1, 1), 3, now=0)
    assert tracker.next_due() == pytest.approx(1)
    assert tracker.take_due(1) == [(1, 0)]
    assert tracker.next_due() == pytest.approx(8)


def test_clear_forgets_all() -> None:
    tracker = NegativeAcksTracker(0)
    tracker.add((1, 0), 0, now=0)
    tracker.clear()
    assert tracker.next_due() is None
    assert tracker.take_due(9) == []
