"""`MessageLoops`: knows the `async for` loops over a consumer, so that they can be ended (edge).

A loop that asks for its next message is done with the one before: it has acknowledged it, or means
not to. So a consumer that drains ends each loop when it asks again, and acknowledges until then. A
loop that was left early (`break`, an exception, a cancelled task) has let go of its iterator, and
is not waited for; neither is the one in which `end` is called, nor one whose task has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Generic, Protocol
from weakref import ref

from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.type_variables import T_co


class EndlessSource(Protocol[T_co]):
    """The consumer."""

    def __anext__(self) -> Awaitable[Message[T_co]]:
        """The next message; StopAsyncIteration once it is closed."""


class MessageLoops(Generic[T_co]):
    """The loops of one consumer, which owns it."""

    def __init__(self, source: EndlessSource[T_co]) -> None:
        """`source` is the consumer."""
        self._source = source
        self._tasks: dict[ref[_Loop[T_co]], asyncio.Task[object] | None] = {}
        self._changed: asyncio.Event | None = None  # while they are being ended

    def begin(self) -> AsyncIterator[Message[T_co]]:
        """One more loop."""
        loop = _Loop(self._source, self)
        self._tasks[ref(loop, self._on_gone)] = asyncio.current_task()
        return loop

    @property
    def are_ending(self) -> bool:
        """Whether no loop gets another message."""
        return self._changed is not None

    async def end(self) -> None:
        """Return when each loop has asked for its next message, and so ended. May be called again.

        The caller has seen to it that loops which wait for a message end.
        """
        self._changed = changed = self._changed or asyncio.Event()
        while any(map(self._is_running, self._tasks.values())):
            changed.clear()
            await changed.wait()

    def _is_running(self, task: asyncio.Task[object] | None) -> bool:
        return task is not asyncio.current_task() and not (task is not None and task.done())

    def _on_gone(self, gone: ref[_Loop[T_co]]) -> None:
        self._tasks.pop(gone, None)
        if self._changed is not None:
            self._changed.set()

    def ended(self, loop: _Loop[T_co]) -> None:
        """Note that a loop asked once more, and was ended."""
        self._on_gone(ref(loop, self._on_gone))


class _Loop(AsyncIterator[Message[T_co]]):
    """What one `async for` goes through."""

    def __init__(self, source: EndlessSource[T_co], loops: MessageLoops[T_co]) -> None:
        self._source = source
        self._loops = loops

    def __anext__(self) -> Awaitable[Message[T_co]]:
        """The next message."""
        # Hot path: consume in `make bench-client`; no coroutine of its own around the source's.
        if self._loops.are_ending:
            self._loops.ended(self)
        return self._source.__anext__()
