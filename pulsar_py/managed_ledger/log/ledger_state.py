"""`LedgerState`: decides about a managed ledger's ledgers and positions (pure).

A managed ledger is an ordered list of ledgers of which only the last may be open. Questions about
positions (the next one, how many entries lie between two) are answered from entry counts alone:
each ledger knows how many entries came before it, so that an entry has an absolute index, and both
directions cost one binary search.

What always holds: the list is never empty once the managed ledger exists, ids grow, all but the
last are closed. The last ledger is never trimmed, open or not: the last confirmed entry and the
cursors at the end have their positions in it. A closed last ledger without entries is a
placeholder, deleted when the next ledger is created. The ManagedLedger creates ledgers and writes
metadata.

    state         means                                             may become
    NO_LEDGER     none is open; the next append creates one         CREATING, and the last three
    CREATING      one is being created; appends queue               OPENED, NO_LEDGER, FAILED, ...
    OPENED        appends go to the last ledger                     CLOSING, ...
    CLOSING       full or failed: waits for its end; appends queue  CREATING, NO_LEDGER, ...
    FAILED        creation failed; appends fail until a time        CREATING, ...
    TERMINATED    by request, for ever                              FENCED, CLOSED
    FENCED        another owner has it                              CLOSED
    CLOSED        nothing works any more                            -

Source: ManagedLedgerImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, LedgerRecord


class State(Enum):
    """The state of a managed ledger; statistics show the values."""

    NO_LEDGER = "ClosedLedger"
    CREATING = "CreatingLedger"
    OPENED = "LedgerOpened"
    CLOSING = "ClosingLedger"
    FAILED = "WriteFailed"
    TERMINATED = "Terminated"
    FENCED = "Fenced"
    CLOSED = "Closed"


_ENDS = frozenset({State.TERMINATED, State.FENCED, State.CLOSED})

TRANSITIONS: dict[State, frozenset[State]] = {
    State.NO_LEDGER: _ENDS | {State.CREATING},
    State.CREATING: _ENDS | {State.OPENED, State.NO_LEDGER, State.FAILED},
    State.OPENED: _ENDS | {State.CLOSING},
    State.CLOSING: _ENDS | {State.CREATING, State.NO_LEDGER, State.FAILED},
    State.FAILED: _ENDS | {State.CREATING},
    State.TERMINATED: frozenset({State.FENCED, State.CLOSED}),
    State.FENCED: frozenset({State.CLOSED}),
    State.CLOSED: frozenset(),
}


class LedgerState:
    """The ledgers of one managed ledger and the positions of its entries.

    Owned by its ManagedLedger, read by its cursors' states.
    """

    __slots__ = (
        "_first_index",
        "_idle_mark",
        "_ids",
        "_unknown_fields",
        "entries_added_count",
        "last_confirmed_entry",
        "ledgers",
        "opened_millis",
        "properties",
        "size_bytes",
        "state",
        "terminated_position",
    )

    def __init__(self, stored: LedgerList) -> None:
        self.ledgers: dict[int, LedgerRecord] = {}  # by id, ascending
        self._ids: list[int] = []  # keys of `ledgers`
        self._first_index = 0  # absolute index before the first ledger's first entry
        self._idle_mark = (-1, 0)  # entries added, and when, at the check that last found new ones
        self.size_bytes = 0  # of all ledgers' confirmed entries
        self.entries_added_count = 0  # confirmed since it was opened
        self.properties = dict(stored.properties)
        self._unknown_fields = stored.unknown_fields
        self.terminated_position = stored.terminated_position
        self.state = State.NO_LEDGER
        self.opened_millis = 0  # when the last ledger was created; 0 before one was
        self.last_confirmed_entry = Position(-1, -1)  # or (ledger, -1) while there is none
        for record in stored.ledgers:
            self._append_record(record)
        self._find_last_confirmed_entry()
        if self.terminated_position is not None:
            self.state = State.TERMINATED

    def _append_record(self, record: LedgerRecord) -> None:
        assert not self._ids or record.ledger_id > self._ids[-1], "ledger ids have to grow"
        record.first_index = self._end_index
        self.ledgers[record.ledger_id] = record
        self._ids.append(record.ledger_id)
        self.size_bytes += record.size_bytes

    def _find_last_confirmed_entry(self) -> None:
        for ledger_id in reversed(self._ids):
            if count := self.ledgers[ledger_id].entries_count:
                self.last_confirmed_entry = Position(ledger_id, count - 1)
                return
        if self._ids:
            self.last_confirmed_entry = Position(self._ids[-1], -1)

    # Ledgers

    @property
    def last_ledger(self) -> LedgerRecord:
        """The newest ledger, open or not."""
        return self.ledgers[self._ids[-1]]

    @property
    def ledger_ids(self) -> list[int]:
        """Ids, ascending; callers must not change the list."""
        return self._ids

    def move_to(self, state: State) -> None:
        """Change state; asserts that the table of transitions has it."""
        assert state is self.state or state in TRANSITIONS[self.state], (self.state, state)
        self.state = state

    def stored(self) -> LedgerList:
        """The list to write to the metadata store."""
        return self._list_of(list(self.ledgers.values()))

    def _list_of(self, ledgers: list[LedgerRecord]) -> LedgerList:
        return LedgerList(
            ledgers,
            self.terminated_position,
            self.properties,
            unknown_fields=self._unknown_fields,
        )

    def with_next_ledger(self, ledger_id: int) -> LedgerList:
        """The list to write with `ledger_id` as the last one, and without a placeholder."""
        ledgers = [record for record in self.ledgers.values() if record.entries_count]
        ledgers.append(LedgerRecord(ledger_id))
        return self._list_of(ledgers)

    def ledger_created(self, ledger_id: int, now_millis: int) -> list[int]:
        """Take over the written list of `with_next_ledger`; returns placeholders to delete."""
        placeholders = [
            record.ledger_id for record in self.ledgers.values() if not record.entries_count
        ]
        for placeholder in placeholders:
            self._remove(placeholder)
        self._append_record(LedgerRecord(ledger_id))
        self.opened_millis = now_millis
        if self.last_confirmed_entry.entry_id < 0:
            self.last_confirmed_entry = Position(ledger_id, -1)
        return placeholders

    def ledger_closed(self, entries_count: int, size_bytes: int, now_millis: int) -> None:
        """Note that the last ledger was closed with this many entries and bytes."""
        record = self.last_ledger
        self.size_bytes += size_bytes - record.size_bytes
        record.entries_count = entries_count
        record.size_bytes = size_bytes
        record.closed_millis = max(now_millis, 1)
        record.is_closed = True
        self._find_last_confirmed_entry()

    def last_ledger_lost(self) -> None:
        """Do without the last ledger, which is gone with all that it had."""
        self._remove(self._ids[-1])
        self.last_confirmed_entry = Position(-1, -1)
        self._find_last_confirmed_entry()

    def confirmed(self, entries_count: int, size_bytes: int) -> None:
        """Count more durable entries of the open ledger. Hot path: publish, once a group."""
        record = self.last_ledger
        record.entries_count += entries_count
        record.size_bytes += size_bytes
        self.size_bytes += size_bytes
        self.entries_added_count += entries_count
        self.last_confirmed_entry = Position(record.ledger_id, record.entries_count - 1)

    def is_rollover_due(
        self,
        config: ManagedLedgerConfig,
        *,
        entries_count: int,
        size_bytes: int,
        now_millis: int,
        jitter: float = 0.0,
    ) -> bool:
        """Whether the open ledger with this many entries and bytes has to end now.

        `jitter` from 0 to 1 spreads the maximum age by up to 5 %.
        """
        age_seconds = (now_millis - self.opened_millis) / 1000
        if not entries_count or (
            config.minimum_rollover_seconds and age_seconds <= config.minimum_rollover_seconds
        ):
            return False
        return (
            entries_count >= config.max_entries_per_ledger
            or size_bytes >= config.max_size_per_ledger_bytes
            or age_seconds >= config.maximum_rollover_seconds * (1 + 0.05 * jitter)
        )

    def is_rollover_due_by_time(self, config: ManagedLedgerConfig, now_millis: int) -> bool:
        """Whether the open ledger is too old, or idle for too long; to be called periodically.

        A ledger is idle from the first call that finds no new entries.
        """
        if self.state is not State.OPENED:
            return False
        if self._idle_mark[0] != self.entries_added_count:
            self._idle_mark = (self.entries_added_count, now_millis)
        record = self.last_ledger
        idle_limit = config.inactive_ledger_rollover_seconds
        idle_seconds = (now_millis - self._idle_mark[1]) / 1000
        if idle_limit and record.entries_count and idle_seconds > idle_limit:
            return True
        return self.is_rollover_due(
            config,
            entries_count=record.entries_count,
            size_bytes=record.size_bytes,
            now_millis=now_millis,
        )

    def trimmable(
        self, config: ManagedLedgerConfig, slowest: Position | None, now_millis: int
    ) -> list[int]:
        """Ledgers that may be deleted now, oldest first.

        `slowest` is the oldest durable mark-delete position, None without durable cursors. The
        first ledger that retention keeps ends the walk.
        """
        limit_id = self._ids[-1] if slowest is None else self._ledger_still_needed(slowest)
        deletable: list[int] = []
        deleted_bytes = 0
        for ledger_id in self._ids[:-1]:
            if ledger_id >= limit_id:
                break
            record = self.ledgers[ledger_id]
            deleted_bytes += record.size_bytes
            age_seconds = (now_millis - record.closed_millis) / 1000
            is_expired = config.retention_seconds >= 0 and age_seconds > config.retention_seconds
            remaining_bytes = self.size_bytes - deleted_bytes
            is_over_size = 0 <= config.retention_size_bytes <= remaining_bytes
            if not (is_expired or is_over_size):
                break
            deletable.append(ledger_id)
        return deletable

    def _ledger_still_needed(self, mark_delete: Position) -> int:
        """The ledger of the first entry after `mark_delete`: ledgers before it are consumed."""
        return self.next_valid_position(mark_delete).ledger_id

    def without(self, ledger_ids: list[int]) -> LedgerList:
        """The list to write without `ledger_ids`."""
        gone = set(ledger_ids)
        kept = [record for record in self.ledgers.values() if record.ledger_id not in gone]
        return self._list_of(kept)

    def ledgers_trimmed(self, ledger_ids: list[int]) -> None:
        """Take over the written list of `without`; the oldest ones go, and the last one never."""
        assert ledger_ids == self._ids[: len(ledger_ids)] != self._ids, (ledger_ids, self._ids)
        for ledger_id in ledger_ids:
            self._remove(ledger_id)

    def _remove(self, ledger_id: int) -> None:
        record = self.ledgers.pop(ledger_id)
        self._ids.remove(ledger_id)
        self.size_bytes -= record.size_bytes
        if self._ids:
            self._first_index = self.ledgers[self._ids[0]].first_index
        else:
            self._first_index = record.first_index + record.entries_count

    # Positions

    @property
    def entries_count(self) -> int:
        """Entries that exist."""
        return self._end_index - self._first_index

    @property
    def _end_index(self) -> int:
        if not self._ids:
            return self._first_index
        record = self.ledgers[self._ids[-1]]
        return record.first_index + record.entries_count

    def contains(self, position: Position) -> bool:
        """Whether there is a confirmed entry at `position`."""
        record = self.ledgers.get(position.ledger_id)
        return record is not None and 0 <= position.entry_id < record.entries_count

    @property
    def first_position(self) -> Position:
        """The position of the first entry, or of the next one to come."""
        if self.entries_count:
            return self.position_at(self._first_index + 1)
        return self.end_position

    @property
    def end_position(self) -> Position:
        """The position after the last entry of the last ledger."""
        record = self.last_ledger
        return Position(record.ledger_id, record.entries_count)

    @property
    def last_position(self) -> Position:
        """The last entry that exists, or `(ledger, -1)` of the last ledger."""
        if self.entries_count:
            return self.position_at(self._end_index)
        return Position(self._ids[-1], -1)

    def index_through(self, position: Position) -> int:
        """Entries at or below `position`, counted since the managed ledger was opened."""
        ledger_id, entry_id = position
        place = bisect_right(self._ids, ledger_id) - 1
        if place < 0:
            return self._first_index
        record = self.ledgers[self._ids[place]]
        if record.ledger_id == ledger_id and entry_id + 1 < record.entries_count:
            return record.first_index + max(entry_id + 1, 0)
        return record.first_index + record.entries_count

    def position_at(self, index: int) -> Position:
        """The entry of which `index_through` is `index`; it has to exist."""
        assert self._first_index < index <= self._end_index, (index, self._end_index)
        place = bisect_right(self._ids, index - 1, key=lambda each: self.ledgers[each].first_index)
        record = self.ledgers[self._ids[place - 1]]
        return Position(record.ledger_id, index - 1 - record.first_index)

    def last_at_or_before(self, position: Position) -> Position:
        """The last entry that exists up to `position`; `(ledger, -1)` if there is none."""
        index = self.index_through(position)
        if index > self._first_index:
            return self.position_at(index)
        return Position(self._ids[0], -1)

    @property
    def last_confirmed_or_gap(self) -> Position:
        """The highest mark-delete position: the last entry, or the gap before an empty ledger."""
        record = self.last_ledger
        if record.entries_count:
            return self.last_confirmed_entry
        return Position(record.ledger_id, -1)

    def next_valid_position(self, position: Position) -> Position:
        """The first entry after `position`, or the next one to come."""
        ledger_id, entry_id = position
        record = self.ledgers.get(ledger_id)
        if record is not None and -1 <= entry_id < record.entries_count - 1:
            return Position(ledger_id, entry_id + 1)
        index = self.index_through(position)
        return self.position_at(index + 1) if index < self._end_index else self.end_position

    def previous_position(self, position: Position) -> Position:
        """The last entry before `position`; `(ledger, -1)` if there is none."""
        if position.entry_id > 0:
            return Position(position.ledger_id, position.entry_id - 1)
        index = self.index_through(Position(position.ledger_id, -1))
        if index > self._first_index:
            return self.position_at(index)
        return Position(position.ledger_id, -1)

    def last_entry_up_to(self, position: Position) -> Position:
        """The last entry at or before `position`; `(ledger, -1)` if there is none."""
        if position >= self.last_confirmed_entry:
            return self.last_confirmed_entry
        return self.previous_position(self.next_valid_position(position))

    def count_between(self, lower_exclusive: Position, upper_inclusive: Position) -> int:
        """Entries after the first position and up to the second; 0 if they are reversed."""
        # Hot path: dispatch. Three times for each run of entries, and mostly within one ledger.
        ledger_id, end = upper_inclusive
        if lower_exclusive[0] == ledger_id and (record := self.ledgers.get(ledger_id)) is not None:
            start, count = lower_exclusive[1] + 1, record.entries_count
            start = start if start > 0 else 0  # noqa: FURB136 - hot path
            stop = end + 1 if end < count else count
            return stop - start if start < stop else 0
        count = self.index_through(upper_inclusive) - self.index_through(lower_exclusive)
        return max(count, 0)

    def position_after_entries(self, start: Position, count: int) -> Position:
        """The `count`-th entry after `start`, at most the last one; `start` if there is none."""
        index = min(self.index_through(start) + count, self._end_index)
        if index <= max(self._first_index, self.index_through(start)):
            return start
        return self.position_at(index)

    def size_after(self, position: Position) -> int:
        """Estimated bytes after `position`: entries of one ledger count as equally large."""
        ledger_id, entry_id = position
        total = 0
        for record in reversed(self.ledgers.values()):
            if record.ledger_id < ledger_id:
                break
            if record.ledger_id > ledger_id or entry_id < 0:
                total += record.size_bytes
            elif entry_id + 1 < record.entries_count:
                left = record.entries_count - entry_id - 1
                total += record.size_bytes * left // record.entries_count
        return total

    def check(self) -> None:
        """Assert the invariants; for tests."""
        assert self._ids == sorted(self.ledgers) == list(self.ledgers)
        assert all(self.ledgers[ledger_id].is_closed for ledger_id in self._ids[:-1])
        assert self.size_bytes == sum(record.size_bytes for record in self.ledgers.values())
        index = self._first_index
        for record in self.ledgers.values():
            assert record.first_index == index
            index += record.entries_count
