"""How often consumers may subscribe."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.policies import SubscribeRate
from pulsar_py.server.limits.subscribe_limit import MAX_CONSUMERS, SubscribeLimit

RATE = SubscribeRate(2, 5)
ME = ("host", "name", 1)


def test_a_consumer_has_its_count_in_each_period() -> None:
    limit = SubscribeLimit()
    limit.check(RATE, ME, 0.0)
    limit.check(RATE, ME, 0.1)
    with pytest.raises(NotAllowedError):
        limit.check(RATE, ME, 0.2)
    limit.check(RATE, ("host", "name", 2), 0.2)
    limit.check(RATE, ME, 5.2)


def test_another_rate_begins_anew_and_none_is_no_limit() -> None:
    limit = SubscribeLimit()
    for _ in range(10):
        limit.check(None, ME, 0.0)
        limit.check(SubscribeRate(-1), ME, 0.0)
    limit.check(SubscribeRate(1, 5), ME, 0.0)
    with pytest.raises(NotAllowedError):
        limit.check(SubscribeRate(1, 5), ME, 0.0)
    limit.check(SubscribeRate(1, 6), ME, 0.0)


def test_the_consumers_that_are_counted_are_bounded() -> None:
    limit = SubscribeLimit()
    for number in range(MAX_CONSUMERS + 1):
        limit.check(SubscribeRate(1, 5), ("host", "name", number), 0.0)
    limit.check(SubscribeRate(1, 5), ("host", "name", 0), 0.0)
    with pytest.raises(NotAllowedError):
        limit.check(SubscribeRate(1, 5), ("host", "name", MAX_CONSUMERS), 0.0)
