"""Decides which of many sources is asked next, so that none starves (pure).

Only sources that announced messages are in the rotation. One is asked; it goes to the end if it had
a message, and leaves the rotation otherwise. All steps take constant time.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Rotation"]

T = TypeVar("T")


class Rotation(Generic[T]):
    """Sources in the order of their turns; each is in it at most once."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        # A dict keeps order and membership; its values mean nothing.
        self._order: dict[T, None] = {}

    def add(self, source: T) -> None:
        """Add a source, behind all others; one that is in the rotation stays where it is."""
        self._order.setdefault(source)

    def next(self) -> T | None:
        """Take the source whose turn it is out of the rotation; None if that is empty."""
        for source in self._order:
            del self._order[source]
            return source
        return None

    def discard(self, source: T) -> None:
        """Remove a source; unknown ones are ignored."""
        self._order.pop(source, None)

    def clear(self) -> None:
        """Remove all sources."""
        self._order.clear()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, source: T) -> bool:
        return source in self._order
