from __future__ import annotations

from dataclasses import fields

from pulsar_py.zookeeper.statistics import (
    LATENCY_BOUNDS_MILLIS,
    ZooKeeperCounters,
    ZooKeeperStatistics,
)


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


def statistics(counters: ZooKeeperCounters) -> ZooKeeperStatistics:
    counts = {
        each.name: index
        for index, each in enumerate(fields(ZooKeeperStatistics))
        if each.name.endswith(("_count", "_millis"))
    }
    return ZooKeeperStatistics(
        reads=counters.reads.snapshot(),
        changes=counters.changes.snapshot(),
        server="zoo:2181",
        session_id="0x5",
        is_session_good=True,
        **counts,
    )


def test_figures_are_all_that_is_counted() -> None:
    counters = ZooKeeperCounters()
    for seconds in (0.0005, 0.002, 20.0):
        counters.reads.answered(seconds)
    counted = statistics(counters)
    found = list(counted.figures())
    values = {name: value for name, labels, value in found if not labels}
    assert sorted(values.values()) == sorted(
        [
            1,
            1,
            *(
                getattr(counted, each.name)
                for each in fields(counted)
                if each.name.endswith(("_count", "_millis"))
            ),
        ]
    )
    buckets = [
        (labels["le"], value)
        for name, labels, value in found
        if name == "latency_ms_bucket" and labels["operation"] == "read"
    ]
    assert buckets[:2] == [("1", 1), ("3", 2)]
    assert buckets[-2:] == [("10000", 2), ("+Inf", 3)]
    assert ("latency_ms_sum", {"operation": "read"}, 20_002.5) in found
