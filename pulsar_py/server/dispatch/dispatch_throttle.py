"""`DispatchThrottle`: how much a dispatcher may read and send now, by the limits on its rates.

Entries are never split, and how many messages one has is only known once it was read. So a batch
has as many entries as the largest one that was seen so far fits into what may be spent now, at
first one; of those that turn out to be larger, as many are sent as fit, and the others are read
again. What was sent is charged afterwards.
While entries are read from storage, as much is kept for them, since others share the limits.

Source: AbstractBaseDispatcher.acquirePermitsForDeliveredMessages in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from pulsar_py.common.loops.rate_limiter import ROUNDING, RateLimiter


class ThrottledEvents(Struct):
    """How often a limit of messages, or of bytes, held a subscription's dispatch, by whose limit.

    The limits of resource groups do not count, as in Pulsar.
    """

    messages_by_subscription: int = 0
    bytes_by_subscription: int = 0
    messages_by_topic: int = 0
    bytes_by_topic: int = 0
    messages_by_broker: int = 0
    bytes_by_broker: int = 0

    def count(self, limiter: RateLimiter, messages_count: int, size_bytes: int) -> None:
        """Count one wait for a limiter, which has too few messages, or else too few bytes."""
        messages, size = limiter.available()
        lacks_messages = messages < messages_count or (size >= size_bytes and limiter.limits[0] > 0)
        match limiter.scope.partition(" ")[0], lacks_messages:
            case "subscription", True:
                self.messages_by_subscription += 1
            case "subscription", False:
                self.bytes_by_subscription += 1
            case "topic", True:
                self.messages_by_topic += 1
            case "topic", False:
                self.bytes_by_topic += 1
            case "broker", True:
                self.messages_by_broker += 1
            case "broker", False:
                self.bytes_by_broker += 1


class DispatchThrottle:
    """The limits on one dispatcher, which owns it; made anew when settings change."""

    __slots__ = ("_counts_entries", "_is_charged_filtered", "_largest", "_limiters", "events")

    def __init__(
        self,
        limiters: Sequence[RateLimiter],
        *,
        counts_entries: bool = False,
        charges_filtered: bool = False,
    ) -> None:
        """With `counts_entries` a batch counts as one message.

        With `charges_filtered` entries that users' filters reject or put off count, too.
        """
        self._limiters = tuple(limiters)
        self._counts_entries = counts_entries
        self._is_charged_filtered = charges_filtered
        self._largest: tuple[int, int] | None = None  # messages and bytes; None before the first
        self.events = ThrottledEvents()  # shared with those before and after it

    def is_ready(self, on_ready: Callable[[], None]) -> bool:
        """Whether an entry may be sent now; if not, `on_ready` is called once it may."""
        messages_count, size_bytes = self._largest or (1, 1)
        for limiter in self._limiters:
            if not limiter.takes(messages_count, size_bytes):
                if limiter.wait(messages_count, size_bytes, on_ready):
                    self.events.count(limiter, messages_count, size_bytes)
                return False
        return True

    def refusals(self) -> list[tuple[RateLimiter, float]]:
        """The limits within which no entry may be sent now, and for how many seconds."""
        messages_count, size_bytes = self._largest or (1, 1)
        found = [(each, each.seconds_until(messages_count, size_bytes)) for each in self._limiters]
        return [(limiter, seconds) for limiter, seconds in found if seconds > ROUNDING]

    def entries_allowed(self, wanted: int) -> int:
        """How many entries may be read now, at most `wanted`; 1 where the limits are tight."""
        if self._largest is None:
            return min(wanted, 1)
        most_messages, most_bytes = self._largest
        allowed = float(wanted)
        for limiter in self._limiters:
            messages, size = limiter.available()
            allowed = min(allowed, messages // most_messages, size // most_bytes)
        return max(min(wanted, int(allowed)), 1)

    def entries_that_fit(self, sizes: Sequence[int], messages: Sequence[int]) -> int:
        """How many of the entries that were read, the first ones, may be sent now; at least 1."""
        left = [limiter.available() for limiter in self._limiters]
        messages_left = min(messages_count for messages_count, _ in left)
        bytes_left = min(size_bytes for _, size_bytes in left)
        for place, (size, count) in enumerate(zip(sizes, messages, strict=True)):
            messages_left -= 1 if self._counts_entries else count
            bytes_left -= size
            if place and (messages_left < 0 or bytes_left < 0):
                return place
        return len(sizes)

    def reserve(self, entries_count: int) -> tuple[int, int]:
        """Count so many entries that are about to be read, as if each was the largest one.

        Returns the messages and bytes to `give_back` before what was sent is charged.
        """
        messages_count, size_bytes = self._largest or (1, 1)
        reserved = messages_count * entries_count, size_bytes * entries_count
        for limiter in self._limiters:
            limiter.charge(*reserved)
        return reserved

    def give_back(self, reserved: tuple[int, int]) -> None:
        """Undo a `reserve`."""
        for limiter in self._limiters:
            limiter.give_back(*reserved)

    def charge(self, sizes: Sequence[int], messages: Sequence[int]) -> None:
        """Count entries that were sent, each with its bytes and messages."""
        if sizes:
            counted = self._learn(sizes, messages)
            messages_count, size_bytes = sum(counted), sum(sizes)
            for limiter in self._limiters:
                limiter.charge(messages_count, size_bytes)

    def charge_refused(self, sizes: Sequence[int], messages: Sequence[int]) -> None:
        """Count entries that users' filters refused, as if they were sent, if they count."""
        if self._is_charged_filtered:
            self.charge(sizes, messages)
        else:
            self._learn(sizes, messages)

    def _learn(self, sizes: Sequence[int], messages: Sequence[int]) -> Sequence[int]:
        """Note the largest entry; returns what each of them counts as messages."""
        counted = [1] * len(messages) if self._counts_entries else messages
        before = self._largest or (1, 1)
        self._largest = (max(before[0], *counted), max(before[1], *sizes))
        return counted

    def forget(self, on_ready: Callable[[], None]) -> None:
        """Do not call this one any more."""
        for limiter in self._limiters:
            limiter.forget(on_ready)
