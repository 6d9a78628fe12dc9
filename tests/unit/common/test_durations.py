"""Counts of durations."""

from __future__ import annotations

from pulsar_py.common.durations import BOUNDS_SECONDS, Durations


def test_buckets_are_cumulative_and_a_bound_belongs_to_its_bucket() -> None:
    durations = Durations()
    for seconds in (0.001, 0.0011, 99.0, -1.0):
        durations.add(seconds)
    found = {labels.get("le", name): value for name, labels, value in durations.figures("d")}
    assert found["0.0005"] == 1
    assert found["0.001"] == 2
    assert found["0.0025"] == found["10"] == 3
    assert found["+Inf"] == found["d_count"] == durations.count == 4
    assert found["d_sum"] == 0.001 + 0.0011 + 99.0
    assert list(BOUNDS_SECONDS) == sorted(BOUNDS_SECONDS)
