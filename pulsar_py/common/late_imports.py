"""Imports of many modules together, without Python's cyclic garbage collector meanwhile.

What modules make stays, and looking through it again and again takes a fifth of a broker's start.
Even once is 11 ms after the start's imports.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

__all__ = ["collecting_nothing", "import_all", "importing_for_good"]


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Load modules without the collector; afterwards it is as it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def importing_for_good() -> Iterator[None]:
    """Load modules that the collector never looks through, in a process that is ours alone.

    Nor does it look through what else is there then: cycles of those objects would stay.
    """
    with collecting_nothing():
        yield
        gc.freeze()


def import_all(names: Iterable[str]) -> None:
    """Import modules and all that they import; a thread may do it while a loop goes on.

    Not for good: users' objects are there, too, whose cycles are to be found.
    """
    with collecting_nothing():
        for name in names:
            import_module(name)
