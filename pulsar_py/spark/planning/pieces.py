"""Computes ranges of a topic, the limits of micro-batches, and the pieces for tasks (pure).

A `TopicLayout` holds what is known of a topic partition: its ledgers with entries and bytes, the
open one last. It computes where reading goes on (`TopicLayout.normalize`), how much is between two
positions (`backlog`), what one micro-batch may take (`admit`), and how a range is cut into pieces
that tasks read side by side (`split`). Bytes within a ledger are estimated by the average size of
its entries; entries are never divided.

Invariants: pieces of a range do not overlap, cover it, and are in order; a micro-batch takes at
least one entry of each partition that has any, so that no query stands still.

Source: ManagedLedgerInternalStats in Pulsar's admin API.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pulsar_py.common.position import EARLIEST, Position


class LedgerExtent(NamedTuple):
    """One ledger of a topic: how many entries it has, and of how many bytes in all."""

    ledger_id: int
    entries_count: int
    size_bytes: int

    @property
    def bytes_per_entry(self) -> float:
        """The average size of an entry; 0 for a ledger without entries."""
        return self.size_bytes / self.entries_count if self.entries_count else 0.0


class Backlog(NamedTuple):
    """The entries of a range that are still to be read, and their size."""

    entries_count: int
    size_bytes: int


class Piece(NamedTuple):
    """A range that one task reads: `[start, end)` of a topic partition."""

    topic: str
    start: Position
    end: Position
    has_known_ledgers: bool = True
    """Whether the topic is known to have the ledgers between; else a user or a checkpoint has named
    them, and they may be those of another topic."""


@dataclass(frozen=True, slots=True)
class DataLoss:
    """A range that a query should have read, and whose entries were deleted."""

    topic: str
    expected: Position
    found: Position

    def is_behind(self, acknowledged: Position) -> bool:
        """Whether the query's own subscription shows that all of the deleted ledger was read.

        A broker deletes a ledger once every subscription is behind it, and moves a subscription at
        a ledger's end to the position before the first entry of the next. So the subscription
        stands at the last entry that was read, or before the first entry that is left; if it stands
        anywhere else, a user or the expiry of messages has moved it.

        Source: ManagedLedgerImpl.maybeUpdateCursorBeforeTrimmingConsumedLedger in Pulsar.
        """
        last_read = Position(self.expected.ledger_id, max(self.expected.entry_id, 0) - 1)
        if acknowledged == last_read:
            return True
        is_before_ledger = acknowledged.entry_id < 0 and acknowledged > self.expected
        return is_before_ledger and acknowledged.ledger_id <= self.found.ledger_id

    def __str__(self) -> str:
        return (
            f"{self.topic}: entries from {self.expected} on were deleted, the first one left is"
            f" {self.found}"
        )


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """The ledgers of a topic partition. Invariant: their ids ascend."""

    topic: str
    ledgers: Sequence[LedgerExtent]
    # The end of a topic whose ledgers are not known, so that `ledgers` is empty; else None.
    known_end: Position | None = None

    def __post_init__(self) -> None:
        """Check the invariant."""
        ids = [each.ledger_id for each in self.ledgers]
        assert ids == sorted(set(ids)), f"{self.topic}: ledgers out of order: {ids}"

    @property
    def start(self) -> Position:
        """The first entry; without entries, the position before the first one of the last ledger.

        It is not the position of that first entry itself, because a broker that loads the topic
        drops ledgers without entries. `EARLIEST` without ledgers, or where they are not known.
        """
        if self.known_end is not None or not self.ledgers:
            return EARLIEST
        for ledger in self.ledgers:
            if ledger.entries_count:
                return Position(ledger.ledger_id, 0)
        return Position(self.ledgers[-1].ledger_id, -1)

    @property
    def end(self) -> Position:
        """The position behind the last entry."""
        if self.known_end is not None:
            return self.known_end
        for ledger in reversed(self.ledgers):
            if ledger.entries_count:
                return Position(ledger.ledger_id, ledger.entries_count)
        return self.start

    def is_past_end(self, position: Position) -> bool:
        """Whether `position` is behind the end, and not where the next entry may be."""
        ids = {each.ledger_id for each in self.ledgers}
        is_next = position.entry_id == 0 and position.ledger_id in ids
        return position > self.end and not is_next

    def ends_before(self, position: Position) -> bool:
        """Whether the topic ends before an entry that was read: the one before `position`.

        Then it is another topic of the same name, or one that lost its end. False where that can't
        be known: at the start of a ledger, in a topic without entries, and within a ledger where
        only the last message is known, since markers may follow it, which are entries, too.
        """
        if position.entry_id <= 0 or self.end.entry_id <= 0:
            return False
        if self.known_end is not None:
            return position.ledger_id > self.known_end.ledger_id
        return position > self.end

    def normalize(self, position: Position) -> Position:
        """The position at which reading goes on from `position`: an existing entry, or the end.

        The position stays as it is where the topic's ledgers are not known.
        """
        if self.known_end is not None:
            return position
        for ledger in self.ledgers:
            if ledger.ledger_id < position.ledger_id or not ledger.entries_count:
                continue
            if ledger.ledger_id > position.ledger_id:
                return Position(ledger.ledger_id, 0)
            if position.entry_id < ledger.entries_count:
                return Position(ledger.ledger_id, max(position.entry_id, 0))
        return max(position, self.end)

    def loss_before(self, position: Position) -> DataLoss | None:
        """The loss if the ledger of `position` was deleted; None if reading can go on there.

        Whether entries of a deleted ledger were unread is not known, so each deletion counts as a
        loss. Only a durable subscription of the query shows more: see `DataLoss.is_behind`.
        """
        if not self.ledgers or position.ledger_id < 0:
            return None
        if position.ledger_id < self.ledgers[0].ledger_id:
            return DataLoss(self.topic, position, self.start)
        return None

    def until(self, end: Position) -> TopicLayout:
        """The same topic as it was when it ended at `end`."""
        if self.known_end is not None:
            return TopicLayout(self.topic, [], known_end=min(self.known_end, end))
        cut = []
        for ledger in self.ledgers:
            if ledger.ledger_id > end.ledger_id:
                break
            count = ledger.entries_count
            if ledger.ledger_id == end.ledger_id:
                count = min(count, max(end.entry_id, 0))
            size = ledger.size_bytes
            if count != ledger.entries_count:
                size = round(count * ledger.bytes_per_entry)
            cut.append(LedgerExtent(ledger.ledger_id, count, size))
        return TopicLayout(self.topic, cut)

    def before(self, position: Position) -> Position | None:
        """The last entry before `position`; None if no entry is before it."""
        if position.entry_id > 0 and self.known_end is not None:
            return Position(position.ledger_id, position.entry_id - 1)
        last = None
        for ledger in self.ledgers:
            count = ledger.entries_count
            if ledger.ledger_id == position.ledger_id:
                count = min(count, position.entry_id)
            if ledger.ledger_id <= position.ledger_id and count > 0:
                last = Position(ledger.ledger_id, count - 1)
        return last

    def extents(self, start: Position, end: Position) -> Iterator[tuple[LedgerExtent, int, int]]:
        """The parts of ledgers within `[start, end)`: ledger, first entry id, end entry id."""
        for ledger in self.ledgers:
            first = start.entry_id if ledger.ledger_id == start.ledger_id else 0
            last = end.entry_id if ledger.ledger_id == end.ledger_id else ledger.entries_count
            first, last = max(first, 0), min(last, ledger.entries_count)
            if start.ledger_id <= ledger.ledger_id <= end.ledger_id and first < last:
                yield ledger, first, last

    def backlog(self, start: Position, end: Position) -> Backlog:
        """The entries and bytes in `[start, end)`."""
        entries, size = 0, 0.0
        for ledger, first, last in self.extents(start, end):
            entries += last - first
            size += (last - first) * ledger.bytes_per_entry
        return Backlog(entries, round(size))

    def advance(self, start: Position, end: Position, entries: int, size_bytes: float) -> Position:
        """The end of the longest range from `start` within both limits, of one entry at least."""
        for ledger, first, last in self.extents(start, end):
            count = min(last - first, entries)
            if ledger.bytes_per_entry:
                count = min(count, math.floor(size_bytes / ledger.bytes_per_entry))
            if count < last - first:
                taken = max(count, 1 if start == Position(ledger.ledger_id, first) else 0)
                return Position(ledger.ledger_id, first + taken)
            entries -= count
            size_bytes -= count * ledger.bytes_per_entry
        return end


def admit(
    layouts: Mapping[str, TopicLayout],
    starts: Mapping[str, Position],
    *,
    max_entries: int | None = None,
    max_bytes: int | None = None,
) -> dict[str, Position]:
    """The end of the next micro-batch in each topic partition.

    Both limits hold for all partitions together and are soft; each partition gets a share in
    proportion to its backlog, and at least one entry.
    """
    begins = {topic: layout.normalize(starts[topic]) for topic, layout in layouts.items()}
    backlogs = {
        topic: layout.backlog(begins[topic], layout.end) for topic, layout in layouts.items()
    }
    entries = sum(each.entries_count for each in backlogs.values())
    size = sum(each.size_bytes for each in backlogs.values())
    share = min(_share(max_entries, entries), _share(max_bytes, size))
    if share >= 1:
        return {topic: max(layout.end, starts[topic]) for topic, layout in layouts.items()}
    return {
        topic: layout.advance(
            begins[topic],
            max(layout.end, begins[topic]),
            math.ceil(backlogs[topic].entries_count * share),
            backlogs[topic].size_bytes * share,
        )
        for topic, layout in layouts.items()
    }


def _share(limit: int | None, total: int) -> float:
    return 1.0 if limit is None or total <= limit else limit / total


def split(
    layout: TopicLayout, start: Position, end: Position, *, max_bytes: int, min_pieces: int = 1
) -> list[Piece]:
    """Cut `[start, end)` at borders of ledgers and into pieces of about `max_bytes`.

    `min_pieces` is a hint: smaller pieces are made until there are that many, or one an entry.
    Without knowledge of the ledgers the range is one piece.
    """
    if start >= end:
        return []
    extents = list(layout.extents(start, end))
    if not extents:
        return [Piece(layout.topic, start, end, has_known_ledgers=False)]
    total = layout.backlog(start, end).size_bytes
    target = max(min(max_bytes, math.ceil(total / max(min_pieces, 1))), 1)
    pieces = []
    for ledger, first, last in extents:
        count = last - first
        parts = max(math.ceil(count * ledger.bytes_per_entry / target), 1)
        parts = min(parts, count)
        cuts = [first + count * index // parts for index in range(parts + 1)]
        pieces += [
            Piece(layout.topic, Position(ledger.ledger_id, low), Position(ledger.ledger_id, high))
            for low, high in pairwise(cuts)
        ]
    return pieces


def split_evenly(
    layout: TopicLayout, start: Position, end: Position, *, min_pieces: int = 1
) -> list[Piece]:
    """Cut `[start, end)` at borders of ledgers, and by number of entries into `min_pieces`.

    The cuts depend on the positions of entries alone, which never change: a micro-batch that is
    planned again is cut at the same places, though its last ledger has grown since.
    """
    if start >= end:
        return []
    extents = list(layout.extents(start, end))
    if not extents:
        return [Piece(layout.topic, start, end, has_known_ledgers=False)]
    target = math.ceil(sum(last - first for _, first, last in extents) / max(min_pieces, 1))
    pieces = []
    for ledger, first, last in extents:
        parts = math.ceil((last - first) / target)
        cuts = [first + (last - first) * index // parts for index in range(parts + 1)]
        pieces += [
            Piece(layout.topic, Position(ledger.ledger_id, low), Position(ledger.ledger_id, high))
            for low, high in pairwise(cuts)
        ]
    return pieces
