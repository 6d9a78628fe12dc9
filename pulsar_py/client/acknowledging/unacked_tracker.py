"""Finds messages that were handed out and not acknowledged in time, with a timer wheel (pure).

An entry enters with its first message that the application takes, alone or in a batch, and leaves
when all of it is acknowledged. Messages in the receiver queue never time out. The wheel has slots
of one tick: an entry lies in the slot of the tick at which it is due, so that adding, removing and
expiring cost the same however many there are. An entry is due after its time-out and at most a
tick later. `now` comes in.

Source: UnAckedMessageTracker and UnAckedMessageRedeliveryTracker in Pulsar's Java client.
"""

from __future__ import annotations

import math

from pulsar_py.client.acknowledging.redelivery_backoff import RedeliveryBackoff
from pulsar_py.client.messages.message import EntryKey

__all__ = ["UnackedMessageTracker", "unacked_tracker"]


class UnackedMessageTracker:
    """Entries of one consumer that wait for their acknowledgement."""

    __slots__ = ("_backoff", "_slot_of", "_slots", "_tick_seconds", "_timeout_ticks")

    def __init__(
        self,
        timeout_seconds: float,
        tick_seconds: float,
        backoff: RedeliveryBackoff | None = None,
    ) -> None:
        """`backoff` chooses each time-out by the redelivery count, instead of `timeout_seconds`."""
        assert tick_seconds > 0, tick_seconds
        self._tick_seconds = tick_seconds
        self._timeout_ticks = math.ceil(timeout_seconds / tick_seconds)
        self._backoff = backoff
        # Entry -> tick at which it is due; and the wheel: tick -> its entries.
        self._slot_of: dict[EntryKey, int] = {}
        self._slots: dict[int, set[EntryKey]] = {}

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, key: EntryKey) -> bool:
        return key in self._slot_of

    def add(self, key: EntryKey, redelivery_count: int, now: float) -> None:
        """Begin to wait for it; one that is waited for already keeps its time."""
        if key in self._slot_of:
            return
        ticks = self._timeout_ticks
        if self._backoff is not None:
            delay_seconds = self._backoff.next_delay_millis(redelivery_count) / 1000
            ticks = math.ceil(delay_seconds / self._tick_seconds)
        slot = int(now // self._tick_seconds) + ticks + 1
        self._slot_of[key] = slot
        self._slots.setdefault(slot, set()).add(key)

    def remove(self, key: EntryKey) -> None:
        """Forget an entry that is acknowledged; unknown ones are ignored."""
        if (slot := self._slot_of.pop(key, None)) is not None:
            self._leave(slot, key)

    def _leave(self, slot: int, key: EntryKey) -> None:
        entries = self._slots[slot]
        entries.discard(key)
        if not entries:
            del self._slots[slot]

    def remove_until(self, last: EntryKey) -> None:
        """Forget all entries up to this one: a cumulative acknowledgement."""
        for key in [each for each in self._slot_of if each <= last]:
            self._leave(self._slot_of.pop(key), key)

    def next_due(self) -> float | None:
        """When something is due next, None if nothing ever is."""
        return min(self._slots) * self._tick_seconds if self._slots else None

    def take_expired(self, now: float) -> list[EntryKey]:
        """Entries to ask for again, in order; they are forgotten."""
        current = int((now + self._tick_seconds * 1e-6) // self._tick_seconds)
        expired: list[EntryKey] = []
        for slot in [each for each in self._slots if each <= current]:
            expired += self._slots.pop(slot)
        for key in expired:
            del self._slot_of[key]
        return sorted(expired)

    def clear(self) -> None:
        """Forget all of them: everything is delivered again anyway."""
        self._slot_of.clear()
        self._slots.clear()


def unacked_tracker(
    timeout_ms: int | None, tick_ms: int, backoff: RedeliveryBackoff | None
) -> UnackedMessageTracker | None:
    """The tracker for these options of a consumer; None where messages never time out."""
    if not timeout_ms and backoff is None:
        return None
    return UnackedMessageTracker((timeout_ms or 0) / 1000, tick_ms / 1000, backoff)
