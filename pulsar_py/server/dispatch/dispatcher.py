"""`Dispatcher`: sends a subscription's entries to its consumers; the read loop that types share.

FLOW, consumers that join and leave, redelivery, timers and appends (through the cursor, once a
group) make a dispatcher call `read_more`. That reads entries in memory and sends them, batch by
batch, without a task or future; entries in storage are read by one task for each batch, after which
`read_more` goes on. Reads never overlap. A connection whose queue is full is sent nothing until it
is writable.

What always holds: between a check and the act that relies on it there is no await. Entries read
from storage are dropped when the dispatcher's epoch has changed meanwhile (`restart`). A closed
dispatcher has no consumers and sends nothing, whatever is called: to end a subscription, its
dispatcher is closed first, and only then are the consumers disconnected.

Source: AbstractBaseDispatcher, Dispatcher in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from pulsar_py.common.errors import (
    CursorClosedError,
    ManagedLedgerError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.dispatch.delayed import DelayedTracker
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.entry_source import EntrySource
from pulsar_py.server.dispatch.filtering import (
    DispatchFilter,
    EntryFilters,
    FilteredEntries,
    summary_of,
)
from pulsar_py.server.dispatch.pending_acks import PendingAcks, PositionKey
from pulsar_py.server.dispatch.permits import ConsumerPermits
from pulsar_py.server.dispatch.redelivery import RedeliveryController
from pulsar_py.server.dispatch.selectors import HashRange
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.user_filters import RescheduledEntries

logger = logging.getLogger(__name__)

MAX_BATCHES_A_TURN = 8
"""Batches that are read and sent in one turn of the loop."""

BATCHES_TOGETHER = 4
"""Batches that are read and sent as one, if one consumer gets all entries and they are in memory.
It saves the cost of a batch beside its entries, 0.9 µs for each of 100 entries."""


CAUGHT_UP_ENTRIES = 1000
"""Entries that a subscription may be behind and count as one without backlog."""

UNAVAILABLE_BACKOFF_MILLIS = 100
"""The first pause after a read that the ledger store could not answer; it doubles."""


class DispatchConsumer(Protocol):
    """The part of a consumer that a dispatcher uses (implemented by `subscriptions.Consumer`)."""

    @property
    def name(self) -> str:
        """The consumer's name; may be empty."""

    @property
    def priority_level(self) -> int:
        """The consumer's priority; 0 is the highest."""

    @property
    def connection(self) -> ClientConnection:
        """The connection that its messages go to."""

    @property
    def connected_since_millis(self) -> int:
        """The wall-clock time at which it subscribed."""

    @property
    def permits(self) -> ConsumerPermits:
        """The counters of the messages that it may be sent."""

    @property
    def pending_acks(self) -> PendingAcks:
        """Its unacknowledged entries (Shared and Key_Shared)."""

    @property
    def pending_hash_counts(self) -> Mapping[int, int]:
        """The number of its unacknowledged entries by sticky hash (Key_Shared)."""

    @property
    def requested_ranges(self) -> Sequence[HashRange]:
        """The hash ranges in its SUBSCRIBE."""

    @property
    def reads_compacted(self) -> bool:
        """Whether it wants the newest message of each key, where the topic was compacted."""

    @property
    def average_messages_per_entry(self) -> float:
        """Moving average over the entries that it was sent; at least 1."""

    def send_messages(
        self,
        entries: Sequence[Entry],
        ack_sets: Mapping[PositionKey, Sequence[int]] | None,
        *,
        redelivery: RedeliveryController | None = None,
        sticky_hashes: Sequence[int] | None = None,
    ) -> int:
        """Send entries in one write and charge permits; returns the messages sent.

        With `redelivery` (Shared, Key_Shared) they become pending first, and carry its counts.
        """

    def notify_active_consumer_change(self, *, is_active: bool) -> None:
        """Send ACTIVE_CONSUMER_CHANGE."""

    def reached_end_of_topic(self) -> None:
        """Send REACHED_END_OF_TOPIC, at most once since the last FLOW."""


class DispatchHost(Protocol):
    """The part of a subscription that its persistent dispatcher uses."""

    @property
    def name(self) -> str:
        """The subscription's name, for logs."""

    @property
    def topic_name(self) -> str:
        """The topic's full name."""

    @property
    def partition_index(self) -> int:
        """The index of the topic's partition; -1 on a topic without partitions."""

    @property
    def entry_source(self) -> EntrySource:
        """The subscription's cursor, or a source in front of it."""

    def compacted_source(self) -> EntrySource:
        """The source for consumers with `readCompacted`."""

    def delayed_tracker(self) -> DelayedTracker:
        """What holds back delayed entries (Shared and Key_Shared); asked for by each dispatcher."""

    def entry_filters(self, reschedule: Callable[[Position], None]) -> Sequence[DispatchFilter]:
        """The filters for entries, read for the first time or again, in order.

        Called by each dispatcher, again when settings change. It appends its own filter of delays
        for entries that are read for the first time. A filter that holds back an entry read again
        must release it; `reschedule` has it read again after a while.
        """

    @property
    def clock(self) -> Clock:
        """The clock that delays are measured by."""

    @property
    def tasks(self) -> TaskOwner:
        """Owns the reads from storage."""

    @property
    def settings(self) -> DispatchSettings:
        """The settings in force now."""

    def dispatch_throttle(self) -> DispatchThrottle | None:
        """The limits on its rates now; None without any. Asked for again when settings change."""

    def last_confirmed_entry(self) -> Position:
        """The topic's last entry."""

    def is_terminated(self) -> bool:
        """Whether the topic was terminated: nothing will be appended any more."""

    def max_read_position(self) -> Position:
        """The last position that may be dispatched."""

    def acknowledge_filtered(self, positions: list[Position]) -> None:
        """Acknowledge entries that are never delivered."""

    is_dispatch_paused: bool  # Nothing more is read for its consumers.
    is_read_in_flight: bool  # A task reads from storage, perhaps for a former dispatcher.

    def on_read_finished(self) -> None:
        """Called when the read of a closed dispatcher has ended: the current one may read."""


class Dispatcher(ABC):
    """The interface of a dispatcher to its subscription, persistent or not."""

    subscription_type: SubscriptionType
    is_closed = False

    @property
    @abstractmethod
    def consumers(self) -> Sequence[DispatchConsumer]:
        """The connected consumers."""

    @property
    def active_consumer(self) -> DispatchConsumer | None:
        """The consumer that gets messages on Exclusive and Failover; None on other types."""
        return None

    @abstractmethod
    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer.

        Raises:
            ConsumerBusyError: Exclusive has one.
            ConsumerAssignError: Its hash ranges are taken, or none is left to split.
        """

    @abstractmethod
    def remove_consumer(self, consumer: DispatchConsumer) -> None:
        """Remove a consumer and redeliver its entries. Fine if it is not there."""

    def mismatch(self, key_shared_meta: KeySharedMeta | None) -> str | None:  # noqa: ARG002
        """The reason to refuse a consumer of the same type; None if it fits."""
        return None

    def on_flow(self, consumer: DispatchConsumer) -> None:  # noqa: B027 - not all care
        """Called when a consumer has more permits than before."""

    def redeliver(  # noqa: B027 - not all care
        self, consumer: DispatchConsumer, positions: Sequence[Position] | None
    ) -> None:
        """Send a consumer's unacknowledged entries again: those of `positions`, or all for None."""

    def on_acknowledged(  # noqa: B027 - not all care
        self,
        consumer: DispatchConsumer | None,
        positions: Sequence[PositionKey],
        ack_sets: Sequence[Sequence[int] | None] | None,
    ) -> None:
        """Called after the cursor took acknowledgements: the entries are no longer pending.

        Positions with an ack set were acknowledged in part, if at all.
        """

    def on_mark_delete_moved(self, position: Position) -> None:  # noqa: B027 - not all care
        """Called when entries up to `position` were expired, skipped or cleared.

        They are pending at no consumer any more.
        """

    def on_cursor_reset(self) -> None:  # noqa: B027 - not all care
        """Called when a reset has ended: send connected consumers entries from the new position."""

    @abstractmethod
    def close(self) -> None:
        """Stop for good and remove all consumers; nothing is sent after this.

        Their pending entries are not redelivered here. The time grows with those entries, not with
        the number of consumers. May be called again.
        """


class PersistentDispatcher(Dispatcher):
    """The read loop on a cursor."""

    _batches_together = 1

    def __init__(self, host: DispatchHost) -> None:
        self._host = host
        self._cursor = host.entry_source
        self._is_reading = False  # Set inside read_more, whose callees may call it again.
        self._epoch = 0  # Entries whose read began in an earlier epoch are dropped.
        self._read_this_turn = 0  # entries
        self._read_batch_entries = host.settings.max_read_batch_entries
        self._backoff_millis = 0  # Of the last failed read, 0 after success.
        self._retry: asyncio.TimerHandle | None = None  # Set while a failed read waits.
        self._next_turn: asyncio.TimerHandle | None = None  # Set until reading goes on.
        self._throttle = host.dispatch_throttle()  # None without limits
        self._unwritable: dict[ClientConnection, None] = {}  # Connections that will call back.
        self._rescheduled: RescheduledEntries | None = None  # None until a filter puts one off.
        self._read_since = 0.0  # When the last read from storage began.

    @property
    def retry_millis(self) -> int | None:
        """Milliseconds until a failed read is tried again; None while none waits."""
        return millis_until(self._retry)

    @property
    def read_seconds(self) -> float | None:
        """For how long entries have been awaited from storage; None while none are."""
        if not self._host.is_read_in_flight:
            return None
        return self._host.clock.monotonic_seconds() - self._read_since

    @property
    def rescheduled(self) -> RescheduledEntries | None:
        """What users' filters put off; None if nothing waits for that."""
        waiting = self._rescheduled
        return None if waiting is None or waiting.first is None else waiting

    @property
    def source(self) -> EntrySource:
        """The source that it reads from now."""
        return self._cursor

    def rate_refusals(self) -> list[tuple[RateLimiter, float]]:
        """The limits within which nothing may be sent now, and for how many seconds."""
        throttle = self._rates()
        return [] if throttle is None else throttle.refusals()

    def _rates(self) -> DispatchThrottle | None:
        """The limits that hold now; None without any, or if it has caught up and they do not hold.

        Where they do not hold, nothing is charged either: a debt would keep it behind for ever.
        """
        throttle = self._throttle
        if throttle is None or self._host.settings.rates_hold_without_backlog:
            return throttle
        return None if self._cursor.backlog_count() < CAUGHT_UP_ENTRIES else throttle

    @abstractmethod
    def _read_batch(self) -> bool:
        """Read and send one batch from memory; False when there is nothing more to do now.

        Starts a read from storage, or waits for entries, before it returns False.
        """

    def read_more(self) -> None:
        """Read and send while there are entries and permits. Never sends after `close`."""
        # Hot path: tailing consume.
        host = self._host
        if self._is_reading or self.is_closed or host.is_read_in_flight or host.is_dispatch_paused:
            return
        if self._retry is not None:
            return  # the pause after a failed read is kept, whatever calls this
        self._is_reading = True
        try:
            self._read_this_turn = 0
            most = MAX_BATCHES_A_TURN * self._read_batch_entries
            for _ in range(MAX_BATCHES_A_TURN):
                if self._throttle is not None:
                    throttle = self._rates()
                    if throttle is not None and not throttle.is_ready(self.read_more):
                        return
                if not self._read_batch():
                    return
                if self._read_this_turn >= most:
                    break
        finally:
            self._is_reading = False
        self._schedule_read(0)

    def _charge(self, entries: Sequence[Entry], filtered: FilteredEntries) -> None:
        """Count entries that are sent for the limits that hold now."""
        throttle = self._rates()
        if throttle is not None:
            throttle.charge(
                [len(entry.data) for entry in entries],
                [filtered.messages_of(entry) for entry in entries],
            )

    def _cut_at_rates(
        self, filtered: FilteredEntries, *, is_replay: bool = False
    ) -> FilteredEntries:
        """The entries that may be sent now; the cursor moves back to the others.

        Those of a replay stay in the redelivery set.
        """
        throttle, entries = self._rates(), filtered.entries
        if throttle is None or len(entries) <= 1:
            return filtered
        messages = [filtered.messages_of(entry) for entry in entries]
        count = throttle.entries_that_fit([len(entry.data) for entry in entries], messages)
        if count == len(entries):
            return filtered
        return self._first_of(filtered, count, sum(messages[:count]), is_replay=is_replay)

    def _first_of(
        self,
        filtered: FilteredEntries,
        count: int,
        messages_count: int,
        *,
        is_replay: bool = False,
    ) -> FilteredEntries:
        """The first `count` entries, fewer than all; the cursor moves back to the others.

        Those of a replay stay in the redelivery set.
        """
        entries = filtered.entries
        if not is_replay:
            self._cursor.seek(entries[count].position)
        return FilteredEntries(
            entries[:count], filtered.ack_sets, messages_count, has_chunks=filtered.has_chunks
        )

    def _charge_refused(self, refused: Sequence[Entry]) -> None:
        """Count entries that users' filters refused, if they count for the limits."""
        throttle = self._rates()
        if throttle is not None and refused:
            throttle.charge_refused(
                [len(entry.data) for entry in refused],
                [summary_of(entry).messages_count for entry in refused],
            )

    def _allowed(self, wanted: int) -> int:
        """How many of the wanted entries may be read now."""
        throttle = self._rates()
        return wanted if throttle is None else throttle.entries_allowed(wanted)

    def _schedule_read(self, delay_seconds: float) -> None:
        if self._next_turn is None and not self.is_closed:
            self._next_turn = self._host.clock.call_later(delay_seconds, self._on_next_turn)

    def _on_next_turn(self) -> None:
        self._next_turn = None
        self.read_more()

    def _wait_until_writable(self, connection: ClientConnection) -> None:
        """Read more once the connection's queue is below its low mark."""
        if connection in self._unwritable or not connection.is_connected:
            return  # It will call back already, or its consumers are about to be removed.
        self._unwritable[connection] = None
        connection.when_writable(lambda: self._on_writable(connection))

    def _on_writable(self, connection: ClientConnection) -> None:
        self._unwritable.pop(connection, None)
        self.read_more()

    def restart(self) -> None:
        """Read again from the first unacknowledged entry; a read under way is dropped."""
        self._epoch += 1
        self._forget_rescheduled()
        self._cursor.cancel_wait()
        self._cursor.rewind()

    def _reschedule(self, position: Position) -> None:
        """Read an entry again after a while, because a user's filter asked for it."""
        if self._rescheduled is None:
            host = self._host
            self._rescheduled = RescheduledEntries(
                host.clock,
                lambda: host.settings.rescheduled_delay_millis / 1000,
                self._on_rescheduled_due,
            )
        self._rescheduled.add(position)

    @abstractmethod
    def _on_rescheduled_due(self, positions: list[Position]) -> None:
        """Read these entries again: they were put off long enough."""

    def _forget_rescheduled(self) -> None:
        if self._rescheduled is not None:
            self._rescheduled.clear()

    def _chain(self, *more: DispatchFilter) -> EntryFilters:
        """The host's filters as they are now, and more behind them."""
        return EntryFilters(
            [*self._host.entry_filters(self._reschedule), *more],
            batch_ack_set=self._host.entry_source.batch_ack_set,
            acknowledge=self._host.acknowledge_filtered,
        )

    def on_settings_changed(self) -> None:
        """Called when the host's settings have changed."""
        self._read_batch_entries = self._host.settings.max_read_batch_entries
        before, self._throttle = self._throttle, self._host.dispatch_throttle()
        if before is not None:
            before.forget(self.read_more)
            self._schedule_read(0)  # the new limits may allow more

    def close(self) -> None:
        """Stop reading for good; subclasses remove their consumers."""
        if self.is_closed:
            return  # The cursor may be in use by another dispatcher.
        self.is_closed = True
        self._epoch += 1
        self._forget_rescheduled()
        self._cursor.cancel_wait()
        self._unwritable.clear()
        if self._throttle is not None:
            self._throttle.forget(self.read_more)
        for timer in (self._retry, self._next_turn):
            if timer is not None:
                timer.cancel()
        self._retry = self._next_turn = None

    def _read_next(self, wanted: int) -> Sequence[Entry] | None:
        """The next entries if they are in memory; [] after it began to wait, None to read."""
        host = self._host
        max_bytes = host.settings.max_read_bytes
        max_position = host.max_read_position()
        if self._throttle is not None:
            wanted = self._allowed(wanted)
        together = self._read_batch_entries * self._batches_together
        together = wanted if wanted < together else together  # noqa: FURB136 - hot path
        entries = self._cursor.read_cached(together, max_bytes, max_position)
        if entries is None:
            limit = min(wanted, self._read_batch_entries)
            self._start_read(
                partial(self._cursor.read, limit, max_bytes, max_position),
                self._on_entries_read,
                entries_count=limit,
            )
        elif not entries:
            self._wait_for_entries(max_position)
        else:
            self._read_this_turn += len(entries)
        return entries

    @abstractmethod
    def _on_entries_read(self, entries: Sequence[Entry]) -> None:
        """Send the entries that a task has read."""

    def _wait_for_entries(self, max_position: Position) -> None:
        """Wait for entries, or send REACHED_END_OF_TOPIC, when nothing can be read now."""
        cursor, host = self._cursor, self._host
        if max_position < host.last_confirmed_entry() and cursor.has_more_entries():
            return  # The next entries are held back: on_max_read_position_moved reads on.
        if host.is_terminated() and not cursor.has_more_entries():
            self.tell_end_of_topic()
            return
        cursor.wait_for_entries(self.read_more)

    def tell_end_of_topic(self) -> None:
        """Send REACHED_END_OF_TOPIC if all entries of the terminated topic are acknowledged."""
        if self._cursor.backlog_count() == 0:
            for consumer in list(self.consumers):
                consumer.reached_end_of_topic()

    def _start_read(
        self,
        read: Callable[[], Awaitable[Sequence[Entry]]],
        on_read: Callable[[Sequence[Entry]], None],
        *,
        entries_count: int,
        is_empty_news: bool = False,
    ) -> None:
        """Await `read` in a task, then call `on_read`; with no entries only if `is_empty_news`.

        `entries_count` is the most that it reads.
        """
        self._host.is_read_in_flight = True
        self._read_since = self._host.clock.monotonic_seconds()
        throttle = self._rates()
        release = None
        if throttle is not None:
            release = partial(throttle.give_back, throttle.reserve(entries_count))
        work = self._read_from_storage(
            self._epoch, read, on_read, is_empty_news=is_empty_news, release=release
        )
        self._host.tasks.spawn(work, "read")

    async def _read_from_storage(
        self,
        epoch: int,
        read: Callable[[], Awaitable[Sequence[Entry]]],
        on_read: Callable[[Sequence[Entry]], None],
        *,
        is_empty_news: bool,
        release: Callable[[], None] | None,
    ) -> None:
        # `restart`, which changes the epoch, also rewinds the cursor. So a read that has not begun
        # is skipped here, and the cursor itself drops one that is under way.
        try:
            entries = await read() if epoch == self._epoch else []
        except CursorClosedError:
            return
        except (StorageError, ManagedLedgerError) as error:
            self._on_read_failed(error)
            return
        finally:
            self._host.is_read_in_flight = False
            if release is not None:
                release()
            # Reads of one cursor must not overlap: the next dispatcher waits for this call.
            if self.is_closed:
                self._host.on_read_finished()
        if self.is_closed:
            return
        # Halved, not cleared: otherwise a store that fails every other read would get short pauses.
        self._backoff_millis //= 2
        self._read_batch_entries = min(
            self._read_batch_entries * 2, self._host.settings.max_read_batch_entries
        )
        if epoch == self._epoch and (entries or is_empty_news):
            self._is_reading = True
            try:
                on_read(entries)
            finally:
                self._is_reading = False
        self.read_more()

    def _on_read_failed(self, error: Exception) -> None:
        """Try again later, with small batches; the pause doubles up to its limit.

        A store that can't answer now is asked again soon: a lost connection is quickly restored.
        """
        if self.is_closed:
            return
        settings = self._host.settings
        self._read_batch_entries = settings.min_read_batch_entries
        shortest_millis = settings.read_failure_backoff_initial_millis
        if isinstance(error, StoreUnavailableError):
            shortest_millis = min(UNAVAILABLE_BACKOFF_MILLIS, shortest_millis)
        self._backoff_millis = min(
            max(self._backoff_millis * 2, shortest_millis),
            settings.read_failure_backoff_max_millis,
        )
        logger.warning(
            "reading entries failed",
            extra={
                "topic": self._host.topic_name,
                "subscription": self._host.name,
                "retry_millis": self._backoff_millis,
            },
            exc_info=error,
        )
        self._retry = self._host.clock.call_later(self._backoff_millis / 1000, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        self.read_more()


def millis_until(timer: asyncio.TimerHandle | None) -> int | None:
    """Milliseconds until the timer fires; None without one."""
    if timer is None:
        return None
    return max(round((timer.when() - asyncio.get_running_loop().time()) * 1000), 0)
