"""`MultipleConsumersDispatcher`: spreads entries over the consumers of Shared in small batches.

Entries to send again come first, lowest position first, then new ones. A consumer gets up to
`max_round_robin_batch_entries` messages, then `priorities` chooses the next one. If entries were
read and can't be sent, the cursor is moved back to them. All chunks of a message go to the consumer
that got its first one; those that can't be sent yet are parked in the redelivery set.

Delayed entries are added to the tracker, whose earliest time sets a timer; due ones enter the
redelivery set.

Invariant: `unacked_messages` is the sum over the consumers.

Source: PersistentDispatcherMultipleConsumers in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Final

from pulsar_py.common.ack_set import to_bits
from pulsar_py.common.position import LedgerPositions, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.chunks import ChunkAffinity
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.dispatch.dispatcher import (
    DispatchConsumer,
    DispatchHost,
    PersistentDispatcher,
)
from pulsar_py.server.dispatch.filtering import (
    DelayFilter,
    FilteredEntries,
    summary_of,
)
from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.server.dispatch.priorities import PriorityRoundRobin
from pulsar_py.server.dispatch.redelivery import RedeliveryController
from pulsar_py.server.dispatch.short_delays import ShortDelayNotice
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.wire.entry_summary import EntrySummary

_NO_LIMIT: Final = 2**31 - 1

_MANY: Final = 8
"""So many acknowledged entries are faster to take together from those pending."""


def is_available(consumer: DispatchConsumer) -> bool:
    """Whether it has permits, is not blocked, and its connection is writable."""
    permits = consumer.permits
    return permits.available > 0 and not permits.is_blocked and consumer.connection.is_writable


def lacks_permits(consumer: DispatchConsumer) -> bool:
    """Whether it takes nothing before its permits say so."""
    return not consumer.permits.can_receive


class MultipleConsumersDispatcher(PersistentDispatcher):
    """Owned by a PersistentSubscription while its type is Shared.

    Key_Shared builds on it, see `sticky_key`.
    """

    subscription_type = SubscriptionType.SHARED

    def __init__(self, host: DispatchHost, broker_limit: BrokerUnackedLimit | None = None) -> None:
        super().__init__(host)
        self._broker_limit = broker_limit
        self._turns: PriorityRoundRobin[DispatchConsumer] = PriorityRoundRobin(lacks_permits)
        self.redelivery = RedeliveryController()
        self._short_delays = ShortDelayNotice(host)
        self.delayed = host.delayed_tracker()
        self.delayed.on_news = self._on_delayed_news
        self._delay_timer: asyncio.TimerHandle | None = None
        self.unacked_messages = 0
        self.is_blocked_by_subscription = False
        self.is_blocked_by_broker = False
        self._chunks: ChunkAffinity[DispatchConsumer] = ChunkAffinity()
        # False when no entry of the redelivery set can be sent, until that may change.
        self._may_replay = True
        self._make_chains()

    def _make_chains(self) -> None:
        self._filters = self._chain(DelayFilter(self._keep_back))
        self._replay_filters = self._chain()  # entries sent again were due before

    @property
    def consumers(self) -> Sequence[DispatchConsumer]:
        """Best priority first, in the order they joined."""
        return self._turns.consumers

    @property
    def is_blocked(self) -> bool:
        """Whether no new entries are read, because too many messages are unacknowledged."""
        return self.is_blocked_by_subscription or self.is_blocked_by_broker

    def awaited_consumers(self) -> list[DispatchConsumer]:
        """The consumers that can't be sent entries that wait for them."""
        away = [each for each in self.consumers if not is_available(each)]
        if len(away) < len(self.consumers):
            awaited = self._chunks.parked_owners()
            return [each for each in away if each in awaited]
        return away

    # Consumers.

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer; the first one starts from the first unacknowledged entry."""
        if not self._turns.consumers:
            self._forget_state()
            self.restart()
        self._turns.add(consumer)
        consumer.permits.on_ready = partial(self._turns.wake, consumer)
        self._may_replay = True

    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer; its entries are sent again, with their redelivery counts unchanged."""
        if consumer not in self._turns:
            return
        self._turns.remove(consumer)
        consumer.permits.on_ready = None
        taken = consumer.pending_acks.take_all()
        if self._turns.consumers:  # else the next consumer starts from a rewound cursor anyway
            self.redelivery.add_all(taken)
        self._add_unacked(-consumer.permits.unacked_messages)
        consumer.permits.unacked_messages = 0
        self._chunks.forget_consumer(consumer)
        self._on_consumer_left(consumer)
        if self._turns.consumers:
            self._may_replay = True
            self.read_more()
        else:
            self._epoch += 1
            self._cursor.cancel_wait()
            self._forget_state()

    def _on_consumer_left(self, consumer: DispatchConsumer) -> None:
        """Called when a consumer has left, before its entries are sent again; for Key_Shared."""

    def _forget_state(self) -> None:
        self.redelivery.clear()
        self.delayed.on_rewind()
        self._chunks.clear()
        self._forget_rescheduled()
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None

    def close(self) -> None:
        """Stop reading, clear the redelivery set, and remove all consumers."""
        if self.is_closed:
            return  # Its tracker may be another dispatcher's by now.
        super().close()
        self._forget_state()
        self.delayed.on_news = None
        for consumer in self._turns.consumers:
            consumer.pending_acks.clear()
            consumer.permits.unacked_messages = 0
            consumer.permits.on_ready = None
        self._turns = PriorityRoundRobin(lacks_permits)
        self._add_unacked(-self.unacked_messages)
        if self._broker_limit is not None:
            self._broker_limit.remove(self)

    # Calls of the subscription.

    def on_flow(self, consumer: DispatchConsumer) -> None:  # noqa: ARG002
        """Read more: a consumer has new permits."""
        self._may_replay = True
        self.read_more()

    def redeliver(self, consumer: DispatchConsumer, positions: Sequence[Position] | None) -> None:
        """Send this consumer's entries, or those of `positions`, again, and count redeliveries."""
        pending = consumer.pending_acks
        taken = pending.take_all() if positions is None else pending.take(positions)
        messages_count = sum(count for _, count, _ in taken)
        self.redelivery.add_all(taken)
        if self._host.settings.is_redelivery_tracked:
            self.redelivery.count_redelivery(position for position, _, _ in taken)
        self._add_unacked(-messages_count)
        consumer.permits.redeliver(messages_count)
        for _, _, sticky_hash in taken:
            if sticky_hash:
                self._on_hash_released(consumer, sticky_hash)
        self._may_replay = True
        self.read_more()

    def on_acknowledged(
        self,
        consumer: DispatchConsumer | None,
        positions: Sequence[PositionKey],
        ack_sets: Sequence[Sequence[int] | None] | None,
    ) -> None:
        """Remove entries from their consumers' pending ones, and forget their redelivery counts."""
        # Hot path: acknowledge.
        if self.redelivery.has_counts:
            self.redelivery.forget(positions)
        acked_count = ids_count = 0
        has_released = False
        if len(positions) >= _MANY and consumer is not None and ack_sets is None:
            if type(positions) is LedgerPositions:
                positions = list(positions.keys())
            acked_count, others = self._settle_together(consumer, positions)
            ids_count = len(positions) - len(others)
            has_released = consumer.permits.give_back(acked_count)
            positions = others
        for index, position in enumerate(positions):
            holder = consumer
            # A client may acknowledge on one consumer what another one received.
            if holder is None or position not in holder.pending_acks:
                holder = self.holder_of(position)
                if holder is None:
                    continue
            if ack_sets is not None and ack_sets[index] is not None:
                messages_count = self._settle_in_part(holder, position)
            else:
                messages_count = self._settle(holder, position)
            acked_count += messages_count
            ids_count += 1
            has_released |= holder.permits.give_back(messages_count)
        if consumer is not None:
            consumer.permits.acknowledged_beyond_ids += acked_count - ids_count
        was_blocked = self.is_blocked
        self._add_unacked(-acked_count)
        if has_released or (was_blocked and not self.is_blocked):
            self._may_replay = True
            self.read_more()

    def _settle_together(
        self, holder: DispatchConsumer, positions: Sequence[PositionKey]
    ) -> tuple[int, Sequence[PositionKey]]:
        """The messages of those entries that were pending at a consumer, and the other entries."""
        settled = holder.pending_acks.settle(positions)
        self._on_hashes_released(holder, settled.hashes)
        return settled.messages_count, settled.others

    def _settle(self, holder: DispatchConsumer, position: PositionKey) -> int:
        removed = holder.pending_acks.remove(position)
        assert removed is not None, f"{position} is not pending"
        messages_count, sticky_hash = removed
        if sticky_hash:
            self._on_hash_released(holder, sticky_hash)
        return messages_count

    def _settle_in_part(self, holder: DispatchConsumer, key: PositionKey) -> int:
        position = Position(*key)
        # Only the cursor knows the remaining indexes: several consumers may have acknowledged some.
        words = self._cursor.batch_ack_set(position)
        if words is not None:
            return holder.pending_acks.shrink(key, to_bits(words).bit_count())
        return self._settle(holder, key) if self._cursor.is_acknowledged(position) else 0

    def holder_of(self, position: PositionKey) -> DispatchConsumer | None:
        """The consumer that was sent an entry and has not acknowledged it."""
        return next((each for each in self.consumers if position in each.pending_acks), None)

    def _on_hash_released(self, consumer: DispatchConsumer, sticky_hash: int) -> None:
        """Called when one entry of a hash less is pending; for Key_Shared."""

    def _on_hashes_released(self, consumer: DispatchConsumer, sticky_hashes: Sequence[int]) -> None:
        """Called when one entry of each of them less is pending; 0 is no hash."""

    def on_mark_delete_moved(self, position: Position) -> None:
        """Remove entries up to `position` from all pending ones: they were expired or skipped."""
        self.redelivery.discard_up_to(position)
        self.delayed.discard_up_to(position)
        self._chunks.forget_up_to(position)
        for consumer in list(self.consumers):
            taken = consumer.pending_acks.take_up_to(position)
            messages_count = sum(count for _, count, _ in taken)
            self._add_unacked(-messages_count)
            consumer.permits.give_back(messages_count)
            for _, _, sticky_hash in taken:
                if sticky_hash:
                    self._on_hash_released(consumer, sticky_hash)
        self._may_replay = True
        self.read_more()

    # Unacknowledged messages.

    def _add_unacked(self, delta: int) -> None:
        if not delta:
            return
        self.unacked_messages += delta
        self._block_at_limit()
        if self._broker_limit is not None:
            self._broker_limit.add(self, delta)

    def _block_at_limit(self) -> None:
        limit = self._host.settings.max_unacked_messages_per_subscription
        if not limit or not self._cursor.is_durable:
            self.is_blocked_by_subscription = False
        elif self.unacked_messages >= limit:
            self.is_blocked_by_subscription = True
        elif self.unacked_messages < limit // 2:
            self.is_blocked_by_subscription = False

    def _unacked_allowance(self) -> int:
        """Messages of new entries that may be sent before a limit blocks; large without one."""
        allowance = _NO_LIMIT
        limit = self._host.settings.max_unacked_messages_per_subscription
        if limit and self._cursor.is_durable:
            allowance = limit - self.unacked_messages
        broker = self._broker_limit
        if broker is not None and broker.max_unacked_messages:
            allowance = min(allowance, broker.allowance(self))
        return allowance

    def _cut_at_limits(self, filtered: FilteredEntries) -> FilteredEntries:
        """The entries up to the one that reaches a limit; the cursor moves back to the others."""
        left = self._unacked_allowance()
        if filtered.messages_count <= left:
            return filtered
        assert left > 0 or self.is_blocked, f"{left} messages allowed"
        count, messages_count = filtered.count_within(left)
        if count == len(filtered.entries):
            return filtered
        return self._first_of(filtered, count, messages_count)

    def on_settings_changed(self) -> None:
        """Use the host's changed settings; new delays are grouped by the new tick."""
        super().on_settings_changed()
        self._make_chains()
        self.delayed.set_tick_millis(self._host.settings.delayed_delivery_tick_millis)

    def on_limits_changed(self) -> None:
        """Use changed limits of unacknowledged messages."""
        self._block_at_limit()
        self._may_replay = True
        self.read_more()

    def block_for_broker(self) -> None:
        """Read no new entries: the broker's limit is reached."""
        self.is_blocked_by_broker = True

    def unblock_for_broker(self) -> None:
        """Read on in the loop's next turn: the broker's limit allows it."""
        self.is_blocked_by_broker = False
        self._schedule_read(0)

    # Delayed messages.

    def _keep_back(self, position: PositionKey, summary: EntrySummary) -> bool:
        if not self._host.settings.is_delayed_delivery_enabled:
            return self.delayed.knows(position)
        now_millis = self._host.clock.wall_time_millis()
        is_kept = self.delayed.add(position, summary.deliver_at_time_millis, now_millis)
        if is_kept:
            self._arm_delay_timer(now_millis)
            self._short_delays.on_delayed(summary)
        return is_kept

    def _arm_delay_timer(self, now_millis: int) -> None:
        """Set a timer for the next entry that is due later; those due now are read with FLOW."""
        wait_millis = self.delayed.next_check_millis(now_millis)
        if not wait_millis:
            return
        clock = self._host.clock
        delay_seconds = wait_millis / 1000
        if self._delay_timer is not None:
            due_seconds = asyncio.get_running_loop().time() + delay_seconds
            if self._delay_timer.when() <= due_seconds:
                return
            self._delay_timer.cancel()
        self._delay_timer = clock.call_later(delay_seconds, self._on_delay_timer)

    def _on_delay_timer(self) -> None:
        self._delay_timer = None
        self.read_more()
        self._arm_delay_timer(self._host.clock.wall_time_millis())

    def _on_delayed_news(self) -> None:
        """Go on: the tracker is ready, or knows of entries that are due earlier."""
        self.read_more()
        self._arm_delay_timer(self._host.clock.wall_time_millis())

    def _take_due(self, limit: int) -> None:
        """Move due entries into the redelivery set; their count stays 0."""
        delayed = self.delayed
        now_millis = self._host.clock.wall_time_millis()
        if delayed.has_due(now_millis):
            for position in delayed.take_due(limit, now_millis):
                self.redelivery.add(position)
            self._may_replay = True
        if delayed:
            self._arm_delay_timer(now_millis)

    # Reading.

    def _read_batch(self) -> bool:
        # Hot path: tailing consume.
        limit = self._entries_wanted()
        if not limit:
            return False
        if not self.delayed.is_ready:
            return False
        if self.delayed:
            self._take_due(limit)
        if self.redelivery and self._may_replay:
            outcome = self._replay(limit)
            if outcome is not None:
                return outcome
        if self._is_reading_ahead_forbidden():
            return False
        entries = self._read_next(limit)
        if not entries:
            return False
        self._on_entries_read(entries)
        return True

    def _entries_wanted(self) -> int:
        """Count of entries that consumers could take now; at 0, waits for a connection."""
        entries = 0
        most = self._read_batch_entries
        for consumer in self._turns.ready():
            if not consumer.connection.is_writable:
                self._wait_until_writable(consumer.connection)
                continue
            available = consumer.permits.available
            average = consumer.average_messages_per_entry
            entries += available if average <= 1 else ceil(available / average)
            if entries >= most:
                return most
        return entries

    def _on_writable(self, connection: ClientConnection) -> None:
        self._may_replay = True
        super()._on_writable(connection)

    def _is_reading_ahead_forbidden(self) -> bool:
        """Whether no new entries may be read."""
        if self.is_blocked or self._chunks.is_full:
            return True
        if self._rescheduled is not None and self._rescheduled.is_full:
            return True
        return bool(self.delayed) and self.delayed.is_pausing(self._host.clock.wall_time_millis())

    def _replay(self, limit: int) -> bool | None:
        """Read waiting entries again; None when none of them can be sent now."""
        if self._throttle is not None:
            limit = self._allowed(limit)
        keys = self._select_replay(limit)
        if not keys:
            self._may_replay = False
            return None
        positions = [Position(*key) for key in keys]
        floor = self.redelivery.lowest
        assert floor is not None, "positions come from the set"
        entries = self._cursor.read_replay_cached(positions)
        if entries is None:
            self._start_read(
                partial(self._cursor.read_replay, positions),
                lambda read: self._on_replay_read(positions, read, floor),
                entries_count=len(positions),
                is_empty_news=True,
            )
            return False
        self._on_replay_read(positions, entries, floor)
        return True

    def _select_replay(self, limit: int) -> list[PositionKey]:
        if not self._chunks.has_parked:
            return self.redelivery.select(limit)
        return self.redelivery.select(limit, lambda key, _: self._may_unpark(key))

    def _may_unpark(self, key: PositionKey) -> bool:
        owner = self._chunks.parked_for(key)
        return owner is None or is_available(owner)

    def _on_replay_read(
        self, positions: Sequence[Position], entries: Sequence[Entry], floor: PositionKey
    ) -> None:
        """Send the entries read again; drop those of `positions` that are acknowledged or deleted.

        `floor` was the lowest position in the redelivery set when the read began.
        """
        found = {(entry.ledger_id, entry.entry_id) for entry in entries}
        for position in positions:
            if position not in found:
                self.redelivery.discard(position)
                self._on_gone(position)
        lowest = self.redelivery.lowest
        if self._keeps_order and lowest is not None and lowest < floor:
            return  # A lower position was added during the read, and has to be sent first.
        filtered = self._replay_filters.apply(entries)
        if self._throttle is not None:
            self._charge_refused(filtered.refused)
        accepted = {(entry.ledger_id, entry.entry_id) for entry in filtered.entries}
        for key in found - accepted:
            self.redelivery.discard(key)
            self._on_gone(key)
        if self._throttle is not None:
            filtered = self._cut_at_rates(filtered, is_replay=True)
        self._distribute(filtered, is_replay=True)

    def _on_rescheduled_due(self, positions: list[Position]) -> None:
        for ledger_id, entry_id in positions:
            self.redelivery.add((ledger_id, entry_id))
        self._may_replay = True
        self.read_more()

    def _on_gone(self, position: PositionKey) -> None:
        """Forget an entry that waited and is acknowledged or deleted."""
        self._chunks.forget_position(position)

    _keeps_order = False  # Key_Shared does.

    def _on_entries_read(self, entries: Sequence[Entry]) -> None:
        # Hot path: tailing consume.
        filtered = self._filters.apply(entries)
        if self._throttle is not None:
            self._charge_refused(filtered.refused)
            filtered = self._cut_at_rates(filtered)
        if len(filtered.entries) > 1:
            filtered = self._cut_at_limits(filtered)
        self._distribute(filtered, is_replay=False)

    # Sending.

    def _distribute(self, filtered: FilteredEntries, *, is_replay: bool) -> None:
        """Send entries to consumers in turns.

        If no consumer can be sent the rest, the cursor moves back to it; entries that were read
        again stay in the redelivery set.
        """
        # Hot path: tailing consume.
        entries = filtered.entries
        if not entries:
            return
        if filtered.has_chunks:
            self._distribute_chunks(filtered, is_replay=is_replay)
            return
        count = len(entries)
        average = max(filtered.messages_count // count, 1)
        remaining = filtered.messages_count
        max_messages = self._host.settings.max_round_robin_batch_entries
        start = 0
        while start < count:
            consumer = self._turns.next(is_available)
            if consumer is None:
                break
            permits = consumer.permits
            messages = min(remaining, permits.available, permits.unacked_allowance, max_messages)
            batch = entries[start : start + max(messages // average, 1)]
            remaining -= self._send(consumer, batch, filtered, is_replay=is_replay)
            start += len(batch)
        if start < count and not is_replay:
            self._cursor.seek(entries[start].position)

    def _send(
        self,
        consumer: DispatchConsumer,
        entries: Sequence[Entry],
        filtered: FilteredEntries,
        *,
        is_replay: bool,
        sticky_hashes: Sequence[int] | None = None,
    ) -> int:
        """Send to one consumer; returns the messages sent."""
        if is_replay:
            for entry in entries:
                self.redelivery.discard((entry.ledger_id, entry.entry_id))
        if self._throttle is not None:
            self._charge(entries, filtered)
        unacked_before = consumer.permits.unacked_messages
        messages_count = consumer.send_messages(
            entries, filtered.ack_sets, redelivery=self.redelivery, sticky_hashes=sticky_hashes
        )
        if not messages_count and consumer not in self._turns:
            return 0  # The consumer does not know batches and was closed: its entries wait again.
        self._add_unacked(consumer.permits.unacked_messages - unacked_before)
        return messages_count

    def _distribute_chunks(self, filtered: FilteredEntries, *, is_replay: bool) -> None:
        """Send entries one by one: chunks to the owner of their message, others in turns."""
        chunks = self._chunks
        for entry in filtered.entries:
            summary = summary_of(entry)
            key = (entry.ledger_id, entry.entry_id)
            consumer = chunks.owner(summary)
            if consumer is not None and not is_available(consumer):
                chunks.park(key, consumer)
                self.redelivery.add(key)
                continue
            consumer = consumer or self._turns.next(is_available)
            if consumer is None:
                if not is_replay:
                    self._cursor.seek(entry.position)
                return
            chunks.on_sent(key, summary, consumer)
            self._send(consumer, [entry], filtered, is_replay=is_replay)
