"""Subscriptions: what consumers share, and the persistent kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pulsar_py.common.clock import Clock
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.subscription_stats import SubscriptionStats

if TYPE_CHECKING:
    from pulsar_py.server.topics.consumer import Consumer


class SubscriptionOwner(Protocol):
    """What a subscription needs of its topic (implemented by `Topic`)."""

    @property
    def name(self) -> TopicName:
        """The topic's name; its partition index goes into message ids."""

    @property
    def dispatch_settings(self) -> DispatchSettings:
        """The effective settings now; read whenever they matter."""

    @property
    def consumers_count(self) -> int:
        """Consumers of all subscriptions of the topic."""

    def same_address_consumers_count(self, address: str) -> int:
        """Consumers of the topic whose connection comes from this host."""

    def max_read_position(self) -> Position:
        """The last position that may be dispatched (transactions hold it back)."""

    def forget_subscription(self, subscription: Subscription) -> None:
        """The subscription is gone (unsubscribed, or a reader's last consumer left): drop it."""


class Subscription(ABC):
    """A named set of consumers of one topic, and what they have seen of it."""

    name: str
    subscription_type: SubscriptionType | None  # None before the first consumer
    is_durable: bool

    @property
    @abstractmethod
    def consumers(self) -> Sequence[Consumer]:
        """Those connected now."""

    @abstractmethod
    async def add_consumer(self, consumer: Consumer) -> None:
        """Let a consumer in; it receives messages once it has sent FLOW.

        Raises:
            ConsumerBusyError: Another type is in use, Exclusive is taken, or a limit is reached.
            ConsumerAssignError: Its hash ranges can't be had.
            NotAllowedError: The type is disabled.
            SubscriptionFencedError: It is being reset or deleted.
        """

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer and redeliver what it held; called by `Consumer.close`."""

    @abstractmethod
    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        """Delete the subscription at the request of one of its consumers.

        With `force` all others get CLOSE_CONSUMER. The asking consumer is removed, too.

        Raises:
            ServiceMetadataError: Others are connected, and `force` is not set.
            SubscriptionBusyError: It is being reset or deleted.
        """

    @abstractmethod
    async def reset_to_position(self, position: Position, ack_set: Sequence[int] | None) -> None:
        """SEEK by id: disconnect the consumers that must go, then move the cursor.

        Raises:
            SubscriptionBusyError: Another reset is under way.
            UnknownServiceError: The cursor could not be moved.
        """

    @abstractmethod
    async def reset_to_time(self, timestamp_millis: int) -> None:
        """SEEK by time: to the first entry published at that time or later; errors as above."""

    @abstractmethod
    def disconnect(self) -> None:
        """Remove all consumers and send each CLOSE_CONSUMER."""

    @abstractmethod
    async def close(self) -> None:
        """Fence, disconnect, stop dispatching, persist and close the cursor (topic unload)."""

    @abstractmethod
    async def delete(self) -> None:
        """Fence, disconnect, and delete the cursor; the topic forgets it."""

    @abstractmethod
    def stats(self) -> SubscriptionStats:
        """A snapshot for REST and metrics."""


class PersistentSubscription(Subscription):
    """A subscription with a cursor on a managed ledger."""

    def __init__(
        self,
        owner: SubscriptionOwner,
        name: str,
        ledger: ManagedLedger,
        cursor: ManagedCursor,
        *,
        clock: Clock,
        is_replicated: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        raise NotImplementedError

    def on_terminated(self) -> None:
        """The topic was terminated: consumers that have seen all get REACHED_END_OF_TOPIC."""

    def on_settings_changed(self) -> None:
        """The owner's `dispatch_settings` changed."""

    def on_max_read_position_moved(self) -> None:
        """More may be dispatched now."""

    async def skip_messages(self, entries_count: int) -> None:
        """Acknowledge that many entries of the backlog."""

    async def clear_backlog(self) -> None:
        """Acknowledge everything."""

    async def expire_up_to(self, position: Position) -> bool:
        """Acknowledge all up to and with a position; False if that moved nothing."""
        raise NotImplementedError

    async def expire_older_than(self, seconds: int) -> bool:
        """Acknowledge all published longer ago than that; False if that moved nothing."""
        raise NotImplementedError
