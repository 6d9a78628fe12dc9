"""Fetches runs of messages on the loop while a task's thread converts those before them (edge).

    loop: broker, network, inflating --> up to `limit_bytes` of runs --> thread: columns, Spark

The loop fetches on its own until that many bytes wait, and goes on when some are taken. The thread
takes all waiting runs at once, so the two synchronize once a few runs. An error of fetching is
raised after the runs that came before it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from pulsar_py.common.loops.loop_thread import LoopThread
from pulsar_py.spark.reading.entry_source import Run, run_bytes

AHEAD_BYTES: Final = 2 << 20
"""About how many bytes of runs may wait to be converted."""

OpenRuns = Callable[[], AbstractAsyncContextManager[AsyncIterator[Run]]]
"""Opens a context on the loop that gives runs until it is closed."""


class ReadAhead:
    """The runs of one piece, to be iterated over once, in another thread than the loop's.

    The owner closes it.

    Invariant: `_taken` is set as long as fewer bytes wait than the limit.
    """

    def __init__(
        self, loop: LoopThread, open_runs: OpenRuns, limit_bytes: int = AHEAD_BYTES
    ) -> None:
        """Begin to fetch.

        Args:
            loop: Runs the fetching.
            open_runs: Opens the runs to fetch.
            limit_bytes: How many bytes may wait; one run always may.
        """
        self._loop = loop
        self._open_runs = open_runs
        self._limit_bytes = limit_bytes
        # Guards the next two fields, and wakes the thread when one of them changes.
        self._changed = threading.Condition()
        self._waiting: list[Run] = []
        self._is_done = False
        # The next two fields are used on the loop alone.
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fetching = loop.submit(self._fetch())

    async def _fetch(self) -> None:
        self._task = asyncio.current_task()
        waiting_bytes = 0
        try:
            async with self._open_runs() as runs:
                async for run in runs:
                    size_bytes = run_bytes(run)
                    with self._changed:
                        waiting_bytes = size_bytes + (waiting_bytes if self._waiting else 0)
                        self._waiting.append(run)
                        self._changed.notify()
                        self._taken.clear()
                    del run  # else its memory would be held until the next run comes
                    if waiting_bytes >= self._limit_bytes:
                        await self._taken.wait()
        finally:
            with self._changed:
                self._is_done = True
                self._changed.notify()

    def __iter__(self) -> Iterator[Run]:
        """The runs, in order; raises the error of fetching, if any, behind them."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_done)
                runs, self._waiting = self._waiting, []
            if not runs:
                self._fetching.result()
                return
            self._loop.call_soon(self._taken.set)
            runs.reverse()
            while runs:
                yield runs.pop()

    def close(self) -> None:
        """Stop fetching, and close the context of the runs."""
        self._loop.call(self._close())

    async def _close(self) -> None:
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
