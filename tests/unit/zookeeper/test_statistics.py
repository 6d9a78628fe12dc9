from __future__ import annotations

from pulsar_py.zookeeper.statistics import LATENCY_BOUNDS_MILLIS, ZooKeeperCounters


def test_answers_are_counted_by_their_latency() -> None:
    counters = ZooKeeperCounters()
    for seconds in (0.0, 0.001, 0.0011, 0.05, 10.0, 11.0):
        counters.changes.answered(seconds)
    counted = counters.changes.snapshot()
    assert counted.answered_count == 6
    assert counted.latency_micros == 21_052_100
    assert counted.latency_counts == (2, 1, 0, 0, 1, 0, 0, 0, 1, 1)
    assert len(counted.latency_counts) == len(LATENCY_BOUNDS_MILLIS) + 1
    assert counters.reads.snapshot().answered_count == 0
