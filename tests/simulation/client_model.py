"""What a soak of the client has promised, and the named invariants that are counted when they hold.

A message is a number of its producer's stream, 1, 2, 3 …; its payload, key and properties follow
from stream and number, so that whatever is delivered can be checked alone. A subscription knows the
numbers it has seen; a delivery again is fine (at least once), but never under another id.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from pulsar_py.common.message_id import MessageId
from tests.crash.managed_ledger.harness import InvariantError

ARRIVES = "what was sent and confirmed arrives"
ORDER = "in order for each key where promised"
ONCE = "no duplicates with deduplication on"
INTACT = "delivered as sent"
NAMED = "a receipt names where the message is"
IN_TIME = "a send ends within its time-out"
ENDED = "nothing outlives close"
ACKED = "what was acknowledged is done"
READ_ONCE = "a reader gets each message once, in order"
NEWEST = "a table view has the newest value of each key"

INVARIANTS = (ARRIVES, ORDER, ONCE, INTACT, NAMED, IN_TIME, ENDED, ACKED, READ_ONCE, NEWEST)


@dataclass(frozen=True)
class Outcome:
    """What a soak came to."""

    held: Counter[str]
    faults: Counter[str]
    sent: int
    confirmed: int
    delivered: int
    digest: str


class Log:
    """A digest over everything that happened and when: equal for equal runs."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.lines: list[str] | None = None  # kept on request, to compare two runs

    def note(self, now: float, *what: object) -> None:
        line = f"{now:.6f} {' '.join(map(str, what))}\n"
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


@dataclass
class Stream:
    """Everything that one producer sends to its topic."""

    name: str
    keys_count: int
    payload_bytes: int
    """At least; chunked streams are longer than the broker takes."""
    sent: int = 0
    confirmed: dict[int, MessageId] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    """Neither confirmed nor refused for sure: may be there or not."""
    ids: dict[int, MessageId] = field(default_factory=dict)
    """Where each number was seen first."""

    def key(self, number: int) -> str | None:
        return f"{self.name}-{number * 7919 % self.keys_count}" if self.keys_count else None

    def payload(self, number: int) -> bytes:
        head = b"%s %d " % (self.name.encode(), number)
        return head + bytes([number % 251]) * max(self.payload_bytes - len(head), number % 90)

    @staticmethod
    def number_of(data: bytes) -> int:
        return int(data.split(b" ", 2)[1])


@dataclass
class Subscription:
    """What the consumers of one subscription got, all together."""

    name: str
    stream: Stream
    is_ordered: bool
    """Whether keys (or, without keys, everything) come in order."""
    seen: set[int] = field(default_factory=set)
    newest_of_key: dict[str | None, int] = field(default_factory=dict)
    delivered: int = 0


class Model:
    """All of it; each check counts."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter(dict.fromkeys(INVARIANTS, 0))
        self.log = Log()
        self.streams: list[Stream] = []
        self.subscriptions: list[Subscription] = []

    def require(self, name: str, *, holds: bool, detail: object) -> None:
        if not holds:
            raise InvariantError(f"{name}: {detail}")
        self.held[name] += 1

    def on_confirmed(self, stream: Stream, number: int, message_id: MessageId) -> None:
        stream.confirmed[number] = message_id
        self._check_place(stream, number, message_id, NAMED)

    def on_delivered(
        self, subscription: Subscription, data: bytes, key: str, message_id: MessageId
    ) -> int:
        """Check one delivery; returns its number."""
        stream = subscription.stream
        number = stream.number_of(data)
        subscription.delivered += 1
        is_intact = data == stream.payload(number) and (key or None) == stream.key(number)
        self.require(INTACT, holds=is_intact, detail=(subscription.name, number, key, len(data)))
        self._check_place(stream, number, message_id, ONCE)
        if number in subscription.seen:
            return number
        subscription.seen.add(number)
        if subscription.is_ordered:
            newest = subscription.newest_of_key.get(key, 0)
            detail = (subscription.name, key, number, "after", newest)
            self.require(ORDER, holds=number > newest, detail=detail)
            subscription.newest_of_key[key] = number
        return number

    def _check_place(self, stream: Stream, number: int, message_id: MessageId, name: str) -> None:
        """A number is at one place, whoever says so."""
        if message_id.ledger_id < 0:
            return  # the broker had it already, and doesn't say where
        place = stream.ids.setdefault(number, message_id)
        is_same = (place.ledger_id, place.entry_id, max(place.batch_index, 0)) == (
            message_id.ledger_id,
            message_id.entry_id,
            max(message_id.batch_index, 0),
        )
        self.require(name, holds=is_same, detail=(stream.name, number, place, message_id))

    def missing(self) -> dict[str, list[int]]:
        """By subscription: what was confirmed and not delivered."""
        return {
            each.name: sorted(missing)
            for each in self.subscriptions
            if (missing := each.stream.confirmed.keys() - each.seen)
        }
