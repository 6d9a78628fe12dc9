"""Cancels a coroutine at each of its suspensions, one after the other.

A coroutine is suspended where it awaits something that is not there yet. It can be cancelled while
that is still so (`WHILE_WAITING`), or in the moment when what it waits for has come but it has not
gone on yet (`JUST_ARRIVED`), where results and locks get lost most easily.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

WHILE_WAITING = "while waiting"
JUST_ARRIVED = "just arrived"
MOMENTS = (WHILE_WAITING, JUST_ARRIVED)
MAX_STEPS = 400


class _Stepped:
    """Awaits a coroutine, and cancels its own task at the n-th suspension."""

    def __init__(self, work: Awaitable[Any], *, at_step: int, moment: str) -> None:
        self._work = work
        self._at_step = at_step
        self._moment = moment
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._work.__await__()
        value = None
        error: BaseException | None = None
        while True:
            try:
                if error is None:
                    waiting_for = inner.send(value) if hasattr(inner, "send") else next(inner)
                else:
                    waiting_for = inner.throw(error)
            except StopIteration as end:
                return end.value
            self.steps += 1
            if self.steps == self._at_step:
                self._cancel(waiting_for)
            error = None
            try:
                value = yield waiting_for
            except BaseException as thrown:  # noqa: BLE001 - it is the coroutine's
                error = thrown

    def _cancel(self, waiting_for: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._moment == WHILE_WAITING or not isinstance(waiting_for, asyncio.Future):
            task.cancel()
        else:
            waiting_for.add_done_callback(lambda _: task.cancel())


async def cancel_at(act: Callable[[], Awaitable[Any]], step: int, moment: str) -> bool:
    """Start `act` and cancel it at its n-th suspension; False if it has no such one.

    What it raises instead of ending as cancelled is raised here, too.
    """
    stepped = _Stepped(act(), at_step=step, moment=moment)

    async def run() -> None:
        await stepped

    task = asyncio.get_running_loop().create_task(run(), name="stepped")
    await asyncio.wait([task], timeout=600)
    assert task.done(), f"step {step}, {moment}: it goes on for more than 600 s"
    if task.cancelled():
        return True
    task.result()
    return stepped.steps >= step


async def cancel_at_every_step(
    act: Callable[[], Awaitable[Any]],
    moment: str,
    *,
    after: Callable[[], Awaitable[Any]] | None = None,
) -> int:
    """Cancel `act` at its first suspension, then anew at its second … until it has no more.

    `after` is awaited after each attempt: it checks that everything still works. Returns how many
    steps there were.
    """
    for step in range(1, MAX_STEPS):
        is_reached = await cancel_at(act, step, moment)
        if after is not None:
            await after()
        if not is_reached:
            return step - 1
    raise AssertionError(f"more than {MAX_STEPS} steps")
