"""Doing the same to many things at once."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pulsar_py.common.loops.concurrently import concurrently, each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.testing.clock import run_virtual


async def _half(number: int) -> int:
    await asyncio.sleep(10 - number)
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


def test_results_and_errors_come_in_order() -> None:
    results = run_virtual(concurrently(_half, [4, 3, 2]))
    assert (results[0], results[2]) == (2, 1)
    assert isinstance(results[1], ValueError)


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    ended = []

    async def work(number: int) -> int:
        try:
            return await _half(number)
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="5 is odd"):
        run_virtual(each_result(work, [5, 2, 1]))
    assert sorted(ended) == [1, 2, 5]


def test_only_so_many_run_at_once() -> None:
    running = most = 0

    async def work(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    run_virtual(concurrently(work, range(10), at_once=3))
    assert most == 3


def test_others_have_turns_while_nothing_has_to_be_waited_for() -> None:
    done = []

    async def work(number: int) -> None:
        done.append(number)

    async def watched() -> list[int]:
        tasks = TaskOwner("test")
        task = tasks.spawn(each_result(work, range(10), at_once=3), "work")
        counts = []
        while not task.done():
            await asyncio.sleep(0)
            counts.append(len(done))
        await tasks.close()
        return counts

    counts = run_virtual(watched())
    assert max(after - before for before, after in pairwise([0, *counts])) <= 2 * 3
    assert sorted(done) == list(range(10))


def test_cancelling_waits_for_all() -> None:
    ended = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(number)

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await concurrently(work, [1, 2])

    run_virtual(cancelled())
    assert sorted(ended) == [1, 2]
