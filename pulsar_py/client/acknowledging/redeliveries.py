"""Asks for redelivery of entries, after a negative acknowledgement or a time-out (edge).

One timer serves the tracker of negative acknowledgements, that of unacknowledged messages, and the
expiry of incomplete chunked messages. It is set for the earliest of the three and only while one of
them has something.

Source: NegativeAcksTracker.triggerRedelivery and UnAckedMessageTracker in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pulsar_py.client.acknowledging.negative_acks import NegativeAcksTracker
from pulsar_py.client.acknowledging.unacked_tracker import UnackedMessageTracker
from pulsar_py.client.messages.message import EntryKey, ReceivedEntry
from pulsar_py.common.loops.clock import Clock

__all__ = ["Redeliveries"]


class Redeliveries:
    """The timer and trackers of one consumer; owned by it."""

    def __init__(
        self,
        clock: Clock,
        negative_acks: NegativeAcksTracker,
        unacked: UnackedMessageTracker | None,
        *,
        on_negative_acks: Callable[[Sequence[EntryKey]], None],
        on_ack_timeouts: Callable[[Sequence[EntryKey]], None],
        expire_chunks: Callable[[float], float | None],
    ) -> None:
        """Nothing is timed before an entry is refused, handed out, or incomplete.

        Args:
            clock: For the timer.
            negative_acks: Keeps refused entries until their delay has passed.
            unacked: Keeps entries that wait for an acknowledgement; None: without a time limit.
            on_negative_acks: Gets refused entries that are due, to ask for them.
            on_ack_timeouts: Gets entries that waited too long, to ask for them.
            expire_chunks: Gives up incomplete messages that expired at the given time; returns
                when the next one expires, None for none.
        """
        self._clock = clock
        self._on_negative_acks = on_negative_acks
        self._on_ack_timeouts = on_ack_timeouts
        self._expire_chunks = expire_chunks
        self.negative_acks = negative_acks
        self.unacked = unacked
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._chunks_expire_at: float | None = None

    @property
    def is_watching(self) -> bool:
        """Whether entries are tracked, so that acknowledgements have to be passed on."""
        return self.unacked is not None or len(self.negative_acks) > 0

    def refuse_entry(self, entry: ReceivedEntry) -> None:
        """Ask for this entry again after the delay; of a chunked message for all of them."""
        for key in entry.chunk_ids or (entry.key,):
            self.refuse(key, entry.redelivery_count)

    def refuse(self, key: EntryKey, redelivery_count: int) -> None:
        """Ask for this entry again after the delay."""
        now = self._clock.monotonic_seconds()
        self.negative_acks.add(key, redelivery_count, now)
        if self.unacked is not None:
            self.unacked.remove(key)
        self._set_timer(now)

    def entry_handed_out(self, entry: ReceivedEntry) -> None:
        """The application has a message of this entry; call it only where there are time-outs."""
        for key in entry.chunk_ids or (entry.key,):
            self.handed_out(key, entry.redelivery_count)

    def handed_out(self, key: EntryKey, redelivery_count: int) -> None:
        """Ask for this entry again unless it is acknowledged in time."""
        assert self.unacked is not None
        if key not in self.unacked:
            now = self._clock.monotonic_seconds()
            self.unacked.add(key, redelivery_count, now)
            if self._timer is None:
                self._set_timer(now)

    def chunks_wait(self, expire_at: float | None) -> None:
        """Set the time at which the oldest incomplete message expires; None: there is none."""
        self._chunks_expire_at = expire_at
        if expire_at is not None:
            self._set_timer(self._clock.monotonic_seconds())

    def entry_acknowledged(self, entry: ReceivedEntry) -> None:
        """Forget an entry that is acknowledged."""
        for key in entry.chunk_ids or (entry.key,):
            self.acknowledged(key)

    def acknowledged(self, key: EntryKey) -> None:
        """Forget an entry that is acknowledged."""
        if self.unacked is not None:
            self.unacked.remove(key)
        if len(self.negative_acks):
            self.negative_acks.remove(key)

    def acknowledged_until(self, key: EntryKey) -> None:
        """Stop the time-outs of all entries up to this one: a cumulative acknowledgement."""
        if self.unacked is not None:
            self.unacked.remove_until(key)

    def clear(self) -> None:
        """Forget all entries: the broker delivers everything again anyway."""
        self.negative_acks.clear()
        if self.unacked is not None:
            self.unacked.clear()

    def _set_timer(self, now: float) -> None:
        candidates = [self.negative_acks.next_due(), self._chunks_expire_at]
        if self.unacked is not None:
            candidates.append(self.unacked.next_due())
        due = min((each for each in candidates if each is not None), default=None)
        if self._timer is not None:
            if due is not None and self._timer_at <= due:
                return  # the timer comes earlier, and is then set again for what is left
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer_at = due
            self._timer = self._clock.call_later(max(due - now, 0), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic_seconds()
        if refused := self.negative_acks.take_due(now):
            self._on_negative_acks(refused)
        if self.unacked is not None and (expired := self.unacked.take_expired(now)):
            self._on_ack_timeouts(expired)
        if self._chunks_expire_at is not None and self._chunks_expire_at <= now:
            self._chunks_expire_at = self._expire_chunks(now)
        self._set_timer(now)

    def close(self) -> None:
        """Stop the timer, and forget everything."""
        self.clear()
        self._chunks_expire_at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
