"""Warns when a blocking call stops the event loop that would have to answer it (edge).

A broker that runs in a loop of the application can't answer a client that blocks that very loop:
the official Python client, `requests`, `urllib`. Both wait, and in the end the client gives up with
a time-out that says nothing of it. A `LoopWatch` has a thread that asks the loop for a sign of
life. Where none comes in time, it looks where the loop's thread is; if that is in a library of this
kind, or waits for a socket, it logs which line of the application called it, and what to use. It
also names a class of the user's that the broker has called and that does not return: modules which
make such calls are named to it.

A loop that is busy, or stopped in a debugger, is not told of. A standstill is told of once.

Source: none in Pulsar, whose broker never shares a thread with its clients.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Container
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["LIMIT_SECONDS", "LoopWatch", "blocking_call", "blocking_users_call"]

logger = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 3.0
"""A standstill that is told of; well below the clients' time-outs of ten seconds and more."""

_BLOCKING: Final = ("pulsar", "_pulsar", "socket", "ssl", "http.client", "urllib3", "requests")
"""Modules, and packages, whose calls wait for an answer in the thread that calls them."""


class LoopWatch:
    """The watch over one loop, from its start until `stop`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        service_url: str,
        limit_seconds: float = LIMIT_SECONDS,
        calling_users: Container[str] = (),
    ) -> None:
        """Begin; call it in the loop's own thread.

        Args:
            loop: The loop that is watched.
            service_url: Of the broker in that loop; for the warning.
            limit_seconds: How long it may stand still, above 0.
            calling_users: Modules that call users' classes.
        """
        self._loop = loop
        self._service_url = service_url
        self._limit_seconds = limit_seconds
        self._calling_users = calling_users
        self._loop_thread_id = threading.get_ident()
        # Set by the loop when it is asked; cleared before.
        self._is_alive = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulsar_py loop watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait for its thread."""
        self._stopping.set()
        self._is_alive.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._limit_seconds / 3):
            self._is_alive.clear()
            if self._stopping.is_set():
                return  # `stop` was called just now, and the line above took its sign of life
            try:
                self._loop.call_soon_threadsafe(self._is_alive.set)
            except RuntimeError:  # the loop is closed
                return
            if not self._is_alive.wait(self._limit_seconds):
                self._tell()
                self._is_alive.wait()

    def _tell(self) -> None:
        frame = sys._current_frames().get(self._loop_thread_id)  # noqa: SLF001 - there is no other way
        if frame is None:
            return
        if (users_call := blocking_users_call(frame, self._calling_users)) is not None:
            logger.error(
                "%s has not returned for %g s, and the broker %s can't serve anybody meanwhile:"
                " filters and interceptors must not block",
                users_call,
                self._limit_seconds,
                self._service_url,
                extra={"service_url": self._service_url, "hook": users_call},
            )
            return
        if (place := blocking_call(frame)) is None:
            return
        logger.warning(
            "%s blocks the event loop of the broker %s, which can't answer meanwhile: run it"
            " with `await asyncio.to_thread(...)`, use `pulsar_py.Client`, or run the broker in a"
            " thread (`pulsar_py.testing.BrokerThread`, the fixture `pulsar_broker`)",
            place,
            self._service_url,
            extra={"service_url": self._service_url, "place": place},
        )


def blocking_call(frame: FrameType) -> str | None:
    """Where a stack went into a module that blocks, as `file:line`; None if it did not."""
    inner: FrameType | None = frame
    place = None
    while inner is not None:
        module = str(inner.f_globals.get("__name__", ""))
        if not _is_blocking(module):
            return place
        caller = inner.f_back
        if caller is not None:
            place = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno} ({module})"
        inner = caller
    return None


def blocking_users_call(frame: FrameType, calling_users: Container[str]) -> str | None:
    """The user's function that one of these modules called, and its line; None without one."""
    inner: FrameType = frame
    while (caller := inner.f_back) is not None:
        callee_module = str(inner.f_globals.get("__name__", ""))
        is_users = not f"{callee_module}.".startswith("pulsar_py.")
        if is_users and caller.f_globals.get("__name__") in calling_users:
            code = inner.f_code
            place = f"{Path(code.co_filename).name}:{inner.f_lineno}"
            return f"{callee_module.rpartition('.')[2]}.{code.co_qualname} ({place})"
        inner = caller
    return None


def _is_blocking(module: str) -> bool:
    return module.startswith("urllib.") or any(
        module == each or module.startswith(f"{each}.") for each in _BLOCKING
    )
