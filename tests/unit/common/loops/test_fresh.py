from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.loops.fresh import Fresh, FreshByKey
from pulsar_py.common.loops.tasks import TaskOwner


class Work:
    """Returns the number of its run, when it may end."""

    def __init__(self) -> None:
        self.begun_count = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.begun_count += 1
        number = self.begun_count
        await self.may_end.wait()
        return number


async def test_one_run_serves_all_who_asked_while_another_one_was_under_way() -> None:
    fresh, work = Fresh[int](), Work()
    tasks = TaskOwner("test")
    first = tasks.spawn(fresh.get(work), "first")
    await asyncio.sleep(0)
    later = [tasks.spawn(fresh.get(work), f"later {number}") for number in range(100)]
    await asyncio.sleep(0)
    work.may_end.set()
    assert await first == 1, "its own run"
    assert await asyncio.gather(*later) == [2] * 100, "a run that began after they asked"
    assert fresh.runs_count == 2
    assert await fresh.get(work) == 3, "nothing is kept for those who come later"
    await tasks.close()


async def test_all_get_the_error_of_their_run() -> None:
    fresh, may_end = Fresh[int](), asyncio.Event()
    tasks = TaskOwner("test")

    async def fail() -> int:
        await may_end.wait()
        raise ValueError("no")

    asked = [tasks.spawn(fresh.get(fail), str(number)) for number in range(10)]
    await asyncio.sleep(0)
    may_end.set()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(each) for each in outcomes] == ["no"] * 10
    assert fresh.runs_count == 2
    await tasks.close()


async def test_somebody_else_runs_it_if_who_did_is_cancelled() -> None:
    fresh, work = Fresh[int](), Work()
    tasks = TaskOwner("test")
    first = tasks.spawn(fresh.get(work), "first")
    await asyncio.sleep(0)
    second = tasks.spawn(fresh.get(work), "second")
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.may_end.set()
    assert await second == 2
    await tasks.close()


async def test_keys_have_runs_of_their_own_and_are_forgotten() -> None:
    by_key, one, other = FreshByKey[str, int](), Work(), Work()
    tasks = TaskOwner("test")
    asked = [tasks.spawn(by_key.get("one", one), "one") for _ in range(3)]
    asked.append(tasks.spawn(by_key.get("other", other), "other"))
    await asyncio.sleep(0)
    one.may_end.set()
    other.may_end.set()
    assert await asyncio.gather(*asked) == [1, 2, 2, 1]
    assert (one.begun_count, other.begun_count) == (2, 1)
    await tasks.close()
    asked.clear()
    assert not by_key._of_keys
