"""`TaskOwner`: starts an object's tasks, and ends them with the object (edge).

No other module starts tasks. The error of a task that nobody awaits is logged, with the task's
name. `close` cancels running tasks and waits for them, so that no task outlives its owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class TaskOwner:
    """Starts tasks and ends them with their owner."""

    def __init__(self, name: str) -> None:
        """`name` prefixes the tasks' names in logs."""
        self._name = name
        # In order of their start. Any: results of owned tasks are not used.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._is_closed = False

    def spawn(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        """Start `work` as a task of this owner.

        Raises:
            RuntimeError: The owner was closed; `work` was not started.
        """
        if self._is_closed:
            work.close()
            raise RuntimeError(f"{self._name}: closed, can't start {name}")
        task = asyncio.get_running_loop().create_task(work, name=f"{self._name}/{name}")
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("task failed", extra={"task": task.get_name()}, exc_info=error)

    async def drain(self) -> None:
        """Wait until all tasks have ended by themselves, those they start meanwhile too."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended. May be called again.

        A task may close its own owner: it is left to end by itself.
        """
        self._is_closed = True
        current = asyncio.current_task()
        others = [task for task in self._tasks if task is not current]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)

    def abandon(self) -> None:
        """Cancel what still runs without waiting for its end; nothing more can be started.

        For owners that have to end within a plain function; `close` afterwards waits.
        """
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()
