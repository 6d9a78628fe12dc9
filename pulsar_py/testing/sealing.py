"""Seals a simulated world: while it runs, real time, chance, threads and sockets raise.

    with sealed():
        runner.run(work)

A simulation replays exactly if it gets no input from outside. Code that reads the machine's clock,
draws from a generator without a seed, starts a thread or a process, or uses a socket while a world
is sealed gets a `RealityError` that names the call and the line. As some code may catch it, the
first one is raised again at the end. `steady_collector` fixes the times of garbage collections, on
which weak references and finalizers depend.

Only calls of the sealed thread are checked; other threads may do what they like, and so may
packages that observe a program from outside (`OBSERVERS`). Not noticed are functions that were
imported from their module before (`from time import monotonic`, a default argument),
`datetime.now`, and files: tests and lint keep these out of this package's own code.
"""

from __future__ import annotations

import gc
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final

OBSERVERS: Final = frozenset({"logging", "hypothesis", "pytest", "_pytest", "coverage"})
"""Top-level packages that may read the real time."""

_CLOCKS: Final = (
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep"),
)
_WRAPPERS: Final = frozenset({"random", "secrets", "uuid", "subprocess", "concurrent", "socket"})
"""Top-level packages that call for others: the caller of theirs is the one to be checked."""
_SOCKETS: Final = ("connect", "connect_ex", "bind", "listen")


class RealityError(RuntimeError):
    """A sealed world asked for something that is different in each run."""


class Seal:
    """One sealed world, on the thread that made it."""

    def __init__(self) -> None:
        self.offence: RealityError | None = None  # the first
        self.is_lifted = False
        self._thread = threading.get_ident()

    def check(self, what: str, caller: FrameType) -> None:
        """Refuse a call by the sealed thread, unless by an observer.

        Raises:
            RealityError: The call is refused.
        """
        if self.is_lifted or threading.get_ident() != self._thread:
            return
        while _package(caller) in _WRAPPERS and caller.f_back is not None:
            caller = caller.f_back
        if _package(caller) in OBSERVERS:
            return
        error = RealityError(
            f"{what} was called in a simulated world, by {caller.f_code.co_qualname} in "
            f"{caller.f_code.co_filename}:{caller.f_lineno}: runs would not replay"
        )
        self.offence = self.offence or error
        raise error


def _package(caller: FrameType) -> str:
    return str(caller.f_globals.get("__name__", "")).partition(".")[0]


_seals: list[Seal] = []
"""The seals in force, the innermost last."""


@contextmanager
def sealed() -> Iterator[Seal]:
    """Refuse real time, chance, threads and sockets until the end of the block.

    Raises:
        RealityError: There was such a call, even if the error was caught meanwhile.
    """
    seal = Seal()
    with ExitStack() as stack:
        for owner, name, replacement in _replacements(seal):
            stack.enter_context(_replaced(owner, name, replacement))
        _seals.append(seal)
        stack.callback(_seals.remove, seal)
        # A module that is first imported in the block may have taken a replacement and keep it.
        stack.callback(setattr, seal, "is_lifted", True)
        yield seal
    if seal.offence is not None:
        raise seal.offence


@contextmanager
def unsealed() -> Iterator[None]:
    """Allow real calls in the block, whose results must be the same in each run."""
    lifted = [seal for seal in _seals if not seal.is_lifted]
    for seal in lifted:
        seal.is_lifted = True
    try:
        yield
    finally:
        for seal in lifted:
            seal.is_lifted = False


@contextmanager
def steady_collector() -> Iterator[None]:
    """Collect cyclic garbage only on request, and none that existed before the block."""
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


Replacement = tuple[Any, str, Callable[..., Any]]  # Any: a module or a class


def _replacements(seal: Seal) -> Iterator[Replacement]:
    for name in _CLOCKS:
        yield time, name, _refusing(seal, getattr(time, name), f"time.{name}")
    for name, value in list(vars(random).items()):
        if isinstance(getattr(value, "__self__", None), random.Random):  # the module's own
            yield random, name, _refusing(seal, value, f"random.{name}")
    for module, name in ((os, "urandom"), (random, "_urandom"), (uuid, "uuid1"), (uuid, "uuid4")):
        yield module, name, _refusing(seal, getattr(module, name), f"{module.__name__}.{name}")
    yield random.Random, "seed", _refusing_no_seed(seal)
    for owner, name, what in (
        (threading.Thread, "start", "threading.Thread.start"),
        (subprocess.Popen, "__init__", "subprocess.Popen"),
        *((socket.socket, name, f"socket.{name}") for name in _SOCKETS),
    ):
        yield owner, name, _refusing(seal, getattr(owner, name), what)


def _refusing(seal: Seal, original: Callable[..., Any], what: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:  # Any: the original's
        seal.check(what, sys._getframe(1))  # noqa: SLF001 - the documented way to the caller
        return original(*arguments, **options)

    return call


def _refusing_no_seed(seal: Seal) -> Callable[..., None]:
    original = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:  # Any: the original's
        if a is None:
            seal.check("random.Random without a seed", sys._getframe(1))  # noqa: SLF001 - as above
        original(self, a, version)

    return seed


@contextmanager
def _replaced(owner: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    is_own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)  # inherited
