"""`reasons`: why a subscription does not move, as sentences and as codes with fields (pure).

`DispatchState` is what a subscription and its dispatcher know at one moment; `dispatch_state` takes
it. `reasons` tells every cause that holds then, what stops everything first. Each `Reason` has a
code that stays the same from release to release, one sentence that names the thing, the value and
what helps, and the values as fields for programs.

What always holds: a subscription without consumers, or paused, or with entries that wait and that
nobody is sent, has a reason. Where entries are being sent there may be none.

Source: ours; Apache Pulsar leaves it to who reads `topics stats` and `stats-internal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from pulsar_py.common.position import Position

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_10000_MILLIS: Final = 253_402_300_800_000

MAX_NAMED: Final = 10
"""Consumers and hashes that a reason names; it counts all of them."""

SLOW_READ_MILLIS: Final = 1000
"""Reads that take less are what a backlog is read by."""


class Cause(StrEnum):
    """The codes of reasons."""

    NOT_OPEN = "NOT_OPEN"
    PAUSED = "PAUSED"
    NO_CONSUMERS = "NO_CONSUMERS"
    SWITCHING_CONSUMER = "SWITCHING_CONSUMER"
    READ_FAILED = "READ_FAILED"
    SLOW_READ = "SLOW_READ"
    RATE_LIMIT = "RATE_LIMIT"
    BROKER_UNACKED_LIMIT = "BROKER_UNACKED_LIMIT"
    SUBSCRIPTION_UNACKED_LIMIT = "SUBSCRIPTION_UNACKED_LIMIT"
    CONSUMER_UNACKED_LIMIT = "CONSUMER_UNACKED_LIMIT"
    NO_PERMITS = "NO_PERMITS"
    SLOW_SOCKET = "SLOW_SOCKET"
    BLOCKED_HASH = "BLOCKED_HASH"
    HASH_WITHOUT_CONSUMER = "HASH_WITHOUT_CONSUMER"
    LOOK_AHEAD_LIMIT = "LOOK_AHEAD_LIMIT"
    HELD_BACK = "HELD_BACK"
    DELAYED = "DELAYED"
    PUT_OFF = "PUT_OFF"
    HOLE = "HOLE"
    UNACKNOWLEDGED = "UNACKNOWLEDGED"
    NOTHING_THERE = "NOTHING_THERE"


class EntryPlace(StrEnum):
    """Where the first entry that is not acknowledged is."""

    CONSUMER = "consumer"
    DELAYED = "delayed"
    PUT_OFF = "put off by an entry filter"
    WAITING = "waiting to be sent again"
    UNREAD = "not sent yet"


class ConsumerState(Struct, frozen=True, kw_only=True):
    """A consumer that entries wait for."""

    name: str
    address: str
    available_permits: int
    unacked_messages: int
    max_unacked_messages: int  # 0: no limit
    is_blocked: bool  # by that limit
    is_writable: bool


class BlockedHash(Struct, frozen=True, kw_only=True):
    """A sticky hash of which newer entries wait for those that another consumer still has."""

    sticky_hash: int
    holder: str
    pending_entries: int


class RateState(Struct, frozen=True, kw_only=True):
    """A limit that has nothing left now; a rate of 0 is none."""

    scope: str  # whose limit it is
    messages_per_second: float
    bytes_per_second: float
    wait_seconds: float


class LookAhead(Struct, frozen=True, kw_only=True):
    """Entries wait for their key's consumer, so many that no new ones are read."""

    waiting_entries: int
    limit: int
    setting: str  # which the limit comes from


class PutOff(Struct, frozen=True, kw_only=True):
    """What a user's entry filter put off."""

    position: Position  # that is shown to the filters again first
    wait_millis: int


class Hole(Struct, frozen=True, kw_only=True):
    """The first entry that is not acknowledged, while later ones are."""

    position: Position
    ranges_count: int  # of acknowledged entries behind it
    place: EntryPlace
    holder: str | None = None  # the name of the consumer that has it


class DispatchState(Struct, frozen=True, kw_only=True):
    """A subscription and its dispatcher at one moment."""

    is_open: bool = True
    state: str = "OPEN"
    is_paused: bool = False
    consumers_count: int = 0
    backlog_entries: int = 0
    has_unsent: bool = False  # entries that may be sent, and nobody has
    awaited: Sequence[ConsumerState] = ()  # consumers that can't be sent entries that wait for them
    unacked_messages: int = 0
    subscription_unacked_limit: int | None = None  # set while it blocks
    broker_unacked_limit: int | None = None  # set while it blocks
    rates: Sequence[RateState] = ()
    retry_millis: int | None = None  # set while a failed read waits
    read_millis: int | None = None  # set while entries are awaited from storage: since when
    switch_millis: int | None = None  # set while a new active consumer waits
    held_back_after: Position | None = None  # set while no later entry may be sent
    blocked_hashes: Sequence[BlockedHash] = ()
    hashes_without_consumer: Sequence[int] = ()
    look_ahead: LookAhead | None = None  # set once the limit is reached
    delayed_entries: int = 0
    next_delivery_millis: int | None = None  # wall-clock time
    put_off: PutOff | None = None
    hole: Hole | None = None


class Reason(Struct, frozen=True, kw_only=True):
    """One cause: a code, a sentence for people, and fields for programs (JSON values)."""

    cause: Cause
    message: str
    fields: Mapping[str, object]


def reasons(state: DispatchState) -> tuple[Reason, ...]:
    """Every cause that holds, what stops everything first."""
    if not state.is_open:
        message = (
            f"The subscription is {state.state}: it is being reset or deleted, or its topic is "
            "being unloaded; ask again when that has ended."
        )
        return (Reason(cause=Cause.NOT_OPEN, message=message, fields={"state": state.state}),)
    found = [*_of_all(state)]
    if state.consumers_count:
        found += _of_dispatch(state)
    found += _of_acknowledgements(state)
    return tuple(found)


def _of_all(state: DispatchState) -> Iterator[Reason]:
    if state.is_paused:
        message = (
            f"Dispatch is paused while {_waiting(state.backlog_entries)}; resume it with DELETE "
            "of …/subscription/<name>/pause."
        )
        fields = {"backlogEntries": state.backlog_entries}
        yield Reason(cause=Cause.PAUSED, message=message, fields=fields)
    if not state.consumers_count:
        message = f"No consumer is connected and {_waiting(state.backlog_entries)}; start one."
        fields = {"backlogEntries": state.backlog_entries}
        yield Reason(cause=Cause.NO_CONSUMERS, message=message, fields=fields)


def _of_dispatch(state: DispatchState) -> Iterator[Reason]:
    if state.switch_millis is not None:
        message = (
            "The active consumer changed, and the new one is sent messages in "
            f"{state.switch_millis} ms; wait, or lower activeConsumerFailoverDelayTimeMillis."
        )
        fields: dict[str, object] = {"waitMillis": state.switch_millis}
        yield Reason(cause=Cause.SWITCHING_CONSUMER, message=message, fields=fields)
    if state.retry_millis is not None:
        message = (
            f"Entries could not be read, and are tried again in {state.retry_millis} ms; the "
            "broker's log has the error of the ledger store."
        )
        fields = {"waitMillis": state.retry_millis}
        yield Reason(cause=Cause.READ_FAILED, message=message, fields=fields)
    if state.read_millis is not None and state.read_millis >= SLOW_READ_MILLIS:
        message = (
            f"Entries have been read from the ledger store for {state.read_millis} ms, without an "
            "answer; look at its disk, or at the bookies and the network to them."
        )
        fields = {"readMillis": state.read_millis}
        yield Reason(cause=Cause.SLOW_READ, message=message, fields=fields)
    if state.has_unsent:
        yield from map(_of_rate, state.rates)
        yield from _of_unacked_limits(state)
        yield from _of_consumers(state.awaited)
        yield from _of_hashes(state)
    if state.held_back_after is not None:
        position = state.held_back_after
        message = (
            f"No entry after {position} may be sent yet; end the open transactions before it, or "
            "wait for their timeout."
        )
        fields = {"position": str(position)}
        yield Reason(cause=Cause.HELD_BACK, message=message, fields=fields)
    if state.delayed_entries:
        message = (
            f"{state.delayed_entries} entries are delayed, the next until "
            f"{_moment(state.next_delivery_millis)}; wait, or skip them."
        )
        fields = {
            "delayedEntries": state.delayed_entries,
            "nextDeliveryMillis": state.next_delivery_millis,
        }
        yield Reason(cause=Cause.DELAYED, message=message, fields=fields)
    if state.put_off is not None:
        position, wait_millis = state.put_off.position, state.put_off.wait_millis
        message = (
            f"An entry filter put off entry {position}, and perhaps later ones, and is asked again "
            f"in {wait_millis} ms; wait, or look at the entry filters of the topic."
        )
        fields = {"position": str(position), "waitMillis": wait_millis}
        yield Reason(cause=Cause.PUT_OFF, message=message, fields=fields)


def _moment(millis: int | None) -> str:
    """A time for people; clients may name one that no calendar has."""
    if millis is None or not 0 <= millis < _YEAR_10000_MILLIS:
        return f"{millis} ms since 1970"
    return (
        (_EPOCH + timedelta(milliseconds=millis)).isoformat(" ", "seconds").replace("+00:00", "Z")
    )


def _of_rate(rate: RateState) -> Reason:
    limits = [
        f"{value:g} {unit}/s"
        for value, unit in ((rate.messages_per_second, "messages"), (rate.bytes_per_second, "B"))
        if value
    ]
    message = (
        f"The dispatch rate of the {rate.scope}, {' and '.join(limits)}, is used up for "
        f"{rate.wait_seconds:.3f} s; raise it, or wait."
    )
    fields = {
        "scope": rate.scope,
        "messagesPerSecond": rate.messages_per_second,
        "bytesPerSecond": rate.bytes_per_second,
        "waitMillis": round(rate.wait_seconds * 1000),
    }
    return Reason(cause=Cause.RATE_LIMIT, message=message, fields=fields)


def _of_unacked_limits(state: DispatchState) -> Iterator[Reason]:
    for cause, whose, limit, setting in (
        (
            Cause.BROKER_UNACKED_LIMIT,
            "All subscriptions of the broker together reached the limit, of which this one has",
            state.broker_unacked_limit,
            "maxUnackedMessagesPerBroker",
        ),
        (
            Cause.SUBSCRIPTION_UNACKED_LIMIT,
            "The subscription reached its limit, and has",
            state.subscription_unacked_limit,
            "maxUnackedMessagesPerSubscription",
        ),
    ):
        if limit is not None:
            message = (
                f"{whose} {state.unacked_messages} unacknowledged messages (limit {limit}); "
                f"acknowledge down to half of it, or raise {setting}."
            )
            fields = {"unackedMessages": state.unacked_messages, "limit": limit, "setting": setting}
            yield Reason(cause=cause, message=message, fields=fields)


def _of_consumers(awaited: Sequence[ConsumerState]) -> Iterator[Reason]:
    blocked = [each for each in awaited if each.is_blocked]
    if blocked:
        limit = blocked[0].max_unacked_messages
        message = (
            f"{_names(blocked)} reached the limit of {limit} unacknowledged messages; acknowledge "
            "down to half of it, or raise maxUnackedMessagesPerConsumer."
        )
        yield _of_named(
            Cause.CONSUMER_UNACKED_LIMIT,
            message,
            blocked,
            lambda each: {"unackedMessages": each.unacked_messages, "limit": limit},
        )
    without = [each for each in awaited if not each.is_blocked and each.available_permits <= 0]
    if without:
        message = (
            f"{_names(without)} asked for no more messages (permits: "
            f"{max(each.available_permits for each in without)}); receive what the client has "
            "queued, resume it, or enlarge its receiver queue."
        )
        yield _of_named(
            Cause.NO_PERMITS,
            message,
            without,
            lambda each: {"permits": each.available_permits},
        )
    slow = [each for each in awaited if not each.is_writable]
    if slow:
        message = (
            f"{_names(slow)} does not read its socket (at {slow[0].address}), and more would wait "
            "in the broker's memory; look at that client's CPU and network, or close it."
        )
        yield _of_named(Cause.SLOW_SOCKET, message, slow, lambda each: {"address": each.address})


def _of_hashes(state: DispatchState) -> Iterator[Reason]:
    if state.blocked_hashes:
        first = state.blocked_hashes[0]
        message = (
            f"Messages of {len(state.blocked_hashes)} keys' hashes wait until their former "
            f"consumers have acknowledged older ones: of hash {first.sticky_hash} consumer "
            f"{first.holder!r} has {first.pending_entries}; acknowledge those, or close that "
            "consumer."
        )
        fields: dict[str, object] = {
            "hashesCount": len(state.blocked_hashes),
            "hashes": [
                {
                    "hash": each.sticky_hash,
                    "consumer": each.holder,
                    "pendingEntries": each.pending_entries,
                }
                for each in state.blocked_hashes[:MAX_NAMED]
            ],
        }
        yield Reason(cause=Cause.BLOCKED_HASH, message=message, fields=fields)
    if state.hashes_without_consumer:
        count = len(state.hashes_without_consumer)
        message = (
            f"Messages of {count} hashes, such as {state.hashes_without_consumer[0]}, are in no "
            "consumer's range; start a consumer whose ranges have them."
        )
        named = list(state.hashes_without_consumer[:MAX_NAMED])
        fields = {"hashesCount": count, "hashes": named}
        yield Reason(cause=Cause.HASH_WITHOUT_CONSUMER, message=message, fields=fields)
    if state.look_ahead is not None:
        waiting, limit = state.look_ahead.waiting_entries, state.look_ahead.limit
        setting = state.look_ahead.setting
        message = (
            f"{waiting} entries wait for their key's consumer, so that no new ones are read (limit "
            f"{limit}); help the consumers that other reasons name, or raise {setting}."
        )
        fields = {"waitingEntries": waiting, "limit": limit, "setting": setting}
        yield Reason(cause=Cause.LOOK_AHEAD_LIMIT, message=message, fields=fields)


def _of_acknowledgements(state: DispatchState) -> Iterator[Reason]:
    hole = state.hole
    if hole is not None:
        where = {
            EntryPlace.CONSUMER: f"consumer {hole.holder!r} has it; acknowledge it there",
            EntryPlace.DELAYED: "it is delayed; wait",
            EntryPlace.PUT_OFF: "an entry filter put it off; wait",
            EntryPlace.WAITING: "it waits to be sent again; other reasons say why",
            EntryPlace.UNREAD: "nobody was sent it; start a consumer, or see the other reasons",
        }[hole.place]
        ranges = "1 range" if hole.ranges_count == 1 else f"{hole.ranges_count} ranges"
        message = (
            f"Entry {hole.position} is not acknowledged, while entries in {ranges} behind it are: "
            f"{where}, or skip it."
        )
        fields: dict[str, object] = {
            "position": str(hole.position),
            "rangesCount": hole.ranges_count,
            "place": hole.place.name,
            "consumer": hole.holder,
        }
        yield Reason(cause=Cause.HOLE, message=message, fields=fields)
    if not state.backlog_entries:
        message = "Every entry of the topic is acknowledged; publish."
        yield Reason(cause=Cause.NOTHING_THERE, message=message, fields={"backlogEntries": 0})
    elif state.consumers_count and not (
        state.has_unsent
        or state.delayed_entries
        or state.put_off is not None
        or state.held_back_after is not None
    ):
        is_one = state.backlog_entries == 1
        sent = "The one entry" if is_one else f"All {state.backlog_entries} entries"
        message = (
            f"{sent} of the backlog {'was' if is_one else 'were'} sent and not acknowledged; "
            "acknowledge, or send negative acknowledgements to get what was sent again."
        )
        fields = {"backlogEntries": state.backlog_entries}
        yield Reason(cause=Cause.UNACKNOWLEDGED, message=message, fields=fields)


def _waiting(entries_count: int) -> str:
    return "1 entry waits" if entries_count == 1 else f"{entries_count} entries wait"


def _names(consumers: Sequence[ConsumerState]) -> str:
    first = f"Consumer {consumers[0].name!r}"
    return first if len(consumers) == 1 else f"{first} and {len(consumers) - 1} others"


def _of_named(
    cause: Cause,
    message: str,
    consumers: Sequence[ConsumerState],
    fields_of: Callable[[ConsumerState], dict[str, object]],
) -> Reason:
    named = [{"name": each.name, **fields_of(each)} for each in consumers[:MAX_NAMED]]
    fields = {"consumersCount": len(consumers), "consumers": named}
    return Reason(cause=cause, message=message, fields=fields)
