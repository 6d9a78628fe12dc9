"""Pieces and micro-batches, compared with a list of all entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.pieces import (
    Backlog,
    DataLoss,
    LedgerExtent,
    Piece,
    TopicLayout,
    admit,
    split,
    split_evenly,
)

LAYOUT = TopicLayout(
    "t", [LedgerExtent(3, 10, 1000), LedgerExtent(5, 0, 0), LedgerExtent(8, 4, 4000)]
)


@st.composite
def layouts(draw: st.DrawFn) -> TopicLayout:
    ids = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=6)))
    return TopicLayout(
        "t",
        [
            LedgerExtent(each, count := draw(st.integers(0, 12)), count * draw(st.integers(0, 300)))
            for each in ids
        ],
    )


def entries_of(layout: TopicLayout) -> list[Position]:
    return [
        Position(ledger.ledger_id, entry)
        for ledger in layout.ledgers
        for entry in range(ledger.entries_count)
    ]


def between(entries: list[Position], start: Position, end: Position) -> list[Position]:
    return [each for each in entries if start <= each < end]


POSITIONS = st.builds(Position, st.integers(0, 31), st.integers(0, 13))


@given(layouts(), POSITIONS)
def test_reading_goes_on_at_the_next_entry_there_is(layout: TopicLayout, at: Position) -> None:
    rest = between(entries_of(layout), at, Position(99, 0))
    normalized = layout.normalize(at)
    assert normalized == (rest[0] if rest else max(at, layout.end))


@given(layouts(), POSITIONS, POSITIONS, st.integers(1, 2000), st.integers(1, 9))
def test_pieces_cover_the_range_once_and_in_order(
    layout: TopicLayout, start: Position, end: Position, max_bytes: int, min_pieces: int
) -> None:
    pieces = split(layout, start, end, max_bytes=max_bytes, min_pieces=min_pieces)
    entries = entries_of(layout)
    covered = [each for piece in pieces for each in between(entries, piece.start, piece.end)]
    assert covered == between(entries, start, end)
    known = bool(covered)
    assert all(piece.start.ledger_id == piece.end.ledger_id for piece in pieces if known)
    assert all(piece.has_known_ledgers == known for piece in pieces)


@given(layouts(), POSITIONS, st.integers(1, 20), st.integers(1, 3000))
def test_a_micro_batch_takes_something_and_not_too_much(
    layout: TopicLayout, start: Position, max_entries: int, max_bytes: int
) -> None:
    end = admit({"t": layout}, {"t": start}, max_entries=max_entries, max_bytes=max_bytes)["t"]
    taken = between(entries_of(layout), start, end)
    left = between(entries_of(layout), start, Position(99, 0))
    assert end >= start
    assert bool(taken) == bool(left)
    assert len(taken) <= max_entries
    assert len(taken) == 1 or layout.backlog(start, end).size_bytes <= max_bytes + 1


@given(layouts(), POSITIONS, POSITIONS, st.integers(1, 9), st.integers(0, 9))
def test_a_replay_is_cut_alike_though_ledgers_have_grown(
    layout: TopicLayout, start: Position, end: Position, min_pieces: int, grown: int
) -> None:
    end = min(end, layout.end)
    last = layout.ledgers[-1]
    later = TopicLayout(
        "t",
        [*layout.ledgers[:-1], LedgerExtent(last.ledger_id, last.entries_count + grown, 10**6)],
    )
    pieces = split_evenly(layout, start, end, min_pieces=min_pieces)
    entries = entries_of(layout)
    covered = [each for piece in pieces for each in between(entries, piece.start, piece.end)]
    assert covered == between(entries, start, end)
    assert len(pieces) >= min(min_pieces, len(covered))
    if covered:
        assert split_evenly(later, start, end, min_pieces=min_pieces) == pieces


def test_without_limits_a_batch_takes_all_there_is() -> None:
    assert admit({"t": LAYOUT}, {"t": Position(3, 2)}) == {"t": Position(8, 4)}


def test_limits_are_shared_in_proportion_to_the_backlog() -> None:
    large = TopicLayout("large", [LedgerExtent(1, 900, 900)])
    small = TopicLayout("small", [LedgerExtent(2, 100, 100)])
    ends = admit(
        {"large": large, "small": small},
        {"large": Position(1, 0), "small": Position(2, 0)},
        max_entries=100,
    )
    assert ends == {"large": Position(1, 90), "small": Position(2, 10)}


def test_a_start_behind_the_end_stands_still() -> None:
    assert admit({"t": LAYOUT}, {"t": Position(9, 0)}, max_entries=1) == {"t": Position(9, 0)}


def test_a_backlog_counts_entries_and_estimates_bytes() -> None:
    assert LAYOUT.backlog(Position(3, 8), Position(8, 1)) == Backlog(3, 1200)


def test_a_deleted_ledger_is_reported_with_both_positions() -> None:
    assert LAYOUT.loss_before(Position(2, 7)) == DataLoss("t", Position(2, 7), Position(3, 0))
    assert str(LAYOUT.loss_before(Position(2, 7))) == (
        "t: entries from 2:7 on were deleted, the first one left is 3:0"
    )
    assert LAYOUT.loss_before(Position(3, 0)) is None
    assert LAYOUT.loss_before(EARLIEST) is None


def test_an_unknown_layout_is_one_piece() -> None:
    layout = TopicLayout("t", [], known_end=Position(4, 2))
    assert (layout.start, layout.end) == (EARLIEST, Position(4, 2))
    assert layout.normalize(Position(3, 9)) == Position(3, 9)
    pieces = split(layout, Position(0, 0), layout.end, max_bytes=1)
    assert pieces == [Piece("t", Position(0, 0), Position(4, 2), has_known_ledgers=False)]
    assert split_evenly(layout, Position(0, 0), layout.end) == pieces


def test_a_topic_without_entries_starts_and_ends_in_its_last_ledger() -> None:
    empty = TopicLayout("t", [LedgerExtent(4, 0, 0)])
    assert empty.start == empty.end == Position(4, -1)


@given(layouts(), POSITIONS)
def test_an_earlier_end_leaves_out_what_came_later(layout: TopicLayout, end: Position) -> None:
    assert entries_of(layout.until(end)) == between(entries_of(layout), EARLIEST, end)


@given(layouts(), POSITIONS)
def test_the_entry_before_a_position_is_the_last_one_read(
    layout: TopicLayout, end: Position
) -> None:
    read = between(entries_of(layout), EARLIEST, end)
    assert layout.before(end) == (read[-1] if read else None)


def test_an_unknown_layout_can_be_cut_too() -> None:
    layout = TopicLayout("t", [], known_end=Position(4, 2))
    assert layout.until(Position(4, 1)).end == Position(4, 1)
    assert layout.before(Position(4, 2)) == Position(4, 1)
    assert layout.before(Position(4, 0)) is None


@pytest.mark.parametrize(
    ("acknowledged", "is_behind"),
    [
        (Position(5, 6), True),  # all that was read, and the ledger ended there
        (Position(8, -1), True),  # moved to the next ledger, when that one ended
        (Position(7, -1), True),  # which had no entries
        (Position(8, 0), False),
        (Position(9, -1), False),
        (Position(5, 5), False),
        (Position(5, 9), False),
        (Position(5, -1), False),
    ],
)
def test_a_subscription_tells_whether_a_ledger_was_read_to_its_end(
    acknowledged: Position, *, is_behind: bool
) -> None:
    loss = DataLoss("t", Position(5, 7), Position(8, 0))
    assert loss.is_behind(acknowledged) is is_behind


def test_a_last_message_may_stand_before_markers() -> None:
    """Ledgers count them; who has planned by ledgers, and now knows the last message alone."""
    topic = TopicLayout("t", [], known_end=Position(5, 4))
    assert not topic.ends_before(Position(5, 6))
    assert topic.ends_before(Position(6, 1))
    assert TopicLayout("t", [LedgerExtent(5, 4, 40)]).ends_before(Position(5, 6))
