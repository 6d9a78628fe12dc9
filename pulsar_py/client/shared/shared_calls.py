"""Shares one call among all callers that want the same at the same time (edge).

The call runs in a task of its own, so that a cancelled caller does not end it for the others. Its
result or error goes to all of them, and is forgotten afterwards. A call that nobody waits for any
more goes on, or ends with its last caller, as the owner chooses: a connection that is being opened
is of use to whoever asks next, a question that is repeated until it is answered is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pulsar_py.common.errors import ConnectionClosedError
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = ["SharedCalls"]

T = TypeVar("T")


@dataclass(slots=True)
class _Call(Generic[T]):
    outcome: asyncio.Future[T]
    callers_count: int = 0
    task: asyncio.Task[None] | None = None


class SharedCalls(Generic[T]):
    """Calls under way, by their keys. Owned by the owner of `tasks`."""

    def __init__(self, tasks: TaskOwner, *, ends_with_callers: bool = False) -> None:
        """`ends_with_callers`: whether a call is cancelled when its last caller is."""
        self._tasks = tasks
        self._ends_with_callers = ends_with_callers
        self._calls: dict[Hashable, _Call[T]] = {}

    async def run(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> T:
        """The result of the call that is under way for `key`, or of a new one.

        Raises:
            ConnectionClosedError: The owner was closed meanwhile.
            Exception: The error that the call raised.
        """
        shared = self._calls.get(key)
        if shared is None:
            shared = _Call(asyncio.get_running_loop().create_future())
            # With all callers cancelled nobody awaits it, and asyncio would log its error.
            shared.outcome.add_done_callback(_look_at)
            self._calls[key] = shared
            try:
                shared.task = self._tasks.spawn(self._run(key, call, shared), f"call {key}")
            except RuntimeError:
                del self._calls[key]
                raise ConnectionClosedError(f"{key}: the client is closed") from None
        shared.callers_count += 1
        try:
            return await asyncio.shield(shared.outcome)
        finally:
            shared.callers_count -= 1
            if self._ends_with_callers and not shared.callers_count:
                self._end(key, shared)

    def _end(self, key: Hashable, shared: _Call[T]) -> None:
        if not shared.outcome.done() and shared.task is not None:
            shared.task.cancel()
            self._forget(key, shared)  # whoever asks next begins anew

    async def _run(self, key: Hashable, call: Callable[[], Awaitable[T]], shared: _Call[T]) -> None:
        outcome = shared.outcome
        try:
            result = await call()
        except asyncio.CancelledError:
            outcome.set_exception(ConnectionClosedError(f"{key}: the client is closed"))
            raise
        except Exception as error:  # noqa: BLE001 - handed on, whatever it is
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            self._forget(key, shared)

    def _forget(self, key: Hashable, shared: _Call[T]) -> None:
        if self._calls.get(key) is shared:
            del self._calls[key]


def _look_at(outcome: asyncio.Future[T]) -> None:
    if not outcome.cancelled():
        outcome.exception()
