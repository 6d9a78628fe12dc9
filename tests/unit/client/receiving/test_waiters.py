"""Waiting: first come, first woken, and no wake-up lost to a cancelled waiter."""

from __future__ import annotations

import asyncio

from pulsar_py.client.receiving.waiters import Waiters
from pulsar_py.testing.clock import run_virtual


async def _settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_who_waits_longest_is_woken_first() -> None:
    async def work() -> list[int]:
        wakeups, woken = Waiters(), list[int]()

        async def wait(number: int) -> None:
            await wakeups.wait()
            woken.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(wait(number))
            await _settle()
            assert len(wakeups) == 3
            wakeups.wake_one()
            await _settle()
            assert woken == [0]
            wakeups.wake_all()
        return woken

    assert run_virtual(work()) == [0, 1, 2]


def test_a_cancelled_waiter_passes_its_wakeup_on() -> None:
    async def work() -> None:
        wakeups = Waiters()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(wakeups.wait())
            second = group.create_task(wakeups.wait())
            await _settle()
            wakeups.wake_one()
            first.cancel()
            await _settle()
            assert first.cancelled()
            assert second.done()

    run_virtual(work())


def test_a_cancelled_waiter_is_passed_over() -> None:
    async def work() -> None:
        wakeups = Waiters()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(wakeups.wait())
            second = group.create_task(wakeups.wait())
            await _settle()
            first.cancel()
            wakeups.wake_one()
            await _settle()
            assert first.cancelled()
            assert second.done()
            assert len(wakeups) == 0

    run_virtual(work())
