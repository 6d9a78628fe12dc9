"""`DelayedDeliveryTracker`: entries that must not be delivered before a time (pure).

Times are grouped: they are rounded up to a multiple of the largest power of two that fits into one
tick (512 ms for the tick of 1000 ms), and each group has one bitmap of entry ids for each ledger.
So a million delayed entries of one hour cost some megabytes at most. Nothing is stored: after a
restart the entries are unacknowledged, so they are read and added again.

What always holds: no entry is returned before its time, and every entry is returned from the first
millisecond of its group on, less than one tick after its time. Apache Pulsar's tracker delivers up
to one tick early unless isDelayedDeliveryDeliverAtTimeStrict is on; this one never does.

Source: InMemoryDelayedDeliveryTracker in Pulsar's broker, PIP-26.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyroaring import BitMap64
from sortedcontainers import SortedDict

from pulsar_py.common.position import Position
from pulsar_py.server.dispatch.pending_acks import PositionKey


class DelayedTracker(Protocol):
    """What a dispatcher asks about delayed entries.

    Attributes:
        is_ready: Nothing may be read before it is set.
        on_news: Set by the dispatcher; called when it became ready, or more entries became known.
    """

    is_ready: bool
    on_news: Callable[[], None] | None

    def __len__(self) -> int:
        """Entries that are held back."""

    @property
    def memory_bytes(self) -> int:
        """Roughly what it takes in memory."""

    def set_tick_millis(self, tick_millis: int) -> None:
        """Let an entry be late by less than this from now on."""

    def add(self, position: PositionKey, deliver_at_millis: int, now_millis: int) -> bool:
        """Hold an entry back; False if it may be delivered now. Adding it again changes nothing."""

    def knows(self, position: PositionKey) -> bool:
        """Whether an entry must not be sent though it was read: it is held, or was returned."""

    def take_due(self, limit: int, now_millis: int) -> list[PositionKey]:
        """Remove and return up to `limit` due entries."""

    def has_due(self, now_millis: int) -> bool:
        """Whether any entry may be delivered now."""

    def next_check_millis(self, now_millis: int) -> int | None:
        """Milliseconds until an entry is due, None when none is known."""

    def is_pausing(self, now_millis: int) -> bool:
        """Whether reading ahead should pause."""

    def discard_up_to(self, position: Position) -> None:
        """Called when entries up to a mark-delete position were skipped or expired."""

    def on_backlog_cleared(self) -> None:
        """Called when all entries were acknowledged at once."""

    def on_rewind(self) -> None:
        """Called when the cursor begins again at the first unacknowledged entry."""


class DelayedDeliveryTracker:
    """The delayed entries of a Shared or Key_Shared subscription. Owned by its dispatcher."""

    def __init__(self, *, tick_millis: int, look_ahead: int) -> None:
        """`look_ahead` entries, all of the same delay, pause reading (see `is_pausing`); 0: never.

        `tick_millis` bounds how late an entry is; 0 and 1 group nothing.
        """
        self.is_ready = True
        self.on_news: Callable[[], None] | None = None
        self.set_tick_millis(tick_millis)
        self._look_ahead = look_ahead
        # Group time in ms to bitmaps of entry ids by ledger. (No types are shipped.)
        self._groups: SortedDict = SortedDict()
        self._count = 0
        self._highest_millis = 0
        self._has_fixed_delay = True

    def __len__(self) -> int:
        """Entries that are held back."""
        return self._count

    @property
    def memory_bytes(self) -> int:
        """Not counted: 0."""
        return 0

    def set_tick_millis(self, tick_millis: int) -> None:
        """Group new entries by another tick; waiting ones keep their time."""
        self._tick_millis = tick_millis
        self._precision_bits = max(tick_millis.bit_length() - 1, 0)

    def add(self, position: PositionKey, deliver_at_millis: int, now_millis: int) -> bool:
        """Hold an entry back; False if it may be delivered now. Adding it again changes nothing."""
        if deliver_at_millis <= now_millis:
            self._has_fixed_delay = False
            return False
        if deliver_at_millis < self._highest_millis - self._tick_millis:
            self._has_fixed_delay = False
        self._highest_millis = max(self._highest_millis, deliver_at_millis)
        ledger_id, entry_id = position
        group = self._groups.setdefault(self._group_millis(deliver_at_millis), {})
        bitmap = group.get(ledger_id)
        if bitmap is None:
            bitmap = group[ledger_id] = BitMap64()
        if entry_id not in bitmap:
            bitmap.add(entry_id)
            self._count += 1
        return True

    def knows(self, position: PositionKey) -> bool:  # noqa: ARG002 - each is judged again
        """False: entries that are read again are judged again."""
        return False

    def take_due(self, limit: int, now_millis: int) -> list[PositionKey]:
        """Remove and return up to `limit` due entries, by group and then position."""
        due: list[PositionKey] = []
        while self._groups and len(due) < limit:
            group_millis, group = self._groups.peekitem(0)
            if group_millis > now_millis:
                break
            for ledger_id in sorted(group):
                bitmap = group[ledger_id]
                taken = list(bitmap[: limit - len(due)])
                due.extend((ledger_id, entry_id) for entry_id in taken)
                bitmap.difference_update(BitMap64(taken))
                if not bitmap:
                    del group[ledger_id]
                if len(due) >= limit:
                    break
            if not group:
                del self._groups[group_millis]
        self._count -= len(due)
        if not self._count:
            self._has_fixed_delay = True
            self._highest_millis = 0
        return due

    def has_due(self, now_millis: int) -> bool:
        """Whether any entry may be delivered now."""
        return bool(self._groups) and self._groups.peekitem(0)[0] <= now_millis

    def next_check_millis(self, now_millis: int) -> int | None:
        """Milliseconds until an entry is due, None when none waits."""
        if not self._groups:
            return None
        return max(int(self._groups.peekitem(0)[0]) - now_millis, 0)

    def is_pausing(self, now_millis: int) -> bool:
        """Whether reading should pause: many entries wait, all with the same delay.

        The entries after them are probably due even later.
        """
        return (
            self._look_ahead > 0
            and self._has_fixed_delay
            and self._count >= self._look_ahead
            and not self.has_due(now_millis)
        )

    def discard_up_to(self, position: Position) -> None:
        """Nothing to do: an acknowledged entry is dropped when it is due."""

    def on_backlog_cleared(self) -> None:
        """Forget all entries."""
        self.clear()

    def on_rewind(self) -> None:
        """Forget all entries; the cursor will read them again."""
        self.clear()

    def clear(self) -> None:
        """Forget all entries."""
        self._groups.clear()
        self._count = 0
        self._highest_millis = 0
        self._has_fixed_delay = True

    def _group_millis(self, deliver_at_millis: int) -> int:
        """The time rounded up: at or after it, by less than a tick."""
        bits = self._precision_bits
        return (deliver_at_millis + (1 << bits) - 1) >> bits << bits
