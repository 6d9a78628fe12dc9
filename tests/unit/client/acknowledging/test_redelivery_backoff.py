from __future__ import annotations

import pytest

from pulsar_py.client.acknowledging.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsar_py.common.errors import InvalidConfigurationError


def test_delays_grow_up_to_the_maximum() -> None:
    backoff = MultiplierRedeliveryBackoff(min_delay_millis=100, max_delay_millis=1000, multiplier=3)
    delays = [backoff.next_delay_millis(count) for count in (0, 1, 2, 3, 1_000_000)]
    assert delays == [100, 300, 900, 1000, 1000]


def test_a_multiplier_of_one_stays() -> None:
    backoff = MultiplierRedeliveryBackoff(multiplier=1)
    assert backoff.next_delay_millis(10_000_000) == 1000


def test_bounds_are_checked() -> None:
    with pytest.raises(InvalidConfigurationError, match="min_delay_millis: 0"):
        MultiplierRedeliveryBackoff(min_delay_millis=0)
    with pytest.raises(InvalidConfigurationError, match="min_delay_millis: 10"):
        MultiplierRedeliveryBackoff(min_delay_millis=10, max_delay_millis=9)
    with pytest.raises(InvalidConfigurationError, match=r"multiplier: 0\.5"):
        MultiplierRedeliveryBackoff(multiplier=0.5)
