"""`ClientThread`: the one thread of a process whose event loop runs all blocking clients (edge).

Threads of the application hand functions over with `post`, which the loop calls in the order in
which they were posted; one wake-up serves all that were posted before the loop gets to them. `run`
hands over a coroutine and waits for its end, `call` a function and waits for its result.

The thread starts with the first client and ends with the process. A forked child has none of its
parent's: what was made before the fork raises ForkedProcessError there, and the first client made
after it gets a new thread.

The loop is uvloop's: a message that comes alone costs a fifth less CPU than on asyncio's own.

A wait ends with Ctrl-C (in the main thread) and with `timeout`; what it waited for is cancelled.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pulsar_py.blocking.turn_loop import TurnLoop
from pulsar_py.common.errors import ClientError, ForkedProcessError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.serving_loops import served_by
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = [
    "ClientThread",
    "Signal",
    "client_thread",
    "longest_wait",
    "seconds_left",
    "timeout",
    "wait_is_over",
]

T = TypeVar("T")

_THREAD_NAME = "pulsar_py blocking"
_EXIT_SECONDS = 5.0
"""The longest that the end of the process waits for the thread."""

_clock = SystemClock()


class _Limits(threading.local):
    """When the innermost `timeout` of this thread ends; None without one."""

    deadline: float | None = None


_limits = _Limits()


@contextmanager
def timeout(seconds: float | None) -> Iterator[None]:
    """Limit the time that calls of blocking clients in the block may wait, all together.

    It is what `asyncio.timeout` is to coroutines: a call that does not end in time is cancelled and
    raises TimeoutError. Nested limits end with the earliest. Code that waits for something else is
    not interrupted.

    Args:
        seconds: The limit; None for none.
    """
    outer = _limits.deadline
    if seconds is not None:
        deadline = _clock.monotonic_seconds() + seconds
        _limits.deadline = deadline if outer is None else min(outer, deadline)
    try:
        yield
    finally:
        _limits.deadline = outer


def seconds_left(deadline: float | None) -> float | None:
    """How long it is until then, by the monotonic clock, at least 0; None if there is no limit."""
    return None if deadline is None else max(deadline - _clock.monotonic_seconds(), 0)


def longest_wait(seconds: float | None) -> float | None:
    """The shorter one of a wait and what the `timeout` around leaves; None without both."""
    left = seconds_left(_limits.deadline)
    if left is None or seconds is None:
        return seconds if left is None else left
    return min(seconds, left)


def wait_is_over() -> TimeoutError:
    """What is raised when it has passed."""
    return TimeoutError("the time limit around this call of a blocking client passed")


class Signal:
    """Set once, by any thread; one other thread waits for it."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """End the wait; further calls do nothing."""
        if self._lock.locked():
            self._lock.release()

    def wait(self, seconds: float | None = None) -> None:
        """Return when it is set.

        Args:
            seconds: The longest wait; None for that of the `timeout` around, if any.

        Raises:
            TimeoutError: It was not set in time.
        """
        seconds = longest_wait(seconds)
        if not self._lock.acquire(timeout=-1 if seconds is None else seconds):
            raise wait_is_over()


class HasShutdown(Protocol):
    """A client, as the thread knows it."""

    def shutdown(self) -> None:
        """Drop all connections at once."""


class ClientThread:
    """An event loop in a daemon thread of its own. Made by `client_thread`, once a process."""

    def __init__(self) -> None:
        """Start the thread."""
        self.loop = TurnLoop()
        # Functions that were posted and not called yet.
        self._posted: deque[Callable[[], object]] = deque()
        # Whether the loop will look at them, and how often it did.
        self._is_woken = False
        self._looks_count = 0
        # The tasks of `run`.
        self._tasks = TaskOwner("blocking client")
        # Whether this process is a child of the one that the thread runs in.
        self.is_forked = False
        # What has to be closed before the process ends.
        self.open_clients: WeakKeyDictionary[HasShutdown, None] = WeakKeyDictionary()
        self._thread = threading.Thread(target=self._run, name=_THREAD_NAME, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def post(self, function: Callable[[], object]) -> None:
        """Have the loop call `function`, which must neither raise nor block.

        Raises:
            ForkedProcessError: The thread is that of this process's parent.
        """
        if self.is_forked:
            raise self._forked_error()
        self._posted.append(function)
        if not self._is_woken:
            looks_count = self._looks_count
            self.loop.call_soon_threadsafe(self._call_posted)
            # Not before: a handler of a signal may interrupt that, and wait for the loop.
            if looks_count == self._looks_count:
                self._is_woken = True

    def _call_posted(self) -> None:
        # First: what is posted from here on wakes the loop again.
        self._looks_count += 1
        self._is_woken = False
        posted = self._posted
        for _ in range(len(posted)):
            posted.popleft()()

    def _forked_error(self) -> ForkedProcessError:
        return ForkedProcessError(
            f"the client was made in process {os.getppid()}, this is its child {os.getpid()}: "
            "make a new client after the fork"
        )

    def check_may_wait(self) -> None:
        """Raise where waiting would be for ever.

        Raises:
            ClientError: This is the loop's own thread, or the thread of a broker's loop; or this
                thread is within a send, or a read, by a finalizer, a handler of a signal or a
                callback.
        """
        if self.loop.has_turn:
            raise ClientError(
                "a blocking call in a finalizer (`__del__`), in a handler of a signal, or in a"
                " callback of a send, which runs within what the client does in the same thread,"
                " would wait for itself: have another thread make the call"
            )
        if threading.current_thread() is self._thread:
            raise ClientError(
                "a blocking call in the client's own thread would wait for itself: interceptors,"
                " routers and callbacks must not block; listeners may"
            )
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if (url := served_by(running)) is not None:
            raise ClientError(
                f"the broker {url} runs in the event loop of this thread, which a blocking call"
                " stops, so that it can't answer: use `pulsar_py.Client`, `await"
                " asyncio.to_thread(...)`, or run the broker in a thread"
                " (`pulsar_py.testing.BrokerThread`, the fixture `pulsar_broker`)"
            )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns; if the wait ends before it does, it is cancelled.

        Raises:
            TimeoutError: The time limit around passed.
            ForkedProcessError, ClientError: As `post`, as `check_may_wait`.
        """
        run = _Run(work)
        try:
            self.check_may_wait()
            self.post(partial(run.start, self._tasks))
        except ClientError:
            work.close()
            raise
        except BaseException:  # Ctrl-C: it may have been posted; raised again
            run.is_given_up = True
            self.post(run.cancel)
            raise
        try:
            run.ended.wait()
        except BaseException:  # the time limit, Ctrl-C; raised again
            self.post(run.cancel)
            raise
        return run.result()

    def call(self, function: Callable[[], T]) -> T:
        """What the function returns, called by the loop; raises as `run`."""

        async def work() -> T:
            return function()

        return self.run(work())

    def stop(self) -> None:
        """End the loop and the thread; nothing can be posted any more.

        Tasks end first: one that is dropped with the loop would find it closed on its way out.
        """
        self.loop.call_soon_threadsafe(lambda: self._tasks.spawn(self._end(), "end"))
        self._thread.join(_EXIT_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()

    async def _end(self) -> None:
        await asyncio.sleep(0)  # what was posted before has been called then
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_EXIT_SECONDS / 2)
        await asyncio.sleep(0)  # for transports: they tell of their end in the loop's next turn
        self.loop.stop()


class _Run(Generic[T]):
    """One coroutine that a thread waits for."""

    __slots__ = ("_error", "_task", "_value", "_work", "ended", "is_given_up")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        self.ended = Signal()
        # Whether nobody waits for it any more, since before it was started.
        self.is_given_up = False

    def start(self, tasks: TaskOwner) -> None:
        if self.is_given_up:
            self._work.close()
            return
        self._task = tasks.spawn(self._run(), "call")

    async def _run(self) -> None:
        try:
            self._value = await self._work
        except asyncio.CancelledError:
            self._error = ClientError("the call was cancelled: its client was shut down")
            raise
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
        finally:
            self.ended.set()

    def cancel(self) -> None:
        if self._task is None:  # Ctrl-C came before it was started
            self._work.close()
        else:
            self._task.cancel()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set, as there was no error


_lock = threading.Lock()
_current: ClientThread | None = None
_forgotten: list[ClientThread] = []
"""Of processes that this one was forked from: kept, so that nothing of theirs is closed."""


def client_thread() -> ClientThread:
    """The thread of this process; starts it when there is none."""
    global _current  # noqa: PLW0603 - one thread a process
    with _lock:
        if _current is None:
            _current = ClientThread()
        return _current


def _in_child() -> None:
    global _current, _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()  # another thread may have held it
    if _current is not None:
        _current.is_forked = True
        _current.loop.lends_turns = False
        _forgotten.append(_current)
        _current = None


def _at_exit() -> None:
    thread = _current
    if thread is None:
        return
    for client in list(thread.open_clients):
        warnings.warn(
            f"unclosed {client!r}, and the process ends: call close(), or use `with`",
            ResourceWarning,
            source=client,
            stacklevel=1,
        )
        client.shutdown()
    thread.stop()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
