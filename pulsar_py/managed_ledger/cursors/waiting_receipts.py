"""`WaitingReceipts`: the callbacks to call once acknowledgements are durable (pure).

A receipt waits until a write that began after its acknowledgement has ended. One write of a cursor
is under way at a time, so there are two groups: those that it covers, and those that wait for the
next one. In a group each receiver is told once, with the numbers of all its receipts: one call for
hundreds of acknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

OnDurable = Callable[[Sequence[int], Exception | None], None]
"""A receiver. Called with the numbers of its receipts, in order, and with None when what they
waited for is durable, else with the reason why not. Each receipt is told once."""


class WaitingReceipts:
    """The receipts of one cursor's acknowledgements. Owned by its CursorPersister."""

    __slots__ = ("_covered", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[OnDurable, list[int]] = {}
        """Those for the next write. More of a receiver that is there may be appended."""
        self._covered: dict[OnDurable, list[int]] = {}  # by the write under way

    def __bool__(self) -> bool:
        """Whether any waits for a write that has not begun."""
        return bool(self.waiting)

    def add(self, on_durable: OnDurable, number: int) -> None:
        """Let one more wait for the next write."""
        self.waiting.setdefault(on_durable, []).append(number)

    def begin(self) -> None:
        """A write of all that was acknowledged so far begins."""
        if self._covered:
            self._append(self._covered, self.waiting)
        else:
            self._covered = self.waiting
        self.waiting = {}

    def ended(self) -> None:
        """Tell those that the write covered that it is durable."""
        self._tell(None)

    def put_back(self) -> None:
        """Let those that the write covered wait for the next one: it failed."""
        self._append(self._covered, self.waiting)
        self.waiting, self._covered = self._covered, {}

    def end(self, error: Exception | None) -> None:
        """Tell all of them: everything is durable, or nothing will be written for them."""
        self.begin()
        self._tell(error)

    def _tell(self, error: Exception | None) -> None:
        covered, self._covered = self._covered, {}
        for on_durable, numbers in covered.items():
            on_durable(numbers, error)

    @staticmethod
    def _append(earlier: dict[OnDurable, list[int]], later: dict[OnDurable, list[int]]) -> None:
        for on_durable, numbers in later.items():
            earlier.setdefault(on_durable, []).extend(numbers)
