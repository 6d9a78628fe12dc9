"""`WriteSchedule`: decides when changed state is written (pure).

Changes are counted; a write takes all that were made before it began. Writes begin at most once an
interval, and that long after a change at the latest; after a quiet time a change waits a little, so
that others can join it. One write is under way at a time; what changes meanwhile is due afterwards.

Source: the mark-delete rate limit and flush of dirty cursors in ManagedCursorImpl.
"""

from __future__ import annotations

# After a quiet time, a change waits this part of the interval for others to join it.
_GROUPING_PART = 0.1


class WriteSchedule:
    """Counts changes and writes of one state; owned by it."""

    __slots__ = (
        "_began_at",
        "_dirty_since",
        "_in_flight",
        "_interval_seconds",
        "_version",
        "_written",
    )

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._version = 0  # grows with every change
        self._written = 0  # the version of the last finished write
        self._in_flight: int | None = None  # the version being written
        self._dirty_since = 0.0  # time of the first change not covered by any write begun so far
        self._began_at = float("-inf")  # when the last write began

    def set_interval(self, seconds: float) -> None:
        """Use another interval from now on, for pending changes too."""
        self._interval_seconds = seconds

    @property
    def is_dirty(self) -> bool:
        """Whether something changed that no finished write has."""
        return self._version != self._written

    @property
    def is_in_flight(self) -> bool:
        """Whether a write was begun and has not ended."""
        return self._in_flight is not None

    def changed(self, now: float) -> None:
        """Count a change made at `now`."""
        if self._version == (self._written if self._in_flight is None else self._in_flight):
            self._dirty_since = now
        self._version += 1

    def due_at(self) -> float | None:
        """The time of the next write; None while clean or while one is under way."""
        if self._in_flight is not None or self._version == self._written:
            return None
        interval = self._interval_seconds
        return max(self._began_at + interval, self._dirty_since + interval * _GROUPING_PART)

    def begin(self, now: float, *, is_forced: bool = False) -> int | None:
        """Begin a write if one is due (or forced and anything is dirty); returns its version."""
        due_at = self.due_at()
        if due_at is None or (now < due_at and not is_forced):
            return None
        self._began_at = now
        self._in_flight = self._version
        return self._version

    def finished(self, version: int) -> None:
        """Note that the write of `version` is durable."""
        assert self._in_flight == version, "only the write under way can end"
        self._in_flight = None
        self._written = version

    def failed(self, version: int) -> None:
        """Note that the write may have failed: it is still dirty, and due an interval later."""
        assert self._in_flight == version, "only the write under way can end"
        self._in_flight = None
