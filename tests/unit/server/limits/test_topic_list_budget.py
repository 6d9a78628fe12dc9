from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import TooManyRequestsError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.limits.topic_list_budget import (
    FIRST_GUESS_BYTES,
    TopicListBudget,
    TopicListLimits,
)
from pulsar_py.testing.clock import VirtualClock

TASKS = TaskOwner("test")


def budget_of(clock: VirtualClock, lists: float, *, max_waiting: int = 10) -> TopicListBudget:
    return TopicListBudget(
        clock,
        TopicListLimits(
            max_bytes=int(lists * FIRST_GUESS_BYTES), max_waiting=max_waiting, max_wait_seconds=25.0
        ),
    )


async def test_what_does_not_fit_waits_in_line(virtual_clock: VirtualClock) -> None:
    budget = budget_of(virtual_clock, 2)
    first, second = await budget.acquire("a/b"), await budget.acquire("a/b")
    order: list[int] = []

    async def take(number: int) -> None:
        await budget.acquire("a/b")
        order.append(number)

    tasks = [TASKS.spawn(take(number), "test") for number in range(3)]
    await virtual_clock.sleep(1)
    assert order == []
    budget.give_back(first)
    await virtual_clock.sleep(1)
    assert order == [0]
    budget.give_back(second)
    budget.give_back(FIRST_GUESS_BYTES)
    await virtual_clock.sleep(1)
    assert order == [0, 1, 2]
    await asyncio.gather(*tasks)
    assert budget.in_flight_bytes == 2 * FIRST_GUESS_BYTES


async def test_a_list_larger_than_all_goes_alone(virtual_clock: VirtualClock) -> None:
    budget = budget_of(virtual_clock, 0.5)
    first = await budget.acquire("a/b")
    waiting = TASKS.spawn(budget.acquire("a/b"), "test")
    await virtual_clock.sleep(1)
    assert not waiting.done()
    budget.give_back(first)
    assert await waiting == FIRST_GUESS_BYTES


async def test_the_next_list_is_taken_for_as_large_as_the_last(virtual_clock: VirtualClock) -> None:
    budget = budget_of(virtual_clock, 4)
    given = budget.correct("a/b", await budget.acquire("a/b"), 3 * FIRST_GUESS_BYTES)
    assert budget.in_flight_bytes == given == 3 * FIRST_GUESS_BYTES
    waiting = TASKS.spawn(budget.acquire("a/b"), "test")
    await virtual_clock.sleep(1)
    assert not waiting.done()
    budget.give_back(given)
    assert await waiting == 3 * FIRST_GUESS_BYTES


async def test_nobody_waits_for_ever_nor_in_an_endless_line(virtual_clock: VirtualClock) -> None:
    budget = budget_of(virtual_clock, 1, max_waiting=1)
    held = await budget.acquire("a/b")
    waiting = TASKS.spawn(budget.acquire("a/b"), "test")
    await virtual_clock.sleep(1)
    with pytest.raises(TooManyRequestsError):
        await budget.acquire("a/b")
    await virtual_clock.sleep(25)
    with pytest.raises(TooManyRequestsError):
        await waiting
    budget.give_back(held)
    assert budget.in_flight_bytes == 0
    assert await budget.acquire("a/b") == held


async def test_who_is_cancelled_keeps_nothing(virtual_clock: VirtualClock) -> None:
    budget = budget_of(virtual_clock, 1)
    held = await budget.acquire("a/b")
    waiting, admitted = (TASKS.spawn(budget.acquire("a/b"), "test") for _ in range(2))
    await virtual_clock.sleep(1)
    waiting.cancel()
    await virtual_clock.sleep(1)
    budget.give_back(held)  # the second one is admitted, and cancelled before it knows
    admitted.cancel()
    await virtual_clock.sleep(1)
    assert admitted.cancelled()
    assert budget.in_flight_bytes == 0
