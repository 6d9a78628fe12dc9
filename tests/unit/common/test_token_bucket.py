"""Token buckets."""

from __future__ import annotations

import pytest

from pulsar_py.common.token_bucket import TokenBucket


def test_a_bucket_begins_full_and_holds_one_second() -> None:
    bucket = TokenBucket(10, now=100.0)

    assert bucket.try_take(10, 100.0)
    assert not bucket.try_take(1, 100.0)


def test_it_fills_at_its_rate_up_to_its_capacity() -> None:
    bucket = TokenBucket(10, now=0.0)
    bucket.take(10, 0.0)

    assert bucket.available(0.5) == 5
    assert bucket.available(99.0) == 10


def test_taking_may_overdraw_and_the_delay_makes_up_for_it() -> None:
    bucket = TokenBucket(10, now=0.0)

    assert not bucket.take(25, 0.0)
    assert bucket.available(0.0) == -15
    assert bucket.delay_until(1, 0.0) == pytest.approx(1.6)
    assert bucket.delay_until(1, 1.6) == 0.0


def test_more_than_the_capacity_waits_for_a_full_bucket() -> None:
    bucket = TokenBucket(10, now=0.0)
    bucket.take(10, 0.0)

    assert bucket.delay_until(1000, 0.0) == pytest.approx(1.0)


def test_refusing_takes_nothing() -> None:
    bucket = TokenBucket(10, now=0.0)

    assert not bucket.try_take(11, 0.0)
    assert bucket.available(0.0) == 10


def test_time_that_stands_still_or_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10, now=5.0)
    bucket.take(10, 5.0)

    assert bucket.available(4.0) == 0


def test_a_new_rate_counts_from_then_on() -> None:
    bucket = TokenBucket(10, now=0.0)
    bucket.take(10, 0.0)
    bucket.set_rate(100, now=0.1, capacity=50)

    assert bucket.available(0.1) == pytest.approx(1)
    assert bucket.available(0.2) == pytest.approx(11)
    assert bucket.available(9) == 50
    assert (bucket.rate_per_second, bucket.capacity) == (100, 50)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        TokenBucket(rate, now=0.0)
    with pytest.raises(ValueError, match="rate"):
        TokenBucket(1, now=0.0).set_rate(rate, now=0.0)
