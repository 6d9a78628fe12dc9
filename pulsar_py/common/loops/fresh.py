"""`Fresh`, `FreshByKey`: one run of work for all who ask while another run is under way (edge).

Many may need the same thing at the same moment, each as it is after it asked: the clients of all
topics of a bundle ask for its owner when that owner has died. Who asks while a run is under way
must not get its result, which may be from before; but one next run serves all of those.

What always holds: a result that is handed out is of a run that began after it was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

__all__ = ["Fresh", "FreshByKey"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Fresh(Generic[T]):
    """The runs of one piece of work; whoever asks runs it, if nobody else does for it."""

    def __init__(self) -> None:
        """Nothing has been asked for yet."""
        self._lock = asyncio.Lock()  # held by the run
        self._asked_count = 0
        self._served_count = 0  # requests that came before the last finished run began
        self._outcome: tuple[T, None] | tuple[None, Exception] | None = (
            None  # of the last finished run
        )
        self.runs_count = 0
        """Runs so far."""

    async def get(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, run after this was called, for this caller or for others, too.

        Raises:
            Exception: What that run raised.
        """
        self._asked_count += 1
        number = self._asked_count
        async with self._lock:
            if number > self._served_count:
                await self._run(work)
            outcome = self._outcome
        assert outcome is not None, "the run has ended"
        result, error = outcome
        if error is not None:
            raise error.with_traceback(None)
        return result  # type: ignore[return-value]  # there is one where there is no error

    async def _run(self, work: Callable[[], Awaitable[T]]) -> None:
        """Note what the work returns or raises. If it is cancelled, the next one runs it."""
        asked_count = self._asked_count
        self.runs_count += 1
        try:
            self._outcome = await work(), None
        except Exception as error:  # noqa: BLE001 - handed on to all who asked
            self._outcome = None, error
        self._served_count = asked_count


class FreshByKey(Generic[K, T]):
    """A `Fresh` for each key, as long as somebody asks for it."""

    def __init__(self) -> None:
        """Nothing has been asked for yet."""
        self._of_keys: WeakValueDictionary[K, Fresh[T]] = WeakValueDictionary()

    async def get(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work` for this key, as of `Fresh.get`.

        Raises:
            Exception: What that run raised.
        """
        fresh = self._of_keys.get(key)
        if fresh is None:
            fresh = self._of_keys[key] = Fresh()
        return await fresh.get(work)
