"""Virtual time: sleeps take no time, and a stuck loop says so."""

import asyncio

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.testing.clock import (
    START_WALL_MILLIS,
    VirtualClock,
    VirtualTimeLoop,
    pytest_asyncio_loop_factories,
    run_virtual,
)


def test_a_sleep_of_an_hour_takes_no_time():
    clock = VirtualClock()
    system = SystemClock()
    before = system.monotonic_seconds()

    async def sleep():
        await clock.sleep(3600)
        return clock.monotonic_seconds()

    assert run_virtual(sleep()) == 3600
    assert system.monotonic_seconds() - before < 5


def test_timers_run_in_the_order_of_their_times():
    async def collect():
        seen = []
        loop = asyncio.get_running_loop()
        for delay in (3, 1, 2):
            loop.call_later(delay, seen.append, delay)
        await asyncio.sleep(10)
        return seen

    assert run_virtual(collect()) == [1, 2, 3]


def test_the_hook_names_the_virtual_loop():
    assert pytest_asyncio_loop_factories() == {"virtual": VirtualTimeLoop}


def test_the_wall_clock_follows_the_loop():
    async def sleep():
        clock = VirtualClock()
        await asyncio.sleep(1.5)
        return clock.wall_time_millis()

    assert run_virtual(sleep()) == START_WALL_MILLIS + 1500


def test_jumps_move_a_clock_without_a_loop():
    clock = VirtualClock()
    clock.jump(2)
    assert clock.monotonic_seconds() == 2


def test_a_group_cancels_its_tasks_in_the_order_of_their_start():
    async def collect():
        ended = []

        async def wait(number):
            try:
                await asyncio.sleep(1)
            finally:
                ended.append(number)

        async def fail():
            raise ValueError("the group ends")

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(wait(number))
                await asyncio.sleep(0.5)
                group.create_task(fail())
        except* ValueError:
            pass
        return ended

    assert run_virtual(collect()) == list(range(50))


def test_sets_of_futures_have_the_same_order_in_every_run():
    async def hashes():
        loop = asyncio.get_running_loop()
        return [hash(loop.create_future()) for _ in range(3)]

    assert run_virtual(hashes()) == run_virtual(hashes())


def test_what_a_timer_starts_while_a_loop_ends_is_ended_too() -> None:
    late: list[asyncio.Task[None]] = []

    async def last_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    async def end_slowly() -> None:
        try:
            await last_for_ever()
        finally:
            await asyncio.sleep(10)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(end_slowly())}
        await asyncio.sleep(0)
        loop.call_later(5, lambda: late.append(loop.create_task(last_for_ever())))
        loop.call_later(10, lambda: late.append(loop.create_task(last_for_ever())))
        assert tasks

    run_virtual(work())
    assert [task.cancelled() for task in late] == [True, True]
