"""Virtual time: a loop whose clock jumps to the next timer when idle, and the clock that reads it.

`run_virtual(coroutine)` runs like `asyncio.run`, but a sleep of an hour takes no time: whenever
nothing is ready, the loop's time moves to the next timer at once. What always holds: time never
moves while something is ready to run, so runs without threads and sockets replay exactly. A loop
that has neither a timer nor anything ready is stuck and raises after a few real seconds (which
leave threads time to report), instead of hanging the tests; where nobody outside could wake it
(`is_alone`), it raises at once.

Tasks and futures hash by their numbers: asyncio keeps some of them in sets and walks these (a task
group that cancels its tasks), and by their addresses each process would have an order of its own.

All asyncio tests of a directory run in virtual time with one line in its `conftest.py`:

    from pulsar_py.testing.clock import pytest_asyncio_loop_factories, virtual_clock
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import selectors
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pulsar_py.common.loops.clock import Clock
from pulsar_py.testing.sealing import RealityError

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")

Work = Coroutine[Any, Any, Any] | Generator[Any, None, Any]  # Any: as in asyncio

START_WALL_MILLIS = 1_700_000_000_000
STUCK_AFTER_REAL_SECONDS = 10.0
COLLECT_EVERY_SECONDS = 60.0
"""Virtual seconds between two garbage collections, in worlds where their times are fixed."""


class _JumpingSelector(selectors.BaseSelector):
    """Wraps a real selector, but never waits for a timer: it moves the loop's time instead."""

    def __init__(self, *, is_alone: bool) -> None:
        self._real = selectors.DefaultSelector()
        self._is_alone = is_alone
        self._collect_at = COLLECT_EVERY_SECONDS
        self.collects = False  # whether cyclic garbage is collected here, at fixed virtual times
        self.now_seconds = 0.0

    def register(
        self,
        fileobj: FileDescriptorLike,
        events: int,
        data: Any = None,  # Any: the loop's own data, passed through
    ) -> selectors.SelectorKey:
        if self._is_alone and self._real.get_map():  # the first is the loop's own
            raise RealityError(f"a simulated world waits for the real {fileobj!r}")
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = [] if self._is_alone else self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is not None:
            self.now_seconds += timeout
            if self.collects and self.now_seconds >= self._collect_at:
                self._collect_at = self.now_seconds + COLLECT_EVERY_SECONDS
                gc.collect()
            return []
        ready = [] if self._is_alone else self._real.select(STUCK_AFTER_REAL_SECONDS)
        if not ready:
            raise RuntimeError("virtual time: nothing is ready, and no timer is set")
        return ready

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._real.get_map()


class _NumberedFuture(asyncio.Future[Any]):  # Any: results of any type
    number: int

    def __hash__(self) -> int:
        return self.number


class _NumberedTask(asyncio.Task[Any]):  # Any: results of any type
    def __init__(
        self,
        work: Work,
        *,
        loop: VirtualTimeLoop,
        **options: Any,  # Any: asyncio's own, passed through
    ) -> None:
        self.number = loop.next_number()  # first: asyncio puts a task into a set when it begins
        super().__init__(work, loop=loop, **options)

    def __hash__(self) -> int:
        return self.number


def _new_task(
    loop: asyncio.AbstractEventLoop,
    work: Work,
    **options: Any,  # Any: asyncio's own, passed through
) -> _NumberedTask:
    assert isinstance(loop, VirtualTimeLoop)
    return _NumberedTask(work, loop=loop, **options)


_LAST_ROUNDS = 100
"""Times that late tasks are cancelled when a loop is closed; each may start others."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that starts at time 0 and jumps to the next timer when idle."""

    def __init__(self, *, is_alone: bool = False) -> None:
        """With `is_alone` no thread or socket may wake it, so it does not poll the selector."""
        self._jumping = _JumpingSelector(is_alone=is_alone)
        self._numbers = itertools.count()
        super().__init__(self._jumping)
        self.set_task_factory(_new_task)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now_seconds

    def next_number(self) -> int:
        """The number of the next task or future, counted from 0."""
        return next(self._numbers)

    def create_future(self) -> asyncio.Future[Any]:  # Any: as in asyncio
        """A future that hashes by its number."""
        future = _NumberedFuture(loop=self)
        future.number = next(self._numbers)
        return future

    def close(self) -> None:
        """Close; before that, end what timers began while a runner cancelled all the rest.

        While cancelled tasks end, virtual time jumps, so timers fire, and what they start nobody
        else would cancel.
        """
        if not self.is_closed() and not self.is_running():
            for _ in range(_LAST_ROUNDS):
                late = asyncio.all_tasks(self)
                if not late:
                    break
                for task in late:
                    task.cancel()
                self.run_until_complete(asyncio.gather(*late, return_exceptions=True))
        super().close()


class VirtualClock(Clock):
    """Reads the running loop's virtual time; outside of a loop, only the sum of all jumps.

    On a loop in real time it stands still unless it is moved with `jump`.
    """

    def __init__(self, *, start_wall_millis: int = START_WALL_MILLIS) -> None:
        self._start_wall_millis = start_wall_millis
        self._jumped_seconds = 0.0

    def monotonic_seconds(self) -> float:
        """Virtual seconds since the loop began, plus all jumps."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._jumped_seconds
        if isinstance(loop, VirtualTimeLoop):
            return loop.time() + self._jumped_seconds
        return self._jumped_seconds

    def wall_time_millis(self) -> int:
        """The start's wall time plus `monotonic_seconds`."""
        return self._start_wall_millis + round(self.monotonic_seconds() * 1000)

    def jump(self, seconds: float) -> None:
        """Move this clock forward without running any timer."""
        self._jumped_seconds += seconds


def run_virtual(work: Coroutine[Any, Any, T]) -> T:  # Any: as in asyncio.run
    """Run a coroutine to its end on a fresh loop in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A hook of pytest-asyncio: import it into a conftest to run its tests in virtual time."""
    return {"virtual": VirtualTimeLoop}


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that follows the test's virtual loop."""
    return VirtualClock()
