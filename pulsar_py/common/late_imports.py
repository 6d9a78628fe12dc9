"""Imports of many modules together, without Python's cyclic garbage collector meanwhile.

What modules make stays, and looking through it again and again takes a fifth of a broker's start.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

__all__ = ["collecting_nothing", "import_all"]


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


def import_all(names: Iterable[str]) -> None:
    """Import modules and all that they import; a thread may do it while a loop goes on."""
    with collecting_nothing():
        for name in names:
            import_module(name)
