"""What a run says of itself."""

from __future__ import annotations

import json

import pytest

from pulsar_py.cli.perf.meter import Meter


def test_a_line_has_what_came_since_the_one_before() -> None:
    meter = Meter("produced", 0.0)
    for _ in range(100):
        meter.add(1250, 0.002)
    assert meter.line(10.0) == (
        "Throughput produced: 100 msg --- 10.000 msg/s --- 0.100 Mbit/s --- Latency: mean: 2.000 ms "
        "- med: 2.000 - 95pct: 2.000 - 99pct: 2.000 - 99.9pct: 2.000 - 99.99pct: 2.000 - Max: 2.000"
    )
    assert meter.line(20.0) == "Throughput produced: 100 msg --- 0.000 msg/s --- 0.000 Mbit/s"
    meter.add(1250)
    assert meter.line(30.0).startswith("Throughput produced: 101 msg --- 0.100 msg/s")
    assert meter.count == 101
    assert meter.summary(101.0).startswith(
        "Aggregated throughput produced: 101 msg --- 1.000 msg/s --- 0.010 Mbit/s --- Latency: "
    )


def test_no_time_at_all_is_no_error() -> None:
    assert Meter("read", 5.0).summary(5.0).startswith("Aggregated throughput read: 0 msg")


def test_a_line_of_json_has_the_same_figures() -> None:
    meter = Meter("produced", 0.0, is_json=True)
    for _ in range(100):
        meter.add(1250, 0.002)
    found = json.loads(meter.line(10.0))
    latency = found.pop("latencyMillis")
    assert found == {
        "kind": "interval",
        "what": "produced",
        "messages": 100,
        "seconds": 10.0,
        "messagesPerSecond": 10.0,
        "bytesPerSecond": 12500.0,
    }
    assert (latency["mean"], latency["99pct"], latency["max"]) == (2.0, 2.0, 2.0)
    assert "latencyMillis" not in json.loads(meter.line(20.0))
    assert json.loads(meter.summary(20.0))["kind"] == "all"


def test_a_histogram_has_each_percentile() -> None:
    meter = Meter("produced", 0.0)
    assert meter.histogram() == "percentile,millis\n"
    for number in range(1, 101):
        meter.add(1, number / 1000)
    lines = dict(line.split(",") for line in meter.histogram().splitlines()[1:])
    assert float(lines["50"]) == pytest.approx(50, rel=0.15)
    assert float(lines["99"]) == pytest.approx(99, rel=0.15)
    assert float(lines["100"]) == 100
    values = [float(each) for each in lines.values()]
    assert values == sorted(values)
