"""The cursor against a naive model: the set of acknowledged (ledger, entry, index)."""

from __future__ import annotations

from array import array
from collections import defaultdict
from functools import partial
from itertools import takewhile

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pulsar_py.common import ack_set
from pulsar_py.common.errors import InvalidCursorPositionError
from pulsar_py.common.position import LedgerPositions, Position
from pulsar_py.managed_ledger.cursors.format import (
    decode_cursor_record,
    decode_position_info,
    encode_cursor_record,
    encode_position_info,
)
from pulsar_py.managed_ledger.cursors.pages import ColdLedger
from pulsar_py.managed_ledger.cursors.segments import PAGE_SHIFTS, SegmentKind
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, LedgerRecord
from pulsar_py.managed_ledger.log.ledger_state import LedgerState

BATCH = 3
WHOLE = frozenset(range(BATCH))


class NaiveCursor:
    """Acknowledged indexes of each entry, and nothing clever."""

    def __init__(self, entries):
        self.acknowledged = {entry: set() for entry in entries}

    @property
    def entries(self):
        return sorted(self.acknowledged)

    def acknowledge(self, entry, waiting=frozenset()):
        if entry in self.acknowledged:
            self.acknowledged[entry] |= WHOLE - waiting

    def is_whole(self, entry):
        return self.acknowledged[entry] == WHOLE

    def mark_delete(self):
        """The last of the leading entries that are acknowledged as a whole, None if none is."""
        last = None
        for entry in self.entries:
            if not self.is_whole(entry):
                break
            last = entry
        return last

    def backlog(self):
        return sum(not self.is_whole(entry) for entry in self.acknowledged)

    def reset(self, target, waiting=WHOLE):
        for entry in self.acknowledged:
            self.acknowledged[entry] = set(WHOLE) if entry < target else set()
        if target in self.acknowledged:
            self.acknowledged[target] = set(WHOLE - waiting)


POSITIONS = st.builds(Position, st.integers(0, 12), st.integers(-1, 9))
WAITING = st.none() | st.frozensets(st.integers(0, BATCH - 1))

ENTRY_IDS = st.one_of(
    st.builds(
        lambda first, count: range(first, first + count), st.integers(0, 6), st.integers(1, 6)
    ),
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
)


class CursorMachine(RuleBasedStateMachine):
    @initialize(counts=st.lists(st.integers(0, 6), min_size=1, max_size=4))
    def begin(self, counts):
        self.now = 0.0
        self.ledger_id = 0
        self.ledgers = LedgerState(LedgerList())
        self.model = NaiveCursor([])
        for count in counts:
            self.add_ledger(count)
        first = self.ledgers.first_position
        self.cursor = CursorState(self.ledgers, self.ledgers.previous_position(first))

    def add_ledger(self, count):
        if self.ledger_id:
            record = self.ledgers.last_ledger
            self.ledgers.ledger_closed(record.entries_count, record.size_bytes, 1)
        self.ledger_id += 2
        self.ledgers.ledger_created(self.ledger_id, 0)
        self.append(count)

    @rule(count=st.integers(1, 3))
    def append(self, count):
        if count:
            record = self.ledgers.last_ledger
            for entry_id in range(record.entries_count, record.entries_count + count):
                self.model.acknowledged[Position(record.ledger_id, entry_id)] = set()
            self.ledgers.confirmed(count, count)

    @rule(count=st.integers(0, 3))
    def roll(self, count):
        self.add_ledger(count)
        self.cursor.settle()

    @rule(acks=st.lists(st.tuples(POSITIONS, WAITING), max_size=5))
    def acknowledge(self, acks):
        words = [None if waiting is None else ack_set.from_indexes(waiting) for _, waiting in acks]
        last = self.ledgers.last_confirmed_entry
        taken_count = self.cursor.acknowledge([each for each, _ in acks], words, self.now)
        there = list(takewhile(lambda ack: ack[0] <= last, acks))
        assert taken_count == len(there)
        for position, waiting in there:
            self.model.acknowledge(position, waiting or frozenset())

    @rule(ledger_id=st.integers(0, 12), entry_ids=ENTRY_IDS)
    def acknowledge_group(self, ledger_id, entry_ids):
        positions = LedgerPositions(ledger_id, entry_ids)
        last = self.ledgers.last_confirmed_entry
        there = list(takewhile(lambda position: position <= last, positions))
        assert self.cursor.acknowledge(positions, None, self.now) == len(there)
        for position in there:
            self.model.acknowledge(position)

    @rule(position=POSITIONS, waiting=WAITING)
    def acknowledge_cumulative(self, position, waiting):
        words = None if waiting is None else ack_set.from_indexes(waiting)
        try:
            self.cursor.acknowledge_cumulative(position, words, None, self.now)
        except InvalidCursorPositionError:
            return
        for entry in self.model.entries:
            if entry < position:
                self.model.acknowledge(entry)
        self.model.acknowledge(position, waiting or frozenset())

    @rule(position=POSITIONS, waiting=WAITING)
    def reset(self, position, waiting):
        words = None if waiting is None else ack_set.from_indexes(waiting)
        self.cursor.become(self.cursor.reset_target(position, words), self.now)
        self.model.reset(position, waiting or WHOLE)

    @rule(count=st.integers(1, 4), counts_all=st.booleans())
    def skip(self, count, counts_all):
        mark_delete = self.model.mark_delete()
        after = [
            entry for entry in self.model.entries if mark_delete is None or entry > mark_delete
        ]
        waiting = [entry for entry in after if counts_all or not self.model.is_whole(entry)]
        target = self.cursor.position_after_skipping(count, counts_acknowledged=counts_all)
        if waiting:
            assert target == (waiting[:count][-1] if len(waiting) >= count else after[-1])
            self.acknowledge_cumulative(target, None)

    @rule(seconds=st.floats(0, 2))
    def write(self, seconds):
        self.now += seconds
        changes = self.cursor.changes_due(self.now)
        if changes is not None:
            self.cursor.persisted(changes)

    @rule(as_long_arrays=st.booleans(), in_record=st.booleans())
    def restart(self, as_long_arrays, in_record):
        """What is stored and read back is the same cursor, whatever the form."""
        before = self.cursor
        if in_record:
            data = encode_cursor_record(before, {}, max_ranges=99, max_batches=99).data
            snapshot = decode_cursor_record(data).snapshot
        else:
            encoded = encode_position_info(
                before, max_ranges=99, max_batches=99, as_long_arrays=as_long_arrays
            )
            assert encoded.ranges_left_out_count == encoded.batches_left_out_count == 0
            snapshot = decode_position_info(encoded.data)
        self.cursor = CursorState(self.ledgers, snapshot.mark_delete_position)
        self.cursor.individual_deleted_messages = snapshot.individual_deleted_messages
        self.cursor.batch_deleted_indexes = snapshot.batch_deleted_indexes
        self.cursor.settle()
        assert self.cursor.mark_delete_position == before.mark_delete_position
        assert self.cursor.individual_deleted_messages == before.individual_deleted_messages

    @rule()
    def trim(self):
        ids = self.ledgers.ledger_ids
        following = self.ledgers.next_valid_position(self.cursor.mark_delete_position)
        gone = [ledger_id for ledger_id in ids[:-1] if ledger_id < following.ledger_id]
        self.ledgers.ledgers_trimmed(gone)
        for entry in self.model.entries:
            if entry.ledger_id in gone:
                del self.model.acknowledged[entry]
        self.cursor.settle()

    @rule(count=st.integers(1, 9))
    def read_to_the_end(self, count):
        """From the first waiting entry on, reads give exactly those that wait."""
        self.cursor.rewind()
        found = []
        while (run := self.cursor.next_run(count, self.ledgers.last_confirmed_entry)) is not None:
            assert 0 < run.last - run.first + 1 <= count
            found += [Position(run.ledger_id, each) for each in range(run.first, run.last + 1)]
            self.cursor.read_through(run.ledger_id, run.last)
        waiting = [entry for entry in self.model.entries if not self.model.is_whole(entry)]
        assert [entry for entry in found if not self.cursor.is_acknowledged(entry)] == waiting

    @invariant()
    def agrees(self):
        if not hasattr(self, "cursor"):
            return
        self.cursor.check()
        self.ledgers.check()
        assert self.cursor.backlog_count() == self.model.backlog()
        for entry, acknowledged in self.model.acknowledged.items():
            assert self.cursor.is_acknowledged(entry) == (acknowledged == WHOLE), entry
            words = self.cursor.batch_ack_set(entry)
            if words is not None:
                assert set(ack_set.indexes(words)) == WHOLE - acknowledged
            elif acknowledged != WHOLE:
                assert not acknowledged, entry
        assert self.ledgers.entries_count == len(self.model.acknowledged)


class TestCursorAgainstTheModel(CursorMachine.TestCase):
    settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


# A page of holes ends between these entries, and the ledger a little later.
PAGE = 1 << PAGE_SHIFTS[0]
FIRST, END = PAGE - 30, PAGE + 20
NEAR = st.integers(FIRST, END + 5) | st.integers(0, 3)
GROUPS = st.tuples(
    st.sampled_from([2, 2, 2, 3, 5]),
    st.builds(lambda first, count: range(first, first + count), NEAR, st.integers(1, 40))
    | st.lists(NEAR, min_size=1, max_size=30),
)
PARTS = st.tuples(st.sampled_from([2, 3]), st.integers(FIRST, END), st.integers(1, 6))


def cursor_in_large_ledgers(*, tracks, notes, cold):
    ledgers = LedgerState(
        LedgerList(
            [
                LedgerRecord(2, END, END, 1, is_closed=True),
                LedgerRecord(3, END, END, 1, is_closed=True),
            ]
        )
    )
    cursor = CursorState(ledgers, Position(2, FIRST))
    if tracks:
        cursor.pages.track()
        if cold:
            cursor.pages.leave_memory(cold, ColdLedger(0, 0, 0))
    if notes:
        cursor.noted = defaultdict(partial(array, "I"))
    return cursor


def what_holds(cursor):
    noted = cursor.noted or {}
    return {
        "mark delete": cursor.mark_delete_position,
        "read": (cursor.read_position, cursor.read_generation),
        "acknowledged": list(cursor.individual_deleted_messages),
        "in part": list(cursor.batch_deleted_indexes.items()),
        "backlog": cursor.backlog_count(),
        "wanted": cursor.pages.wanted,
        "is dirty": cursor.is_dirty,
        "noted": {
            Position(ledger_id, entry_id)
            for ledger_id, entry_ids in noted.items()
            for entry_id in entry_ids
            if (ledger_id, entry_id) > cursor.mark_delete_position
        },
    }


@given(
    steps=st.lists(GROUPS | PARTS, min_size=1, max_size=12),
    tracks=st.booleans(),
    notes=st.booleans(),
    cold=st.sampled_from([None, 2, 3]),
)
@example(
    steps=[(2, range(PAGE - 2, PAGE + 3)), (2, range(FIRST, PAGE))],
    tracks=True,
    notes=True,
    cold=None,
)
@example(steps=[(3, range(20))], tracks=True, notes=False, cold=3)
@example(steps=[(3, range(20))], tracks=False, notes=False, cold=None)
@example(steps=[(2, [FIRST + 3]), (2, range(FIRST, PAGE))], tracks=True, notes=False, cold=2)
@settings(max_examples=200, deadline=None)
def test_a_group_is_what_its_entries_are_one_by_one(steps, tracks, notes, cold):
    """Also of what has to be written; and less of what need not be, behind the mark-delete."""
    together, single = (
        cursor_in_large_ledgers(tracks=tracks, notes=notes, cold=cold) for _ in range(2)
    )
    for ledger_id, entry_ids, *bits in steps:
        before = set(together.individual_deleted_messages)
        if bits:
            position, words = [Position(ledger_id, entry_ids)], [bits]
            taken = {each.acknowledge(position, words, 0.0) for each in (together, single)}
        else:
            group = LedgerPositions(ledger_id, entry_ids)
            taken = {
                together.acknowledge(group, None, 0.0),
                single.acknowledge(list(group), None, 0.0),
            }
        assert len(taken) == 1
        assert what_holds(together) == what_holds(single)
        for each in (together, single):
            each.check()
        if tracks:
            new = set(together.individual_deleted_messages) - before
            kind, shift = int(SegmentKind.HOLES), PAGE_SHIFTS[0]
            assert {(kind, each[0], each[1] >> shift) for each in new} <= together.pages.dirty
            assert together.pages.dirty <= single.pages.dirty
