"""`CursorState`: decides about one cursor's acknowledgements, reads and writes (pure).

Everything up to `mark_delete_position` is acknowledged; above it, whole entries are in
`individual_deleted_messages` and partly acknowledged batches in `batch_deleted_indexes`. After each
call the mark-delete position is right before the first unacknowledged entry, whatever ledger that
is in.

Any acknowledgement makes the cursor dirty, whether or not the position moved. `changes_due(now)`
says when to write: at most once a persist interval, and that long after an acknowledgement at the
latest. Only one write is under way at a time; what changes meanwhile is due afterwards.

A large state is stored in segments, and the acknowledgements of ledgers not used for long may be
cold: not in memory (`pages`). The state can't load them. It notes the ledgers it wants, keeps new
acknowledgements in them beside the stored ones, and goes on once `paging.load` has joined both.
Only then is it known which of the new ones repeat stored ones: until then the backlog counts the
ledger as it was stored, and none of its entries is read.

What always holds (`check`): read_position is after mark_delete_position; both sets hold nothing at
or below it and only entries that exist; an entry is not in both. An acknowledgement is never taken
back but by a reset: a cumulative ack of a part of a batch adds to what single acks did before.

Source: ManagedCursorImpl (asyncDelete, asyncMarkDelete, internalResetCursor).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from pulsar_py.common import ack_set
from pulsar_py.common.errors import InvalidCursorPositionError
from pulsar_py.common.position import EARLIEST, LATEST, LedgerPositions, Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors.batch_deleted_indexes import BatchDeletedIndexes
from pulsar_py.managed_ledger.cursors.format import COMPACTED_LEDGER_PROPERTY, CursorSnapshot
from pulsar_py.managed_ledger.cursors.pages import CursorPages
from pulsar_py.managed_ledger.cursors.segments import (
    PAGE_SHIFTS,
    SegmentKind,
)
from pulsar_py.managed_ledger.cursors.write_schedule import WriteSchedule
from pulsar_py.managed_ledger.log.ledger_state import LedgerState

_HOLES_SHIFT, _BATCHES_SHIFT = PAGE_SHIFTS
_HOLES, _BATCHES = int(SegmentKind.HOLES), int(SegmentKind.BATCHES)


class ReadRun(Struct, frozen=True):
    """Neighbouring entries of one ledger to read next; acknowledged ones have to be left out."""

    ledger_id: int
    first: int
    last: int
    has_acknowledged: bool  # whether any of them may be acknowledged
    is_cold: bool = False  # the ledger has to be loaded before this can be read


class CursorChanges(Struct, frozen=True):
    """A write that is due, of the state at `version`."""

    version: int
    mark_delete_position: Position
    resets_count: int  # how often the cursor had been reset by then


class _Outcome(Enum):
    """The effect of a partial acknowledgement."""

    NOTHING = "nothing"
    PARTIAL = "some indexes still wait"
    WHOLE = "no index waits: the entry is to be acknowledged"


class CursorState:
    """One cursor's place in its managed ledger: a part of its ManagedCursor."""

    __slots__ = (
        "_resets_count",
        "_schedule",
        "batch_deleted_indexes",
        "individual_deleted_messages",
        "is_batch_index_ack_enabled",
        "ledgers",
        "mark_delete_position",
        "noted",
        "pages",
        "passed_over",
        "persistent_mark_delete_position",
        "properties",
        "read_generation",
        "read_position",
    )

    def __init__(
        self,
        ledgers: LedgerState,
        mark_delete_position: Position,
        *,
        properties: Mapping[str, int] | None = None,
        is_batch_index_ack_enabled: bool = True,
        persist_interval_seconds: float = 1.0,
    ) -> None:
        self.ledgers = ledgers
        self.mark_delete_position = mark_delete_position
        self.persistent_mark_delete_position = mark_delete_position  # of the last durable write
        self.read_position = ledgers.next_valid_position(mark_delete_position)
        # Entries that need not be read now (a delayed index has them), whoever owns the set.
        self.passed_over: PositionRangeSet | None = None
        self.read_generation = 0  # grows with each move: reads begun before must be dropped
        self.individual_deleted_messages = PositionRangeSet()
        self.batch_deleted_indexes = BatchDeletedIndexes()
        self.pages = CursorPages()
        # Entry ids by ledger of what is acknowledged above the mark-delete position, whole or in
        # part, as long as anybody wants that. Only a CursorChangeLog sets and empties it.
        self.noted: defaultdict[int, array[int]] | None = None
        self.properties: dict[str, int] = dict(properties or {})
        self.is_batch_index_ack_enabled = is_batch_index_ack_enabled
        self._resets_count = 0  # a write begun before a reset does not make its position durable
        self._schedule = WriteSchedule(persist_interval_seconds)

    # Acknowledging

    def acknowledge(  # noqa: C901 - hot path
        self,
        positions: Sequence[Position],
        ack_sets: Sequence[Sequence[int] | None] | None,
        now: float,
    ) -> int:
        """Take one command's individual acknowledgements, in order. Hot path: consume.

        Returns how many were taken: all, or those before the first that is past the last entry.
        """
        if (
            type(positions) is LedgerPositions
            and ack_sets is None
            and self._acknowledge_together(positions, now)
        ):
            return len(positions)
        last = self.ledgers.last_confirmed_entry
        mark_delete = self.mark_delete_position
        deleted = self.individual_deleted_messages
        records = self.batch_deleted_indexes
        dirty = self.pages.dirty
        noted = self.noted
        is_changed = False
        taken_count = len(positions)
        for place, position in enumerate(positions):
            if position > last:  # clients may send any position; those after it are ignored, too
                taken_count = place
                break
            if (
                position <= mark_delete
                or not self.ledgers.contains(position)
                or position in deleted
            ):
                continue
            if ack_sets is not None and (words := ack_sets[place]):
                outcome = self._keep_waiting(position, ack_set.to_bits(words))
                if outcome is not _Outcome.WHOLE:
                    is_changed |= outcome is _Outcome.PARTIAL
                    continue
            if records:
                records.discard(position)
            if position[1] == mark_delete[1] + 1 and position[0] == mark_delete[0]:
                mark_delete = Position(position[0], position[1])
            else:
                deleted.add(position)
                if noted is not None:
                    noted[position[0]].append(position[1])
                if dirty is not None:
                    dirty.add((_HOLES, position[0], position[1] >> _HOLES_SHIFT))
                    self.pages.touch(position[0])
            is_changed = True
        self._acknowledged(mark_delete, is_changed=is_changed, now=now)
        return taken_count

    def _acknowledge_together(self, positions: LedgerPositions, now: float) -> bool:
        """Take entries of one ledger, as `acknowledge` does; False if that has to be one by one."""
        # Hot path: benchmarks/micro_acks. One by one neighbours take ten times as long.
        ledger_id = positions.ledger_id
        record = self.ledgers.ledgers.get(ledger_id)
        if (
            record is None
            or positions.highest_entry_id >= record.entries_count
            or ledger_id in self.pages.cold
        ):
            return False
        before = self.mark_delete_position
        if ledger_id < before.ledger_id:
            return True
        after = before.entry_id if ledger_id == before.ledger_id else -1
        if ledger_id == before.ledger_id and positions.covers(after + 1):
            # They begin where the mark-delete position ends, which moves over them all.
            last = Position(ledger_id, positions.highest_entry_id)
            self._acknowledged(last, is_changed=True, now=now)
            return True
        added = self.individual_deleted_messages.add_entries(
            ledger_id, positions.entry_ids, after=after
        )
        if not added:
            return True
        if self.batch_deleted_indexes:
            for entry_id in added:
                self.batch_deleted_indexes.discard(Position(ledger_id, entry_id))
        self._acknowledged(before, is_changed=True, now=now)
        if self.noted is not None or self.pages.dirty is not None:
            self._note_added(ledger_id, added)
        return True

    def _note_added(self, ledger_id: int, added: Iterable[int]) -> None:
        """Note entries of a ledger that became acknowledged, but for those that are behind now."""
        mark_delete, dirty = self.mark_delete_position, self.pages.dirty
        entry_ids = [each for each in added if (ledger_id, each) > mark_delete]
        if self.noted is not None and entry_ids:
            self.noted[ledger_id].extend(entry_ids)
        if dirty is not None:
            dirty.update((_HOLES, ledger_id, entry_id >> _HOLES_SHIFT) for entry_id in entry_ids)

    def _keep_waiting(self, position: Position, bits: int) -> _Outcome:
        """Keep only those unacknowledged messages of a batch that are in `bits`."""
        if not bits:
            return _Outcome.WHOLE
        if not self.is_batch_index_ack_enabled:
            return _Outcome.NOTHING  # the client will acknowledge the whole batch in the end
        known = self.batch_deleted_indexes.get(position)
        waiting = bits if known is None else bits & known
        if not waiting:
            return _Outcome.WHOLE
        if waiting == known:
            return _Outcome.NOTHING
        self.batch_deleted_indexes.put(position, waiting)
        if self.noted is not None:
            self.noted[position[0]].append(position[1])
        pages = self.pages
        if pages.dirty is not None:
            pages.dirty.add((_BATCHES, position[0], position[1] >> _BATCHES_SHIFT))
            pages.touch(position[0])
        return _Outcome.PARTIAL

    def _acknowledged(self, mark_delete: Position, *, is_changed: bool, now: float) -> None:
        if not is_changed:
            return
        self._move_mark_delete(self._absorbed(mark_delete))
        self._schedule.changed(now)

    def advance(self, now: float, *, is_changed: bool) -> None:
        """Move the mark-delete position past acknowledged entries.

        The cursor becomes dirty if that moves it, or with `is_changed`.
        """
        before = self.mark_delete_position
        self._move_mark_delete(self._absorbed(before))
        if is_changed or before != self.mark_delete_position:
            self._schedule.changed(now)

    def _absorbed(self, mark_delete: Position) -> Position:
        """The last position from `mark_delete` on, up to which every entry is acknowledged."""
        deleted, cold = self.individual_deleted_messages, self.pages.cold
        while deleted or cold:
            following = self.ledgers.next_valid_position(mark_delete)
            if following.ledger_id in cold:
                # Which of its entries are acknowledged is unknown until it is loaded.
                self.pages.touch(following.ledger_id)
                break
            end = deleted.run_end(following.ledger_id, following.entry_id)
            if end < following.entry_id:
                break
            mark_delete = Position(following.ledger_id, end)
        return mark_delete

    def _move_mark_delete(self, mark_delete: Position) -> None:
        if mark_delete == self.mark_delete_position:
            return
        self.mark_delete_position = mark_delete
        self.individual_deleted_messages.remove_through(mark_delete)
        self.batch_deleted_indexes.remove_through(mark_delete)
        if self.pages.cold:
            self.pages.forget_before(mark_delete.ledger_id)
            if self.ledgers.contains(Position(mark_delete.ledger_id, mark_delete.entry_id + 1)):
                self.pages.touch(mark_delete.ledger_id)
            else:  # Nothing of the ledger is left.
                self.pages.forget(mark_delete.ledger_id)
        if self.read_position <= mark_delete:
            self.read_position = self.ledgers.next_valid_position(mark_delete)

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_words: Sequence[int] | None,
        properties: Mapping[str, int] | None,
        now: float,
    ) -> None:
        """Acknowledge all entries before `position`, and of it all, or what `ack_words` clears.

        Raises:
            InvalidCursorPositionError: Past the last entry, or before the mark-delete position.
        """
        before = self.mark_delete_position
        if position < before:
            raise InvalidCursorPositionError(
                f"{position} is before the mark-delete position {before}"
            )
        mark_delete = max(self._existing(position), before)
        is_changed = False
        is_there = self.ledgers.contains(position)
        if ack_words and is_there and not self.is_acknowledged(position):
            outcome = self._keep_waiting(position, ack_set.to_bits(ack_words))
            is_changed = outcome is _Outcome.PARTIAL
            # The batch itself is only partly acknowledged: stop before it.
            if outcome is not _Outcome.WHOLE:
                mark_delete = max(self.ledgers.previous_position(position), before)
        if properties is not None and properties != self.properties:
            self.properties = dict(properties)
            is_changed = True
        is_changed |= mark_delete != before
        self._acknowledged(mark_delete, is_changed=is_changed, now=now)

    def _existing(self, position: Position) -> Position:
        """The mark-delete position for a cumulative acknowledgement of `position`."""
        ledgers = self.ledgers
        if ledgers.contains(position):
            return position
        if position.entry_id == -1 and position.ledger_id in ledgers.ledgers:
            return position
        if position > ledgers.last_confirmed_entry:
            raise InvalidCursorPositionError(
                f"{position} is past the last entry {ledgers.last_confirmed_entry}"
            )
        return ledgers.last_at_or_before(position)

    def note(self, positions: Sequence[Position]) -> None:
        """Note positions that became acknowledged without a call of `acknowledge`, if wanted."""
        if self.noted is not None:
            for ledger_id, entry_id in positions:
                self.noted[ledger_id].append(entry_id)

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged; in a cold ledger only new acks are known."""
        return position <= self.mark_delete_position or position in self.individual_deleted_messages

    def batch_ack_set(self, position: Position) -> list[int] | None:
        """Words of the batch's unacknowledged indexes; None if no single index is acknowledged."""
        bits = self.batch_deleted_indexes.get(position)
        return None if bits is None else ack_set.to_words(bits)

    # Reading

    def next_run(self, max_entries: int, max_position: Position) -> ReadRun | None:
        """The next run to read, at most `max_entries` of one ledger; None at the end.

        It begins after acknowledged entries, maybe in the next ledger. The read position stays
        where it is until `read_through`.
        """
        ledgers = self.ledgers
        last = ledgers.last_confirmed_entry
        limit = max_position if max_position < last else last  # noqa: FURB136 - hot path
        while True:
            ledger_id, entry_id = self.read_position
            if self.read_position > limit:
                return None
            record = ledgers.ledgers.get(ledger_id)
            if record is None or entry_id >= record.entries_count:
                following = ledgers.next_valid_position(Position(ledger_id, entry_id - 1))
                if following == self.read_position:
                    return None
                self.read_position = following
                continue
            is_cold = ledger_id in self.pages.cold
            has_acknowledged = self.individual_deleted_messages.has_ledger(ledger_id) or is_cold
            if has_acknowledged or self.passed_over is not None:
                end = self._passed_over_through(ledger_id, entry_id)
                if end >= entry_id:
                    self.read_position = Position(ledger_id, end + 1)
                    continue
            stop, count = entry_id + max_entries, record.entries_count
            stop = stop if stop < count else count  # noqa: FURB136 - hot path
            if limit.ledger_id == ledger_id and stop > limit.entry_id:
                stop = limit.entry_id + 1
            return ReadRun(ledger_id, entry_id, stop - 1, has_acknowledged, is_cold)

    def _passed_over_through(self, ledger_id: int, entry_id: int) -> int:
        """The last of the entries from `entry_id` on that are not read; the one before if none."""
        deleted = self.individual_deleted_messages
        if self.passed_over is None:
            return deleted.run_end(ledger_id, entry_id)
        return deleted.joined_run_end(self.passed_over, ledger_id, entry_id)

    def unacknowledged_of(self, positions: PositionRangeSet) -> PositionRangeSet:
        """Those of `positions` that are not acknowledged; acknowledgements in cold ledgers miss."""
        found = positions.without(self.individual_deleted_messages)
        found.remove_through(self.mark_delete_position)
        return found

    def read_through(self, ledger_id: int, entry_id: int) -> None:
        """Move the read position past an entry that was read."""
        self.read_position = Position(ledger_id, entry_id + 1)

    def rewind(self) -> None:
        """Read again from the first unacknowledged entry."""
        self.read_position = self.ledgers.next_valid_position(self.mark_delete_position)
        self.read_generation += 1

    def seek(self, position: Position, *, is_forced: bool = False) -> None:
        """Read on from `position`; unless forced not before the first unacknowledged entry."""
        first = self.ledgers.next_valid_position(self.mark_delete_position)
        self.read_position = position if is_forced else max(position, first)
        self.read_generation += 1

    def has_more_entries(self) -> bool:
        """Whether there is an entry at or after the read position."""
        if self.read_position > self.ledgers.last_confirmed_entry:
            return False
        return self.entries_to_read_count() > 0

    def entries_to_read_count(self) -> int:
        """Entries from the read position on, acknowledged ones included."""
        ledger_id, entry_id = self.read_position
        return self.ledgers.count_between(
            Position(ledger_id, entry_id - 1), self.ledgers.last_confirmed_entry
        )

    # Backlog

    def backlog_count(self) -> int:
        """The number of unacknowledged entries; a batch counts until all of it is acknowledged.

        It is exact, but for new acknowledgements in a cold ledger: they count once it is loaded.
        """
        above = self.ledgers.count_between(
            self.mark_delete_position, self.ledgers.last_confirmed_entry
        )
        return max(above - self.acknowledged_above_count() + self._not_counted_yet(), 0)

    def _not_counted_yet(self) -> int:
        """New acknowledgements in cold ledgers; some may repeat stored ones."""
        cold, mark_delete = self.pages.cold, self.mark_delete_position
        if not cold:
            return 0
        count_in = self.individual_deleted_messages.count_in_ledger
        count = sum(count_in(ledger_id) for ledger_id in self.pages.wanted)
        if mark_delete.ledger_id in cold:
            count += mark_delete.entry_id + 1
        return count

    def acknowledged_above_count(self) -> int:
        """Entries acknowledged above the mark-delete position, in memory or not."""
        return len(self.individual_deleted_messages) + self.pages.cold_entries_count

    def backlog_bytes(self) -> int:
        """Bytes after the mark-delete position, estimated inside a ledger.

        What is acknowledged above that position counts, as it can't be removed yet.
        """
        return self.ledgers.size_after(self.mark_delete_position)

    def position_after_skipping(self, count: int, *, counts_acknowledged: bool) -> Position:
        """The `count`-th entry after the mark-delete position, at most the last one.

        Unless `counts_acknowledged`, no ledger may be cold.
        """
        ledgers = self.ledgers
        start = self.mark_delete_position
        if counts_acknowledged or not self.acknowledged_above_count():
            return ledgers.position_after_entries(start, count)
        assert not self.pages.cold, "what is cold has to be loaded first"
        low, high = count, count + len(self.individual_deleted_messages)
        while low < high:
            middle = (low + high) // 2
            found = ledgers.position_after_entries(start, middle)
            if middle - self.individual_deleted_messages.count_through(found) >= count:
                high = middle
            else:
                low = middle + 1
        return ledgers.position_after_entries(start, low)

    # Moving

    def reset_target(self, position: Position, ack_words: Sequence[int] | None) -> CursorState:
        """The state in which `position` is the next to deliver; to be written before `become`.

        EARLIEST and LATEST mean the ends of the topic; any other position that does not exist
        becomes the next one that does.
        """
        ledgers = self.ledgers
        if position == LATEST:
            target = ledgers.next_valid_position(ledgers.last_confirmed_entry)
        elif position == EARLIEST:
            target = ledgers.first_position
        else:
            before = Position(position.ledger_id, max(position.entry_id, 0) - 1)
            target = ledgers.next_valid_position(before)
        state = CursorState(ledgers, ledgers.previous_position(target))
        if COMPACTED_LEDGER_PROPERTY in self.properties:  # it names a ledger, wherever this stands
            name = COMPACTED_LEDGER_PROPERTY
            state.properties = {name: self.properties[name]}
        bits = ack_set.to_bits(ack_words or ())
        if bits and self.is_batch_index_ack_enabled and ledgers.contains(position):
            state.batch_deleted_indexes.put(position, bits)
        return state

    def become(self, other: CursorState, now: float) -> None:
        """Take over the acknowledgements of a state that is durable by now, and read from there."""
        self.mark_delete_position = other.mark_delete_position
        self.persistent_mark_delete_position = other.mark_delete_position
        self.read_position = other.read_position
        self.individual_deleted_messages = other.individual_deleted_messages
        self.batch_deleted_indexes = other.batch_deleted_indexes
        self.pages = CursorPages()
        self.properties = dict(other.properties)
        self.read_generation += 1
        self._resets_count += 1
        self._schedule.changed(now)
        self.settle()

    def settle(self) -> None:
        """Drop acknowledgements of missing ledgers; after recovery and after trimming."""
        ledgers = self.ledgers
        mark_delete = min(self.mark_delete_position, ledgers.last_confirmed_or_gap)
        if mark_delete.ledger_id not in ledgers.ledgers:
            following = ledgers.next_valid_position(mark_delete)
            mark_delete = Position(following.ledger_id, following.entry_id - 1)
        for ledger_id in [each for each in self.pages.cold if each not in ledgers.ledgers]:
            self.pages.forget(ledger_id)
        deleted = self.individual_deleted_messages
        for ledger_id in deleted.ledger_ids():
            record = ledgers.ledgers.get(ledger_id)
            deleted.truncate_ledger(ledger_id, record.entries_count if record else 0)
        records = self.batch_deleted_indexes
        for ledger_id in records.ledger_ids():
            record = ledgers.ledgers.get(ledger_id)
            records.truncate_ledger(ledger_id, record.entries_count if record else 0)
        deleted.remove_through(mark_delete)
        records.remove_through(mark_delete)
        records.discard_members_of(deleted)
        self.pages.forget_before(mark_delete.ledger_id)
        self._move_mark_delete(self._absorbed(mark_delete))
        if self.read_position <= self.mark_delete_position:
            self.read_position = ledgers.next_valid_position(self.mark_delete_position)

    # Memory

    def restore(self, snapshot: CursorSnapshot) -> None:
        """Take over a recovered snapshot, then `settle`."""
        self.individual_deleted_messages = snapshot.individual_deleted_messages
        if self.is_batch_index_ack_enabled:
            self.batch_deleted_indexes = snapshot.batch_deleted_indexes
        if snapshot.is_segmented:
            self.pages.track()
        for ledger_id, left in sorted(snapshot.cold.items()):
            self.pages.leave_memory(ledger_id, left)
        self.pages.put_back(snapshot.added_pages)
        for _, ledger_id, _ in snapshot.added_pages:
            self.pages.touch(ledger_id)
        self.settle()

    def ranges_count(self) -> int:
        """Ranges of acknowledged entries above the mark-delete position, in memory or not."""
        cold = sum(each.ranges_count for each in self.pages.cold.values())
        return self.individual_deleted_messages.ranges_count() + cold

    def batches_count(self) -> int:
        """Partly acknowledged batches, in memory or not."""
        cold = sum(each.batches_count for each in self.pages.cold.values())
        return len(self.batch_deleted_indexes) + cold

    # Writing

    @property
    def is_dirty(self) -> bool:
        """Whether something changed that no finished write has."""
        return self._schedule.is_dirty

    @property
    def is_write_in_flight(self) -> bool:
        """Whether a write was begun and neither `persisted` nor `failed` was called."""
        return self._schedule.is_in_flight

    def set_properties(self, properties: Mapping[str, int], now: float) -> None:
        """Replace the numbers stored with the position."""
        if properties != self.properties:
            self.properties = dict(properties)
            self._schedule.changed(now)

    def doubt_stored(self, now: float) -> None:
        """Note that the stored state may differ from this one, so that it is written again."""
        self._schedule.changed(now)

    def due_at(self) -> float | None:
        """The time of the next write; None while clean or while one is under way."""
        return self._schedule.due_at()

    def set_persist_interval(self, seconds: float) -> None:
        """Begin writes at most once in `seconds` from now on."""
        self._schedule.set_interval(seconds)

    def changes_due(self, now: float, *, is_forced: bool = False) -> CursorChanges | None:
        """The write that is due; None while clean, too early, or while one is under way.

        The caller begins to write the state without waiting, and calls `persisted` or `failed`.
        """
        version = self._schedule.begin(now, is_forced=is_forced)
        if version is None:
            return None
        return CursorChanges(version, self.mark_delete_position, self._resets_count)

    def persisted(self, changes: CursorChanges) -> None:
        """Note that a write is durable: ledgers before its position may be trimmed."""
        self._schedule.finished(changes.version)
        if changes.resets_count == self._resets_count:
            self.persistent_mark_delete_position = changes.mark_delete_position

    def failed(self, changes: CursorChanges) -> None:
        """Note that a write may have failed: it is due again after an interval."""
        self._schedule.failed(changes.version)

    def check(self) -> None:
        """Assert the invariants; for tests."""
        deleted, records = self.individual_deleted_messages, self.batch_deleted_indexes
        deleted.check()
        records.check()
        self.pages.check()
        assert self.read_position > self.mark_delete_position
        assert deleted.count_through(self.mark_delete_position) == 0
        assert self._absorbed(self.mark_delete_position) == self.mark_delete_position
        assert self.backlog_count() >= 0
        for position in dict(records.items()):
            assert self.ledgers.contains(position), position
            assert not self.is_acknowledged(position), position
