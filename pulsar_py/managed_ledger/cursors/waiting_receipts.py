"""`WaitingReceipts`: who is told once acknowledgements are durable (pure).

A receipt waits until a write that began after its acknowledgement has ended. One write of a cursor
is under way at a time, so there are two groups: those that it covers, and those that wait for the
next one.
"""

from __future__ import annotations

from collections.abc import Callable

OnDurable = Callable[[Exception | None], None]
"""Called once: with None when what it waited for is durable, else with the reason why not."""


class WaitingReceipts:
    """The callbacks of one cursor's acknowledgements. Owned by its CursorPersister."""

    __slots__ = ("_covered", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[OnDurable] = []  # for the next write
        self._covered: list[OnDurable] = []  # by the write under way

    def __bool__(self) -> bool:
        """Whether any waits for a write that has not begun."""
        return bool(self._waiting)

    def add(self, on_durable: OnDurable) -> None:
        """Let one more wait for the next write."""
        self._waiting.append(on_durable)

    def begin(self) -> None:
        """A write of all that was acknowledged so far begins."""
        self._covered += self._waiting
        self._waiting = []

    def ended(self) -> None:
        """Tell those that the write covered that it is durable."""
        covered, self._covered = self._covered, []
        for on_durable in covered:
            on_durable(None)

    def put_back(self) -> None:
        """Let those that the write covered wait for the next one: it failed."""
        self._waiting = self._covered + self._waiting
        self._covered = []

    def end(self, error: Exception | None) -> None:
        """Tell all of them: everything is durable, or nothing will be written for them."""
        self.begin()
        covered, self._covered = self._covered, []
        for on_durable in covered:
            on_durable(error)
