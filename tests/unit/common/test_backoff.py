"""Backoff."""

from __future__ import annotations

from random import Random

import pytest

from pulsar_py.common.backoff import Backoff


class NoChance(Random):
    """Always 0."""

    def random(self) -> float:
        return 0.0


def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(NoChance(), initial_seconds=1, maximum_seconds=5)

    assert [backoff.next_delay(0.0) for _ in range(5)] == [1, 2, 4, 5, 5]


def test_success_begins_anew() -> None:
    backoff = Backoff(NoChance(), initial_seconds=1, maximum_seconds=5)
    backoff.next_delay(0.0)
    backoff.next_delay(0.0)
    backoff.reset()

    assert backoff.next_delay(0.0) == 1


def test_chance_takes_off_at_most_a_tenth() -> None:
    backoff = Backoff(Random(1), initial_seconds=1, maximum_seconds=1)
    delays = [backoff.next_delay(0.0) for _ in range(100)]

    assert min(delays) > 0.9
    assert max(delays) <= 1
    assert len(set(delays)) > 90


def test_one_attempt_falls_on_the_deadline() -> None:
    backoff = Backoff(NoChance(), initial_seconds=1, maximum_seconds=60, mandatory_stop_seconds=10)
    now, delays = 0.0, []
    for _ in range(5):
        delay = backoff.next_delay(now)
        delays.append(delay)
        now += delay

    assert delays == [1, 2, 4, 3, 16]
    assert backoff.is_mandatory_stop_made


@pytest.mark.parametrize(("initial", "maximum"), [(0, 1), (2, 1), (-1, 1)])
def test_bounds_make_sense(initial: float, maximum: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        Backoff(Random(1), initial_seconds=initial, maximum_seconds=maximum)
