from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.acknowledging.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsar_py.client.acknowledging.unacked_tracker import UnackedMessageTracker, unacked_tracker


def test_an_entry_expires_after_its_time_and_at_most_a_tick() -> None:
    tracker = UnackedMessageTracker(10, 1)
    tracker.add((1, 5), 0, now=100.4)
    assert tracker.take_expired(110.3) == []
    due = tracker.next_due()
    assert due is not None
    assert 110.4 <= due <= 111.4
    assert tracker.take_expired(due) == [(1, 5)]
    assert (1, 5) not in tracker
    assert tracker.next_due() is None


def test_what_is_acknowledged_in_time_stays_away() -> None:
    tracker = UnackedMessageTracker(10, 1)
    for entry_id in range(4):
        tracker.add((1, entry_id), 0, now=0)
    tracker.remove((1, 3))
    tracker.remove((1, 9))
    tracker.remove_until((1, 1))
    assert len(tracker) == 1
    assert tracker.take_expired(1000) == [(1, 2)]


def test_an_entry_keeps_its_first_time() -> None:
    tracker = UnackedMessageTracker(10, 1)
    tracker.add((1, 0), 0, now=0)
    tracker.add((1, 0), 0, now=9)
    assert tracker.take_expired(11) == [(1, 0)]


def test_the_backoff_chooses_by_the_redelivery_count() -> None:
    tracker = UnackedMessageTracker(0, 1, MultiplierRedeliveryBackoff(2000, 60_000, 2))
    tracker.add((1, 0), 0, now=0)
    tracker.add((1, 1), 2, now=0)
    assert tracker.take_expired(3) == [(1, 0)]
    assert tracker.take_expired(8) == []
    assert tracker.take_expired(9) == [(1, 1)]


def test_clear_forgets_all() -> None:
    tracker = UnackedMessageTracker(1, 1)
    tracker.add((1, 0), 0, now=0)
    tracker.clear()
    assert tracker.take_expired(100) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "expire", "until"]),
            st.integers(0, 9),
            st.floats(0, 5, allow_subnormal=False),
        )
    )
)
def test_the_wheel_is_like_a_list_of_deadlines(
    steps: list[tuple[str, int, float]],
) -> None:
    tracker = UnackedMessageTracker(3, 0.5)
    added_at: dict[tuple[int, int], float] = {}
    now = 0.0
    for step, entry_id, seconds in steps:
        now += seconds
        key = (0, entry_id)
        if step == "add":
            tracker.add(key, 0, now)
            added_at.setdefault(key, now)
        elif step == "remove":
            tracker.remove(key)
            added_at.pop(key, None)
        elif step == "until":
            tracker.remove_until(key)
            added_at = {each: at for each, at in added_at.items() if each > key}
        else:
            expired = tracker.take_expired(now)
            for each in expired:
                assert now - added_at.pop(each) >= 3 - 1e-5
            assert all(now - at <= 3.5 + 1e-5 for at in added_at.values())
        assert len(tracker) == len(added_at)


def test_time_outs_are_off_without_a_time_and_a_backoff() -> None:
    assert unacked_tracker(None, 1000, None) is None
    assert unacked_tracker(0, 1000, None) is None
    assert unacked_tracker(None, 1000, MultiplierRedeliveryBackoff()) is not None
    tracker = unacked_tracker(5000, 1000, None)
    assert tracker is not None
    tracker.add((1, 0), 0, now=0)
    assert tracker.next_due() == 6, "milliseconds became seconds"
