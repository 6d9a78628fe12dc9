"""`TokenBucket`: limits a rate, with a burst (pure).

A bucket fills at a steady rate up to its capacity. `try_take` takes all tokens or none; `take`, for
callers that can only count afterwards, may overdraw the bucket, and `delay_until` tells how long to
pause so that the rate holds on average. `now` is the seconds of any clock that never goes back.

Source: AsyncTokenBucket in Pulsar's broker (publish rates allow the last message through).
"""

from __future__ import annotations


class TokenBucket:
    """One limit, such as messages or bytes a second.

    Invariant: `tokens <= capacity`; they are negative after more was taken than there was.
    """

    __slots__ = ("_capacity", "_rate_per_second", "_tokens", "_updated_at")

    def __init__(
        self, rate_per_second: float, *, now: float, capacity: float | None = None
    ) -> None:
        """Begin full, with the tokens of one second as the capacity unless one is given.

        Raises:
            ValueError: The rate is not above 0.
        """
        if rate_per_second <= 0:
            raise ValueError(f"rate_per_second={rate_per_second}: expected more than 0")
        self._rate_per_second = rate_per_second
        self._capacity = rate_per_second if capacity is None else capacity
        self._tokens = self._capacity
        # The time at which `_tokens` was computed.
        self._updated_at = now

    @property
    def rate_per_second(self) -> float:
        """Tokens that are added per second."""
        return self._rate_per_second

    @property
    def capacity(self) -> float:
        """The most tokens that it can hold."""
        return self._capacity

    def available(self, now: float) -> float:
        """Tokens that are there now; below 0 when overdrawn."""
        elapsed = now - self._updated_at
        if elapsed > 0:
            self._tokens = min(self._capacity, self._tokens + elapsed * self._rate_per_second)
            self._updated_at = now
        return self._tokens

    def try_take(self, count: float, now: float) -> bool:
        """Take `count` tokens if they are there; else take none and return False."""
        if self.available(now) < count:
            return False
        self._tokens -= count
        return True

    def take(self, count: float, now: float) -> bool:
        """Take `count` tokens even if they are not there; returns whether some are left."""
        self._tokens = self.available(now) - count
        return self._tokens > 0

    def give_back(self, count: float, now: float) -> None:
        """Add tokens that were taken and not used, at most up to the capacity."""
        self._tokens = min(self._capacity, self.available(now) + count)

    def delay_until(self, count: float, now: float) -> float:
        """Seconds until `count` tokens are there, 0.0 if they are.

        For more tokens than the capacity it is the time until the bucket is full.
        """
        missing = min(count, self._capacity) - self.available(now)
        return missing / self._rate_per_second if missing > 0 else 0.0

    def set_rate(
        self, rate_per_second: float, *, now: float, capacity: float | None = None
    ) -> None:
        """Change the limit; an overdrawn bucket stays overdrawn.

        Raises:
            ValueError: The rate is not above 0.
        """
        if rate_per_second <= 0:
            raise ValueError(f"rate_per_second={rate_per_second}: expected more than 0")
        self.available(now)
        self._rate_per_second = rate_per_second
        self._capacity = rate_per_second if capacity is None else capacity
        self._tokens = min(self._tokens, self._capacity)
