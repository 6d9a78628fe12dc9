"""`SendResult`: what `send_nowait` of a blocking producer returns; gives the message's id later.

It exists before the loop has taken the message: then it is neither submitted nor refused. Threads
that wait are woken by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from pulsar_py.blocking.client_thread import Signal
from pulsar_py.client.producing import send_result
from pulsar_py.client.producing.send_result import SendCompletion
from pulsar_py.common.message_id import MessageId

__all__ = ["SendResult"]


class Way(Protocol):
    """The interface by which a result reaches the loop; the producer's `HandOver` implements it."""

    def observe(self, observe: Callable[[], None]) -> None:
        """Have the loop take all waiting messages at once, and then call `observe`."""

    def add_observer(self, result: SendResult, observer: Callable[[], None]) -> None:
        """Have `observer` called when the result is done."""


class SendResult:
    """One message on its way; `result` waits for its id."""

    __slots__ = ("_batch_index", "_completion", "_error", "_observers", "_way")

    def __init__(self, way: Way) -> None:
        self._way = way
        # The asyncio client's half, and the error with which it refused the message; both None
        # until the loop takes the message.
        self._completion: SendCompletion | None = None
        self._batch_index = -1
        self._error: Exception | None = None
        # Called when it is done; those that came before the loop took the message.
        self._observers: list[Callable[[], None]] | None = None

    # --- called by the loop --------------------------------------------------------------------

    def accepted(self, inner: send_result.SendResult) -> None:
        """The asyncio client accepted the message."""
        self.submitted(*inner._parts)  # noqa: SLF001 - its other half

    def submitted(self, completion: SendCompletion, batch_index: int) -> None:
        """As `accepted`, by what the other half is made of."""
        # Hot path: produce in `make bench-client`.
        self._batch_index = batch_index
        self._completion = completion
        if self._observers is not None:
            for each in self._observers:
                completion.observe(each)

    def refused(self, error: Exception) -> bool:
        """The asyncio client did not accept it; returns whether any caller gets the error."""
        self._error = error
        for each in self._observers or ():
            each()
        return self._observers is not None

    def _observe(self, observer: Callable[[], None]) -> None:
        if self._completion is not None:
            self._completion.observe(observer)
        elif self._error is not None:
            observer()
        elif self._observers is None:
            self._observers = [observer]
        else:
            self._observers.append(observer)

    # --- called by the application -------------------------------------------------------------

    def done(self) -> bool:
        """Whether `result` returns, or raises, at once."""
        completion = self._completion
        return completion.is_done if completion is not None else self._error is not None

    def result(self, timeout_seconds: float | None = None) -> MessageId:
        """The message's id; waits for it.

        Args:
            timeout_seconds: The longest wait; None for no limit. The message is still sent.

        Raises:
            TimeoutError: Neither receipt nor error came in time.
            ClientError, ServiceError: The message failed; see `Producer.send`.
        """
        self._wait(timeout_seconds)
        if self._error is not None:
            raise self._error.with_traceback(None)
        assert self._completion is not None, "done, and not refused"
        return self._completion.outcome(self._batch_index)

    def exception(self, timeout_seconds: float | None = None) -> Exception | None:
        """The error that the message failed with, None if it is stored; waits as `result`.

        Raises:
            TimeoutError: Neither receipt nor error came in time.
        """
        self._wait(timeout_seconds)
        if self._completion is None:
            return self._error
        self._completion.is_asked_for = True
        return self._completion.error

    def _wait(self, timeout_seconds: float | None) -> None:
        if self.done():
            return
        signal = Signal()
        self._way.observe(partial(self._observe, signal.set))
        signal.wait(timeout_seconds)

    def add_done_callback(self, callback: Callable[[SendResult], None]) -> None:
        """Call `callback(self)` in the client's thread when it is done; at once if it is.

        It must neither block nor raise: the client stands still meanwhile.
        """
        self._way.add_observer(self, lambda: callback(self))

    def __repr__(self) -> str:
        if self._error is not None:
            return f"blocking.SendResult(failed: {self._error})"
        if self._completion is None:
            return "blocking.SendResult(on its way)"
        return f"blocking.{send_result.SendResult(self._completion, self._batch_index)!r}"
