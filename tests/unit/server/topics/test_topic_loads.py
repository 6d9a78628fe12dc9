from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from pulsar_py.common.errors import (
    CorruptDataError,
    PersistenceError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.topics.topic_loads import LOADS_AT_ONCE, SLOW_SECONDS, TopicLoads
from tests.unit.server.topics.rig import Rig


async def test_a_slow_load_times_out_but_goes_on(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=1, max_concurrent_loads=10)

    async def load() -> Topic:
        await asyncio.sleep(2)
        return topic

    with pytest.raises(ServiceNotReadyError):
        await loads.load("t", load)
    assert "not loaded within 1 s" in str([each.__dict__ for each in caplog.records])
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


async def test_few_share_the_processor_in_the_order_in_which_they_were_asked_for(rig: Rig) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=5000)
    begun: list[str] = []

    async def load(name: str) -> Topic:
        begun.append(name)
        await asyncio.sleep(SLOW_SECONDS / 2)
        return topic

    names = [str(number) for number in range(LOADS_AT_ONCE * 2)]
    waiting = [tasks.spawn(loads.load(name, partial(load, name)), name) for name in names]
    await asyncio.sleep(0)
    await asyncio.sleep(SLOW_SECONDS / 4)
    assert begun == names[:LOADS_AT_ONCE]
    await asyncio.sleep(SLOW_SECONDS / 2)
    assert begun == names
    await asyncio.gather(*waiting)
    await tasks.close()


async def test_who_waits_for_something_else_makes_room(rig: Rig) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    limit = LOADS_AT_ONCE + 1
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=limit)
    begun: list[str] = []
    is_there = asyncio.Event()

    async def load(name: str) -> Topic:
        begun.append(name)
        await is_there.wait()
        return topic

    names = [str(number) for number in range(LOADS_AT_ONCE * 2)]
    waiting = [tasks.spawn(loads.load(name, partial(load, name)), name) for name in names]
    await asyncio.sleep(SLOW_SECONDS * 1.5)
    assert begun == names[:limit], "up to the limit of the settings"
    is_there.set()
    await asyncio.gather(*waiting)
    assert begun == names
    await loads.load("later", partial(load, "later"))
    assert loads.count == 0
    await tasks.close()


async def test_an_urgent_load_does_not_queue_up(rig: Rig) -> None:
    topic = await rig.topic("t")
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=1)
    is_there = asyncio.Event()

    async def needs_the_other() -> Topic:
        await loads.load("__change_events", at_once, is_urgent=True)
        return topic

    async def at_once() -> Topic:
        is_there.set()
        return topic

    await loads.load("t", needs_the_other)
    assert is_there.is_set()
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


@pytest.mark.parametrize(
    ("cause", "level"),
    [(None, logging.WARNING), (CorruptDataError("entries/1"), logging.ERROR)],
)
async def test_a_load_that_fails_leaves_one_line(
    cause: Exception | None, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=10, max_concurrent_loads=10)

    async def load() -> Topic:
        raise PersistenceError("entries/1: damaged") from cause

    outcomes = await asyncio.gather(
        *(loads.load("t", load) for _ in range(2)), return_exceptions=True
    )
    assert [type(each) for each in outcomes] == [PersistenceError] * 2
    [record] = caplog.records
    assert (record.levelno, record.message) == (level, "topic not loaded")
    assert (record.__dict__["topic"], record.__dict__["error"]) == ("t", "entries/1: damaged")
    await tasks.close()


async def test_a_topic_that_is_not_there_leaves_none(caplog: pytest.LogCaptureFixture) -> None:
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=10, max_concurrent_loads=10)

    async def load() -> Topic:
        raise TopicNotFoundError("t")

    with pytest.raises(TopicNotFoundError):
        await loads.load("t", load)
    assert not caplog.records
    await tasks.close()
