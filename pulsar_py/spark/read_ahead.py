"""From the loop to a task's thread: runs are fetched while those before them are converted (edge).

    loop: broker, network, inflating --> up to `limit_bytes` of runs --> thread: columns, Spark

The loop fetches on its own until so many bytes wait, and goes on when some are taken. Who takes
takes all that wait at once, so that threads meet once a few runs. What the fetching raises is
raised behind the runs that came before.

Source: spec section 6; STYLE's bounded queues.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from pulsar_py.common.loop_thread import LoopThread
from pulsar_py.spark.segments import Run, run_bytes

AHEAD_BYTES: Final = 2 << 20
"""What waits to be converted, about."""

OpenRuns = Callable[[], AbstractAsyncContextManager[AsyncIterator[Run]]]
"""Gives runs as long as its context is open, on the loop."""


class ReadAhead:
    """The runs of one piece, to be iterated over outside of the loop, once. Close it.

    Invariant: `_taken` is set as long as fewer bytes wait than the limit.
    """

    def __init__(
        self, loop: LoopThread, open_runs: OpenRuns, limit_bytes: int = AHEAD_BYTES
    ) -> None:
        """Begin to fetch.

        Args:
            loop: Where to fetch.
            open_runs: What to fetch.
            limit_bytes: How many bytes may wait; at least one run may.
        """
        self._loop = loop
        self._open_runs = open_runs
        self._limit_bytes = limit_bytes
        # Guards the two after it, and says that they changed.
        self._changed = threading.Condition()
        self._waiting: list[Run] = []
        self._is_done = False
        # Both belong to the loop.
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
                    del run  # its memory may be used again as soon as it is converted
                    if waiting_bytes >= self._limit_bytes:
                        await self._taken.wait()
        finally:
            with self._changed:
                self._is_done = True
                self._changed.notify()

    def __iter__(self) -> Iterator[Run]:
        """The runs, in order; raises what fetching them raises."""
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
        """Stop fetching, wherever it is; what it has open is closed."""
        self._loop.call(self._close())

    async def _close(self) -> None:
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
