"""NonPersistentSubscription: consumers of a topic without storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pulsar_py.common.clock import Clock
from pulsar_py.managed_ledger.entry import Entry
from pulsar_py.server.topics.subscription import Subscription, SubscriptionOwner

if TYPE_CHECKING:
    from pulsar_py.server.topics.consumer import Consumer


class NonPersistentSubscription(Subscription):
    """Hands each message to a consumer with permits, or drops it."""

    def __init__(
        self,
        owner: SubscriptionOwner,
        name: str,
        *,
        clock: Clock,
        is_durable: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        raise NotImplementedError

    def send_messages(self, entries: Sequence[Entry]) -> None:
        """Deliver published entries (position 0:0) now, or drop and count them."""
        raise NotImplementedError
