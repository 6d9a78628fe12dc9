"""`TurnLoop`: uvloop's loop, whose turn another thread may take while it waits (edge).

    loop:    [turn: callback] [turn: callback]  ... waits ...   [turn: data came]
    thread:                                     [turn: write]

All that the loop calls, it calls with `turn` in its hands: callbacks of tasks, timers and other
threads are wrapped here, and the client's connection takes the turn for what its transport calls.
So a thread that holds it is alone with what belongs to the loop, and may use it, as far as that
asks nothing of the loop: no timer, no callback, no transport.

A thread never waits for the turn, so it may hold locks for which the loop waits. In the main thread
the handlers of signals run between any two steps of Python. Ctrl-C raises, which the callee has to
bear. Another handler may wait for the loop, which would wait for the turn: where there is one the
main thread does not get the turn. So may a finalizer, which the garbage collector calls wherever
something is allocated: a thread that has the turn does not get it again, and `has_turn` tells it
not to wait.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable
from contextvars import Context
from importlib import import_module
from threading import RLock, get_ident, main_thread
from typing import Final, TypeVar, TypeVarTuple

import uvloop

from pulsar_py.common.loops.clock import SystemClock

__all__ = ["TurnLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_HANDLERS_SECONDS: Final = 0.1
"""How long it may take to notice a new handler of a signal."""

_SIGNALS: Final = [int(each) for each in signal.valid_signals()]
_handler_of: Final = import_module("_signal").getsignal
"""As `signal.getsignal`, which looks at its enumerations, too: 2 us for all, not 150."""

_monotonic_seconds: Final = SystemClock().monotonic_seconds
_call_soon: Final = uvloop.Loop.call_soon
_call_soon_threadsafe: Final = uvloop.Loop.call_soon_threadsafe
_call_later: Final = uvloop.Loop.call_later


class TurnLoop(uvloop.Loop):
    """An event loop with a turn."""

    def __init__(self) -> None:
        """A loop that does not run yet."""
        super().__init__()
        # Taken again where the loop's own work leads back to it; `release` knows who has it.
        self.turn: Final = RLock()
        # The thread that runs it, and the one that is in `call_between`.
        self._own_ident = self._holder = -1
        # False in a child of the process that it runs in.
        self.lends_turns = True
        # The main thread; whether a signal may do more there than raise, as Ctrl-C does, and when
        # to look at that again.
        self._main_ident = main_thread().ident
        self._has_handlers = True
        self._handlers: list[object] = []
        self._look_again_at = -math.inf

    def run_forever(self) -> None:
        """As that of any loop."""
        self._own_ident = get_ident()
        super().run_forever()

    @property
    def has_turn(self) -> bool:
        """Whether this thread is in `call_between`: then it must not wait for the loop."""
        return self._holder == get_ident()

    def call_between(self, function: Callable[[*Ts], T | None], *args: *Ts) -> T | None:
        """What `function` returns, called here in a turn of its own; None if the loop is at work.

        `function` must not wait, and has to bear that Ctrl-C ends it anywhere.
        """
        # Hot path: latency in `make bench-client`, blocking.
        ident = get_ident()
        if (
            not self.lends_turns
            or ident in {self._own_ident, self._holder}
            or (
                ident == self._main_ident
                and (self._has_handlers or _monotonic_seconds() >= self._look_again_at)
                and self._may_be_interrupted()
            )
        ):
            return None
        turn = self.turn
        try:
            if not turn.acquire(False):  # a keyword would cost more than the call
                return None
            self._holder = ident
            return function(*args)
        finally:
            # By a plain call, which comes before whatever else interrupts this thread.
            if self._holder == ident:
                self._holder = -1
            try:  # noqa: SIM105 - a call of `suppress` could be interrupted
                turn.release()
            except RuntimeError:  # it is the loop's
                pass

    def forget_handlers(self) -> None:
        """Look at the handlers of signals again, before the next turn of the main thread.

        Call it before a wait for which the turn decides: a handler that is new may come within it.
        """
        # Hot path: latency in `make bench-client`, blocking.
        if get_ident() == self._main_ident:
            self._look_again_at = -math.inf

    def _may_be_interrupted(self) -> bool:
        now = _monotonic_seconds()
        if now >= self._look_again_at:
            self._look_again_at = now + _HANDLERS_SECONDS
            handlers = list(map(_handler_of, _SIGNALS))
            if handlers != self._handlers:
                self._handlers = handlers
                self._has_handlers = any(
                    callable(each) for each in handlers if each is not signal.default_int_handler
                )
        return self._has_handlers

    def _in_turn(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        with self.turn:
            callback(*args)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As that of any loop; a thread that has the turn may call it, too."""
        if self._holder != -1:
            return _call_soon_threadsafe(self, self._in_turn, callback, *args, context=context)
        return _call_soon(self, self._in_turn, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As that of any loop."""
        return _call_soon_threadsafe(self, self._in_turn, callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As that of any loop; uvloop's `call_at` calls it, too."""
        return _call_later(self, delay, self._in_turn, callback, *args, context=context)
