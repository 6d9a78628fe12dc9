"""LedgerJudge: sees what the hostile stores really hold, and what owners were told; says what broke.

It follows every change of lists and cursor records, every deletion of a ledger and every receipt,
at the moment when it happens, whoever does it. What an owner reads is compared where the owner is
current: nobody else has changed the list or the record since.

A topic lives from the creation of its list to its deletion: each life is an `Incarnation`, told
apart by the ids of its ledgers. Acknowledgements are kept as (position, index in the batch): of a
cursor what anybody asked for, and what an owner was told to be durable. What is found lies between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.ledgers import labels
from pulsar_py.managed_ledger.cursors.format import NO_LEDGER, decode_cursor_record
from pulsar_py.managed_ledger.log.ledger_format import (
    ROOT,
    LedgerList,
    LedgerRecord,
    decode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.store import Versioned
from pulsar_py.testing.hostile_ledgers import HostileLedgers
from pulsar_py.testing.hostile_service import HostileService, View

CLUSTER = "here"
BATCH = 3
"""Messages an entry counts as."""

KEPT = "a confirmed entry stays where it was confirmed"
ONCE = "an entry is confirmed once"
ORDER = "entries stand in the order of their appending"
NAMED = "an entry is confirmed only in a ledger that the list names"
LISTED = "the list can be read, its ids grow, its ledgers exist"
ENDED = "the end of a closed ledger stays"
BUSY = "a store that is busy for a moment ends no ledger"
TRIMMED = "nothing unacknowledged is trimmed"
DELETED = "a deletion that began ends, and nothing else deletes"
TAIL = "the newest state of a cursor is found with one read, unless reads give less than asked"
BACK = "a durable acknowledgement is found by whoever opens next"
INVENTED = "nothing is acknowledged that nobody acknowledged"
READ = "what is confirmed can be read, and is right"
REFERENCED = "no ledger goes that is named"
COLLECTED = "what nobody names is collected, and nothing that is not ours"
OVERTAKEN = "an owner writes nothing over what a newer one opened"
FENCED = "nobody is fenced but by a newer owner"
ENDS = "every call ends"
CAUSE = "errors have a cause"
WORKS = "in calm weather every topic works"
TASKS = "no task dies or outlives its owner"
PINS = "nothing stays lent"

INVARIANTS = (
    KEPT, ONCE, ORDER, NAMED, LISTED, ENDED, BUSY, TRIMMED, DELETED, TAIL, BACK, INVENTED, READ, REFERENCED,
    COLLECTED, OVERTAKEN, FENCED, ENDS, CAUSE, WORKS, TASKS, PINS,
)  # fmt: skip

Acks = set[tuple[Position, int]]


PROCESS: ContextVar[object] = ContextVar("process")
"""Whose task it is, and whose write."""

LATE_SECONDS = 8.0
"""After which nothing that was sent before can come any more."""


class LedgerInvariantError(AssertionError):
    """Something that was promised does not hold."""


def all_indexes(position: Position) -> Acks:
    return {(position, index) for index in range(BATCH)}


@dataclass(eq=False)
class CursorPromise:
    """One cursor of one incarnation."""

    asked: Acks = field(default_factory=set)
    asked_to: Position = EARLIEST
    """Everything up to there was asked for, whatever it is."""
    durable: Acks = field(default_factory=set)
    is_sure: bool = False
    """Its owner was told that it is there."""
    is_going: bool = False
    """Somebody asked to delete it."""
    deletions_count: int = 0
    """Deletions under way."""

    def allows(self, position: Position, acks: Acks) -> bool:
        """Whether all of these acknowledgements of an entry were asked for."""
        return position <= self.asked_to or acks <= self.asked

    def adopt(self, found: Acks, mark_delete: Position) -> None:
        """It is there for certain, in this state."""
        self.asked |= found
        self.asked_to = max(self.asked_to, mark_delete)
        self.durable = set()
        self.is_sure, self.is_going = True, False


@dataclass(eq=False)
class Incarnation:
    """One life of a topic."""

    name: str
    stored: LedgerList = field(default_factory=LedgerList)
    version: int = -1
    named: dict[int, LedgerRecord] = field(default_factory=dict)  # ever, as last seen
    confirmed: dict[Position, bytes] = field(default_factory=dict)
    cursors: dict[str, CursorPromise] = field(default_factory=dict)
    may_die: bool = False
    """Somebody asked to delete it."""
    is_dying: bool = False
    on_marked: Callable[[], None] = lambda: None
    """Called when its list says that it is being deleted, before anybody hears that."""
    openings: dict[object, float] = field(default_factory=dict)
    """Who has opened it when, as last known; the last one is the newest owner."""

    @property
    def ledger_ids(self) -> set[int]:
        """Those that the list names now."""
        return {record.ledger_id for record in self.stored.ledgers}


class LedgerJudge:
    """What is promised, and what is stored."""

    def __init__(self, metadata: HostileService, ledgers: HostileLedgers) -> None:
        self.topics: dict[str, Incarnation] = {}  # those whose list exists
        self.incarnation_of: dict[int, Incarnation] = {}  # by data ledger
        self.cursor_ledgers: dict[str, int] = {}  # by the path of the record
        self.sent: dict[bytes, str] = {}  # ever appended: the topic's name
        self.where: dict[bytes, Position] = {}  # confirmed
        self.seen: dict[bytes, Position] = {}  # read by whoever was current
        self.held: Counter[str] = Counter()
        self.violations: list[str] = []
        # Topics in which an overtaken owner's write of a cursor was under way while a newer one
        # read it: that one is fenced, loses nothing, and has to open once more.
        self.crossed: set[str] = set()
        self.is_over = False
        self._opening: set[tuple[object, str]] = set()
        self._metadata = metadata
        self._ledgers = ledgers
        view = View(metadata._tree, lambda notification: self._on_change(notification.path))
        metadata._views.append(view)

    def require(self, name: str, *, holds: bool, detail: object) -> None:
        """Count an invariant, or raise with its name."""
        if not holds:
            raise LedgerInvariantError(f"{name}: {detail}")
        self.held[name] += 1

    def expect(self, name: str, *, holds: bool, detail: object) -> None:
        """Count an invariant, or keep that it is broken: who called is not the one to be told."""
        if holds:
            self.held[name] += 1
        elif not self.is_over:
            self.violations.append(f"{name}: {detail}")

    def raise_violations(self) -> None:
        """Raise what was kept."""
        if self.violations:
            raise LedgerInvariantError(self.violations[0])

    # Who writes

    def on_opening(self, process: object, name: str) -> None:
        """Somebody begins to open a topic, and may write."""
        self._opening.add((process, name))

    def on_opened(self, process: object, ledger) -> None:
        """He has it; whoever opened it before is overtaken, unless somebody changed it meanwhile."""
        self._opening.discard((process, ledger.name))
        incarnation = self.of(ledger)
        if incarnation is not None and self.is_current(ledger):
            incarnation.openings.pop(process, None)
            incarnation.openings[process] = asyncio.get_running_loop().time()

    def on_not_opened(self, process: object, name: str) -> None:
        """He has not; what he wrote meanwhile may yet come."""
        self._opening.discard((process, name))
        if (incarnation := self.topics.get(name)) is not None:
            incarnation.openings.pop(process, None)

    def is_newest(self, process: object, ledger) -> bool:
        """Whether nobody else opened it since, or is about to, or changed the list."""
        incarnation = self.of(ledger)
        stored = self.list_of(ledger.name)
        return (
            incarnation is not None
            and not incarnation.is_dying
            and next(reversed(incarnation.openings), None) is process
            and not any(name == ledger.name for _, name in self._opening)
            and _knows(ledger.ledger_list._record, stored)
        )

    def _check_writer(self, incarnation: Incarnation, path: str, grace_seconds: float) -> None:
        process, openings = PROCESS.get(None), incarnation.openings
        others = {each for each, name in self._opening if name == incarnation.name} - {process}
        if others and grace_seconds:
            self.crossed.add(incarnation.name)
        if (process, incarnation.name) in self._opening:
            return
        if process not in openings:
            if grace_seconds:  # by an owner of a former life, whose record had the same version
                self.crossed.add(incarnation.name)
            return
        newest = next(reversed(openings))
        since_seconds = asyncio.get_running_loop().time() - openings[newest]
        if newest is not process and since_seconds <= grace_seconds:
            self.crossed.add(incarnation.name)
        is_right = newest is process or since_seconds <= grace_seconds
        self.expect(OVERTAKEN, holds=is_right, detail=(path, str(process), str(newest)))

    # What is stored

    def _on_change(self, path: str) -> None:
        if not path.startswith(f"{ROOT}/"):
            return
        parts = path.removeprefix(f"{ROOT}/").split("/")
        change = self._metadata._tree.get(path)
        if len(parts) == 4:
            self._on_list("/".join(parts), change)
        elif len(parts) == 5:
            self._on_cursor(path, "/".join(parts[:4]), parts[4], change)

    def _on_list(self, name: str, versioned) -> None:
        incarnation = self.topics.get(name)
        if versioned is None:
            if incarnation is not None:
                is_dying = incarnation.is_dying
                self.expect(DELETED, holds=is_dying, detail=(name, "is gone, and was not marked"))
                del self.topics[name]
            return
        if not versioned.value and incarnation is None:
            return  # a parent made on demand
        try:
            stored = decode_ledger_list(versioned.value)
        except CorruptDataError as error:
            self.expect(LISTED, holds=False, detail=(name, error))
            return
        if incarnation is None:
            incarnation = self.topics[name] = Incarnation(name)
        self._check_writer(incarnation, name, 0.0)
        self._compare(incarnation, stored)
        incarnation.stored, incarnation.version = stored, versioned.version

    def _compare(self, incarnation: Incarnation, stored: LedgerList) -> None:
        """A list replaces another one."""
        name, before = incarnation.name, incarnation.ledger_ids
        if stored.is_being_deleted:
            detail = (name, "nobody asked to delete it")
            may_die = incarnation.may_die or not incarnation.named  # there were cursors alone
            self.expect(DELETED, holds=may_die, detail=detail)
            was_dying, incarnation.is_dying = incarnation.is_dying, True
            incarnation.confirmed.clear()
            incarnation.cursors.clear()
            if not was_dying:
                incarnation.on_marked()
            return
        self.expect(DELETED, holds=not incarnation.is_dying, detail=(name, "is back"))
        for record in stored.ledgers:
            if record.ledger_id not in before:
                self._on_named(incarnation, record.ledger_id)
            self._on_record(incarnation, record)
        for ledger_id in before - {record.ledger_id for record in stored.ledgers}:
            self._on_unnamed(incarnation, ledger_id)

    def _on_named(self, incarnation: Incarnation, ledger_id: int) -> None:
        name = incarnation.name
        # One may come back: it was to be trimmed, and whether that was stored was unknown.
        is_newest = ledger_id in incarnation.named or ledger_id > max(incarnation.named, default=0)
        self.expect(LISTED, holds=is_newest, detail=(name, ledger_id, list(incarnation.named)))
        self.incarnation_of[ledger_id] = incarnation
        self.expect(LISTED, holds=self.exists(ledger_id), detail=(name, ledger_id, "is missing"))

    def _on_record(self, incarnation: Incarnation, record: LedgerRecord) -> None:
        ledger_id = record.ledger_id
        known = incarnation.named.get(ledger_id)
        incarnation.named[ledger_id] = record
        if known is not None and known.is_closed:
            is_same = record.is_closed and record.entries_count == known.entries_count
            self.expect(ENDED, holds=is_same, detail=(incarnation.name, known, record))
        elif record.is_closed:
            ledger = self._ledgers.ledgers.get(ledger_id)
            end = None if ledger is None else ledger.end
            is_ended = end is not None and record.entries_count <= end + 1
            self.expect(ENDED, holds=is_ended, detail=(incarnation.name, record, end))
            for position in incarnation.confirmed:
                if position.ledger_id == ledger_id:
                    is_in_it = position.entry_id < record.entries_count
                    self.expect(KEPT, holds=is_in_it, detail=(incarnation.name, position, record))

    def _on_unnamed(self, incarnation: Incarnation, ledger_id: int) -> None:
        """A ledger was trimmed, or was empty."""
        gone = [each for each in incarnation.confirmed if each.ledger_id == ledger_id]
        for position in gone:
            for cursor_name, cursor in incarnation.cursors.items():
                if cursor.is_sure and not cursor.is_going:
                    is_acked = cursor.allows(position, all_indexes(position))
                    detail = (incarnation.name, cursor_name, position)
                    self.expect(TRIMMED, holds=is_acked, detail=detail)
            del incarnation.confirmed[position]

    def _on_cursor(self, path: str, name: str, cursor_name: str, versioned) -> None:
        incarnation = self.topics.get(name)
        if incarnation is not None:
            self._check_writer(incarnation, path, LATE_SECONDS)
        if versioned is not None:
            ledger_id = decode_cursor_record(versioned.value).cursor_ledger_id
            self.cursor_ledgers[path] = ledger_id
            if ledger_id != NO_LEDGER:
                detail = (path, ledger_id, "is missing")
                self.expect(LISTED, holds=self.exists(ledger_id), detail=detail)
            return
        self.cursor_ledgers.pop(path, None)
        if incarnation is not None and not incarnation.is_dying:
            cursor = incarnation.cursors.get(cursor_name)
            may_go = cursor is None or cursor.is_going or not cursor.is_sure
            self.expect(DELETED, holds=may_go, detail=(path, "is gone, and nobody asked"))

    # Ledgers

    def exists(self, ledger_id: int) -> bool:
        ledger = self._ledgers.ledgers.get(ledger_id)
        return ledger is not None and ledger.gone_at_seconds is None

    def referenced(self) -> set[int]:
        """All ledgers that metadata names."""
        named = {each for topic in self.topics.values() for each in topic.ledger_ids}
        return (named | set(self.cursor_ledgers.values())) - {NO_LEDGER}

    def on_ledger_deleted(self, ledger_id: int) -> None:
        """Somebody is about to delete it."""
        incarnation = self.incarnation_of.get(ledger_id)
        if incarnation is not None:
            is_named = not incarnation.is_dying and ledger_id in incarnation.ledger_ids
            self.expect(REFERENCED, holds=not is_named, detail=(incarnation.name, ledger_id))
        for path, named in self.cursor_ledgers.items():
            topic = self.topics.get(path.removeprefix(f"{ROOT}/").rpartition("/")[0])
            if topic is not None and not topic.is_dying:
                self.expect(REFERENCED, holds=named != ledger_id, detail=(path, ledger_id))
        if (ledger := self._ledgers.ledgers.get(ledger_id)) is not None:
            is_ours = labels.is_ours(ledger.options.custom_metadata, CLUSTER)
            self.expect(COLLECTED, holds=is_ours, detail=(ledger_id, "is not ours"))

    # What owners are told

    def on_appended(self, name: str, position: Position, data: bytes) -> None:
        """A receipt."""
        incarnation = self.incarnation_of.get(position.ledger_id)
        is_right = incarnation is not None and incarnation.name == name
        self.expect(NAMED, holds=is_right, detail=(name, position))
        self.expect(ONCE, holds=data not in self.where, detail=(position, self.where.get(data)))
        self.where[data] = position
        seen = self.seen.setdefault(data, position)
        self.expect(ONCE, holds=seen == position, detail=(position, seen))
        stored = self._ledgers.ledgers[position.ledger_id]
        if stored.gone_at_seconds is None:
            is_stored = stored.entries.get(position.entry_id) == data
            self.expect(KEPT, holds=is_stored, detail=(name, position, data))
        if incarnation is None or incarnation.is_dying:
            return
        if position.ledger_id not in incarnation.ledger_ids:
            return  # told late: whoever has it now found the entry, and trimmed it
        record = incarnation.named[position.ledger_id]
        is_in_it = not record.is_closed or position.entry_id < record.entries_count
        self.expect(KEPT, holds=is_in_it, detail=(name, position, record))
        incarnation.confirmed[position] = data

    def of(self, ledger) -> Incarnation | None:
        """What an open managed ledger is of; None where that is no more."""
        ids = ledger.ledgers.ledger_ids
        incarnation = self.incarnation_of.get(ids[-1]) if ids else None
        return incarnation if incarnation is self.topics.get(ledger.name) else None

    def is_current(self, ledger) -> bool:
        """Whether nobody else has changed the list that an owner goes by."""
        incarnation = self.of(ledger)
        return (
            incarnation is not None
            and not incarnation.is_dying
            and not ledger.is_fenced
            and _knows(ledger.ledger_list._record, self.list_of(ledger.name))
        )

    def is_current_cursor(self, ledger, cursor) -> bool:
        """The same of a cursor's record."""
        store = cursor._persister.store
        stored = self._metadata._tree.get(store._path)
        return self.is_current(ledger) and stored is not None and _knows(store._record, stored)

    def list_of(self, name: str):
        """What is stored at a topic's path."""
        return self._metadata._tree.get(ledger_path(name))

    def cursor_names(self, name: str) -> list[str]:
        """The cursors that are stored."""
        return self._metadata._tree.children(ledger_path(name))


def _knows(record: OwnedRecord, stored: Versioned) -> bool:
    """Whether an owner's record is what is stored; the answer may still be on its way."""
    if record.version == stored.version:
        return True
    is_next = record.version == stored.version - 1
    return is_next and sha256(stored.value).digest() in record._doubtful
