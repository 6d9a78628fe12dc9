"""`Subscription`: a named set of consumers of one topic; the base of both kinds.

A subscription has a dispatcher of the type that its first consumer asked for; while it has no
consumers, one of another type replaces it. If a new consumer conflicts with one that exists (an
Exclusive subscription is taken, or hash ranges overlap), that one's client may be dead, so its
connection is probed first. While the cursor is being moved, new consumers wait.

What always holds: the dispatcher's consumers are the subscription's; a fenced subscription admits
none. To remove all consumers the dispatcher is closed first, so that nothing is sent in between.

Source: Subscription, AbstractSubscription in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec import Struct

from pulsar_py.common.errors import (
    ConsumerBusyError,
    NotAllowedError,
    ServiceError,
    ServiceMetadataError,
    ServiceNotReadyError,
    SubscriptionFencedError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.dispatcher import Dispatcher
from pulsar_py.server.dispatch.draining_hashes import DrainingHash
from pulsar_py.server.dispatch.selectors import SLOTS_COUNT, HashRange, HashRangeConflictError
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.user_filters import FilterCounts, UserFilters
from pulsar_py.server.hooks.entry_filter import FilterContext
from pulsar_py.server.hooks.installed_filters import InstalledFilter
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats

if TYPE_CHECKING:
    from pulsar_py.server.subscriptions.consumer import Consumer

MAX_JOIN_ATTEMPTS = 3
"""How often a new consumer may conflict with one that turns out dead, before it is refused."""

RESET_WAIT_SECONDS = 20.0
"""Seconds that new consumers and further resets wait for a reset; official clients wait 30."""

CONSUMER_UNITS: Final = 10
"""Units of work that the statistics of a consumer are; of Key_Shared they are more."""
SUBSCRIPTION_UNITS: Final = 20
"""Units of work that the statistics of a subscription are, without its consumers."""
POINTS_PER_CONSUMER: Final = 100
"""Points of a consumer among the slots of Key_Shared, at the default settings."""
SLOTS_A_UNIT: Final = 30


class SubscriptionOwner(Protocol):
    """The part of a topic that a subscription uses (implemented by `Topic`)."""

    @property
    def name(self) -> TopicName:
        """The topic's name; message ids have its partition index."""

    @property
    def dispatch_settings(self) -> DispatchSettings:
        """The effective settings now."""

    @property
    def consumers_count(self) -> int:
        """Consumers of all subscriptions of the topic."""

    def same_address_consumers_count(self, address: str) -> int:
        """The number of the topic's consumers whose connections come from this host."""

    def max_read_position(self) -> Position:
        """The last position that may be dispatched (transactions hold it back)."""

    def dispatch_throttle(self, subscription: str) -> DispatchThrottle | None:
        """The limits that a subscription's dispatcher has to keep to now; None without any."""

    def user_filters(self) -> Sequence[InstalledFilter]:
        """The users' entry filters now; empty without."""

    def forget_subscription(self, subscription: Subscription) -> None:
        """Drop a subscription that ended: it was deleted, or a reader's last consumer left."""


class SubscriptionState(Enum):
    """The states of a subscription, which decide whether consumers are admitted."""

    OPEN = auto()
    RESETTING = auto()
    DELETING = auto()
    CLOSED = auto()


_STATES_TO_WAIT_IN = (SubscriptionState.OPEN, SubscriptionState.RESETTING)


class HashStats(Struct, frozen=True):
    """The hash ranges of a Key_Shared consumer, and the hashes that drain from it."""

    ranges: Sequence[HashRange] = ()
    draining: Sequence[DrainingHash] | None = None
    """None where hashes never drain."""
    cleared_total: int = 0


class Subscription(ABC):
    """A named set of consumers of one topic."""

    is_persistent: bool

    def __init__(
        self, owner: SubscriptionOwner, name: str, *, clock: Clock, is_durable: bool
    ) -> None:
        self.owner = owner
        self.name = name
        self.clock = clock
        self.is_durable = is_durable
        self.state = SubscriptionState.OPEN
        self.topic_name = str(owner.name)
        self.partition_index = owner.name.partition_index
        self._dispatcher: Dispatcher | None = None  # None before the first consumer
        self._is_reset_under_way = False
        self._reset_ended: asyncio.Event | None = None  # Set when a reset ends, if that is awaited.
        self._messages_out_gone = 0  # Counters of consumers that have left.
        self._bytes_out_gone = 0
        self.filter_counts = FilterCounts()  # what users' filters did
        self._last_flow_gone_millis = 0  # Newest FLOW of a consumer that has left; 0 for none.

    def __str__(self) -> str:
        kind = "Persistent" if self.is_persistent else "NonPersistent"
        return f"{kind}Subscription{{topic={self.topic_name}, name={self.name}}}"

    @property
    def settings(self) -> DispatchSettings:
        """The topic's settings in force now."""
        return self.owner.dispatch_settings

    @property
    def subscription_type(self) -> SubscriptionType | None:
        """The type of the current dispatcher; None before the first consumer."""
        return None if self._dispatcher is None else self._dispatcher.subscription_type

    @property
    def dispatcher(self) -> Dispatcher | None:
        """The dispatcher in use, None before the first consumer."""
        return self._dispatcher

    @property
    def consumers(self) -> Sequence[Consumer]:
        """The connected consumers."""
        if self._dispatcher is None:
            return ()
        # The cast is right: only `add_consumer` adds consumers, which are of this class.
        return cast("Sequence[Consumer]", self._dispatcher.consumers)

    def _user_filters(self, reschedule: Callable[[Position], None]) -> UserFilters | None:
        """The users' entry filters for one dispatcher; None without."""
        installed = self.owner.user_filters()
        if not installed:
            return None
        return UserFilters(installed, self._filter_context, self.filter_counts, reschedule)

    def filters_beside_dispatch(self) -> UserFilters | None:
        """The users' filters for somebody who looks at entries without sending them; None without.

        They count apart from the subscription, and put nothing off.
        """
        installed = self.owner.user_filters()
        if not installed:
            return None
        return UserFilters(installed, self._filter_context, FilterCounts(), lambda _: None)

    def _filter_context(self) -> FilterContext:
        return FilterContext(
            topic=self.topic_name,
            subscription=self.name,
            subscription_properties=self.properties(),
        )

    # Joining and leaving.

    async def add_consumer(self, consumer: Consumer) -> None:
        """Add a consumer; it is sent messages once it has sent FLOW.

        Raises:
            ConsumerBusyError: Another type is in use, Exclusive is taken, or a limit is reached.
            ConsumerAssignError: Its hash ranges are taken, or none is left to split.
            NotAllowedError: The type is disabled.
            SubscriptionFencedError: The subscription is being deleted, or a reset of it did not end
                within `RESET_WAIT_SECONDS`.
            ServiceNotReadyError: The consumer's own connection is gone, or its client closed it.
        """
        attempts_left = MAX_JOIN_ATTEMPTS
        while True:
            await self._until_reset_ends()
            dispatcher = self._check_may_join(consumer)
            conflict: ServiceError
            try:
                dispatcher.add_consumer(consumer)
            except HashRangeConflictError as error:
                conflict, rival = error, cast("Consumer", error.owner)
            except ConsumerBusyError as error:
                conflict, rival = error, self.consumers[0]
            else:
                self._on_joined(consumer)
                return
            attempts_left -= 1
            if not attempts_left:
                raise conflict
            is_alive = await rival.connection.check_liveness()
            if is_alive and rival in self.consumers:  # else it left while it was probed
                raise conflict

    def _check_may_join(self, consumer: Consumer) -> Dispatcher:
        """The dispatcher to join; raises if the consumer may not."""
        request = consumer.request
        if self.state is not SubscriptionState.OPEN:
            raise SubscriptionFencedError(f"Subscription {self.name} is fenced")
        if not consumer.connection.is_connected or not request.is_wanted():
            raise ServiceNotReadyError("the consumer was closed, or its connection was")
        wanted = request.subscription_type
        if wanted not in self.settings.enabled_subscription_types:
            raise NotAllowedError(
                f"Topic[{{{self.topic_name}}}] doesn't support {wanted.wire_name} sub type!"
            )
        dispatcher = self._dispatcher
        if dispatcher is not None and dispatcher.consumers:
            self._check_same_type(dispatcher, wanted, request.key_shared)
        self._check_limits(consumer)
        if dispatcher is None or not dispatcher.consumers:
            dispatcher = self._replace_dispatcher(wanted, request.key_shared)
        return dispatcher

    def _check_same_type(
        self, dispatcher: Dispatcher, wanted: SubscriptionType, meta: KeySharedMeta | None
    ) -> None:
        current = dispatcher.subscription_type
        if current is not wanted:
            raise ConsumerBusyError(
                "Subscription is of different type. Active subscription type of "
                f"'{current.wire_name}' is different than the connecting consumer's type "
                f"'{wanted.wire_name}'."
            )
        mismatch = dispatcher.mismatch(meta)
        if mismatch is not None:
            raise ConsumerBusyError(f"Subscription is of different type. {mismatch}")

    def _check_limits(self, consumer: Consumer) -> None:
        if self.owner.name.is_system:
            return
        settings = self.settings
        if 0 < settings.max_consumers_per_topic <= self.owner.consumers_count:
            raise ConsumerBusyError("Topic reached max consumers limit")
        # Who wants it alone hears that it is taken, from the dispatcher, and not of a number.
        is_alone = consumer.request.subscription_type is SubscriptionType.EXCLUSIVE
        limit = settings.max_consumers_per_subscription
        if not is_alone and 0 < limit <= len(self.consumers):
            raise ConsumerBusyError("Subscription reached max consumers limit")
        limit = settings.max_same_address_consumers_per_topic
        if limit:
            host = consumer.connection.remote_address.lstrip("/").rpartition(":")[0]
            if self.owner.same_address_consumers_count(host) >= limit:
                raise ConsumerBusyError("Topic reached max same address consumers limit")

    def _replace_dispatcher(
        self, wanted: SubscriptionType, meta: KeySharedMeta | None
    ) -> Dispatcher:
        """The dispatcher in use if it is of the right type, else a new one."""
        current = self._dispatcher
        if current is not None and not current.is_closed:
            if current.subscription_type is wanted and current.mismatch(meta) is None:
                return current
            current.close()
        self._dispatcher = self._new_dispatcher(wanted, meta)
        return self._dispatcher

    @abstractmethod
    def _new_dispatcher(self, wanted: SubscriptionType, meta: KeySharedMeta | None) -> Dispatcher:
        """A dispatcher of that type."""

    def _on_joined(self, consumer: Consumer) -> None:  # noqa: B027 - not all care
        """Called when a consumer was added."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer and redeliver its entries; called by `Consumer.close`."""
        if self._dispatcher is None or consumer not in self.consumers:
            return
        self._count_gone(consumer)
        self._dispatcher.remove_consumer(consumer)
        if not self.consumers:
            self._on_last_consumer_left()
            if not self.is_durable and self.state is SubscriptionState.OPEN:
                self._end_reader()

    def _count_gone(self, consumer: Consumer) -> None:
        self._messages_out_gone += consumer.messages_out_count
        self._bytes_out_gone += consumer.bytes_out_count
        self._last_flow_gone_millis = max(self._last_flow_gone_millis, consumer.last_flow_millis)

    def _on_last_consumer_left(self) -> None:  # noqa: B027 - not all care
        """Called when the last consumer has left."""

    @abstractmethod
    def _end_reader(self) -> None:
        """End a subscription that is not durable, when its last consumer has left."""

    def disconnect(self) -> None:
        """Stop dispatching, then remove all consumers and send each CLOSE_CONSUMER.

        Nothing is sent in between. The next consumer gets a new dispatcher.
        """
        if self._dispatcher is None:
            return
        consumers = list(self.consumers)
        self._dispatcher.close()
        for consumer in consumers:
            self._count_gone(consumer)
            consumer.disconnect()
        if consumers:
            self._on_last_consumer_left()

    # Resets.

    @contextmanager
    def _reset_under_way(self) -> Iterator[None]:
        """A context of a reset, during which new consumers and other resets wait."""
        assert not self._is_reset_under_way, "resets wait for each other"
        self._is_reset_under_way = True
        try:
            yield
        finally:
            self._is_reset_under_way = False
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Wake those that wait for a reset: it has ended, or the subscription has."""
        if self._reset_ended is not None:
            self._reset_ended.set()
            self._reset_ended = None

    async def _until_reset_ends(self) -> None:
        """Return once no reset is under way, or the subscription has ended."""
        if not self._is_reset_under_way:
            return
        try:
            async with asyncio.timeout(RESET_WAIT_SECONDS):
                while self._is_reset_under_way and self.state in _STATES_TO_WAIT_IN:
                    if self._reset_ended is None:
                        self._reset_ended = asyncio.Event()
                    await self._reset_ended.wait()
        except TimeoutError:
            raise SubscriptionFencedError(
                f"Subscription {self.name} is fenced: it is being reset for more than "
                f"{RESET_WAIT_SECONDS:.0f} s; try again later"
            ) from None

    # Calls of consumers.

    def on_flow(self, consumer: Consumer) -> None:
        """Called when a consumer has new permits."""
        assert self._dispatcher is not None, "the consumer has joined"
        self._dispatcher.on_flow(consumer)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        """Send a consumer's unacknowledged entries again: those of `positions`, or all for None."""
        assert self._dispatcher is not None, "the consumer has joined"
        self._dispatcher.redeliver(consumer, positions)

    @abstractmethod
    def acknowledge(
        self,
        consumer: Consumer,
        positions: Sequence[Position],
        ack_sets: list[Sequence[int] | None] | None,
    ) -> bool:
        """Acknowledge entries for a consumer, with an ack set only the indexes clear in it.

        Returns False if an invalid position made it ignore those after it.
        """

    @abstractmethod
    def acknowledge_cumulative(
        self, position: Position, ack_set: Sequence[int] | None, properties: Mapping[str, int]
    ) -> None:
        """Acknowledge all entries up to a position for a consumer."""

    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The users' properties of the subscription."""

    @abstractmethod
    async def set_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties, durably if the subscription is durable.

        Raises:
            ValueError: A name belongs to the broker.
        """

    @abstractmethod
    def when_acknowledged_durably(self, on_durable: OnDurable, number: int) -> None:
        """Call `on_durable` when all acknowledgements so far are durable, or with an error.

        It gets `number`, perhaps together with those of other calls. That may be at once: without a
        cursor that is written there is nothing to wait for.
        """

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None:
        """Delete the subscription at the request of one of its consumers.

        With `force` all others get CLOSE_CONSUMER. `consumer` is removed, too.

        Raises:
            ServiceMetadataError: Others are connected, and `force` is not set.
            SubscriptionBusyError: It is being reset or deleted.
            PersistenceError: The cursor could not be deleted.
        """
        if not force and list(self.consumers) != [consumer]:
            raise ServiceMetadataError("Unconnected or shared consumer attempting to unsubscribe")
        self._check_may_delete()
        consumer.leave()  # so that it gets the answer to its command, no CLOSE_CONSUMER
        self.state = SubscriptionState.DELETING
        self.disconnect()
        await self.delete()

    @abstractmethod
    def _check_may_delete(self) -> None:
        """Raise if a reset or deletion is under way."""

    @abstractmethod
    async def reset_to_position(self, position: Position, ack_set: Sequence[int] | None) -> None:
        """Serve SEEK by id: disconnect consumers, then move the cursor.

        If another reset is under way, this one waits until it has ended.

        Raises:
            UnknownServiceError: Another reset has been under way for `RESET_WAIT_SECONDS`, the
                subscription is being deleted, or the cursor could not be moved.
        """

    @abstractmethod
    async def reset_to_time(self, timestamp_millis: int) -> None:
        """Serve SEEK by time: move to the first entry published at that time or later.

        Raises:
            UnknownServiceError: As `reset_to_position`.
        """

    # Life and statistics.

    @abstractmethod
    async def close(self) -> None:
        """Fence it, remove all consumers, write and close the cursor; for unloading the topic."""

    @abstractmethod
    async def delete(self) -> None:
        """Fence it, remove all consumers, delete the cursor, and let the topic forget it.

        Raises:
            SubscriptionBusyError: It is being reset.
            PersistenceError: The cursor could not be deleted; the subscription stays.
        """

    def stats(self) -> SubscriptionStats:
        """A snapshot for REST and metrics, in one go."""
        return self._stats(tuple(consumer.stats() for consumer in self.consumers))

    async def stats_in_turns(self, turns: Turns, *, explains: bool = True) -> SubscriptionStats:
        """As `stats`; others have turns while consumers are asked, so that some may have left.

        Without `explains` nobody looks why it does not move, which is a tenth of the work.
        """
        consumers: list[ConsumerStats] = []
        units = CONSUMER_UNITS
        if self.subscription_type is SubscriptionType.KEY_SHARED:  # each looks at all slots
            units += min(len(self.consumers) * POINTS_PER_CONSUMER, SLOTS_COUNT) // SLOTS_A_UNIT
        for consumer in list(self.consumers):
            await turns.take(units)
            consumers.append(consumer.stats())
        await turns.take(SUBSCRIPTION_UNITS)
        return self._stats(tuple(consumers), explains=explains)

    @abstractmethod
    def _stats(
        self, consumers: tuple[ConsumerStats, ...], *, explains: bool = True
    ) -> SubscriptionStats:
        """The statistics, with those of the consumers, and with why it does not move."""

    def hash_stats_of(self, consumer: Consumer) -> HashStats:  # noqa: ARG002 - Key_Shared's only
        """The hash ranges of a Key_Shared consumer."""
        return HashStats()

    def roll_rates(self, elapsed_seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        for consumer in self.consumers:
            consumer.roll_rates(elapsed_seconds)
