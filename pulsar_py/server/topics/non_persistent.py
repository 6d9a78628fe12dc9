"""`NonPersistentTopic`: publishes to subscriptions in memory, without storage.

Messages that arrive during one turn of the loop are passed to every subscription as one group, and
get receipts with (0,0). Those beyond a connection's limit of messages in flight are dropped, and
get receipts with (-1,-1).

Source: NonPersistentTopic in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pulsar_py.common.errors import (
    NotAllowedError,
    SubscriptionNotFoundError,
    UnknownServiceError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.producer import Append, PublishContext
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.subscriptions.non_persistent_subscription import NonPersistentSubscription
from pulsar_py.server.subscriptions.subscription import Subscription
from pulsar_py.server.subscriptions.subscription_stats import SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic import Topic, TopicContext
from pulsar_py.server.topics.topic_state import TopicState


class NonPersistentTopic(Topic):
    """A topic without storage; it ends with the broker."""

    def __init__(self, name: TopicName, settings: TopicSettings, context: TopicContext) -> None:
        super().__init__(name, settings, context)
        self._subscriptions: dict[str, NonPersistentSubscription] = {}
        self._published: list[tuple[bytes, PublishContext]] = []  # of this turn of the loop
        self._is_flush_due = False

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """Subscriptions by name."""
        return self._subscriptions

    def append_function(self) -> Append:
        """The function that adds a message to this turn's group."""
        return self._guarded(self._append)

    def _append(self, data: bytes, context: PublishContext) -> None:
        """Queue one message for the end of this turn, or drop it."""
        producer, sequence_id, highest, size, _, _ = context
        in_flight = producer.in_flight
        if in_flight.non_persistent_count >= in_flight.max_non_persistent:
            producer.dropped_count += 1
            producer.count_out(1, size)
            producer.send_receipt(sequence_id, highest, -1, -1)
            return
        in_flight.non_persistent_count += 1
        self._published.append((data, context))
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Pass a turn's messages to all subscriptions, then send receipts."""
        published, self._published = self._published, []
        self._is_flush_due = False
        entries = [Entry(0, 0, data) for data, _ in published]
        for subscription in list(self._subscriptions.values()):
            subscription.send_messages(entries)
        for _, (producer, sequence_id, highest, size, _, _) in published:
            producer.in_flight.non_persistent_count -= 1
            producer.count_out(1, size)
            producer.send_receipt(sequence_id, highest, 0, 0)
        self.last_published_millis = self.context.clock.wall_time_millis()

    # --- subscriptions -----------------------------------------------------------------------

    async def _create_subscription(self, request: SubscribeRequest) -> Subscription:
        self._check_subscriptions_limit(request.subscription_name)
        return self._add_subscription(
            request.subscription_name,
            is_durable=request.is_durable,
            properties=request.subscription_properties,
        )

    async def create_subscription(
        self, name: str, *, starts_at_earliest: bool, properties: Mapping[str, str] | None = None
    ) -> Subscription:
        """The subscription of that name; a start position has no meaning here."""
        del starts_at_earliest
        if name in self._subscriptions:
            return self._subscriptions[name]
        self._check_subscriptions_limit(name)
        return self._add_subscription(name, is_durable=True, properties=properties)

    def _add_subscription(
        self, name: str, *, is_durable: bool, properties: Mapping[str, str] | None
    ) -> NonPersistentSubscription:
        subscription = NonPersistentSubscription(
            self, name, clock=self.context.clock, is_durable=is_durable, properties=properties
        )
        self._subscriptions[name] = subscription
        return subscription

    def max_read_position(self) -> Position:
        """LATEST: nothing is held back."""
        return LATEST

    def forget_subscription(self, subscription: Subscription) -> None:
        """Drop a subscription that ended."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            stats = subscription.stats()
            self._messages_out_gone += stats.messages_out_count
            self._bytes_out_gone += stats.bytes_out_count
            self._limits.forget_subscription(subscription.name)
            self.last_active_seconds = self.context.clock.monotonic_seconds()

    async def delete_subscription(self, name: str, *, force: bool = False) -> None:
        """Delete a subscription, also with connected consumers, as in Pulsar."""
        del force
        subscription = self._subscriptions.get(name)
        if subscription is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found")
        await subscription.delete()

    # --- life --------------------------------------------------------------------------------

    async def apply_settings(self, settings: TopicSettings) -> None:
        """Use changed settings."""
        self._settings = settings
        self._producers.set_append(self.append_function())
        for subscription in self._subscriptions.values():
            subscription.on_settings_changed()

    async def close(self, *, disconnect_clients: bool = True) -> None:
        """Unload the topic, which drops everything in it."""
        if self.state is TopicState.CLOSED:
            return
        self.state = TopicState.CLOSING
        if disconnect_clients:
            self.disconnect_producers()
        if self._published:
            self._flush()
        for subscription in list(self._subscriptions.values()):
            await subscription.close()
        self.state = TopicState.CLOSED

    async def delete(self, *, force: bool = False) -> None:
        """Delete the topic, of which nothing is stored."""
        self._check_open()
        if not force:
            self.check_deletable()
        await self.close()

    async def terminate(self) -> Position:
        """Raise NotAllowedError: there is no last message."""
        raise NotAllowedError(f"{self.name}: termination of a non-persistent topic is not allowed")

    def last_message_position(self) -> Position:
        """Raise UnknownServiceError: there is no last message."""
        raise UnknownServiceError(f"{self.name}: non-persistent topics have no last message id")

    def _stats(
        self,
        producers: tuple[ProducerStats, ...],
        subscriptions: Mapping[str, SubscriptionStats],
    ) -> TopicStats:
        fields: dict[str, Any] = self._common_stats(producers, subscriptions)  # Any: of TopicStats
        dropped = sum(each.dropped_rate for each in subscriptions.values())
        return TopicStats(**fields, dropped_rate=dropped)
