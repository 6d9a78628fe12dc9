"""`dispatch_state`: takes what `standstill` judges from a subscription and its dispatcher.

It only reads, and costs the consumers and, on Key_Shared, the hashes that wait.
"""

from __future__ import annotations

from typing import Any

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.server.dispatch.dispatcher import (
    DispatchConsumer,
    Dispatcher,
    DispatchHost,
    PersistentDispatcher,
)
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher, is_available
from pulsar_py.server.dispatch.single_active import SingleActiveConsumerDispatcher
from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher
from pulsar_py.server.subscriptions.standstill import (
    BlockedHash,
    ConsumerState,
    DispatchState,
    EntryPlace,
    Hole,
    LookAhead,
    PutOff,
    RateState,
)

Fields = dict[str, Any]  # Any: the fields of DispatchState have many types


def dispatch_state(
    host: DispatchHost,
    dispatcher: Dispatcher | None,
    ledger: ManagedLedger[Any],  # Any: the context of appends belongs to producers
    cursor: ManagedCursor,
    *,
    state: str,
    broker_unacked_limit: int,
) -> DispatchState:
    """The state of an open subscription, whose `state` has that name."""
    fields: Fields = {
        "state": state,
        "is_paused": host.is_dispatch_paused,
        "backlog_entries": cursor.backlog_count(),
    }
    if isinstance(dispatcher, PersistentDispatcher) and dispatcher.consumers:
        fields |= _of_reading(host, dispatcher, ledger, cursor)
        if isinstance(dispatcher, SingleActiveConsumerDispatcher):
            fields |= _of_single(dispatcher)
        if isinstance(dispatcher, MultipleConsumersDispatcher):
            fields |= _of_shared(host, dispatcher, broker_unacked_limit)
        if isinstance(dispatcher, StickyKeyDispatcher):
            fields |= _of_hashes(dispatcher)
    else:
        dispatcher = None
    ranges_count = cursor.individual_ranges_count()
    if ranges_count:
        first = ledger.next_valid_position(cursor.mark_delete_position)
        fields["hole"] = _hole(dispatcher, cursor, first, ranges_count)
    return DispatchState(**fields)


def _of_reading(
    host: DispatchHost,
    dispatcher: PersistentDispatcher,
    ledger: ManagedLedger[Any],
    cursor: ManagedCursor,
) -> Fields:
    limit = host.max_read_position()
    has_unsent = dispatcher.source.has_more_entries()
    held_back_after = None
    if has_unsent and limit < ledger.last_confirmed_entry:
        has_unsent = cursor.read_position <= ledger.last_entry_up_to(limit)
        held_back_after = None if has_unsent else limit
    if isinstance(dispatcher, MultipleConsumersDispatcher):
        has_unsent = has_unsent or bool(dispatcher.redelivery)
    read_seconds = dispatcher.read_seconds
    put_off = None if dispatcher.rescheduled is None else dispatcher.rescheduled.first
    return {
        "consumers_count": len(dispatcher.consumers),
        "has_unsent": has_unsent,
        "held_back_after": held_back_after,
        "retry_millis": dispatcher.retry_millis,
        "read_millis": None if read_seconds is None else round(read_seconds * 1000),
        "put_off": (
            PutOff(position=put_off[0], wait_millis=round(put_off[1] * 1000)) if put_off else None
        ),
        "rates": [
            RateState(
                scope=limiter.scope,
                messages_per_second=limiter.limits[0],
                bytes_per_second=limiter.limits[1],
                wait_seconds=seconds,
            )
            for limiter, seconds in dispatcher.rate_refusals()
        ],
    }


def _of_single(dispatcher: SingleActiveConsumerDispatcher) -> Fields:
    active = dispatcher.active_consumer
    is_awaited = active is not None and not is_available(active)
    return {
        "switch_millis": dispatcher.switch_millis,
        "awaited": [_consumer_state(active)] if active is not None and is_awaited else [],
    }


def _of_shared(
    host: DispatchHost, dispatcher: MultipleConsumersDispatcher, broker_limit: int
) -> Fields:
    now_millis = host.clock.wall_time_millis()
    wait_millis = dispatcher.delayed.next_check_millis(now_millis)
    subscription_limit = host.settings.max_unacked_messages_per_subscription
    return {
        "awaited": [_consumer_state(each) for each in dispatcher.awaited_consumers()],
        "unacked_messages": dispatcher.unacked_messages,
        "subscription_unacked_limit": (
            subscription_limit if dispatcher.is_blocked_by_subscription else None
        ),
        "broker_unacked_limit": broker_limit if dispatcher.is_blocked_by_broker else None,
        "delayed_entries": len(dispatcher.delayed),
        "next_delivery_millis": None if wait_millis is None else now_millis + wait_millis,
    }


def _of_hashes(dispatcher: StickyKeyDispatcher) -> Fields:
    blocked: list[BlockedHash] = []
    without: list[int] = []
    for sticky_hash in dispatcher.waiting_hashes():
        owner = dispatcher.selector.select(sticky_hash)
        if owner is None:
            without.append(sticky_hash)
            continue
        former = dispatcher.draining_elsewhere(sticky_hash, owner)
        if former is not None:
            pending = former.pending_hash_counts.get(sticky_hash, 0)
            blocked.append(
                BlockedHash(sticky_hash=sticky_hash, holder=former.name, pending_entries=pending)
            )
    waiting, limit = len(dispatcher.redelivery), dispatcher.look_ahead_limit
    return {
        "blocked_hashes": blocked,
        "hashes_without_consumer": without,
        "look_ahead": (
            LookAhead(waiting_entries=waiting, limit=limit, setting=dispatcher.look_ahead_setting)
            if limit and waiting >= limit
            else None
        ),
    }


def _consumer_state(consumer: DispatchConsumer) -> ConsumerState:
    permits = consumer.permits
    return ConsumerState(
        name=consumer.name,
        address=consumer.connection.remote_address,
        available_permits=permits.available,
        unacked_messages=permits.unacked_messages,
        max_unacked_messages=permits.max_unacked_messages,
        is_blocked=permits.is_blocked,
        is_writable=consumer.connection.is_writable,
    )


def _hole(
    dispatcher: PersistentDispatcher | None,
    cursor: ManagedCursor,
    position: Position,
    ranges_count: int,
) -> Hole:
    holder: DispatchConsumer | None = None
    place = EntryPlace.UNREAD
    key = (position.ledger_id, position.entry_id)
    rescheduled = None if dispatcher is None else dispatcher.rescheduled
    if rescheduled is not None and position in rescheduled:
        place = EntryPlace.PUT_OFF
    elif isinstance(dispatcher, MultipleConsumersDispatcher):
        holder = dispatcher.holder_of(key)
        if holder is None and key in dispatcher.redelivery:
            place = EntryPlace.WAITING
        elif holder is None and position < cursor.read_position and dispatcher.delayed:
            place = EntryPlace.DELAYED
    elif dispatcher is not None and position < cursor.read_position:
        holder = dispatcher.active_consumer
    return Hole(
        position=position,
        ranges_count=ranges_count,
        place=place if holder is None else EntryPlace.CONSUMER,
        holder=None if holder is None else holder.name,
    )
