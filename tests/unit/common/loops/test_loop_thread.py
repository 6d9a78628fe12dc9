"""Coroutines called from plain functions."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pulsar_py.common.loops.loop_thread import LoopThread


def test_a_coroutine_runs_in_the_other_thread_and_gives_its_result() -> None:
    loop = LoopThread()

    async def name() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise KeyError("x")

    try:
        assert loop.call(name()) == "pulsar_py"
        with pytest.raises(KeyError):
            loop.call(fail())
    finally:
        loop.stop()


async def test_it_can_be_called_where_another_loop_runs() -> None:
    loop = LoopThread()

    async def other() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert loop.call(other()) is not asyncio.get_running_loop()
    loop.stop()


def test_its_thread_ends() -> None:
    before = threading.active_count()
    loop = LoopThread()
    assert threading.active_count() == before + 1
    loop.stop()
    assert threading.active_count() == before
