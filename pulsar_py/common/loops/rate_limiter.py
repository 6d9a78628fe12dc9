"""`RateLimiter`: one limit of messages and bytes a second, with a queue of those that wait for it.

Whoever spends asks `takes`, and calls `charge` with what it spent; if there is too little now it
calls `wait`, and is called back, first come, first served, once there is enough. One timer serves
all that wait. A limiter without limits takes everything at once.

What always holds: no more than one second's worth is ever saved up, so that a burst from idle is
not larger. What costs more than that is taken once a whole second's worth is there; the debt is
waited for afterwards, so that the rate holds on average.

Source: AsyncTokenBucket, DispatchRateLimiter, PublishRateLimiter in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.token_bucket import TokenBucket

ROUNDING: Final = 1e-6
"""Tokens that may be missing: times are floats."""

SHORTEST_WAIT_SECONDS: Final = 0.001
"""The shortest timer; what gathers meanwhile is released together."""


class RateLimiter:
    """A limit that some spenders share; it lives as long as they."""

    __slots__ = (
        "_bytes",
        "_clock",
        "_is_serving",
        "_limits",
        "_messages",
        "_timer",
        "_waiting",
        "scope",
        "waits_count",
    )

    def __init__(self, clock: Clock, scope: str = "") -> None:
        """`scope` says whose limit it is, for people."""
        self.scope = scope
        self._clock = clock
        self._limits = (0.0, 0.0)
        self._messages: TokenBucket | None = None
        self._bytes: TokenBucket | None = None
        self._waiting: dict[Callable[[], None], tuple[int, int]] = {}  # what each needs
        self._timer: asyncio.TimerHandle | None = None  # set while somebody waits
        self._is_serving = False  # while the one in front, which no longer waits, is called
        self.waits_count = 0  # how often somebody had to wait

    @property
    def limits(self) -> tuple[float, float]:
        """Messages and bytes a second; 0 where there is no limit."""
        return self._limits

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._messages is not None or self._bytes is not None

    def set_limits(self, messages_per_second: float, bytes_per_second: float) -> None:
        """Change the limits; one of 0 or less is off. A debt stays."""
        limits = (max(messages_per_second, 0.0), max(bytes_per_second, 0.0))
        if limits == self._limits:
            return
        self._limits = limits
        now = self._clock.monotonic_seconds()
        self._messages = _changed(self._messages, limits[0], now)
        self._bytes = _changed(self._bytes, limits[1], now)
        if self._timer is not None:  # set for the former limits, under which a debt may last days
            self._timer.cancel()
            self._timer = None
        self._release()

    def takes(self, messages_count: int, size_bytes: int) -> bool:
        """Whether so much may be spent now; nobody overtakes those that wait."""
        if self._waiting and not self._is_serving:
            return False
        return self._has(messages_count, size_bytes)

    def _has(self, messages_count: int, size_bytes: int) -> bool:
        now = self._clock.monotonic_seconds()
        for bucket, count in ((self._messages, messages_count), (self._bytes, size_bytes)):
            if bucket is not None:
                needed = min(count, bucket.capacity)
                if bucket.available(now) < needed - ROUNDING:
                    return False
        return True

    def available(self) -> tuple[float, float]:
        """The messages and bytes that may be spent now; infinite where there is no limit."""
        now = self._clock.monotonic_seconds()
        messages, size = self._messages, self._bytes
        return (
            float("inf") if messages is None else messages.available(now) + ROUNDING,
            float("inf") if size is None else size.available(now) + ROUNDING,
        )

    def seconds_until(self, messages_count: int, size_bytes: int) -> float:
        """How long until so much may be spent; 0.0 if it may now."""
        now = self._clock.monotonic_seconds()
        delay = 0.0
        if self._messages is not None:
            delay = self._messages.delay_until(messages_count, now)
        if self._bytes is not None:
            delay = max(delay, self._bytes.delay_until(size_bytes, now))
        return delay

    def charge(self, messages_count: int, size_bytes: int) -> None:
        """Count what was spent, even if it is more than there was."""
        now = self._clock.monotonic_seconds()
        if self._messages is not None:
            self._messages.take(messages_count, now)
        if self._bytes is not None:
            self._bytes.take(size_bytes, now)

    def give_back(self, messages_count: int, size_bytes: int) -> None:
        """Undo a charge for what was not spent after all; who waits has to wait less."""
        now = self._clock.monotonic_seconds()
        if self._messages is not None:
            self._messages.give_back(messages_count, now)
        if self._bytes is not None:
            self._bytes.give_back(size_bytes, now)
        if self._timer is not None:
            self._timer.cancel()
            self._arm()

    def wait(self, messages_count: int, size_bytes: int, on_ready: Callable[[], None]) -> bool:
        """Call `on_ready` once so much may be spent; False, without effect, if it waits already."""
        if on_ready in self._waiting:
            return False
        self.waits_count += 1
        self._waiting[on_ready] = (messages_count, size_bytes)
        if self._timer is None:
            self._arm()
        return True

    def forget(self, on_ready: Callable[[], None]) -> None:
        """Do not call this one any more."""
        self._waiting.pop(on_ready, None)

    def _arm(self) -> None:
        delay = self.seconds_until(*next(iter(self._waiting.values())))
        delay = max(delay, SHORTEST_WAIT_SECONDS)
        self._timer = self._clock.call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._release()

    def _release(self) -> None:
        """Call back those in front for which there is enough."""
        turns = len(self._waiting)  # who waits again is served after the others
        while self._waiting and turns:
            on_ready = next(iter(self._waiting))
            if not self._has(*self._waiting[on_ready]):
                break
            del self._waiting[on_ready]
            turns -= 1
            self._is_serving = True
            try:
                on_ready()
            finally:
                self._is_serving = False
        if self._waiting and self._timer is None:
            self._arm()


def _changed(bucket: TokenBucket | None, rate: float, now: float) -> TokenBucket | None:
    if rate <= 0:
        return None
    if bucket is None:
        return TokenBucket(rate, now=now)
    bucket.set_rate(rate, now=now)
    return bucket
