"""`SubscribeLimit`: how often one consumer may subscribe to a topic (pure).

A consumer is identified by its client's host, its name and its id, as in Apache Pulsar: with
another connection or subscription it still counts as the same consumer.

Source: SubscribeRateLimiter in Pulsar's broker.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.policies import SubscribeRate
from pulsar_py.common.token_bucket import TokenBucket

MAX_CONSUMERS: Final = 10_000
"""The most consumers that are counted; beyond it the one that subscribed longest ago is forgotten,
and may subscribe as if it were new."""

Identity = tuple[str, str, int]


class SubscribeLimit:
    """Counts the subscribes of one topic's consumers."""

    def __init__(self) -> None:
        self._buckets: dict[Identity, TokenBucket] = {}  # in order of the last use
        self._rate: SubscribeRate | None = None

    def check(self, rate: SubscribeRate | None, consumer: Identity, now: float) -> None:
        """Count one SUBSCRIBE.

        Raises:
            NotAllowedError: The consumer subscribed too often within the period.
        """
        if rate != self._rate:
            self._buckets.clear()
            self._rate = rate
        if rate is None or rate.subscribes_per_consumer <= 0:
            return
        bucket = self._buckets.pop(consumer, None)
        if bucket is None:
            count = rate.subscribes_per_consumer
            period = max(rate.period_seconds, 1)
            bucket = TokenBucket(count / period, now=now, capacity=count)
        self._buckets[consumer] = bucket
        if len(self._buckets) > MAX_CONSUMERS:
            del self._buckets[next(iter(self._buckets))]
        if not bucket.try_take(1, now):
            raise NotAllowedError("Subscribe limited by subscribe rate limit per consumer.")
