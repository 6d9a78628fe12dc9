from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ServiceNotReadyError, TopicNotFoundError
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.topics.topic_loads import TopicLoads, all_or_first_error
from tests.unit.server.topics.rig import Rig


async def test_a_slow_load_times_out_but_goes_on(rig: Rig) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=1, max_concurrent_loads=10)

    async def load() -> Topic:
        await asyncio.sleep(2)
        return topic

    with pytest.raises(ServiceNotReadyError):
        await loads.load("t", load)
    assert loads.is_loading("t")
    await loads.settled("t")
    assert not loads.is_loading("t")
    await tasks.close()


async def test_loads_are_limited(rig: Rig) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=2)
    running = peak = 0

    async def load() -> Topic:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(1)
        running -= 1
        return topic

    await asyncio.gather(*(loads.load(str(n), load) for n in range(6)))
    assert peak == 2
    await tasks.close()


async def test_all_who_wait_get_the_error(rig: Rig) -> None:
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=2)

    async def load() -> Topic:
        await asyncio.sleep(1)
        raise TopicNotFoundError("t")

    outcomes = await asyncio.gather(
        loads.load("t", load), loads.load("t", load), return_exceptions=True
    )
    assert [type(each) for each in outcomes] == [TopicNotFoundError] * 2
    await tasks.close()


async def test_all_is_awaited_before_the_first_error_is_raised() -> None:
    done: list[int] = []

    async def work(n: int) -> None:
        await asyncio.sleep(n)
        done.append(n)
        if n == 1:
            raise TopicNotFoundError("1")

    with pytest.raises(TopicNotFoundError):
        await all_or_first_error([work(n) for n in range(3)])
    assert done == [0, 1, 2]
