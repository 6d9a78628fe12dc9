"""Keeps negatively acknowledged messages until their redelivery is due (pure).

The broker redelivers whole entries: after a negative acknowledgement of one message of a batch, all
of its unacknowledged messages come again. Times are rounded up to a grid of a tenth of the delay,
at most a second, so that messages refused at nearly the same time share one command. `now` comes
in.

Source: NegativeAcksTracker in Pulsar's Java client.
"""

from __future__ import annotations

import heapq
import math
from typing import Final

from pulsar_py.client.acknowledging.redelivery_backoff import RedeliveryBackoff
from pulsar_py.client.messages.message import EntryKey

__all__ = ["NegativeAcksTracker"]

_GRID_PART: Final = 10
_GRID_SECONDS_MAX: Final = 1.0
_GRID_SECONDS_MIN: Final = 0.001


class NegativeAcksTracker:
    """Refused entries of one consumer."""

    __slots__ = ("_backoff", "_delay_seconds", "_due", "_grid_seconds", "_groups", "_ticks")

    def __init__(self, delay_seconds: float, backoff: RedeliveryBackoff | None = None) -> None:
        """`backoff` chooses each delay by the redelivery count, instead of `delay_seconds`."""
        self._delay_seconds = delay_seconds
        self._backoff = backoff
        shortest = delay_seconds if backoff is None else backoff.next_delay_millis(0) / 1000
        self._grid_seconds = min(max(shortest / _GRID_PART, _GRID_SECONDS_MIN), _GRID_SECONDS_MAX)
        # Entry -> tick of the grid at which it is due; and tick -> its entries.
        self._due: dict[EntryKey, int] = {}
        self._groups: dict[int, set[EntryKey]] = {}
        # A heap of the keys of `_groups`.
        self._ticks: list[int] = []

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: EntryKey, redelivery_count: int, now: float) -> None:
        """Ask for this entry again after the delay, which begins anew if it is refused again."""
        delay_seconds = self._delay_seconds
        if self._backoff is not None:
            delay_seconds = self._backoff.next_delay_millis(redelivery_count) / 1000
        self.remove(key)
        tick = math.ceil((now + delay_seconds) / self._grid_seconds)
        self._due[key] = tick
        if (group := self._groups.get(tick)) is None:
            group = self._groups[tick] = set()
            heapq.heappush(self._ticks, tick)
        group.add(key)

    def remove(self, key: EntryKey) -> None:
        """Forget an entry that was acknowledged after all; unknown ones are ignored."""
        if (tick := self._due.pop(key, None)) is not None:
            self._groups[tick].discard(key)

    def next_due(self) -> float | None:
        """When something is due next, None if nothing ever is."""
        self._drop_empty_groups()
        return self._ticks[0] * self._grid_seconds if self._ticks else None

    def _drop_empty_groups(self) -> None:
        while self._ticks and not self._groups[self._ticks[0]]:
            del self._groups[heapq.heappop(self._ticks)]

    def take_due(self, now: float) -> list[EntryKey]:
        """Entries to ask for now, in order; they are forgotten."""
        due: list[EntryKey] = []
        # A timer set for `next_due` may come back with a `now` that rounding made a little smaller.
        last = now + self._grid_seconds * 1e-6
        while self._ticks and self._ticks[0] * self._grid_seconds <= last:
            due += self._groups.pop(heapq.heappop(self._ticks))
        for key in due:
            del self._due[key]
        return sorted(due)

    def clear(self) -> None:
        """Forget all of them: everything is delivered again anyway."""
        self._due.clear()
        self._groups.clear()
        self._ticks.clear()
