"""WriteFigures: groups into buckets, compared with each entry counted by itself."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from pulsar_py.managed_ledger.log.write_figures import (
    LATENCY_BOUNDS_SECONDS,
    NOTHING_WRITTEN,
    SIZE_BOUNDS_BYTES,
    WriteFigures,
)


def bucketed(values: Sequence[float], bounds: Sequence[float]) -> list[int]:
    """How many values are in each bucket, counted value by value."""
    edges = [float("-inf"), *bounds, float("inf")]
    return [sum(low < value <= high for value in values) for low, high in itertools.pairwise(edges)]


def test_nothing_written_is_shared() -> None:
    figures = WriteFigures()
    assert figures.roll() is NOTHING_WRITTEN
    figures.add([b"x"], [1.0], 1.0)
    assert figures.roll() is not NOTHING_WRITTEN
    assert figures.roll() is NOTHING_WRITTEN


def test_a_value_at_a_bound_is_below_it() -> None:
    figures = WriteFigures()
    figures.add([bytes(128), bytes(129)], [0.0, 0.0], 0.0)
    assert figures.roll().sizes[:3] == (1, 1, 0)


def test_groups_count_as_each_of_their_entries() -> None:
    chance = random.Random(5)
    for _ in range(50):
        figures, sizes, latencies, ledger_latencies = WriteFigures(), [], [], []
        now = 1000.0
        for _ in range(chance.randrange(1, 6)):
            now += 10
            count = chance.randrange(1, 8)
            group = [chance.choice((5, 128, 600, 5000, 2_000_000)) for _ in range(count)]
            if chance.random() < 0.5:
                group = [group[0]] * count
            takes = sorted((chance.choice((0.0001, 0.003, 2.0)) for _ in group), reverse=True)
            pushed = [now - each for each in takes]
            waits = [chance.choice((0.0, 0.04)) for _ in range(chance.randrange(count + 1))]
            since = [began - wait for began, wait in zip(pushed, waits, strict=False)]
            figures.add([bytes(each) for each in group], pushed, now, since)
            sizes += group
            ledger_latencies += [now - began for began in pushed]
            latencies += [now - began for began in [*since, *pushed[len(since) :]]]
        window = figures.roll()
        assert list(window.sizes) == [
            *bucketed(sizes, SIZE_BOUNDS_BYTES),
            len(sizes),
            sum(sizes),
        ]
        for found, values in (
            (window.latencies, latencies),
            (window.ledger_latencies, ledger_latencies),
        ):
            assert list(found[:-1]) == [*bucketed(values, LATENCY_BOUNDS_SECONDS), len(values)]
            assert abs(found[-1] - sum(values) * 1_000_000) < 1 + len(values)
