"""What two brokers have promised their clients, and the checks that are counted when they hold.

A message is a number of its producer, 1, 2, 3 …; its payload says both. What is confirmed has a
position; what a subscription acknowledged with a receipt stays acknowledged. Sent again after a
missing answer, a message may be stored twice where nobody deduplicates; its receipt names one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pulsar_py.common.position_ranges import PositionRange
from tests.crash.managed_ledger.harness import InvariantError

Place = tuple[int, int]  # ledger and entry

THERE = "what was confirmed is read where its receipt says"
ONCE = "with deduplication a message is stored once"
ORDER = "a producer's messages are stored in its order"
GROWS = "what is sent after a receipt is stored behind it"
OWN_PLACE = "a position is one message's"
INTACT = "what is read was sent"
SAME = "both brokers read the same"
KEPT = "what a cursor kept is acknowledged for whoever owns the topic next"
ARRIVES = "who consumes all the time gets what was confirmed"
LEFT = "what was not acknowledged comes"
SOON = "what can't be read for a moment is read soon afterwards"
SERVES = "each broker serves each topic in the end"
ONE_OWNER = "a bundle has one owner"
OWN_RECORD = "nobody deletes another owner's record"
RIGHTLY = "who gives a topic up has lost it"
LEARNT = "each broker learns what others changed"
SURE = "nothing succeeds while the session is in doubt"
LEDGERS = "ids of ledgers grow within a topic, and the stores found nothing broken"
OPTIONS = "ledgers are made with the copies and the password that are set"
HEALTH = "each broker has a health record of its own"
ROLES = "what clusters share is in the configuration store, and nothing else is"
ENDED = "nothing outlives brokers and clients"
MINIMA = "enough happened"

INVARIANTS = (
    *(THERE, ONCE, ORDER, GROWS, OWN_PLACE, INTACT, SAME, KEPT, ARRIVES, LEFT, SOON, SERVES),
    *(ONE_OWNER, OWN_RECORD, RIGHTLY, LEARNT, SURE, LEDGERS, OPTIONS, HEALTH, ROLES),
    *(ENDED, MINIMA),
)


@dataclass
class Sender:
    """One producer: what it sent, and what it was told."""

    name: str
    topic: str
    sent_count: int = 0
    confirmed: dict[int, Place | None] = field(default_factory=dict)
    """By number; None where the broker had it already and did not say where."""
    newest_before: dict[int, Place] = field(default_factory=dict)
    """The topic's newest confirmed place when that number was sent first."""

    def payload(self, number: int) -> bytes:
        return f"{self.name}:{number}:{'x' * (number % 30)}".encode()


@dataclass
class Group:
    """A subscription: what it was given, and what it acknowledged."""

    name: str
    topic: str
    delivered: set[Place] = field(default_factory=set)
    tried: set[Place] = field(default_factory=set)
    """Acknowledged, one by one, whatever the answer was."""
    tried_through: Place = (-1, -1)
    """... and all up to there."""
    answered: set[Place] = field(default_factory=set)
    """Acknowledged with a receipt: in a broker's memory, and soon in its cursor's ledger."""

    def may_be_acked(self, place: Place) -> bool:
        return place <= self.tried_through or place in self.tried


class Model:
    """All of it; each check counts."""

    def __init__(self, *, is_deduplicating: bool) -> None:
        self.held: Counter[str] = Counter(dict.fromkeys(INVARIANTS, 0))
        self.senders: dict[str, Sender] = {}
        self.groups: list[Group] = []
        self._marks: dict[int, int] = {}  # by ledger: the last entry that a mark-delete was at
        self._kept: dict[int, set[int]] = {}  # by ledger: single entries that cursors kept
        self.newest: dict[str, Place] = {}  # by topic, of what is confirmed
        self._is_deduplicating = is_deduplicating
        self._places: dict[tuple[str, Place], tuple[str, int]] = {}  # whose a position is

    def require(self, name: str, *, holds: bool, detail: object) -> None:
        if not holds:
            raise InvariantError(f"{name}: {detail}")
        self.held[name] += 1

    @property
    def confirmed_count(self) -> int:
        return sum(len(each.confirmed) for each in self.senders.values())

    def on_send(self, sender: Sender) -> int:
        sender.sent_count += 1
        number = sender.sent_count
        if (newest := self.newest.get(sender.topic)) is not None:
            sender.newest_before[number] = newest
        return number

    def on_confirmed(self, sender: Sender, number: int, place: Place) -> None:
        if place[0] < 0:
            sender.confirmed[number] = None
            return
        sender.confirmed[number] = place
        owner = self._places.setdefault((sender.topic, place), (sender.name, number))
        self.require(
            OWN_PLACE, holds=owner == (sender.name, number), detail=(place, owner, sender, number)
        )
        before = sender.newest_before.get(number, (-1, -1))
        self.require(
            GROWS, holds=place > before, detail=(sender.name, number, place, "after", before)
        )
        self.newest[sender.topic] = max(self.newest.get(sender.topic, place), place)

    def missing(self) -> list[tuple[str, Place]]:
        """What was confirmed and not delivered, by topic."""
        return [
            (group.topic, place)
            for group in self.groups
            for sender in self.senders.values()
            for place in sender.confirmed.values()
            if sender.topic == group.topic and place is not None and place not in group.delivered
        ]

    def on_kept(self, mark_delete: Place, ranges: Sequence[PositionRange]) -> None:
        """A cursor knows that a state is durable. Each topic has one subscription."""
        ledger_id, entry_id = mark_delete
        self._marks[ledger_id] = max(self._marks.get(ledger_id, -1), entry_id)
        for each in ranges:
            kept = self._kept.setdefault(each.ledger_id, set())
            kept.update(range(each.first, each.last + 1))

    def on_drained(self, group: Group, places: Sequence[Place], come: set[Place]) -> None:
        """What came of a subscription in the end, of all that its topic holds."""
        missing = [each for each in places if each not in come and not group.may_be_acked(each)]
        self.require(LEFT, holds=not missing, detail=(group.topic, missing[:5], len(missing)))
        ledger_ids = {ledger_id for ledger_id, _ in places}
        mark = max(
            ((each, last) for each, last in self._marks.items() if each in ledger_ids),
            default=(-1, -1),
        )
        again = [
            (ledger_id, entry_id)
            for ledger_id, entry_id in sorted(come)
            if (ledger_id, entry_id) <= mark or entry_id in self._kept.get(ledger_id, ())
        ]
        self.require(KEPT, holds=not again, detail=(group.topic, again[:5], len(again), mark))

    def on_read_all(self, topic: str, read: Sequence[tuple[Place, bytes]]) -> None:
        """Everything that a topic holds, from the first to the last message."""
        numbers: dict[str, list[int]] = {}
        places = dict(read)
        self.require(
            OWN_PLACE, holds=len(places) == len(read), detail=(topic, len(read), len(places))
        )
        for place, data in read:
            name, number, _ = data.decode().split(":")
            sender = self.senders[name]
            is_intact = sender.topic == topic and data == sender.payload(int(number))
            self.require(INTACT, holds=is_intact, detail=(topic, place, data))
            numbers.setdefault(name, []).append(int(number))
        for sender in self.senders.values():
            if sender.topic == topic:
                self._check_sender(sender, numbers.get(sender.name, []), places)

    def _check_sender(
        self, sender: Sender, numbers: Sequence[int], places: dict[Place, bytes]
    ) -> None:
        first_time = list(dict.fromkeys(numbers))
        self.require(
            ORDER, holds=first_time == sorted(first_time), detail=(sender.name, first_time)
        )
        if self._is_deduplicating:
            twice = [each for each, count in Counter(numbers).items() if count > 1]
            self.require(ONCE, holds=not twice, detail=(sender.name, twice))
        for number, place in sender.confirmed.items():
            if place is None:
                is_there = number in first_time
            else:
                is_there = places.get(place) == sender.payload(number)
            self.require(THERE, holds=is_there, detail=(sender.topic, sender.name, number, place))
