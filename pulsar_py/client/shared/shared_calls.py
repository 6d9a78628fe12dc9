"""Shares one call among all callers that want the same at the same time (edge).

The call runs in a task of its own, so that a cancelled caller does not end it for the others. Its
result or error goes to all of them, and is forgotten afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from pulsar_py.common.errors import ConnectionClosedError
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = ["SharedCalls"]

T = TypeVar("T")


class SharedCalls(Generic[T]):
    """Calls under way, by their keys. Owned by the owner of `tasks`."""

    def __init__(self, tasks: TaskOwner) -> None:
        self._tasks = tasks
        self._outcomes: dict[Hashable, asyncio.Future[T]] = {}

    async def run(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> T:
        """The result of the call that is under way for `key`, or of a new one.

        Raises:
            ConnectionClosedError: The owner was closed meanwhile.
            Exception: The error that the call raised.
        """
        outcome = self._outcomes.get(key)
        if outcome is None:
            outcome = asyncio.get_running_loop().create_future()
            # With all callers cancelled nobody awaits it, and asyncio would log its error.
            outcome.add_done_callback(_look_at)
            self._outcomes[key] = outcome
            try:
                self._tasks.spawn(self._run(key, call, outcome), f"call {key}")
            except RuntimeError:
                del self._outcomes[key]
                raise ConnectionClosedError(f"{key}: the client is closed") from None
        return await asyncio.shield(outcome)

    async def _run(
        self, key: Hashable, call: Callable[[], Awaitable[T]], outcome: asyncio.Future[T]
    ) -> None:
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
            self._outcomes.pop(key, None)


def _look_at(outcome: asyncio.Future[T]) -> None:
    if not outcome.cancelled():
        outcome.exception()
