"""`PersistentTopic`: a topic with its messages in a managed ledger.

The ledger gives entries their positions and confirms them in groups; neighbouring receipts of one
producer are sent with one write. A failed write fences the topic: its producers get
CLOSE_PRODUCER, and once every pending entry has an outcome, the topic opens again. When another
owner has the ledger, the topic is closed without writing anything.

Unloading fences the topic, sends CLOSE_PRODUCER and CLOSE_CONSUMER to all clients, closes the
subscriptions (each cursor is written), then the ledger.

Source: PersistentTopic in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from pulsar_py.common.errors import (
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    MetadataNotFoundError,
    PersistenceError,
    PulsarError,
    RemoteProtocolError,
    StorageError,
    SubscriptionBusyError,
    SubscriptionNotFoundError,
    TopicFencedError,
    TopicTerminatedError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import BacklogQuotaType
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.cursors.format import COMPACTION_CURSOR
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.stats import ManagedLedgerStats
from pulsar_py.managed_ledger.log.write_figures import NOTHING_WRITTEN
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.compaction.topic_compaction import TopicCompaction
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.limits.backlog import measure_backlog, oldest_publish_times
from pulsar_py.server.limits.backlog_quota import Backlog, exceeded_quotas, refusal
from pulsar_py.server.limits.message_checks import (
    is_chunk_part,
    published_millis,
)
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.access_modes import TOPIC_EPOCH_PROPERTY
from pulsar_py.server.publishing.deduplication import CURSOR_NAME, DuplicateStatus
from pulsar_py.server.publishing.entry_metadata import EntryStamper
from pulsar_py.server.publishing.message_deduplication import MessageDeduplication
from pulsar_py.server.publishing.producer import (
    CHUNK,
    CHUNK_PART,
    MARKER,
    Append,
    AppendRun,
    Producer,
    PublishContext,
)
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.publishing.producers import NO_SEQUENCE_ID
from pulsar_py.server.publishing.watched_publishing import WatchedAppends
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.subscriptions.subscription import Subscription
from pulsar_py.server.subscriptions.subscription_stats import SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic import Topic, TopicContext
from pulsar_py.server.topics.topic_state import TopicState
from pulsar_py.wire.payload import parse_broker_entry_metadata

logger = logging.getLogger(__name__)

# Of a PublishContext.
_PRODUCER = itemgetter(0)
_SEQUENCE_ID = itemgetter(1)
_HIGHEST_ID = itemgetter(2)
_SIZE = itemgetter(3)


class PersistentTopic(Topic):
    """A topic whose messages are stored; the `AppendListener` of its managed ledger."""

    def __init__(
        self,
        name: TopicName,
        ledger: ManagedLedger[PublishContext],
        settings: TopicSettings,
        context: TopicContext,
    ) -> None:
        """Use `open`."""
        epoch = ledger.properties.get(TOPIC_EPOCH_PROPERTY)
        super().__init__(
            name, settings, context, topic_epoch=int(epoch) if epoch is not None else None
        )
        self.ledger = ledger
        self.deduplication: MessageDeduplication | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._stamper = EntryStamper(settings.entry_metadata_interceptors)
        self._failing: list[Producer] = []  # producers with pending entries in a fenced topic
        self._lost = False  # another owner has the ledger
        self._stored_rate = 0.0  # of entries, in the last window
        self._stored_count_rolled = 0
        self._read_rates = 0.0, 0.0  # of entries: all, and those that were not in memory
        self._read_counts_rolled = 0, 0
        self._written = NOTHING_WRITTEN  # in the last window
        # When the oldest message of the backlog was published, and for which cursor.
        self._oldest: tuple[int, str] | None = None
        self._max_read_position = LATEST  # later entries are held back from consumers
        self.compaction = (
            None if context.compaction is None else TopicCompaction(self, context.compaction)
        )
        ledger.listener = self
        if self._interceptors is not None and self._interceptors.hears("message_produced"):
            ledger.listener = WatchedAppends(self, self._interceptors)

    @classmethod
    async def open(
        cls,
        name: TopicName,
        ledger: ManagedLedger[Any],  # Any: the ledger's context type is PublishContext from here on
        settings: TopicSettings,
        context: TopicContext,
    ) -> PersistentTopic:
        """Load a topic on an opened ledger: its subscriptions, deduplication and index.

        Raises:
            ManagedLedgerError, StorageError, MetadataError: Its state can't be read.
        """
        self = cls(name, ledger, settings, context)
        for cursor_name, cursor in ledger.cursors.items():
            if cursor_name == CURSOR_NAME or cursor_name.startswith(settings.replicator_prefix):
                continue
            self._add_subscription(cursor_name, cursor)
        if settings.is_deduplication_enabled and not name.is_system:
            self.deduplication = await MessageDeduplication.open(ledger, settings, context.clock)
        elif CURSOR_NAME in ledger.cursors:
            await ledger.delete_cursor(CURSOR_NAME)
        if self._stamper.adds_index:
            self._stamper.last_index = await _last_index(ledger)
        if self.compaction is not None:
            await self.compaction.load()
            await self._hold_for_compaction()
        return self

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """Subscriptions by name, durable or not."""
        return self._subscriptions

    # --- publishing --------------------------------------------------------------------------

    def append_function(self) -> Append:
        """The ledger's own `append`, unless something else has to be done with messages."""
        looks = self.deduplication is not None or self._stamper.is_needed
        return self._guarded(self._append_looking if looks else self.ledger.append)

    def append_run_function(self, append: Append) -> AppendRun | None:
        """The ledger's own `append_run`, where `append` is the ledger's own, too.

        Deduplication alone decides a run as a whole.
        """
        if append is self.ledger.append:
            return self.ledger.append_run
        if (
            append == self._append_looking
            and self.deduplication is not None
            and not self._stamper.is_needed
        ):
            return partial(self.deduplication.append_run, self.ledger.append_run)
        return None

    def _append_looking(self, data: bytes, context: PublishContext) -> None:
        """Deduplicate a message, stamp it and append it."""
        producer, sequence_id, highest, size, messages_count, kind = context
        if self.deduplication is not None and kind != MARKER:
            if kind == CHUNK and is_chunk_part(data):
                context = (producer, sequence_id, highest, size, messages_count, CHUNK_PART)
            else:
                status = self.deduplication.state.decide(
                    producer.name, sequence_id, highest or sequence_id
                )
                if status is DuplicateStatus.DUPLICATE:
                    producer.count_out(1, size)
                    producer.send_receipt(sequence_id, highest, -1, -1)
                    return
                if status is DuplicateStatus.UNKNOWN:
                    raise PersistenceError("Cannot determine whether the message is a duplicate")
        if self._stamper.is_needed:
            now_millis = self.context.clock.wall_time_millis()
            data = self._stamper.stamp(data, messages_count, now_millis)
        self.ledger.append(data, context)

    async def append_own(self, data: bytes) -> Position:
        """Append a message of the broker itself; returns its position when it is durable.

        Raises:
            TopicFencedError: The topic is closing.
            ManagedLedgerError, StorageError: It is not stored, or that is unknown.
        """
        self._check_open()
        now_millis = self.context.clock.wall_time_millis()
        if self._stamper.is_needed:
            data = self._stamper.stamp(data, 1, now_millis)
        position = await self.ledger.append_and_wait(data)
        self.last_published_millis = now_millis
        return position

    def on_appended(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[PublishContext]
    ) -> None:
        """Send receipts for stored entries, with one write for neighbours of one producer."""
        # Hot path: publish-1k
        if len(contexts) == 1:  # of a slow producer
            producer, sequence_id, highest, size, _, _ = contexts[0]
            producer.send_receipt(sequence_id, highest, ledger_id, first_entry_id)
            producer.count_out(1, size)
        else:
            self._send_receipts(ledger_id, first_entry_id, contexts)
        self.last_published_millis = self.context.clock.wall_time_millis()
        if self.deduplication is not None:
            last = Position(ledger_id, first_entry_id + len(contexts) - 1)
            self.deduplication.on_group_persisted(contexts, last)
        if self._failing:
            self._maybe_unfence()

    def _send_receipts(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[PublishContext]
    ) -> None:
        if len(set(map(_PRODUCER, contexts))) == 1:
            self._send_receipts_of_one(ledger_id, first_entry_id, contexts)
            return
        entry_id = first_entry_id
        for _, its in groupby(contexts, _PRODUCER):
            run = list(its)
            self._send_receipts_of_one(ledger_id, entry_id, run)
            entry_id += len(run)

    def _send_receipts_of_one(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[PublishContext]
    ) -> None:
        producer = contexts[0][0]
        sequence_ids = list(map(_SEQUENCE_ID, contexts))
        highest_ids = list(map(_HIGHEST_ID, contexts))
        encode_run = self.context.receipts.encode_run
        receipts = encode_run(
            producer.producer_id, ledger_id, first_entry_id, sequence_ids, highest_ids
        )
        producer.connection.write((receipts,))
        producer.count_out(len(contexts), sum(map(_SIZE, contexts)))

    def on_append_failed(self, contexts: Sequence[PublishContext], error: Exception) -> None:
        """Send SEND_ERROR for entries that were not stored, and CLOSE_PRODUCER to all producers."""
        reason = error if isinstance(error, PulsarError) else PersistenceError(str(error))
        for producer, sequence_id, highest, size, _, _ in contexts:
            producer.send_publish_error(sequence_id, highest, reason)
            producer.count_out(1, size)
        if self.state is TopicState.OPEN and not self.ledger.is_terminated:
            logger.warning("topic fenced", extra={"topic": str(self.name), "error": str(error)})
            self.state = TopicState.FENCED
            # Producers without a connection count, too: their pending entries may yet be stored.
            pending = (context[0] for context in self.ledger.pending_contexts())
            self._failing = list(dict.fromkeys((*self.producers.values(), *pending)))
            self.disconnect_producers()
        self._maybe_unfence()

    def _maybe_unfence(self) -> None:
        """Open again if every entry that was pending at the failure has an outcome."""
        self._failing = [each for each in self._failing if each.pending_count]
        if self._failing or self.state is not TopicState.FENCED or self._lost:
            return
        if self.deduplication is not None:
            self.deduplication.state.on_append_failed()
        self.state = TopicState.OPEN

    def lose(self) -> None:
        """Fence the ledger, because another broker owns the topic; `on_fenced` closes the rest."""
        self.ledger.fence(ManagedLedgerFencedError(f"{self.name}: another broker owns the bundle"))

    def on_fenced(self, error: Exception) -> None:
        """Close the topic without writing: another owner has the ledger."""
        logger.warning("topic lost", extra={"topic": str(self.name), "error": str(error)})
        self._lost = True
        if self.state is TopicState.OPEN:
            self.state = TopicState.FENCED
        self.context.on_topic_lost(self)

    # --- producers ---------------------------------------------------------------------------

    def check_takes_producers(self) -> None:
        """Raise unless the topic takes producers."""
        if self.ledger.is_terminated:
            raise TopicTerminatedError(f"Topic {self.name} was already terminated")
        super().check_takes_producers()

    def last_sequence_id(self, producer_name: str) -> int:
        """The highest known sequence id of a producer; -1 without deduplication."""
        if self.deduplication is None:
            return NO_SEQUENCE_ID
        return self.deduplication.state.last_sequence_id(producer_name)

    def on_producer_added(self, producer: Producer) -> None:
        """Tell deduplication that a producer was admitted."""
        super().on_producer_added(producer)
        if self.deduplication is not None:
            self.deduplication.state.on_producer_added(producer.name)

    def on_producer_removed(self, producer: Producer) -> None:
        """Tell deduplication that an admitted producer has left."""
        super().on_producer_removed(producer)
        if self.deduplication is not None:
            now = self.context.clock.monotonic_seconds()
            self.deduplication.state.on_producer_removed(producer.name, now)

    async def store_topic_epoch(self, topic_epoch: int) -> None:
        """Store the epoch durably; its producer may publish after that."""
        await self.ledger.set_property(TOPIC_EPOCH_PROPERTY, str(topic_epoch))

    async def _check_backlog_quota(self) -> None:
        settings = self._settings
        if not settings.is_backlog_quota_checked or self.is_system or not settings.backlog_quotas:
            return
        for exceeded in exceeded_quotas(settings.backlog_quotas, await self.backlog()):
            error = refusal(exceeded, str(self.name))
            if error is not None:
                raise error

    async def backlog(self) -> Backlog:
        """The backlog of the slowest durable cursor, as quotas measure it."""
        return await measure_backlog(
            self.ledger, self._settings, self.context.clock.wall_time_millis()
        )

    async def oldest_publish_times(self, turns: Turns) -> dict[str, int]:
        """By subscription, when the oldest message of its backlog was published."""
        cursors = {
            name: each.cursor
            for name, each in self._subscriptions.items()
            if isinstance(each, PersistentSubscription)
        }
        return await oldest_publish_times(self.ledger, cursors, turns)

    def note_oldest(self, backlog: Backlog) -> None:
        """Keep what was measured of the oldest message of the backlog, for statistics."""
        age = backlog.oldest_age_seconds
        now = self.context.clock.wall_time_millis()
        self._oldest = None if age is None else (now - round(age * 1000), backlog.cursor_name)

    # --- subscriptions -----------------------------------------------------------------------

    def _add_subscription(
        self, name: str, cursor: ManagedCursor, properties: Mapping[str, str] | None = None
    ) -> PersistentSubscription:
        subscription = PersistentSubscription(
            self,
            name,
            self.ledger,
            cursor,
            clock=self.context.clock,
            properties=properties,
            broker_unacked_limit=self.context.unacked_limit,
            on_transaction=None if self.context.refused is None else self._on_transaction,
            compaction=self.compaction,
            delayed_index=self.context.delayed_index,
        )
        self._subscriptions[name] = subscription
        return subscription

    async def _create_subscription(self, request: SubscribeRequest) -> Subscription:
        name = request.subscription_name
        self._check_may_create_subscription(name, is_durable=request.is_durable)
        subscription: Subscription
        if request.is_durable:
            subscription = await self.create_subscription(
                name,
                starts_at_earliest=request.starts_at_earliest,
                properties=request.subscription_properties,
            )
        else:
            subscription = self._add_subscription(name, self._new_reader_cursor(request))
            if request.read_compacted:
                subscription.read_compacted_from(_reader_start(request))
        if request.start_rollback_seconds > 0:
            now_millis = self.context.clock.wall_time_millis()
            await subscription.reset_to_time(now_millis - request.start_rollback_seconds * 1000)
        return subscription

    def _new_reader_cursor(self, request: SubscribeRequest) -> ManagedCursor:
        """A cursor at the requested start; if that is beyond the end, at the initial position.

        LATEST counts as beyond the end: with initial position Earliest it means the first message.

        Source: NonDurableCursorImpl in Pulsar's managed-ledger.
        """
        initial = InitialPosition.EARLIEST if request.starts_at_earliest else InitialPosition.LATEST
        start: Position | InitialPosition = initial
        if request.start_position == EARLIEST:
            start = InitialPosition.EARLIEST
        elif request.start_position is not None:
            start = request.start_position
        return self.ledger.new_non_durable_cursor(request.subscription_name, start, initial=initial)

    async def create_subscription(
        self, name: str, *, starts_at_earliest: bool, properties: Mapping[str, str] | None = None
    ) -> Subscription:
        """The durable subscription of that name, created if missing."""
        if name in self._subscriptions:
            return self._subscriptions[name]
        self._check_subscriptions_limit(name)
        try:
            cursor = await self.ledger.open_cursor(
                name,
                InitialPosition.EARLIEST if starts_at_earliest else InitialPosition.LATEST,
                cursor_properties=properties,
            )
        except (ManagedLedgerError, StorageError) as error:
            raise PersistenceError(f"cursor {name} of {self.name}: {error}") from error
        if name in self._subscriptions:
            return self._subscriptions[name]  # another request created it at the same time
        return self._add_subscription(name, cursor, properties)

    # --- compaction --------------------------------------------------------------------------

    async def _hold_for_compaction(self) -> None:
        """Create the subscription that holds entries until they are compacted, if a policy asks."""
        if self._settings.compaction_threshold_bytes > 0 or self.is_system:
            await self.open_compaction_cursor()

    async def open_compaction_cursor(self) -> ManagedCursor:
        """The cursor of the subscription `__compaction`, created at the earliest entry.

        Raises:
            SubscriptionBusyError: A client has a consumer on it.
            ManagedLedgerError, MetadataError: It could not be created.
        """
        subscription = self._subscriptions.get(COMPACTION_CURSOR)
        if subscription is not None and subscription.consumers:
            raise SubscriptionBusyError(
                f"{self.name}: a consumer is connected to {COMPACTION_CURSOR}, which only the "
                "compaction may read; disconnect it"
            )
        cursor = await self.ledger.open_cursor(COMPACTION_CURSOR, InitialPosition.EARLIEST)
        if COMPACTION_CURSOR not in self._subscriptions:
            self._add_subscription(COMPACTION_CURSOR, cursor)
        return cursor

    def last_readable_entry(self) -> Position:
        """The last entry that may be dispatched, or the gap before the first."""
        return self.ledger.last_entry_up_to(self._max_read_position)

    def max_read_position(self) -> Position:
        """The last position that may be dispatched; LATEST while nothing is held back."""
        return self._max_read_position

    def move_max_read_position(self, position: Position) -> None:
        """Let subscriptions read up to `position`, included; waiting ones read on."""
        before, self._max_read_position = self._max_read_position, position
        if position <= before:
            return
        for subscription in list(self._subscriptions.values()):
            assert isinstance(subscription, PersistentSubscription)
            subscription.on_max_read_position_moved()

    def _on_transaction(self, position: Position) -> None:
        """A transaction's entry was read, which is not served: nobody reads up to it any more."""
        before = Position(position.ledger_id, position.entry_id - 1)
        if before < self._max_read_position:
            self.move_max_read_position(before)
            assert self.context.refused is not None, "only a broker of a cluster looks for them"
            self.context.refused.note_transaction(self.name, position)

    def last_readable_position(self) -> Position:
        """Position of the last message that may be dispatched, `EARLIEST` if there is none."""
        last = self.ledger.last_entry_up_to(self._max_read_position)
        return last if self.ledger.contains(last) else EARLIEST

    def forget_subscription(self, subscription: Subscription) -> None:
        """Drop a subscription that ended."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            if subscription.name == COMPACTION_CURSOR and self.compaction is not None:
                self.compaction.on_cursor_deleted()
            stats = subscription.stats()
            self._messages_out_gone += stats.messages_out_count
            self._bytes_out_gone += stats.bytes_out_count
            self._limits.forget_subscription(subscription.name)
            self.last_active_seconds = self.context.clock.monotonic_seconds()

    async def delete_subscription(self, name: str, *, force: bool = False) -> None:
        """Delete a subscription with its cursor."""
        subscription = self._subscriptions.get(name)
        if subscription is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found")
        if subscription.consumers and not force:
            raise SubscriptionBusyError("Subscription has active connected consumers")
        await subscription.delete()

    # --- life --------------------------------------------------------------------------------

    async def apply_settings(self, settings: TopicSettings) -> None:
        """Use changed settings; if that switches on deduplication, older entries don't count.

        Where it can't be switched now, the settings stay as they were.
        """
        before, self._settings = self._settings, settings
        try:
            await self._switch_deduplication()
        except PulsarError:
            self._settings = before
            raise
        if settings.managed_ledger != before.managed_ledger:
            self.ledger.set_config(settings.managed_ledger)
        if self.compaction is not None:
            await self._hold_for_compaction()
        self._producers.set_append(self.append_function())
        if (settings.dispatch, settings.resource_group) != (before.dispatch, before.resource_group):
            for subscription in self._subscriptions.values():
                assert isinstance(subscription, PersistentSubscription)
                subscription.on_settings_changed()

    async def _switch_deduplication(self) -> None:
        wanted = self._settings.is_deduplication_enabled and not self.is_system
        if self.deduplication is not None:
            if wanted:
                self.deduplication.apply_settings(self._settings)
                return
            gone, self.deduplication = self.deduplication, None
            await gone.remove()
        elif wanted:
            self.deduplication = await MessageDeduplication.open(
                self.ledger, self._settings, self.context.clock
            )
            for producer in self.producers.values():
                self.deduplication.state.on_producer_added(producer.name)

    async def close(self, *, disconnect_clients: bool = True) -> None:
        """Unload the topic: fence, disconnect clients, write every cursor, close the ledger."""
        if self.state is TopicState.CLOSED:
            return
        self.state = TopicState.CLOSING
        if disconnect_clients:
            self.disconnect_producers()
        self._disconnect_consumers()
        try:
            await self._write_down()
        finally:
            await self.ledger.close()
            self.state = TopicState.CLOSED

    async def _write_down(self) -> None:
        """Close the subscriptions, and store deduplication's snapshot and the message index.

        Raises:
            ManagedLedgerError, StorageError, MetadataError: One is not stored; the others are.
        """
        failures: list[Exception] = []
        if self.compaction is not None:
            await self.compaction.close()
        for subscription in list(self._subscriptions.values()):
            try:
                await subscription.close()
            except (ManagedLedgerError, StorageError, MetadataError) as error:
                failures.append(error)
        if not self._lost:
            if self.deduplication is not None:
                await self.deduplication.finish_snapshot()
            await self.save_index()
        if failures:
            raise failures[0]

    def _disconnect_consumers(self) -> None:
        """Close all consumers, so that nothing is sent while the first cursors are written."""
        for subscription in list(self._subscriptions.values()):
            subscription.disconnect()

    async def save_index(self) -> None:
        """Store the index of the newest message, before the entry that has it may be deleted."""
        if self._stamper.adds_index and self._stamper.last_index >= 0:
            index = str(self._stamper.last_index)
            if self.ledger.properties.get(_INDEX_PROPERTY) != index:
                await self.ledger.set_property(_INDEX_PROPERTY, index)

    async def delete(self, *, force: bool = False) -> None:
        """Delete subscriptions and ledger for good; after a failure the topic is open again."""
        self._check_open()
        if not force:
            self.check_deletable()
        self.state = TopicState.CLOSING
        with OnFailure(self._reopen):
            self.disconnect_producers()
            self._disconnect_consumers()
            if self.compaction is not None:
                await self.compaction.stop()
            for subscription in list(self._subscriptions.values()):
                await subscription.delete()
            try:
                await self.ledger.delete()
            except MetadataNotFoundError:
                logger.info("topic was deleted already", extra={"topic": str(self.name)})
        self.state = TopicState.CLOSED

    def _reopen(self) -> None:
        self.state = TopicState.OPEN

    async def terminate(self) -> Position:
        """Terminate the topic; its producers get CLOSE_PRODUCER.

        Consumers get REACHED_END_OF_TOPIC once all messages are acknowledged.
        """
        self._check_open()
        self.disconnect_producers()
        try:
            position = await self.ledger.terminate()
        except ManagedLedgerError as error:
            raise TopicFencedError(f"{self.name} can't be terminated: {error}") from error
        for subscription in list(self._subscriptions.values()):
            assert isinstance(subscription, PersistentSubscription)
            subscription.on_terminated()
        return position

    async def truncate(self) -> None:
        """Clear the backlog of all durable subscriptions and delete what is stored.

        What a compaction has not read yet stays: its cursor is not moved.

        Raises:
            PersistenceError, ManagedLedgerError, MetadataError, StorageError: It is not complete.
        """
        for subscription in list(self._subscriptions.values()):
            if subscription.is_durable and subscription.name != COMPACTION_CURSOR:
                assert isinstance(subscription, PersistentSubscription)
                await subscription.clear_backlog()
        if self.deduplication is not None:
            await self.deduplication.finish_snapshot()
        await self.save_index()
        await self.ledger.truncate()

    def last_message_position(self) -> Position:
        """Position of the last message; `EARLIEST` if there is none, or none any more."""
        last = self.ledger.last_confirmed_entry
        if last.entry_id < 0 or not self.ledger.contains(last):
            return EARLIEST
        return last

    async def find_by_publish_time(self, timestamp_millis: int) -> Position:
        """The first entry published at that time or later; the next one to come if there is none.

        It is a binary search, which assumes that publish times are in order.
        """
        before = await self.ledger.find_newest(
            lambda entry: published_millis(entry) < timestamp_millis
        )
        if before is None:
            return self.ledger.first_position
        return self.ledger.next_valid_position(before)

    async def examine(self, position: Position) -> Entry:
        """One stored entry.

        Raises:
            EntryNotFoundError, LedgerNotFoundError: There is none.
        """
        return await self.ledger.read_entry(position)

    def _stats(
        self,
        producers: tuple[ProducerStats, ...],
        subscriptions: Mapping[str, SubscriptionStats],
    ) -> TopicStats:
        quotas = self._settings.backlog_quotas
        size = quotas.get(BacklogQuotaType.DESTINATION_STORAGE)
        age = quotas.get(BacklogQuotaType.MESSAGE_AGE)
        fields: dict[str, Any] = self._common_stats(producers, subscriptions)  # Any: of TopicStats
        published_millis, slowest = self._oldest or (None, None)
        now = self.context.clock.wall_time_millis()
        return TopicStats(
            **fields,
            storage_bytes=self.ledger.size_bytes,
            oldest_backlog_message_age_seconds=(
                -1 if published_millis is None else (now - published_millis) // 1000
            ),
            oldest_backlog_message_subscription=slowest,
            stored_rate=self._stored_rate,
            read_rate=self._read_rates[0],
            uncached_read_rate=self._read_rates[1],
            written=self._written,
            backlog_bytes=self.ledger.backlog_size_bytes(),
            backlog_quota_limit_bytes=size.limit_bytes if size else -1,
            backlog_quota_limit_seconds=age.limit_seconds if age else -1,
            deduplication_status="Enabled" if self.deduplication else "Disabled",
            last_message_index=self._stamper.last_index if self._stamper.adds_index else None,
            compaction=CompactionStats() if self.compaction is None else self.compaction.stats(),
        )

    def roll_rates(self, seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        super().roll_rates(seconds)
        count = self.ledger.entries_added_count
        self._stored_rate = (count - self._stored_count_rolled) / seconds
        self._stored_count_rolled = count
        reading = self.ledger.reading
        read, read_before = reading.entries_read_count, self._read_counts_rolled
        stored = reading.stored_entries_read_count
        self._read_rates = (read - read_before[0]) / seconds, (stored - read_before[1]) / seconds
        self._read_counts_rolled = read, stored
        self._written = self.ledger.roll_write_figures()

    def internal_stats(self) -> ManagedLedgerStats:
        """A snapshot of the managed ledger with its ledgers and cursors."""
        return self.ledger.internal_stats()


def _reader_start(request: SubscribeRequest) -> Position | None:
    """Where a new reader begins, though nothing may be there any more; None: at the end."""
    if request.start_position is None or request.start_position == LATEST:
        return EARLIEST if request.starts_at_earliest else None
    return request.start_position


_INDEX_PROPERTY = "index"
"""The property of the managed ledger that Apache Pulsar's ManagedLedgerInterceptorImpl writes."""

_FORMER_INDEX_PROPERTY = "pulsar_py.last-message-index"


async def _last_index(ledger: ManagedLedger[PublishContext]) -> int:
    """The index of the newest message, from the newest stamped entry or as saved at the close."""
    names = (_INDEX_PROPERTY, _FORMER_INDEX_PROPERTY)
    saved = max(int(ledger.properties.get(name, "-1")) for name in names)
    position = ledger.last_confirmed_entry
    if position.entry_id < 0 or not ledger.contains(position):
        return saved
    try:
        stamp = parse_broker_entry_metadata((await ledger.read_entry(position)).data)
    except RemoteProtocolError:
        return saved
    return max(saved, stamp.index) if stamp is not None and stamp.HasField("index") else saved
