"""`ListenerPool`: the threads in which a consumer's listener is called, which may block (edge).

The asyncio consumer decides which call may begin (`message_listener_threads`,
`listener_concurrency`, the order of keys), and each call runs in a thread of the pool. `in_order`
makes callbacks of the loop calls of the pool, one after the other.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.failures import ErrorsLogged

__all__ = ["ListenerPool", "check_listener", "in_listener"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class _Current(threading.local):
    """The pool whose call runs in this thread."""

    pool: ListenerPool | None = None


_current = _Current()


def in_listener(pool: ListenerPool | None) -> bool:
    """Whether this is a thread of `pool`."""
    return pool is not None and _current.pool is pool


def check_listener(name: str, listener: object) -> None:
    """Refuse what a thread can't call.

    Raises:
        InvalidConfigurationError: It is a coroutine function, or can't be called at all.
    """
    if inspect.iscoroutinefunction(listener):
        raise InvalidConfigurationError(
            f"{name}: {getattr(listener, '__name__', listener)!r} is a coroutine function; a"
            " blocking client calls plain functions, in threads"
        )
    if not callable(listener):
        raise InvalidConfigurationError(
            f"{name}: expected a function, got {type(listener).__name__}"
        )


class ListenerPool:
    """Threads of one consumer, reader or table view; they start when they are needed."""

    def __init__(self, name: str, threads_count: int) -> None:
        self._executor = ThreadPoolExecutor(
            threads_count, thread_name_prefix=f"pulsar_py listener of {name}"
        )

    def calling(self, function: Callable[..., object]) -> Callable[..., Awaitable[None]]:
        """A coroutine function that calls `function` in a thread of the pool."""

        def call(*arguments: Any) -> None:  # Any: those of `function`
            _current.pool = self
            function(*arguments)

        async def called(*arguments: Any) -> None:  # Any: as above
            loop = asyncio.get_running_loop()
            try:
                running = loop.run_in_executor(self._executor, call, *arguments)
            except RuntimeError:  # no call begins any more: the consumer or the process ends,
                running = loop.create_future()  # and whoever waits for this one is cancelled
            await running

        return called

    def in_order(self, function: Callable[..., None], name: str) -> Callable[..., None]:
        """A function for the loop that has `function` called; needs a pool of one thread.

        What `function` raises is logged.
        """

        def call(*arguments: Any) -> None:  # Any: those of `function`
            _current.pool = self
            with ErrorsLogged(logger, "%s failed", name, extra={"listener": name}):
                function(*arguments)

        def post(*arguments: Any) -> None:  # Any: as above
            with suppress(RuntimeError):  # no call begins any more, see `calling`
                self._executor.submit(call, *arguments)

        return post

    def close(self) -> None:
        """Begin no more calls; those that run come to their end."""
        self._executor.shutdown(wait=False, cancel_futures=True)
