from __future__ import annotations

from random import Random

import pytest

from pulsar_py.common.latency_histogram import LatencyHistogram


def test_percentiles_are_off_by_an_eighth_at_most() -> None:
    chance = Random(3)
    latencies = sorted(chance.expovariate(100) for _ in range(5000))
    histogram = LatencyHistogram()
    for latency in latencies:
        histogram.record(latency)

    for share in (0.5, 0.75, 0.95, 0.99, 0.999):
        exact = latencies[int(share * len(latencies))] * 1000
        assert exact * 0.98 <= histogram.percentile_millis(share) <= exact * 1.14
    assert histogram.maximum_millis == pytest.approx(latencies[-1] * 1000, abs=0.001)


@pytest.mark.parametrize("micros", [0, 1, 7, 8, 15, 16, 17, 100, 12345, 10**9])
def test_a_single_latency_is_its_own_percentile(micros: int) -> None:
    histogram = LatencyHistogram()
    histogram.record(micros / 1e6 + 1e-9, count=3)

    assert histogram.count == 3
    assert histogram.percentile_millis(0.5) == pytest.approx(micros / 1000)


def test_an_empty_histogram_says_zero() -> None:
    assert LatencyHistogram().percentile_millis(0.99) == 0
