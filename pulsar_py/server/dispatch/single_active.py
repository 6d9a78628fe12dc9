"""`SingleActiveConsumerDispatcher`: sends all entries to one consumer (Exclusive, Failover).

On Failover the active consumer is chosen again whenever one joins or leaves. After a change the
former one may still be acknowledging, so reading starts `failover_delay_millis` later, from the
first unacknowledged entry; only then do all consumers get ACTIVE_CONSUMER_CHANGE. A redelivery of
any kind rewinds the cursor.

Exclusive consumers may have hash ranges: entries of other slots are skipped, not acknowledged.

Source: PersistentDispatcherSingleActiveConsumer, AbstractDispatcherSingleActiveConsumer in Pulsar's
broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil

from pulsar_py.common.hashing import sticky_slot
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.dispatcher import (
    BATCHES_TOGETHER,
    DispatchConsumer,
    DispatchHost,
    PersistentDispatcher,
    millis_until,
)
from pulsar_py.server.dispatch.exclusive_place import place_taken
from pulsar_py.server.dispatch.filtering import (
    FilteredEntries,
    summary_of,
)
from pulsar_py.server.dispatch.priorities import choose_active
from pulsar_py.server.dispatch.selectors import HashRange, covers, validated_ranges
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.wire.entry_summary import sticky_key


class SingleActiveConsumerDispatcher(PersistentDispatcher):
    """Owned by a PersistentSubscription while its type is Exclusive or Failover."""

    _batches_together = BATCHES_TOGETHER

    def __init__(self, host: DispatchHost, subscription_type: SubscriptionType) -> None:
        super().__init__(host)
        self.subscription_type = subscription_type
        self._consumers: list[DispatchConsumer] = []
        self._active: DispatchConsumer | None = None
        self._switch: asyncio.TimerHandle | None = None  # Set while a change of consumer waits.
        self._is_held = False  # From `hold` to `on_cursor_reset` no consumer is or becomes active.
        self._hash_ranges: Sequence[HashRange] = ()  # Of the exclusive consumer, sorted.
        self._filters = self._chain()

    @property
    def consumers(self) -> Sequence[DispatchConsumer]:
        """All connected consumers, active or not, in the order they joined."""
        return self._consumers

    @property
    def active_consumer(self) -> DispatchConsumer | None:
        """The consumer that gets messages, or will after the delay."""
        return self._active

    @property
    def switch_millis(self) -> int | None:
        """Milliseconds until a new active consumer is sent messages; None while none waits."""
        return millis_until(self._switch)

    @property
    def _is_failover(self) -> bool:
        return self.subscription_type is SubscriptionType.FAILOVER

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer and choose the active one again."""
        if not self._is_failover and self._consumers:
            raise place_taken(self._consumers[0])
        assert not self._is_held, "no consumer joins while the cursor is being moved"
        if not self._is_failover and consumer.requested_ranges:
            self._hash_ranges = validated_ranges(consumer.requested_ranges)
        self._consumers.append(consumer)
        if not self._choose_active() and self._is_failover:
            consumer.notify_active_consumer_change(is_active=False)

    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer; after an active one, the next starts at the first unacknowledged."""
        if consumer not in self._consumers:
            return
        self._consumers.remove(consumer)
        if self._consumers:
            if not self._is_held:
                self._choose_active()
            return
        self._active = None
        self._hash_ranges = ()
        self._epoch += 1
        self._cursor.cancel_wait()
        self._cancel_switch()

    def _choose_active(self) -> bool:
        """Choose the active consumer; returns whether it changed."""
        chosen = choose_active(
            self._consumers,
            topic_name=self._host.topic_name,
            partition_index=self._host.partition_index,
            uses_ring=self._is_failover and self._host.settings.uses_failover_ring,
        )
        if chosen is self._active:
            return False
        self._active = chosen
        self._epoch += 1
        self._cursor.cancel_wait()
        delay_millis = self._host.settings.failover_delay_millis
        if not self._is_failover or delay_millis <= 0:
            self._cancel_switch()
            self._start_active()
        elif self._switch is None:
            self._switch = self._host.clock.call_later(delay_millis / 1000, self._on_switch)
        return True

    def _on_switch(self) -> None:
        self._switch = None
        self._start_active()

    def _cancel_switch(self) -> None:
        if self._switch is not None:
            self._switch.cancel()
            self._switch = None

    def _start_active(self) -> None:
        host = self._host
        if self._active is not None:
            reads_compacted = self._active.reads_compacted
            self._cursor = host.compacted_source() if reads_compacted else host.entry_source
        self.restart()
        if self._is_failover:
            for consumer in list(self._consumers):
                consumer.notify_active_consumer_change(is_active=consumer is self._active)
        self.read_more()

    def on_flow(self, consumer: DispatchConsumer) -> None:
        """Read on if it is the active one; the permits of others wait."""
        if consumer is self._active:
            self.read_more()

    def redeliver(
        self,
        consumer: DispatchConsumer,
        positions: Sequence[Position] | None,  # noqa: ARG002 - ids do not matter here
    ) -> None:
        """Send all unacknowledged entries again, if the consumer is active; ids are ignored."""
        if consumer is self._active and self._switch is None:
            self.restart()
            self.read_more()

    def on_settings_changed(self) -> None:
        """Use the host's changed settings, and its filters of now."""
        super().on_settings_changed()
        self._filters = self._chain()

    def _reschedule(self, position: Position) -> None:
        """Remember the first one alone: when it is due, all are read again."""
        if self.rescheduled is None:
            super()._reschedule(position)

    def _on_rescheduled_due(self, positions: list[Position]) -> None:
        """Rewind: entries are not sent out of their order, so all that wait are sent again."""
        del positions
        if self._active is not None and self._switch is None:
            self.restart()
            self.read_more()

    def hold(self) -> DispatchConsumer | None:
        """Send nothing until `on_cursor_reset`, because the cursor is about to be moved.

        Returns the active consumer, which the caller closes; none becomes active until then.
        """
        active, self._active = self._active, None
        self._is_held = True
        self._epoch += 1
        self._cursor.cancel_wait()
        self._cancel_switch()
        return active

    def on_cursor_reset(self) -> None:
        """Choose the active consumer and send it entries from the cursor's new position."""
        self._is_held = False
        if self._consumers:
            self._choose_active()

    def close(self) -> None:
        """Stop reading, cancel a pending change of consumer, and remove all consumers."""
        super().close()
        self._cancel_switch()
        self._consumers = []
        self._active = None
        self._hash_ranges = ()

    def _read_batch(self) -> bool:
        # Hot path: tailing consume.
        consumer = self._active
        if consumer is None or self._switch is not None:
            return False
        permits = consumer.permits.available
        if permits <= 0:
            return False
        connection = consumer.connection
        if not connection.is_writable:
            self._wait_until_writable(connection)
            return False
        average = consumer.average_messages_per_entry
        entries_count = permits if average <= 1 else ceil(permits / average)
        entries = self._read_next(entries_count)
        if not entries:
            return False
        self._on_entries_read(entries)
        if (
            self._active is consumer
            and consumer.permits.available > 0
            and not self._cursor.has_more_entries()
        ):
            self._wait_for_entries(LATEST)  # what another batch would find out with more steps
            return False
        return True

    def _on_entries_read(self, entries: Sequence[Entry]) -> None:
        # Hot path: tailing consume.
        consumer = self._active
        if consumer is None:
            return
        filtered = self._filters.apply(entries)
        if self._throttle is not None:
            self._charge_refused(filtered.refused)
        if self._hash_ranges:
            filtered = self._of_own_slots(filtered)
        if filtered.messages_count > consumer.permits.available:
            filtered = self._cut_at_permits(filtered, consumer.permits.available)
        if filtered.entries:
            if self._throttle is not None:
                filtered = self._cut_at_rates(filtered)
                self._charge(filtered.entries, filtered)
            consumer.send_messages(filtered.entries, filtered.ack_sets)

    def _cut_at_permits(self, filtered: FilteredEntries, permits: int) -> FilteredEntries:
        """Entries until the permits are used up; the cursor moves back to the others."""
        sent_count, messages_count = filtered.count_within(permits)
        if sent_count < len(filtered.entries):
            self._cursor.seek(filtered.entries[sent_count].position)
        return FilteredEntries(filtered.entries[:sent_count], filtered.ack_sets, messages_count)

    def _of_own_slots(self, filtered: FilteredEntries) -> FilteredEntries:
        own = [
            entry
            for entry in filtered.entries
            if covers(self._hash_ranges, sticky_slot(sticky_key(summary_of(entry))))
        ]
        messages_count = sum(filtered.messages_of(entry) for entry in own)
        return FilteredEntries(own, filtered.ack_sets, messages_count)
