"""Context managers for blocks that may fail: undo what was begun, or log an error of foreign code.

    writer = await open_writer()
    async with OnFailureAwait(writer.abandon):    # also if this is cancelled
        await fill(writer)

    with ErrorsLogged(logger, "interceptor failed", extra={"call": "before_send"}):
        interceptor.before_send(producer, message)

`OnFailure` and `OnFailureAwait` never hold an error back: they replace an `except BaseException`
that ends in `raise`. `ErrorsLogged` holds back every `Exception`: it is for code that the
application hands in, and for listeners whose error must not keep the news from the others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

__all__ = ["ErrorsLogged", "OnFailure", "OnFailureAwait"]


class OnFailure:
    """Calls a function if the block raises or is cancelled; the error goes on."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        """Nothing happens before the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._undo()


class OnFailureAwait:
    """Awaits what a function returns if the block raises or is cancelled; the error goes on."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], Awaitable[object]]) -> None:
        self._undo = undo

    async def __aenter__(self) -> None:
        """Nothing happens before the block."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            await self._undo()


class ErrorsLogged:
    """Logs an `Exception` of the block with its traceback and goes on behind the block.

    Cancelling and other `BaseException`s go on.
    """

    __slots__ = ("_args", "_extra", "_logger", "_message")

    def __init__(
        self,
        logger: logging.Logger,
        message: str,
        *args: object,
        extra: Mapping[str, Any] | None = None,  # Any: fields of all kinds
    ) -> None:
        """Arguments are those of `Logger.exception`."""
        self._logger = logger
        self._message = message
        self._args = args
        self._extra = extra

    def __enter__(self) -> None:
        """Nothing happens before the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._logger.error(self._message, *self._args, extra=self._extra, exc_info=error)
        return True
