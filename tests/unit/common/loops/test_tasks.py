"""Owned tasks."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pulsar_py.common.loops.tasks import TaskOwner


async def test_a_task_runs_and_is_named_after_its_owner() -> None:
    owner = TaskOwner("topic")
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    task = owner.spawn(work(), "work")
    await owner.drain()

    assert done.is_set()
    assert task.get_name() == "topic/work"


async def test_draining_waits_for_tasks_that_tasks_start() -> None:
    owner = TaskOwner("topic")
    order: list[str] = []

    async def second() -> None:
        await asyncio.sleep(0)
        order.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        owner.spawn(second(), "second")
        order.append("first")

    owner.spawn(first(), "first")
    await owner.drain()

    assert order == ["first", "second"]


async def test_closing_cancels_what_runs_and_waits_for_it() -> None:
    owner = TaskOwner("topic")
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    owner.spawn(work(), "work")
    await asyncio.sleep(0)
    await owner.close()

    assert ended.is_set()
    await owner.close()


async def test_a_closed_owner_starts_nothing() -> None:
    owner = TaskOwner("topic")
    await owner.close()

    async def work() -> None:
        raise AssertionError

    with pytest.raises(RuntimeError, match="topic: closed, can't start work"):
        owner.spawn(work(), "work")


async def test_a_task_may_close_its_own_owner() -> None:
    owner = TaskOwner("topic")
    task = owner.spawn(owner.close(), "close")

    await task

    assert not task.cancelled()


async def test_a_failure_nobody_awaits_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    owner = TaskOwner("topic")

    async def work() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR):
        owner.spawn(work(), "work")
        await owner.drain()
        await asyncio.sleep(0)

    (record,) = caplog.records
    assert record.getMessage() == "task failed"
    assert record.exc_info is not None


async def test_an_abandoned_owner_cancels_without_waiting_and_starts_nothing() -> None:
    owner = TaskOwner("test")
    task = owner.spawn(asyncio.sleep(1000), "long")

    owner.abandon()

    with pytest.raises(RuntimeError, match="closed"):
        owner.spawn(asyncio.sleep(0), "more")
    await owner.close()
    assert task.cancelled()


async def test_tasks_are_cancelled_in_the_order_of_their_start() -> None:
    owner = TaskOwner("test")
    ended: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    for number in range(50):
        owner.spawn(wait(number), "waiting")
    await asyncio.sleep(0)
    await owner.close()

    assert ended == list(range(50))
