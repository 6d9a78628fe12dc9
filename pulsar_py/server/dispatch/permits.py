"""`ConsumerPermits`: counts a consumer's permits and its unacknowledged messages (pure).

A permit is for one message; a batch takes one for each message in it. `available` may go negative,
because an entry is never split. On Shared and Key_Shared a consumer with `max_unacked_messages`
unacknowledged messages is blocked: permits of a FLOW are then parked, and released when the number
is down to half of that, or with any REDELIVER.

Invariant: `parked_permits` is 0 while the consumer is not blocked.

Source: Consumer.flowPermits, blockedConsumerOnUnackedMsgs in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable


class ConsumerPermits:
    """The counters of one consumer, which owns it; read by its dispatcher."""

    __slots__ = (
        "acknowledged_beyond_ids",
        "available",
        "is_blocked",
        "max_unacked_messages",
        "on_ready",
        "parked_permits",
        "redelivered_messages",
        "unacked_messages",
    )

    def __init__(self, *, max_unacked_messages: int) -> None:
        """`max_unacked_messages` 0: no limit (readers, Exclusive, Failover)."""
        self.available = 0
        self.parked_permits = 0
        self.unacked_messages = 0
        self.is_blocked = False
        # For rates: messages that went back for redelivery, and those of batches that were
        # acknowledged by one id, but for one.
        self.redelivered_messages = 0
        self.acknowledged_beyond_ids = 0
        self.max_unacked_messages = max_unacked_messages
        # Called when `can_receive` becomes true; set by the dispatcher.
        self.on_ready: Callable[[], None] | None = None

    @property
    def can_receive(self) -> bool:
        """Whether it has permits and is not blocked."""
        return self.available > 0 and not self.is_blocked

    @property
    def unacked_allowance(self) -> int:
        """Messages that may be sent before the limit blocks it; large without a limit."""
        if not self.max_unacked_messages:
            return 2**31 - 1
        return max(self.max_unacked_messages - self.unacked_messages, 0)

    def add(self, permits_count: int) -> bool:
        """Add the permits of a FLOW; returns whether they count now (False: parked)."""
        self._block_at_limit()
        if self.is_blocked:
            self.parked_permits += permits_count
            return False
        self.available += permits_count
        if self.on_ready is not None and 0 < self.available <= permits_count:
            self.on_ready()
        return True

    def take(self, messages_count: int) -> None:
        """Subtract permits for messages that were sent."""
        self.available -= messages_count

    def owe(self, messages_count: int) -> None:
        """Count sent messages that have to be acknowledged (Shared and Key_Shared)."""
        self.unacked_messages += messages_count
        self._block_at_limit()

    def give_back(self, messages_count: int) -> bool:
        """Subtract acknowledged messages; returns whether that released parked permits."""
        self.unacked_messages -= messages_count
        assert self.unacked_messages >= 0, f"{self.unacked_messages} unacknowledged messages"
        if not self.is_blocked or self.unacked_messages > self.max_unacked_messages // 2:
            return False
        return self.unblock()

    def redeliver(self, messages_count: int) -> bool:
        """Subtract messages to redeliver and unblock the consumer; returns as `give_back`."""
        self.redelivered_messages += messages_count
        self.unacked_messages -= messages_count
        assert self.unacked_messages >= 0, f"{self.unacked_messages} unacknowledged messages"
        return self.unblock()

    def set_limit(self, max_unacked_messages: int) -> None:
        """Use another limit; 0 is no limit."""
        self.max_unacked_messages = max_unacked_messages
        if not max_unacked_messages or self.unacked_messages < max_unacked_messages:
            self.unblock()

    def unblock(self) -> bool:
        """Release parked permits; returns whether the consumer was blocked."""
        was_blocked = self.is_blocked
        self.is_blocked = False
        self.available += self.parked_permits
        self.parked_permits = 0
        if was_blocked and self.on_ready is not None and self.available > 0:
            self.on_ready()
        return was_blocked

    def _block_at_limit(self) -> None:
        if self.max_unacked_messages and self.unacked_messages >= self.max_unacked_messages:
            self.is_blocked = True
