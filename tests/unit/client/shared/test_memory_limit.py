"""The limit of what a client holds."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.shared.memory_limit import MemoryLimit
from pulsar_py.testing.clock import run_virtual


def test_one_reservation_may_pass_the_limit_and_no_more() -> None:
    limit = MemoryLimit(100)

    assert limit.try_reserve(60)
    assert limit.try_reserve(60)
    assert not limit.try_reserve(1)
    limit.release(60)
    assert limit.try_reserve(1)


def test_what_is_reserved_together_may_not_pass_it() -> None:
    limit = MemoryLimit(100)

    assert limit.try_reserve_within(100)
    assert not limit.try_reserve_within(1)
    limit.release(50)
    assert not limit.try_reserve_within(51)
    assert limit.current_bytes == 50
    assert MemoryLimit(0).try_reserve_within(1 << 40)


def test_without_a_limit_bytes_are_counted_all_the_same() -> None:
    limit = MemoryLimit(0)

    assert limit.try_reserve(1 << 40)
    assert limit.current_bytes == 1 << 40


def test_releasing_twice_is_our_fault() -> None:
    with pytest.raises(AssertionError, match="released twice"):
        MemoryLimit(10).release(1)


def test_what_cannot_be_refused_is_counted() -> None:
    limit = MemoryLimit(10)
    limit.force_reserve(30)

    assert limit.current_bytes == 30
    assert not limit.try_reserve(1)


def test_waiters_go_on_in_order_and_nobody_overtakes_them() -> None:
    async def work() -> None:
        limit = MemoryLimit(10)
        assert limit.try_reserve(10)
        order: list[int] = []

        async def reserve(size: int) -> None:
            await limit.reserve(size)
            order.append(size)

        async with asyncio.TaskGroup() as group:
            for size in (10, 1, 2):
                group.create_task(reserve(size))
            await asyncio.sleep(0)
            assert limit.waiters_count == 3
            assert not limit.try_reserve(1)
            limit.release(10)
            await asyncio.sleep(1)
            assert order == [10]
            limit.release(10)
        assert order == [10, 1, 2]
        assert limit.current_bytes == 3

    run_virtual(work())


@pytest.mark.parametrize("is_granted", [False, True])
def test_a_cancelled_waiter_holds_nothing(*, is_granted: bool) -> None:
    async def work() -> None:
        limit = MemoryLimit(10)
        assert limit.try_reserve(10)
        waiter = asyncio.get_running_loop().create_task(limit.reserve(5))
        other = asyncio.get_running_loop().create_task(limit.reserve(3))
        await asyncio.sleep(0)
        if is_granted:
            limit.release(10)  # granted, but it has not run yet
        waiter.cancel()
        await asyncio.wait([waiter])
        if not is_granted:
            limit.release(10)
        await other
        assert waiter.cancelled()
        assert limit.current_bytes == 3
        assert limit.waiters_count == 0

    run_virtual(work())


def test_waiters_of_one_owner_are_failed_and_others_keep_their_turn() -> None:
    async def work() -> None:
        limit = MemoryLimit(10)
        assert limit.try_reserve(10)
        owner = object()
        spawn = asyncio.get_running_loop().create_task
        mine, cancelled = spawn(limit.reserve(5, owner)), spawn(limit.reserve(5, owner))
        other = spawn(limit.reserve(3, object()))
        await asyncio.sleep(0)
        limit.fail_waiters(owner, ValueError("closed"))
        cancelled.cancel()
        await asyncio.wait([mine, cancelled])
        with pytest.raises(ValueError, match="closed"):
            mine.result()
        assert limit.waiters_count == 1
        assert limit.current_bytes == 10
        limit.release(10)
        await other
        assert limit.current_bytes == 3

    run_virtual(work())
