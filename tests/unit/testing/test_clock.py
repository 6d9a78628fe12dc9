"""Virtual time: sleeps take no time, and a stuck loop says so."""

import asyncio

from pulsar_py.common.clock import SystemClock
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
