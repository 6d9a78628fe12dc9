"""Virtual time: a loop whose clock jumps to the next timer when idle, and the clock that reads it.

`run_virtual(coroutine)` runs like `asyncio.run`, but a sleep of an hour takes no time: whenever
nothing is ready, the loop's time moves to the next timer at once. What always holds: time never
moves while something is ready to run, so runs without threads and sockets replay exactly. A loop
that has neither a timer nor anything ready is stuck and raises after a few real seconds (which
leave threads time to report), instead of hanging the tests.

All asyncio tests of a directory run in virtual time with one line in its `conftest.py`:

    from pulsar_py.testing.clock import pytest_asyncio_loop_factories, virtual_clock
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pulsar_py.common.clock import Clock

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")

START_WALL_MILLIS = 1_700_000_000_000
STUCK_AFTER_REAL_SECONDS = 10.0


class _JumpingSelector(selectors.BaseSelector):
    """Passes everything on, but never waits for a timer: it moves the loop's time instead."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now_seconds = 0.0

    def register(
        self,
        fileobj: FileDescriptorLike,
        events: int,
        data: Any = None,  # Any: the loop's own data, passed through
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is not None:
            self.now_seconds += timeout
            return []
        ready = self._real.select(STUCK_AFTER_REAL_SECONDS)
        if not ready:
            raise RuntimeError("virtual time: nothing is ready, and no timer is set")
        return ready

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._real.get_map()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that starts at time 0 and jumps to the next timer when idle."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now_seconds


class VirtualClock(Clock):
    """Reads the running loop's virtual time; outside of one, only what `jump` added.

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
