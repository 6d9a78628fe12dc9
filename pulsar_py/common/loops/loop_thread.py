"""Runs coroutines from plain functions, on an event loop in a thread of its own (edge).

Spark's sources and the blocking `AdminClient` are called by code without an event loop, or from
inside somebody else's. Crossing to the loop costs tens of microseconds: cross it once a batch.

Third-party packages it may import: uvloop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, which runs until `stop`, or the end of the process."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="pulsar_py", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:  # Any: as in asyncio.run
        """Start a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call `callback` on the loop, later; returns at once."""
        self._loop.call_soon_threadsafe(callback)

    def call(self, work: Coroutine[Any, Any, T]) -> T:  # Any: as in asyncio.run
        """Run a coroutine on the loop; returns its result, raises what it raises.

        An interrupted wait (Ctrl-C) cancels the coroutine.
        """
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()  # does nothing once it is done

    def stop(self) -> None:
        """End the loop and its threads; no other call may be under way."""
        self.call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
