"""`BrokerUnackedLimit`: bounds unacknowledged messages of all Shared subscriptions (pure).

At the limit, dispatchers with more than a share of it stop reading new entries; each goes on when
it has less than half of that share, and all when the broker's total is below half its limit.

Source: BrokerService.addUnAckedMessages, blockDispatchersWithLargeUnAckMessages in Pulsar's broker.
"""

from __future__ import annotations

from typing import Protocol


class UnackedHolder(Protocol):
    """The part of a dispatcher that this limit uses."""

    @property
    def unacked_messages(self) -> int:
        """Unacknowledged messages of its consumers."""

    def block_for_broker(self) -> None:
        """Read no new entries."""

    def unblock_for_broker(self) -> None:
        """Read on."""


class BrokerUnackedLimit:
    """The limit of one broker; dispatchers report changes of their numbers."""

    def __init__(self, *, max_unacked_messages: int, blocked_share: float) -> None:
        """`max_unacked_messages` 0 switches it off; `blocked_share` is a part of it, 0 to 1."""
        self._max_unacked_messages = max_unacked_messages
        self._max_of_dispatcher = int(max_unacked_messages * blocked_share)
        # Both in order of insertion, which is the order of blocking and unblocking.
        self._holders: dict[UnackedHolder, None] = {}
        self._blocked: dict[UnackedHolder, None] = {}
        self._total = 0

    @property
    def max_unacked_messages(self) -> int:
        """The limit; 0 without one."""
        return self._max_unacked_messages

    @property
    def unacked_messages(self) -> int:
        """Unacknowledged messages of all dispatchers."""
        return self._total

    def allowance(self, holder: UnackedHolder) -> int:
        """Messages that a dispatcher may send before it is blocked, if nobody else sends any.

        There has to be a limit.
        """
        left = self._max_unacked_messages - self._total
        return max(left, self._max_of_dispatcher + 1 - holder.unacked_messages)

    def add(self, holder: UnackedHolder, delta: int) -> None:
        """Count `delta` more unacknowledged messages of a dispatcher; negative for fewer."""
        self._total += delta
        if not self._max_unacked_messages:
            return
        self._holders[holder] = None
        if self._total >= self._max_unacked_messages:
            self._block_large()
        elif self._blocked:
            self._unblock()

    def remove(self, holder: UnackedHolder) -> None:
        """Forget a dispatcher that ends; its consumers have no unacknowledged messages any more."""
        self._holders.pop(holder, None)
        self._blocked.pop(holder, None)

    def _block_large(self) -> None:
        for holder in [each for each in self._holders if each not in self._blocked]:
            if holder.unacked_messages > self._max_of_dispatcher:
                self._blocked[holder] = None
                holder.block_for_broker()

    def _unblock(self) -> None:
        is_low = self._total < self._max_unacked_messages // 2
        for holder in list(self._blocked):
            if is_low or holder.unacked_messages < self._max_of_dispatcher // 2:
                self._blocked.pop(holder, None)
                holder.unblock_for_broker()
