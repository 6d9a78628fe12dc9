"""Whatever the loop calls has its turn; other threads get it in between, and never wait for it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from pulsar_py.blocking.turn_loop import TurnLoop

T = TypeVar("T")


@pytest.fixture
def loop() -> Iterator[TurnLoop]:
    loop = TurnLoop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def in_thread(work: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result(30)


def between(loop: TurnLoop) -> bool | None:
    """Whether a thread that is not the main one gets the turn."""
    return in_thread(lambda: loop.call_between(lambda: True))


def test_a_thread_gets_the_turn_while_the_loop_waits(loop: TurnLoop) -> None:
    for _ in range(100):
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
        while not between(loop):  # the loop ends its turn
            pass


def test_no_thread_gets_it_while_anything_runs_in_the_loop(loop: TurnLoop) -> None:
    seen: dict[str, bool | None] = {}
    done = threading.Event()

    def look(name: str) -> None:
        seen[name] = between(loop)
        if len(seen) == 6:
            done.set()

    async def task() -> None:
        look("task")
        await asyncio.sleep(0)
        look("task again")

    def begin() -> None:
        loop.call_soon(look, "soon")
        loop.call_later(0.001, look, "later")
        loop.call_at(loop.time() + 0.001, look, "at")
        tasks.append(loop.create_task(task()))

    tasks: list[asyncio.Task[None]] = []
    loop.call_soon_threadsafe(begin)
    loop.call_soon_threadsafe(look, "threadsafe")
    assert done.wait(30)
    assert seen == dict.fromkeys(("soon", "later", "at", "task", "task again", "threadsafe"), None)


def test_what_the_loop_calls_waits_for_a_thread_that_has_the_turn(loop: TurnLoop) -> None:
    called = threading.Event()

    def work() -> bool:
        loop.call_soon_threadsafe(called.set)
        return called.wait(0.02)

    assert in_thread(lambda: loop.call_between(work)) is False
    assert called.wait(30)


def test_the_loops_own_thread_does_not_get_it(loop: TurnLoop) -> None:
    async def work() -> bool | None:
        return loop.call_between(lambda: True)

    assert asyncio.run_coroutine_threadsafe(work(), loop).result() is None


def test_it_is_given_back_whatever_ends_the_call(loop: TurnLoop) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_thread(lambda: loop.call_between(fail))
    assert between(loop)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()


def test_a_thread_that_has_it_does_not_get_it_again(loop: TurnLoop) -> None:
    # A finalizer may ask in the midst of what the thread does.
    def ask() -> tuple[bool, bool | None, bool]:
        return loop.has_turn, loop.call_between(lambda: True), loop.has_turn

    assert in_thread(lambda: loop.call_between(ask)) == (True, None, True)
    assert not loop.has_turn
    assert between(loop)


def test_a_thread_that_does_not_get_it_takes_nothing_from_the_one_that_has_it(
    loop: TurnLoop,
) -> None:
    def ask() -> tuple[bool | None, bool]:
        return between(loop), loop.has_turn

    assert in_thread(lambda: loop.call_between(ask)) == (None, True)


MAIN = """
import signal, sys, time
from pulsar_py.blocking.turn_loop import TurnLoop

loop = TurnLoop()
print(loop.call_between(lambda: "turn"))
class Handler:
    __hash__ = None  # as of a dataclass

    def __call__(self, *_):
        pass

signal.signal(signal.SIGTERM, Handler())
time.sleep(0.11)
print(loop.call_between(lambda: "turn"))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(0.11)
print(loop.call_between(lambda: "turn"))
"""


async def test_in_the_main_thread_it_is_there_only_without_handlers_of_signals() -> None:
    # In a process of its own: who runs the tests may have handlers.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert output.split() == [b"turn", b"None", b"turn"]
