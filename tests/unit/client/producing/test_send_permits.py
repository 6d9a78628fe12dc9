"""Permits: counted, waited for in order, given back when a wait is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.producing.send_permits import SendPermits
from pulsar_py.common.errors import AlreadyClosedError


def test_no_limit_takes_everything() -> None:
    permits = SendPermits(0)
    assert all(permits.try_take() for _ in range(1000))


def test_the_limit_is_the_last_one() -> None:
    permits = SendPermits(2)
    assert [permits.try_take() for _ in range(3)] == [True, True, False]
    permits.give_back(1)
    assert permits.try_take()


async def test_waiters_come_in_order_and_are_not_overtaken() -> None:
    permits = SendPermits(1)
    await permits.take()
    order: list[int] = []

    async def take(number: int) -> None:
        await permits.take()
        order.append(number)

    tasks = [asyncio.get_running_loop().create_task(take(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert permits.waiters_count == 3
    assert not permits.try_take()
    for _ in range(3):
        permits.give_back(1)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2]
    assert permits.used == 1


@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_cancelled_wait_takes_nothing(*, is_granted: bool) -> None:
    permits = SendPermits(1)
    await permits.take()
    task = asyncio.get_running_loop().create_task(permits.take())
    await asyncio.sleep(0)
    if is_granted:
        permits.give_back(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert permits.used == (0 if is_granted else 1)
    assert permits.waiters_count == 0


async def test_a_higher_limit_lets_waiters_go_on() -> None:
    permits = SendPermits(1)
    await permits.take()
    task = asyncio.get_running_loop().create_task(permits.take())
    await asyncio.sleep(0)
    permits.set_limit(2)
    await task
    assert permits.used == 2


async def test_waiters_fail_when_nothing_comes_any_more() -> None:
    permits = SendPermits(1)
    await permits.take()
    task = asyncio.get_running_loop().create_task(permits.take())
    await asyncio.sleep(0)
    permits.fail_waiters(AlreadyClosedError("closed"))
    with pytest.raises(AlreadyClosedError):
        await task
    assert permits.used == 1


async def test_who_watches_is_called_when_permits_come_back() -> None:
    permits = SendPermits(2)
    used = []
    await permits.take()
    await permits.take()
    permits.give_back(1)
    permits.on_given_back = lambda: used.append(permits.used)
    permits.give_back(1)
    assert used == [0]
