"""`PersistentSubscription`: a subscription with a cursor on a managed ledger.

It owns the cursor and the tasks that read for its dispatcher. Acknowledgements are passed to the
cursor first, then to the dispatcher, which removes them from the consumers' pending entries. SEEK
disconnects consumers, moves the cursor durably, and admits consumers again. `Subscription` has the
part that is shared with non-persistent subscriptions.

Source: PersistentSubscription in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from pulsar_py.common.errors import (
    CursorClosedError,
    CursorNotFoundError,
    ManagedLedgerError,
    MetadataError,
    PersistenceError,
    StorageError,
    SubscriptionBusyError,
    SubscriptionFencedError,
    SubscriptionUnavailableError,
    UnknownServiceError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.cursors.format import INTERNAL_PREFIX
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.server.compaction.compacted_source import CompactedSource
from pulsar_py.server.compaction.topic_compaction import TopicCompaction
from pulsar_py.server.delayed.bucket_ledgers import BucketPlace
from pulsar_py.server.delayed.delayed_index import DelayedIndex, DelayedIndexParts
from pulsar_py.server.dispatch.delayed import DelayedDeliveryTracker, DelayedTracker
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle, ThrottledEvents
from pulsar_py.server.dispatch.dispatcher import Dispatcher, PersistentDispatcher
from pulsar_py.server.dispatch.entry_source import EntrySource
from pulsar_py.server.dispatch.filtering import (
    DispatchFilter,
    MarkerFilter,
    TransactionStop,
    summary_of,
)
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.single_active import SingleActiveConsumerDispatcher
from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher, mode_name
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.server.subscriptions.dispatch_state import dispatch_state
from pulsar_py.server.subscriptions.standstill import DispatchState, Reason, reasons
from pulsar_py.server.subscriptions.subscription import (
    HashStats,
    Subscription,
    SubscriptionOwner,
    SubscriptionState,
)
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats

if TYPE_CHECKING:
    from pulsar_py.server.subscriptions.consumer import Consumer

__all__ = [
    "HashStats",
    "PersistentSubscription",
    "Subscription",
    "SubscriptionOwner",
    "SubscriptionState",
]

logger = logging.getLogger(__name__)

REPLICATED_PROPERTY = "pulsar.replicated.subscription"
"""A property that a replicated subscription stores with its position, with the value 1."""

PAUSED_PROPERTY = "pulsar-py.paused"
"""The internal cursor property of a subscription whose dispatch is paused."""

READER_GRACE_SECONDS = 60.0
"""Seconds that a reader's subscription waits for its consumer to subscribe again after SEEK."""

_STORAGE_ERRORS = (ManagedLedgerError, StorageError, MetadataError)


class PersistentSubscription(Subscription):
    """A subscription with a cursor on a managed ledger; owned by its topic."""

    is_persistent = True

    def __init__(
        self,
        owner: SubscriptionOwner,
        name: str,
        ledger: ManagedLedger[Any],  # Any: the context of appends belongs to producers
        cursor: ManagedCursor,
        *,
        clock: Clock,
        is_replicated: bool = False,
        properties: Mapping[str, str] | None = None,
        broker_unacked_limit: BrokerUnackedLimit | None = None,
        on_transaction: Callable[[Position], None] | None = None,
        compaction: TopicCompaction | None = None,
        delayed_index: DelayedIndexParts | None = None,
    ) -> None:
        """With `on_transaction` it is told of a transaction's entry, and none is delivered.

        `compaction` is the topic's; None: consumers with `readCompacted` read as others do. Without
        `delayed_index` delays are kept in memory.
        """
        super().__init__(owner, name, clock=clock, is_durable=cursor.is_durable)
        self.ledger = ledger
        self.cursor = cursor
        self.tasks = TaskOwner(f"subscription {name} of {owner.name}")
        self.is_read_in_flight = False
        self.is_dispatch_paused = INTERNAL_PREFIX + PAUSED_PROPERTY in cursor.cursor_properties
        self.is_replicated = is_replicated or REPLICATED_PROPERTY in cursor.properties
        self._initial_properties = properties or {}
        self._broker_unacked_limit = broker_unacked_limit
        self._on_transaction = on_transaction
        self._compaction = compaction
        self._delayed_index_parts = delayed_index if self.is_durable else None
        self._delayed_index: DelayedIndex | None = None  # made for the first dispatcher
        self._compacted_source: CompactedSource | None = None  # made for its first consumer
        self._grace: asyncio.TimerHandle | None = None  # Set while a reader's consumer is awaited.
        self._expired_count = 0
        self._throttled_events = ThrottledEvents()
        self._expired_rate = 0.0
        self._expired_count_rolled = 0
        self._last_expired_millis = 0
        self._last_mark_delete_advanced_millis = 0
        cursor.on_mark_delete_moved = self._on_mark_delete_moved
        cursor.on_acknowledged_late = self._on_acknowledged_late

    # Used by the dispatcher.

    @property
    def entry_source(self) -> EntrySource:
        """The source of the dispatcher's entries: the cursor itself."""
        return self.cursor

    def compacted_source(self) -> EntrySource:
        """The source for consumers with `readCompacted`."""
        if self._compaction is None:
            return self.cursor
        if self._compacted_source is None:
            self.read_compacted_from(None)
        assert self._compacted_source is not None
        return self._compacted_source

    def read_compacted_from(self, start: Position | None) -> None:
        """Let its consumers with `readCompacted` begin at `start`, which may be gone by now."""
        compaction = self._compaction
        if compaction is not None:
            self._compacted_source = CompactedSource(
                self.cursor, lambda: compaction.compacted, compaction.on_missing, start=start
            )

    def delayed_tracker(self) -> DelayedTracker:
        """What holds back delayed entries: the index on disk if the settings say so."""
        parts = self._delayed_index_parts
        settings = None if parts is None else parts.settings()
        tick_millis = self.settings.delayed_delivery_tick_millis
        if self._delayed_index is not None:
            self._delayed_index.tracker.set_tick_millis(tick_millis)
            return self._delayed_index.tracker
        if parts is None or settings is None:
            look_ahead = self.settings.delayed_delivery_look_ahead
            return DelayedDeliveryTracker(tick_millis=tick_millis, look_ahead=look_ahead)
        config = self.ledger.config
        place = BucketPlace(config.cluster, self.topic_name, self.name)
        self._delayed_index = DelayedIndex(
            self.cursor, parts, settings, place, config.ledger_options, tick_millis=tick_millis
        )
        return self._delayed_index.tracker

    async def _end_delayed_index(self) -> None:
        """Stop the index on disk; the next dispatcher finds it anew."""
        index, self._delayed_index = self._delayed_index, None
        if index is not None:
            await index.close()

    def entry_filters(self, reschedule: Callable[[Position], None]) -> Sequence[DispatchFilter]:
        """The filters of its entries: markers are never delivered; users' filters come last."""
        filters: list[DispatchFilter] = [MarkerFilter()]
        if self._on_transaction is not None:
            filters.insert(0, TransactionStop(self._on_transaction))
        own = self._user_filters(reschedule)
        return filters if own is None else [*filters, own]

    def dispatch_throttle(self) -> DispatchThrottle | None:
        """The limits on its dispatch now."""
        throttle = self.owner.dispatch_throttle(self.name)
        if throttle is not None:
            throttle.events = self._throttled_events
        return throttle

    def last_confirmed_entry(self) -> Position:
        """The topic's last entry."""
        return self.ledger.last_confirmed_entry

    def is_terminated(self) -> bool:
        """Whether the topic was terminated: nothing will be appended any more."""
        return self.ledger.is_terminated

    def max_read_position(self) -> Position:
        """The last position that may be dispatched."""
        return self.owner.max_read_position()

    def _last_readable_entry(self) -> Position:
        """The topic's last entry that may be dispatched."""
        return self.ledger.last_entry_up_to(self.max_read_position())

    def acknowledge_filtered(self, positions: list[Position]) -> None:
        """Acknowledge entries that are never delivered."""
        try:
            self.cursor.acknowledge(positions)
        except ManagedLedgerError as error:
            self._log_refused(error)
            return
        self._check_end_of_topic()

    def on_read_finished(self) -> None:
        """Let the current dispatcher read: the read of a former one has ended."""
        if isinstance(self._dispatcher, PersistentDispatcher):
            self._dispatcher.read_more()

    def _new_dispatcher(self, wanted: SubscriptionType, meta: KeySharedMeta | None) -> Dispatcher:
        if wanted.has_single_active_consumer:
            if self._delayed_index is not None:  # these get delayed messages at once
                self._delayed_index.abandon()
                self._delayed_index = None
            return SingleActiveConsumerDispatcher(self, wanted)
        if wanted is SubscriptionType.KEY_SHARED:
            return StickyKeyDispatcher(self, meta, self._broker_unacked_limit)
        return MultipleConsumersDispatcher(self, self._broker_unacked_limit)

    # Pausing.

    async def pause_dispatch(self) -> None:
        """Send nothing more to consumers until `resume_dispatch`, also after a restart.

        What is being read already may still be sent.

        Raises:
            PersistenceError: It could not be stored; dispatch goes on.
        """
        await self._set_paused("true")

    async def resume_dispatch(self) -> None:
        """Send messages to consumers again.

        Raises:
            PersistenceError: It could not be stored; dispatch stays paused.
        """
        await self._set_paused(None)
        self.on_read_finished()

    async def _set_paused(self, value: str | None) -> None:
        if self.is_durable:
            try:
                await self.cursor.set_internal_property(PAUSED_PROPERTY, value)
            except _STORAGE_ERRORS as error:
                raise PersistenceError(f"failed to pause or resume {self.name}: {error}") from error
        self.is_dispatch_paused = value is not None

    # Joining and leaving.

    def _on_joined(self, consumer: Consumer) -> None:
        self._cancel_grace()
        self.cursor.set_active()
        is_replicated = consumer.request.is_replicated
        if is_replicated is not None:
            self.set_replicated(is_replicated=is_replicated)

    def set_replicated(self, *, is_replicated: bool) -> None:
        """Set whether other clusters shall know what is acknowledged; stored with the position."""
        if is_replicated == self.is_replicated:
            return
        self.is_replicated = is_replicated
        properties = dict(self.cursor.properties)
        properties.pop(REPLICATED_PROPERTY, None)
        if is_replicated:
            properties[REPLICATED_PROPERTY] = 1
        self.cursor.set_properties(properties)

    def _on_last_consumer_left(self) -> None:
        self.cursor.set_inactive()

    def disconnect(self) -> None:
        """Stop dispatching, then remove all consumers; a reader's may soon subscribe again."""
        super().disconnect()
        if self.state is SubscriptionState.OPEN:
            self._await_reader()

    def _end_reader(self) -> None:
        self.state = SubscriptionState.CLOSED
        self._cancel_grace()
        if self._dispatcher is not None:
            self._dispatcher.close()
        # Not closed: a non-durable cursor writes nothing, and its name is free at once.
        self.cursor.abandon()
        self.owner.forget_subscription(self)
        self.tasks.spawn(self.tasks.close(), "close")

    def _cancel_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    # Acknowledging.

    def acknowledge(
        self,
        consumer: Consumer,
        positions: Sequence[Position],
        ack_sets: list[Sequence[int] | None] | None,
    ) -> bool:
        """Acknowledge entries; a position past the last entry, and all after it, are ignored."""
        # Hot path: acknowledge.
        try:
            taken_count = self.cursor.acknowledge(positions, ack_sets)
        except ManagedLedgerError as error:
            self._log_refused(error)
            return False
        is_whole = taken_count == len(positions)
        if not is_whole:
            positions = positions[:taken_count]
            ack_sets = ack_sets and ack_sets[:taken_count]
        if self._dispatcher is not None:
            self._dispatcher.on_acknowledged(consumer, positions, ack_sets)
        self._check_end_of_topic()
        return is_whole

    def acknowledge_cumulative(
        self, position: Position, ack_set: Sequence[int] | None, properties: Mapping[str, int]
    ) -> None:
        """Acknowledge everything up to a position; a refusal is logged, not answered."""
        stored: dict[str, int] | None = None
        if properties:
            stored = dict(properties)
            if self.is_replicated:
                stored[REPLICATED_PROPERTY] = 1
        try:
            self.cursor.acknowledge_cumulative(position, ack_set, stored)
        except ManagedLedgerError as error:
            self._log_refused(error)
            return
        self._check_end_of_topic()

    def when_acknowledged_durably(self, on_durable: OnDurable, number: int) -> None:
        """Call `on_durable` once the cursor is written; see `ManagedCursor.when_durable`."""
        self.cursor.when_durable(on_durable, number)

    def _log_refused(self, error: ManagedLedgerError) -> None:
        logger.debug(
            "acknowledgement refused",
            extra={"topic": self.topic_name, "subscription": self.name, "error": str(error)},
        )

    def _check_end_of_topic(self) -> None:
        if self.ledger.is_terminated and isinstance(self._dispatcher, PersistentDispatcher):
            self._dispatcher.tell_end_of_topic()

    def on_terminated(self) -> None:
        """Send REACHED_END_OF_TOPIC if all entries of the terminated topic are acknowledged."""
        self._check_end_of_topic()

    def _on_acknowledged_late(self, positions: list[Position]) -> None:
        """Remove batches that turned out to be acknowledged as a whole from the pending entries."""
        if self._dispatcher is not None:
            self._dispatcher.on_acknowledged(None, positions, None)

    def _on_mark_delete_moved(self) -> None:
        self._last_mark_delete_advanced_millis = self.clock.wall_time_millis()

    # SEEK.

    async def reset_to_position(self, position: Position, ack_set: Sequence[int] | None) -> None:
        """Close consumers, move the cursor durably, and admit consumers again.

        Exclusive and Failover close the active consumer only, Shared and Key_Shared all.
        """
        await self._until_reset_may_begin()
        with self._reset_under_way():
            await self._reset_cursor(position, ack_set)

    async def _until_reset_may_begin(self) -> None:
        """Return once no other reset is under way: resets happen one after the other, in order."""
        try:
            await self._until_reset_ends()
        except SubscriptionFencedError as error:
            raise SubscriptionUnavailableError(str(error)) from None
        self._check_may_reset()

    def _check_may_reset(self) -> None:
        if self.state is not SubscriptionState.OPEN:
            raise SubscriptionUnavailableError(
                f"Subscription {self.name} can't be reset: it is being deleted or is closed"
            )

    async def _reset_cursor(self, position: Position, ack_set: Sequence[int] | None) -> None:
        self._check_may_reset()  # again: finding the position by time may have taken a while
        self.state = SubscriptionState.RESETTING
        self._disconnect_for_reset()
        await self._end_delayed_index()
        try:
            await self.cursor.reset(*self._readable_target(position, ack_set))
        except _STORAGE_ERRORS as error:
            raise UnknownServiceError(f"failed to reset {self.name}: {error}") from error
        else:
            if self._compacted_source is not None:
                self._compacted_source.on_reset(position)
        finally:
            # The subscription may have been closed meanwhile: it must stay closed.
            if self.state is SubscriptionState.RESETTING:
                self.state = SubscriptionState.OPEN
                self._await_reader()
                if self._dispatcher is not None:
                    self._dispatcher.on_cursor_reset()

    def _disconnect_for_reset(self) -> None:
        """Stop sending, and close the consumers that a reset has to disconnect."""
        dispatcher = self._dispatcher
        if not isinstance(dispatcher, SingleActiveConsumerDispatcher):
            self.disconnect()
            return
        active = dispatcher.hold()
        if active is not None:
            cast("Consumer", active).disconnect()

    def _readable_target(
        self, position: Position, ack_set: Sequence[int] | None
    ) -> tuple[Position, Sequence[int] | None]:
        """The target of a reset: at most the first entry that may not be dispatched yet.

        Entries past the max read position were delivered to no consumer, so no seek may skip them.
        """
        limit = self.max_read_position()
        if limit >= self.ledger.last_confirmed_entry:
            return position, ack_set
        first_held_back = self.ledger.next_valid_position(limit)
        return (position, ack_set) if position <= first_held_back else (first_held_back, None)

    def _await_reader(self) -> None:
        """Keep a reader's subscription for a while, since its consumer subscribes again."""
        if not self.is_durable and not self.consumers and self._grace is None:
            self._grace = self.clock.call_later(READER_GRACE_SECONDS, self._on_grace_over)

    def _on_grace_over(self) -> None:
        self._grace = None
        if self.state is SubscriptionState.OPEN and not self.consumers:
            self._end_reader()

    async def reset_to_time(self, timestamp_millis: int) -> None:
        """Move the cursor to the first entry published at that time or later.

        Only entries that may be dispatched are searched; if all of those are older, the cursor
        moves behind them.
        """
        await self._until_reset_may_begin()
        with self._reset_under_way():
            try:
                older = await self._newest_older_than(timestamp_millis)
            except _STORAGE_ERRORS as error:
                raise UnknownServiceError(f"failed to reset {self.name}: {error}") from error
            position = EARLIEST if older is None else self.ledger.next_valid_position(older)
            await self._reset_cursor(position, None)

    async def _newest_older_than(
        self, timestamp_millis: int, *, after: Position | None = None
    ) -> Position | None:
        """The newest entry that may be dispatched and was published before that time."""
        last = self._last_readable_entry()
        return await self.ledger.find_newest(
            lambda entry: entry.position <= last and _timestamp_millis(entry) < timestamp_millis,
            after=after,
        )

    # Skipping and expiring.

    # Entries that may not be dispatched yet are neither skipped nor cleared, and don't expire.

    async def skip_messages(self, entries_count: int, *, counts_acknowledged: bool = False) -> None:
        """Acknowledge the next entries of the backlog, durably.

        With `counts_acknowledged` the count includes entries that are acknowledged already.
        """
        await self.cursor.skip(
            entries_count,
            counts_acknowledged=counts_acknowledged,
            up_to=self.max_read_position(),
        )
        self._on_cursor_advanced()
        await self.write_cursor()

    async def clear_backlog(self) -> None:
        """Acknowledge all entries that may be dispatched, durably."""
        await self.cursor.clear_backlog(up_to=self.max_read_position())
        if isinstance(self._dispatcher, MultipleConsumersDispatcher):
            self._dispatcher.delayed.on_backlog_cleared()
        self._on_cursor_advanced()
        await self.write_cursor()

    async def write_cursor(self) -> None:
        """Make all that was acknowledged durable.

        Raises:
            ServiceError: It may not be: the cursor can't be written, or is closed.
        """
        try:
            await self.cursor.flush()
        except CursorClosedError as error:
            raise SubscriptionUnavailableError(
                f"Subscription {self.name} was closed meanwhile; try again"
            ) from error
        except _STORAGE_ERRORS as error:
            raise PersistenceError(f"failed to write the cursor of {self.name}: {error}") from error

    async def expire_up_to(self, position: Position) -> bool:
        """Acknowledge all entries up to `position`; returns whether the cursor moved.

        Raises:
            ManagedLedgerError: The cursor can't be moved now: it is being reset, or closed.
        """
        position = min(position, self._last_readable_entry())
        if position <= self.cursor.mark_delete_position:
            return False
        backlog_before = self.cursor.backlog_count()
        self.cursor.acknowledge_cumulative(position)
        self._expired_count += backlog_before - self.cursor.backlog_count()
        self._last_expired_millis = self.clock.wall_time_millis()
        self._on_cursor_advanced()
        return True

    async def expire_older_than(self, seconds: int) -> bool:
        """Acknowledge entries published longer ago than `seconds`; returns whether there were.

        Raises:
            ManagedLedgerError: As `expire_up_to`.
            PulsarError: Entries can't be read now.
        """
        limit_millis = self.clock.wall_time_millis() - seconds * 1000
        position = await self._newest_older_than(
            limit_millis, after=self.cursor.mark_delete_position
        )
        return position is not None and await self.expire_up_to(position)

    def _on_cursor_advanced(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.on_mark_delete_moved(self.cursor.mark_delete_position)
        if self._delayed_index is not None:
            self._delayed_index.on_mark_delete_moved(self.cursor.mark_delete_position)
        self._check_end_of_topic()

    # Calls of the topic.

    def on_settings_changed(self) -> None:
        """Use the owner's changed `dispatch_settings`."""
        if isinstance(self._dispatcher, PersistentDispatcher):
            self._dispatcher.on_settings_changed()
        if isinstance(self._dispatcher, MultipleConsumersDispatcher):
            for consumer in self.consumers:
                limit = self.settings.max_unacked_messages_per_consumer if self.is_durable else 0
                consumer.permits.set_limit(limit)
            self._dispatcher.on_limits_changed()

    def on_max_read_position_moved(self) -> None:
        """Read on: later entries may be dispatched now."""
        if isinstance(self._dispatcher, PersistentDispatcher):
            self._dispatcher.read_more()

    # Life.

    def _check_may_delete(self) -> None:
        if self.state in (SubscriptionState.RESETTING, SubscriptionState.DELETING):
            raise SubscriptionBusyError(f"Subscription {self.name} is being reset or deleted")

    async def delete(self) -> None:
        """Disconnect all consumers and delete the cursor; `Subscription.delete` has the errors."""
        if self.state is SubscriptionState.CLOSED:
            return
        if self.state is SubscriptionState.RESETTING:
            raise SubscriptionBusyError(f"Subscription {self.name} is being reset")
        self.state = SubscriptionState.DELETING
        self.disconnect()
        self._wake_waiting()
        await self._end_delayed_index()
        try:
            await self._delete_cursor()
        except _STORAGE_ERRORS as error:
            self.state = SubscriptionState.OPEN
            raise PersistenceError(f"failed to delete {self.name}: {error}") from error
        self._cancel_grace()
        self.state = SubscriptionState.CLOSED
        self.owner.forget_subscription(self)
        await self.tasks.close()

    async def _delete_cursor(self) -> None:
        if not self.is_durable:
            await self.cursor.close()
            return
        try:
            await self.ledger.delete_cursor(self.cursor.name)
        except CursorNotFoundError:
            logger.info("cursor was deleted already", extra={"subscription": self.name})

    async def close(self) -> None:
        """Disconnect all consumers, stop reading, write the cursor. May be called again."""
        if self.state is SubscriptionState.CLOSED:
            return
        self.state = SubscriptionState.CLOSED
        self._cancel_grace()
        self.disconnect()
        self._wake_waiting()
        await self.tasks.close()
        await self._end_delayed_index()
        await self.cursor.close()

    # Statistics.

    def standstill(self) -> tuple[Reason, ...]:
        """The reasons why it does not move now; none where entries are being sent."""
        if self.state is not SubscriptionState.OPEN:
            return reasons(DispatchState(is_open=False, state=self.state.name))
        limit = self._broker_unacked_limit
        return reasons(
            dispatch_state(
                self,
                self._dispatcher,
                self.ledger,
                self.cursor,
                state=self.state.name,
                broker_unacked_limit=0 if limit is None else limit.max_unacked_messages,
            )
        )

    def hash_stats_of(self, consumer: Consumer) -> HashStats:
        """The hash ranges of a Key_Shared consumer, and the hashes that drain from it."""
        dispatcher = self._dispatcher
        if not isinstance(dispatcher, StickyKeyDispatcher):
            return HashStats(ranges=consumer.requested_ranges)
        draining = dispatcher.draining
        return HashStats(
            ranges=dispatcher.ranges_of(consumer),
            draining=draining.draining_from(consumer),
            cleared_total=draining.cleared_total(consumer),
        )

    def roll_rates(self, elapsed_seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        super().roll_rates(elapsed_seconds)
        if elapsed_seconds > 0:
            expired = self._expired_count - self._expired_count_rolled
            self._expired_rate = expired / elapsed_seconds
        self._expired_count_rolled = self._expired_count

    def properties(self) -> Mapping[str, str]:
        """The users' properties of the subscription."""
        if not self.is_durable:
            return self._initial_properties
        stored = self.cursor.cursor_properties
        return {name: text for name, text in stored.items() if not name.startswith(INTERNAL_PREFIX)}

    async def set_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties, durably if the subscription is durable."""
        if self.is_durable:
            await self.cursor.set_cursor_properties(properties)
        else:
            self._initial_properties = dict(properties)

    def _stats(
        self, consumers: tuple[ConsumerStats, ...], *, explains: bool = True
    ) -> SubscriptionStats:
        dispatcher = self._dispatcher
        shared = dispatcher if isinstance(dispatcher, MultipleConsumersDispatcher) else None
        sticky = dispatcher if isinstance(dispatcher, StickyKeyDispatcher) else None
        delayed_count = 0 if shared is None else len(shared.delayed)
        active = None if dispatcher is None else dispatcher.active_consumer
        backlog = self.cursor.backlog_count()
        kind = self.subscription_type
        return SubscriptionStats(
            subscription_type=None if kind is None else kind.wire_name,
            backlog_entries=backlog,
            backlog_no_delayed_entries=backlog - delayed_count,
            backlog_bytes=self.cursor.backlog_bytes(),
            delayed_entries=delayed_count,
            delayed_index_bytes=0 if shared is None else shared.delayed.memory_bytes,
            unacked_messages=0 if shared is None else shared.unacked_messages,
            replay_entries=0 if shared is None else len(shared.redelivery),
            is_blocked_on_unacked_messages=shared is not None and shared.is_blocked,
            is_durable=self.is_durable,
            is_replicated=self.is_replicated,
            active_consumer_name=None if active is None else active.name,
            expired_rate=self._expired_rate,
            expired_count=self._expired_count,
            messages_out_count=self._messages_out_gone
            + sum(each.messages_out_count for each in consumers),
            bytes_out_count=self._bytes_out_gone + sum(each.bytes_out_count for each in consumers),
            last_expired_millis=self._last_expired_millis,
            last_flow_gone_millis=self._last_flow_gone_millis,
            last_mark_delete_advanced_millis=self._last_mark_delete_advanced_millis,
            key_shared_mode=None if sticky is None else mode_name(sticky.meta),
            allow_out_of_order_delivery=(
                sticky is not None and sticky.meta.allow_out_of_order_delivery
            ),
            non_contiguous_deleted_ranges_count=self.cursor.individual_ranges_count(),
            properties=self.properties(),
            filter_counts=replace(self.filter_counts),
            throttled_events=replace(self._throttled_events),
            standstill=tuple(each.cause for each in self.standstill()) if explains else (),
            consumers=consumers,
        )


def _timestamp_millis(entry: Entry) -> int:
    return summary_of(entry).timestamp_millis
