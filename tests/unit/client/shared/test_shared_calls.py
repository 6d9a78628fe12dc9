"""One attempt for all who want the same."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.shared.shared_calls import SharedCalls
from pulsar_py.common.errors import ConnectError, ConnectionClosedError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.testing.clock import run_virtual


class Counted:
    """A call that takes a second."""

    def __init__(self, error: Exception | None = None) -> None:
        self.count = 0
        self.error = error

    async def __call__(self) -> int:
        self.count += 1
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        return self.count


def test_equal_calls_at_a_time_are_one() -> None:
    async def work() -> None:
        tasks = TaskOwner("test")
        calls: SharedCalls[int] = SharedCalls(tasks)
        call = Counted()
        same = await asyncio.gather(*(calls.run("key", call) for _ in range(3)))
        assert (same, call.count) == ([1, 1, 1], 1)
        assert await calls.run("key", call) == 2
        await tasks.close()

    run_virtual(work())


def test_an_error_goes_to_all() -> None:
    async def work() -> None:
        tasks = TaskOwner("test")
        calls: SharedCalls[int] = SharedCalls(tasks)
        call = Counted(ConnectError("no"))
        results = await asyncio.gather(
            *(calls.run("key", call) for _ in range(2)), return_exceptions=True
        )
        assert [type(each) for each in results] == [ConnectError, ConnectError]
        await tasks.close()

    run_virtual(work())


def test_who_is_cancelled_takes_nothing_from_the_others() -> None:
    async def work() -> None:
        tasks = TaskOwner("test")
        calls: SharedCalls[int] = SharedCalls(tasks)
        call = Counted()
        loop = asyncio.get_running_loop()
        first = loop.create_task(calls.run("key", call))
        second = loop.create_task(calls.run("key", call))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await second == 1
        await tasks.close()

    run_virtual(work())


@pytest.mark.parametrize("ends_with_callers", [True, False])
def test_a_call_may_end_with_its_last_caller(*, ends_with_callers: bool) -> None:
    async def work() -> None:
        tasks = TaskOwner("test")
        calls: SharedCalls[int] = SharedCalls(tasks, ends_with_callers=ends_with_callers)
        call = Counted()
        loop = asyncio.get_running_loop()
        callers = [loop.create_task(calls.run("key", call)) for _ in range(2)]
        await asyncio.sleep(0.5)
        for each in callers:
            each.cancel()
        await asyncio.sleep(0)
        assert await calls.run("key", call) == (2 if ends_with_callers else 1)
        assert await calls.run("key", call) == (3 if ends_with_callers else 2)
        await tasks.close()

    run_virtual(work())


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_closed_owner_ends_calls_without_cancelling_callers(*, is_watched: bool) -> None:
    async def work() -> None:
        tasks = TaskOwner("test")
        calls: SharedCalls[int] = SharedCalls(tasks)
        caller = asyncio.get_running_loop().create_task(calls.run("key", Counted()))
        await asyncio.sleep(0.5)
        if not is_watched:
            caller.cancel()
        await tasks.close()
        if is_watched:
            with pytest.raises(ConnectionClosedError, match="key"):
                await caller
        with pytest.raises(ConnectionClosedError, match="closed"):
            await calls.run("key", Counted())

    run_virtual(work())
