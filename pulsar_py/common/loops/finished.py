"""`FINISHED`: what plain functions return that may be awaited, though all is done (pure).

Whoever awaits it goes on at once; whoever does not hears nothing of it, as of a coroutine.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

__all__ = ["FINISHED", "Finished"]


class Finished:
    """Awaiting it returns None at once, as often as one likes."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield  # makes this a generator


FINISHED: Final = Finished()
"""The only one there has to be."""
