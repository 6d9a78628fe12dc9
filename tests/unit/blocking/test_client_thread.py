"""The thread of blocking clients: order, errors, time limits, and where waiting is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from pulsar_py.blocking.client_thread import ClientThread, Signal, client_thread, timeout
from pulsar_py.common.errors import ClientError
from pulsar_py.common.loops.serving_loops import serves, serves_no_more

THREAD = client_thread()


def test_there_is_one() -> None:
    assert client_thread() is THREAD


def test_functions_are_called_in_order_with_one_wake_up() -> None:
    called: list[int] = []
    wake_ups = []
    free = threading.Event()
    THREAD.post(free.wait)
    time.sleep(0.01)  # the loop stands in `wait` now
    call_soon, THREAD.loop.call_soon_threadsafe = THREAD.loop.call_soon_threadsafe, None
    try:
        THREAD.loop.call_soon_threadsafe = lambda each: wake_ups.append(call_soon(each))
        for number in range(1000):
            THREAD.post(lambda number=number: called.append(number))
    finally:
        THREAD.loop.call_soon_threadsafe = call_soon
    free.set()
    THREAD.call(lambda: None)
    assert called == list(range(1000))
    assert len(wake_ups) == 1


def test_results_and_errors_reach_the_thread_that_waits() -> None:
    async def fail() -> None:
        raise KeyError("k")

    assert THREAD.call(lambda: 7) == 7
    with pytest.raises(KeyError):
        THREAD.run(fail())


def test_a_time_limit_cancels_what_it_waited_for() -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError, match="time limit"), timeout(0.02):
        THREAD.run(work())
    assert cancelled.wait(30)


def test_the_earliest_of_nested_limits_counts() -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError), timeout(0.02), timeout(60):
        Signal().wait()
    assert time.monotonic() - begun < 30
    with timeout(None):
        assert THREAD.call(lambda: 1) == 1


def test_ctrl_c_cancels_what_it_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    def interrupted(self: Signal, seconds: float | None = None) -> None:
        time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(Signal, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        THREAD.run(work())
    assert cancelled.wait(30)


def test_what_ctrl_c_interrupts_before_it_is_waited_for_is_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = client_thread()
    wake = thread.loop.call_soon_threadsafe
    interrupts = [KeyboardInterrupt()]

    def interrupted(*arguments: Any) -> object:
        if interrupts:
            raise interrupts.pop()
        return wake(*arguments)

    done: list[str] = []

    async def work() -> None:
        done.append("for nobody")

    monkeypatch.setattr(thread.loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.run(work())
    thread.run(asyncio.sleep(0))
    thread.run(asyncio.sleep(0))
    assert done == []


def test_a_call_in_the_threads_own_functions_is_refused() -> None:
    def wait() -> None:
        THREAD.call(lambda: None)

    with pytest.raises(ClientError, match="would wait for itself"):
        THREAD.call(wait)


async def test_a_call_in_a_loop_that_a_broker_runs_in_is_refused() -> None:
    loop = asyncio.get_running_loop()
    assert THREAD.call(lambda: 1) == 1  # any other loop: notebooks have one
    serves(loop, "pulsar://localhost:1")
    try:
        with pytest.raises(ClientError, match="pulsar://localhost:1 runs in the event loop"):
            THREAD.call(lambda: 1)
        assert await asyncio.to_thread(THREAD.call, lambda: 2) == 2
    finally:
        serves_no_more(loop, "pulsar://localhost:1")


def test_tasks_end_before_their_loop() -> None:
    thread = ClientThread()
    done: list[str] = []
    began = threading.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)  # needs a loop that runs
            done.append("ended")

    thread.post(lambda: thread._tasks.spawn(work(), "work"))
    assert began.wait(30)
    thread.stop()
    assert done == ["ended"]
    assert thread.loop.is_closed()
