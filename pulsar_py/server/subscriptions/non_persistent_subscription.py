"""`NonPersistentSubscription`: the consumers of a topic without storage.

Acknowledgements and redeliveries have no effect; SEEK succeeds without moving or disconnecting
anything. A non-durable subscription ends with its last consumer.

Source: NonPersistentSubscription in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.dispatcher import Dispatcher
from pulsar_py.server.dispatch.filtering import summary_of
from pulsar_py.server.dispatch.non_persistent import (
    NonPersistentDispatcher,
    NonPersistentMultipleDispatcher,
    NonPersistentSingleActiveDispatcher,
    NonPersistentStickyKeyDispatcher,
)
from pulsar_py.server.dispatch.sticky_key import mode_name
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.user_filters import UserFilters
from pulsar_py.server.hooks.entry_filter import FilterResult
from pulsar_py.server.subscriptions.subscription import (
    HashStats,
    Subscription,
    SubscriptionOwner,
    SubscriptionState,
)
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats

if TYPE_CHECKING:
    from pulsar_py.server.subscriptions.consumer import Consumer


class NonPersistentSubscription(Subscription):
    """Hands each message to a consumer with permits, or drops it."""

    is_persistent = False

    def __init__(
        self,
        owner: SubscriptionOwner,
        name: str,
        *,
        clock: Clock,
        is_durable: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(owner, name, clock=clock, is_durable=is_durable)
        self._properties = properties or {}
        self._dropped_count = 0  # Messages that former dispatchers dropped.
        self._dropped_rolled_count = 0
        self._dropped_rate = 0.0
        self._filters: UserFilters | None = None  # None without filters of users
        self.on_settings_changed()

    def send_messages(self, entries: Sequence[Entry]) -> None:
        """Deliver published entries (position 0:0) now, or drop and count them."""
        # Hot path: non-persistent publish.
        dispatcher = self._dispatcher
        if isinstance(dispatcher, NonPersistentDispatcher):
            if self._filters is not None:
                entries = self._accepted(self._filters, entries)
            dispatcher.send_messages(entries)

    def _accepted(self, filters: UserFilters, entries: Sequence[Entry]) -> Sequence[Entry]:
        """What users' filters accept; there is no later for what they put off."""
        return [
            entry
            for entry in entries
            if filters.result_of(entry, summary_of(entry)) is FilterResult.ACCEPT
        ]

    def on_settings_changed(self) -> None:
        """Use the filters of now."""
        self._filters = self._user_filters(lambda _: None)

    def _new_dispatcher(self, wanted: SubscriptionType, meta: KeySharedMeta | None) -> Dispatcher:
        self._dropped_count = self._dropped_messages_count()
        if wanted.has_single_active_consumer:
            return NonPersistentSingleActiveDispatcher(
                wanted,
                lambda: self.settings,
                topic_name=self.topic_name,
                partition_index=self.partition_index,
            )
        if wanted is SubscriptionType.KEY_SHARED:
            return NonPersistentStickyKeyDispatcher(meta, self.settings)
        return NonPersistentMultipleDispatcher()

    def _end_reader(self) -> None:
        self.state = SubscriptionState.CLOSED
        self.owner.forget_subscription(self)

    def acknowledge(
        self,
        consumer: Consumer,
        positions: Sequence[Position],
        ack_sets: list[Sequence[int] | None] | None,
    ) -> bool:
        """Do nothing and return True: no message is pending."""
        del consumer, positions, ack_sets
        return True

    def properties(self) -> Mapping[str, str]:
        """The users' properties of the subscription."""
        return self._properties

    async def set_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties, until the topic is closed."""
        self._properties = dict(properties)

    def acknowledge_cumulative(
        self, position: Position, ack_set: Sequence[int] | None, properties: Mapping[str, int]
    ) -> None:
        """Do nothing: no message is pending."""

    def when_acknowledged_durably(self, on_durable: OnDurable, number: int) -> None:
        """Call it at once: nothing is stored."""
        on_durable((number,), None)

    def _check_may_delete(self) -> None:
        """Return in any case: no reset or deletion takes time here."""

    async def reset_to_position(self, position: Position, ack_set: Sequence[int] | None) -> None:
        """Do nothing: there is no cursor to move."""

    async def reset_to_time(self, timestamp_millis: int) -> None:
        """Do nothing: there is no cursor to move."""

    async def close(self) -> None:
        """Disconnect all consumers."""
        self.state = SubscriptionState.CLOSED
        self.disconnect()

    async def delete(self) -> None:
        """Disconnect all consumers; the topic forgets it."""
        if self.state is not SubscriptionState.CLOSED:
            await self.close()
            self.owner.forget_subscription(self)

    def _dropped_messages_count(self) -> int:
        dispatcher = self._dispatcher
        if isinstance(dispatcher, NonPersistentDispatcher):
            return self._dropped_count + dispatcher.dropped_messages_count
        return self._dropped_count

    def hash_stats_of(self, consumer: Consumer) -> HashStats:
        """The slots a Key_Shared consumer owns."""
        if isinstance(self._dispatcher, NonPersistentStickyKeyDispatcher):
            return HashStats(ranges=self._dispatcher.selector.ranges_of(consumer))
        return HashStats(ranges=consumer.requested_ranges)

    def roll_rates(self, elapsed_seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        super().roll_rates(elapsed_seconds)
        dropped = self._dropped_messages_count()
        if elapsed_seconds > 0:
            self._dropped_rate = (dropped - self._dropped_rolled_count) / elapsed_seconds
        self._dropped_rolled_count = dropped

    def _stats(
        self,
        consumers: tuple[ConsumerStats, ...],
        *,
        explains: bool = True,  # noqa: ARG002 - nothing waits here
    ) -> SubscriptionStats:
        dispatcher = self._dispatcher
        active = None if dispatcher is None else dispatcher.active_consumer
        sticky = dispatcher if isinstance(dispatcher, NonPersistentStickyKeyDispatcher) else None
        kind = self.subscription_type
        return SubscriptionStats(
            subscription_type=None if kind is None else kind.wire_name,
            is_durable=self.is_durable,
            active_consumer_name=None if active is None else active.name,
            messages_out_count=self._messages_out_gone
            + sum(each.messages_out_count for each in consumers),
            bytes_out_count=self._bytes_out_gone + sum(each.bytes_out_count for each in consumers),
            last_flow_gone_millis=self._last_flow_gone_millis,
            dropped_messages_count=self._dropped_messages_count(),
            dropped_rate=self._dropped_rate,
            key_shared_mode=None if sticky is None else mode_name(sticky.meta),
            allow_out_of_order_delivery=(
                sticky is not None and sticky.meta.allow_out_of_order_delivery
            ),
            properties=self._properties,
            filter_counts=replace(self.filter_counts),
            consumers=consumers,
        )
