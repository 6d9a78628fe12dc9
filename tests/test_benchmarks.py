"""What benchmarks work out of their measurements."""

from __future__ import annotations

from benchmarks.tails import under_way, worst_moments


def test_worst_moments_do_not_overlap() -> None:
    times = [(0, 10), (5, 30), (31, 35), (30, 33), (40, 45)]
    assert list(worst_moments(times, 8)) == [(5, 30), (40, 45), (31, 35)]
    assert list(worst_moments(times, 1)) == [(5, 30)]


def test_what_was_under_way_is_counted_once_and_only_within_the_moment() -> None:
    millisecond = 1_000_000
    spans = [
        ("flush", 11 * millisecond, 40 * millisecond),
        ("loop late", 5 * millisecond, 12 * millisecond),
        ("loop late", 0, 10 * millisecond),
        ("before", 0, 4 * millisecond),
        ("after", 20 * millisecond, 21 * millisecond),
    ]
    found = under_way(spans, 4 * millisecond, 20 * millisecond)
    assert found == [("flush", 9.0), ("loop late", 8.0)]
