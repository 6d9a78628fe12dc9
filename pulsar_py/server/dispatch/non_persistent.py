"""Dispatchers of non-persistent topics: drop and count messages that can't be sent at once.

A consumer is sent an entry if it has permits and its connection is writable. Nothing is pending,
acknowledged or redelivered. Each type chooses consumers as its persistent counterpart does.

Source: NonPersistentDispatcherSingleActiveConsumer, NonPersistentDispatcherMultipleConsumers,
NonPersistentStickyKeyDispatcherMultipleConsumers in Pulsar's broker.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.dispatcher import DispatchConsumer, Dispatcher
from pulsar_py.server.dispatch.exclusive_place import place_taken
from pulsar_py.server.dispatch.filtering import summary_of
from pulsar_py.server.dispatch.multiple import is_available, lacks_permits
from pulsar_py.server.dispatch.priorities import PriorityRoundRobin, choose_active
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.sticky_key import AUTO_SPLIT, mode_name, new_selector
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.wire.entry_summary import sticky_key


class NonPersistentDispatcher(Dispatcher):
    """The base class of the three types; owned by a NonPersistentSubscription."""

    def __init__(self) -> None:
        self.dropped_messages_count = 0

    def send_messages(self, entries: Sequence[Entry]) -> None:
        """Deliver entries now, or drop them."""
        # Hot path: non-persistent publish.
        for entry in entries:
            summary = summary_of(entry)
            consumer = self._taker(entry)
            if consumer is not None and is_available(consumer):
                consumer.send_messages([entry], None)
            else:
                self.dropped_messages_count += summary.messages_count

    @abstractmethod
    def _taker(self, entry: Entry) -> DispatchConsumer | None:
        """The consumer that would get an entry."""


class NonPersistentSingleActiveDispatcher(NonPersistentDispatcher):
    """Sends all messages to one consumer (Exclusive and Failover)."""

    def __init__(
        self,
        subscription_type: SubscriptionType,
        settings: Callable[[], DispatchSettings],
        *,
        topic_name: str,
        partition_index: int,
    ) -> None:
        super().__init__()
        self.subscription_type = subscription_type
        self._settings = settings
        self._topic_name = topic_name
        self._partition_index = partition_index
        self._consumers: list[DispatchConsumer] = []
        self._active: DispatchConsumer | None = None

    @property
    def consumers(self) -> Sequence[DispatchConsumer]:
        """The connected consumers, in the order they joined."""
        return self._consumers

    @property
    def active_consumer(self) -> DispatchConsumer | None:
        """The consumer that gets messages."""
        return self._active

    def close(self) -> None:
        """Remove all consumers; messages published later are dropped."""
        self.is_closed = True
        self._consumers = []
        self._active = None

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer; it is notified only if another one stays active, as in Pulsar."""
        is_failover = self.subscription_type is SubscriptionType.FAILOVER
        if not is_failover and self._consumers:
            raise place_taken(self._consumers[0])
        self._consumers.append(consumer)
        before = self._active
        self._choose_active()
        if is_failover and self._active is before:
            consumer.notify_active_consumer_change(is_active=False)

    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
            self._choose_active()

    def _choose_active(self) -> None:
        self._active = (
            choose_active(
                self._consumers,
                topic_name=self._topic_name,
                partition_index=self._partition_index,
                uses_ring=self._settings().uses_failover_ring,
            )
            if self._consumers
            else None
        )

    def send_messages(self, entries: Sequence[Entry]) -> None:
        """Send as many as permits allow in one write, the last batch beyond them; drop the rest."""
        # Hot path: non-persistent publish.
        consumer = self._active
        left = consumer.permits.available if consumer is not None and is_available(consumer) else 0
        sent: list[Entry] = []
        for entry in entries:
            count = summary_of(entry).messages_count
            if left > 0:
                left -= count
                sent.append(entry)
            else:
                self.dropped_messages_count += count
        if consumer is not None and sent:
            consumer.send_messages(sent, None)

    def _taker(self, entry: Entry) -> DispatchConsumer | None:  # noqa: ARG002 - all go there
        return self._active


class NonPersistentMultipleDispatcher(NonPersistentDispatcher):
    """Shared: each entry goes to the next consumer that can take it."""

    subscription_type = SubscriptionType.SHARED

    def __init__(self) -> None:
        super().__init__()
        self._turns: PriorityRoundRobin[DispatchConsumer] = PriorityRoundRobin(lacks_permits)

    @property
    def consumers(self) -> Sequence[DispatchConsumer]:
        """The connected consumers, best priority first."""
        return self._turns.consumers

    def close(self) -> None:
        """Remove all consumers; messages published later are dropped."""
        self.is_closed = True
        for consumer in self._turns.consumers:
            consumer.permits.on_ready = None
        self._turns = PriorityRoundRobin(lacks_permits)

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer."""
        self._turns.add(consumer)
        consumer.permits.on_ready = partial(self._turns.wake, consumer)

    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer."""
        if consumer in self._turns:
            self._turns.remove(consumer)
            consumer.permits.on_ready = None

    def _taker(self, entry: Entry) -> DispatchConsumer | None:  # noqa: ARG002 - any will do
        return self._turns.next(is_available)


class NonPersistentStickyKeyDispatcher(NonPersistentMultipleDispatcher):
    """Key_Shared: each entry goes to the owner of its key's slot."""

    subscription_type = SubscriptionType.KEY_SHARED

    def __init__(self, meta: KeySharedMeta | None, settings: DispatchSettings) -> None:
        super().__init__()
        self.meta = meta or AUTO_SPLIT
        self._settings = settings
        self.selector = new_selector(self.meta, settings)

    def close(self) -> None:
        """Remove all consumers and their slots."""
        super().close()
        self.selector = new_selector(self.meta, self._settings)

    def mismatch(self, key_shared_meta: KeySharedMeta | None) -> str | None:
        """The reason to refuse a consumer with another mode; None if its mode is the same."""
        theirs = key_shared_meta or AUTO_SPLIT
        if theirs.is_sticky == self.meta.is_sticky:
            return None
        return (
            f"Active subscription key_shared mode of '{mode_name(self.meta)}' is different than "
            f"the connecting consumer's key_shared mode '{mode_name(theirs)}'."
        )

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer and give it slots."""
        self.selector.add(consumer)
        super().add_consumer(consumer)

    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer and give its slots to others."""
        self.selector.remove(consumer)
        super().remove_consumer(consumer)

    def _taker(self, entry: Entry) -> DispatchConsumer | None:
        return self.selector.select(self.selector.slot_of(sticky_key(summary_of(entry))))
