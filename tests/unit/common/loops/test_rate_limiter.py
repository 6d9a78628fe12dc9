"""A limit that several spenders share, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.testing.clock import VirtualClock, run_virtual


class Spender:
    def __init__(self, limiter: RateLimiter, *, messages: int = 1, size: int = 1) -> None:
        self.limiter, self.costs = limiter, (messages, size)
        self.spent_count = 0

    def spend(self) -> None:
        while self.limiter.takes(*self.costs):
            self.limiter.charge(*self.costs)
            self.spent_count += 1
        self.limiter.wait(*self.costs, self.spend)


def test_all_get_the_same_and_together_the_rate() -> None:
    async def run(clock: VirtualClock) -> list[int]:
        limiter = RateLimiter(clock)
        limiter.set_limits(30, 0)
        spenders = [Spender(limiter) for _ in range(3)]
        for each in spenders:
            each.spend()
        await clock.sleep(20)
        return [each.spent_count for each in spenders]

    counts = run_virtual(run(VirtualClock()))
    assert sum(counts) == pytest.approx(30 * 21, abs=1)
    assert max(counts) - min(counts) <= 31  # the first one had the burst


def test_what_costs_more_than_a_second_is_paid_back() -> None:
    async def run(clock: VirtualClock) -> int:
        limiter = RateLimiter(clock)
        limiter.set_limits(0, 10)
        large = Spender(limiter, size=40)
        large.spend()
        await clock.sleep(40)
        return large.spent_count

    assert run_virtual(run(VirtualClock())) == 11


def test_no_limit_takes_everything_and_lets_go_who_waits() -> None:
    async def run(clock: VirtualClock) -> None:
        limiter = RateLimiter(clock)
        assert limiter.takes(10**9, 10**9)
        assert not limiter.is_limited
        assert limiter.available() == (float("inf"), float("inf"))
        limiter.set_limits(1, 1)
        assert limiter.is_limited
        limiter.charge(100, 100)
        woken: list[str] = []
        first, second = (lambda: woken.append("first")), (lambda: woken.append("second"))
        limiter.wait(1, 1, first)
        limiter.wait(1, 1, first)
        limiter.wait(1, 1, second)
        assert limiter.waits_count == 2
        limiter.forget(second)
        await asyncio.sleep(0)
        assert woken == []
        limiter.set_limits(0, -1)
        assert woken == ["first"]

    run_virtual(run(VirtualClock()))


def test_a_higher_limit_counts_at_once_for_a_debt_of_the_lower_one() -> None:
    async def run(clock: VirtualClock) -> None:
        limiter = RateLimiter(clock)
        limiter.set_limits(0, 100)
        limiter.charge(0, 100_000)  # a quarter of an hour
        woken: list[float] = []
        limiter.wait(1, 100_000, lambda: woken.append(clock.monotonic_seconds()))
        await clock.sleep(1)
        limiter.set_limits(0, 100_000_000)
        await clock.sleep(0.1)
        assert len(woken) == 1

    run_virtual(run(VirtualClock()))


def test_nobody_overtakes_those_who_wait() -> None:
    async def run(clock: VirtualClock) -> None:
        limiter = RateLimiter(clock)
        limiter.set_limits(10, 0)
        limiter.charge(5, 0)
        limiter.wait(8, 0, lambda: None)
        assert not limiter.takes(1, 0)
        await clock.sleep(1)
        assert limiter.takes(1, 0)

    run_virtual(run(VirtualClock()))
