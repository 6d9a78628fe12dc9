"""`UserFilters`: the users' entry filters in a dispatcher's chain, and what they put off.

Users' filters see every entry that the broker's own ones accept, plain ones, too. The first result
other than ACCEPT counts. What is rescheduled is held by `RescheduledEntries` for
`dispatcherEntryFilterRescheduledMessageDelay`, or until the dispatcher reads anew.

Source: EntryFilterSupport, AbstractBaseDispatcher in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.filtering import Verdict
from pulsar_py.server.hooks.entry_filter import FilterContext, FilteredEntry, FilterResult
from pulsar_py.server.hooks.installed_filters import InstalledFilter
from pulsar_py.wire.entry_summary import EntrySummary

MAX_RESCHEDULED: Final = 10_000
"""Entries that a Shared or Key_Shared dispatcher puts off at a time; then it reads no new ones."""


class FilterCounts(Struct):
    """Messages that users' filters judged, for one subscription; batches count all of theirs."""

    processed: int = 0
    accepted: int = 0
    rejected: int = 0
    rescheduled: int = 0


class UserFilters:
    """One member of a dispatcher's chain; made by its subscription."""

    judges_plain_entries = True
    is_of_users = True

    def __init__(
        self,
        filters: Sequence[InstalledFilter],
        context: Callable[[], FilterContext],
        counts: FilterCounts,
        reschedule: Callable[[Position], None],
    ) -> None:
        """`reschedule` has the entry at a position read again after the delay."""
        self._filters = tuple(filters)
        self._context = context
        self._counts = counts
        self._reschedule = reschedule

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
        """Ask the filters in order, until one objects."""
        result = self.result_of(entry, summary)
        if result is FilterResult.REJECT:
            return Verdict.ACKNOWLEDGE
        if result is FilterResult.RESCHEDULE:
            self._reschedule(entry.position)
            return Verdict.HOLD_BACK
        return Verdict.ACCEPT

    def result_of(self, entry: Entry, summary: EntrySummary) -> FilterResult:
        """The first result other than ACCEPT; a filter that fails accepts."""
        counts = self._counts
        messages_count = summary.messages_count
        counts.processed += messages_count
        shown = FilteredEntry(entry.ledger_id, entry.entry_id, bytes(entry.data))
        context = self._context()
        for each in self._filters:
            result = FilterResult.ACCEPT
            with each.contained:
                result = _checked(each.filter.filter_entry(shown, context))
            if result is FilterResult.REJECT:
                counts.rejected += messages_count
                return result
            if result is FilterResult.RESCHEDULE:
                counts.rescheduled += messages_count
                return result
        counts.accepted += messages_count
        return FilterResult.ACCEPT


def _checked(result: object) -> FilterResult:
    """What a filter returned; a number is no result, not even that of a member of the enum.

    Raises:
        TypeError: It is something else than the interface allows.
    """
    if isinstance(result, FilterResult):
        return result
    raise TypeError(f"filter_entry returned {result!r:.100}, expected a FilterResult")


class RescheduledEntries:
    """Positions that a dispatcher reads again later; owned by it."""

    def __init__(
        self,
        clock: Clock,
        delay_seconds: Callable[[], float],
        release: Callable[[list[Position]], None],
    ) -> None:
        """`release` gets the positions whose time has come."""
        self._clock = clock
        self._delay_seconds = delay_seconds
        self._release = release
        self._waiting: deque[tuple[float, Position]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """Whether no new entries may be read until some are released."""
        return len(self._waiting) >= MAX_RESCHEDULED

    @property
    def first(self) -> tuple[Position, float] | None:
        """The one that is due first, and in how many seconds; None if none waits."""
        if not self._waiting:
            return None
        due_at, position = self._waiting[0]
        return position, max(due_at - self._clock.monotonic_seconds(), 0.0)

    def __contains__(self, position: Position) -> bool:
        """Whether this one waits; all of them are looked at."""
        return any(each == position for _, each in self._waiting)

    def add(self, position: Position) -> None:
        """Put an entry off."""
        delay = self._delay_seconds()
        self._waiting.append((self._clock.monotonic_seconds() + delay, position))
        if self._timer is None:
            self._timer = self._clock.call_later(delay, self._on_timer)

    def clear(self) -> None:
        """Forget all: they are read anew, or nobody reads any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic_seconds()
        due: list[Position] = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(self._waiting.popleft()[1])
        if self._waiting:
            delay = max(self._waiting[0][0] - now, 0.0)
            self._timer = self._clock.call_later(delay, self._on_timer)
        if due:
            self._release(due)
