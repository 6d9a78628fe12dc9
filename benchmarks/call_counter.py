"""CallCounter: counts tasks, futures and Python calls of the broker while something happens.

The broker runs in this process, under a profile hook; so does the client, whose own calls do not
count: only frames of files under `pulsar_py/` do. Futures are counted on asyncio's own loop alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Counts for 1,000 entries, in the broker alone."""

    tasks: float
    futures: float
    python_calls: float
    most_called: list[tuple[str, float]]


class CallCounter:
    """Counts while it is entered; needs a running loop."""

    def __init__(self) -> None:
        self._tasks_count = 0
        self._futures_count = 0
        self._calls: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._plain_future = self._loop.create_future

    def __enter__(self) -> Self:
        self._loop.set_task_factory(self._make_task)  # type: ignore[arg-type]  # passes options on
        if not type(self._loop).__module__.startswith("uvloop"):
            self._loop.create_future = self._make_future  # type: ignore[method-assign]
        sys.setprofile(self._on_event)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.setprofile(None)
        self._loop.set_task_factory(None)
        if not type(self._loop).__module__.startswith("uvloop"):
            self._loop.create_future = self._plain_future  # type: ignore[method-assign]

    def per_thousand(self, entries_count: int) -> CallCounts:
        """What was counted, divided by so many thousand entries."""
        thousands = entries_count / 1000
        return CallCounts(
            tasks=self._tasks_count / thousands,
            futures=self._futures_count / thousands,
            python_calls=self._calls.total() / thousands,
            most_called=[(name, count / thousands) for name, count in self._calls.most_common(12)],
        )

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/pulsar_py/" in frame.f_code.co_filename:
            file = frame.f_code.co_filename.rpartition("/pulsar_py/")[2]
            self._calls[f"{file}:{frame.f_code.co_name}"] += 1

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        self._tasks_count += 1
        return asyncio.Task(work, loop=loop, **options)

    def _make_future(self) -> asyncio.Future[Any]:
        self._futures_count += 1
        return self._plain_future()
