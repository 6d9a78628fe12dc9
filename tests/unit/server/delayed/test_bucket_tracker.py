from __future__ import annotations

import random

from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.server.delayed.bucket_format import BucketBuilder, decode_segment
from pulsar_py.server.delayed.bucket_names import BucketName
from pulsar_py.server.delayed.bucket_tracker import (
    LOAD_AHEAD_MILLIS,
    SEALED_IN_A_LEDGER_COUNT,
    BucketDelayedDeliveryTracker,
    BucketSettings,
    SealedBucket,
)

NOW = 1_700_000_000_000


def tracker(*, tick_millis: int = 1000, min_indexes: int = 4) -> BucketDelayedDeliveryTracker:
    made = BucketDelayedDeliveryTracker(
        tick_millis=tick_millis, settings=BucketSettings(min_indexes=min_indexes)
    )
    made.found((), PositionRangeSet(), PositionRangeSet())
    return made


def write(made: BucketDelayedDeliveryTracker) -> tuple[SealedBucket, list[list[int]]]:
    """What the index does with sealed entries."""
    builder = BucketBuilder(
        max_segment_indexes=3, max_step_millis=10_000, max_metadata_bytes=1 << 20
    )
    assert made.sealing is not None
    for index in sorted(made.sealing):
        builder.add(index)
    (new,) = builder.finish()
    bucket = SealedBucket(BucketName(1, 1), 99, new.content)
    made.written([bucket])
    return bucket, [decode_segment(data) for data in new.segments]


def test_nothing_is_returned_early_and_all_within_a_tick() -> None:
    chance = random.Random(7)
    made = tracker(min_indexes=1000)
    due = {(1, n): NOW + chance.randrange(1, 60_000) for n in range(300)}
    for position, deliver_at in due.items():
        assert made.add(position, deliver_at, NOW)
    now, seen = NOW, {}
    while made:
        wait = made.next_check_millis(now)
        assert wait is not None
        now += wait
        for position in made.take_due(1000, now):
            seen[tuple(position)] = now
    assert seen.keys() == due.keys()
    assert all(due[position] <= at < due[position] + 1000 for position, at in seen.items())


def test_an_entry_read_again_is_neither_held_nor_sent_twice() -> None:
    made = tracker()
    assert made.add((1, 0), NOW + 5000, NOW)
    assert made.add((1, 0), NOW + 5000, NOW + 5000)
    assert len(made) == 1
    assert made.take_due(10, NOW + 9000) == [(1, 0)]
    assert made.add((1, 0), NOW + 5000, NOW + 9000), "it was returned"
    made.on_rewind()
    assert not made.add((1, 0), NOW + 5000, NOW + 9000), "nobody has it any more"


def test_a_later_ledger_seals_when_the_minimum_is_there() -> None:
    made = tracker()
    sealed = []
    made.on_sealed = lambda: sealed.append(len(made.sealing or ()))
    for n in range(9):
        made.add((1, n), NOW + 60_000 + n, NOW)
    assert sealed == []
    made.add((2, 0), NOW + 60_000, NOW)
    assert sealed == [9]
    made.check()


def test_one_ledger_seals_at_a_quarter_more() -> None:
    settings = BucketSettings(min_indexes=50_000)
    assert settings.most_open == 62_500
    assert BucketSettings(min_indexes=10).most_open == SEALED_IN_A_LEDGER_COUNT
    made = tracker()
    for n in range(SEALED_IN_A_LEDGER_COUNT):
        made.add((1, n), NOW + 60_000, NOW)
    assert made.sealing is None
    made.add((1, SEALED_IN_A_LEDGER_COUNT), NOW + 60_000, NOW)
    assert made.sealing is not None
    assert not made.is_pausing(NOW)
    for n in range(1, SEALED_IN_A_LEDGER_COUNT + 1):
        made.add((1, SEALED_IN_A_LEDGER_COUNT + n), NOW + 60_000, NOW)
    assert made.is_pausing(NOW), "one bucket waits to be written, and the next is full"


def test_a_sealed_entry_is_returned_while_its_bucket_is_being_written() -> None:
    made = tracker()
    for n in range(4):
        made.add((1, n), NOW + 1000 * n + 1000, NOW)
    made.add((2, 0), NOW + 90_000, NOW)
    assert made.take_due(10, NOW + 2047) == [(1, 0)]
    bucket, segments = write(made)
    made.check()
    assert made.bucket_to_load(NOW) is bucket
    made.loaded(bucket, segments[0])
    assert made.take_due(10, NOW + 10_000) == [(1, 1), (1, 2), (1, 3)], (
        "not the one returned before"
    )


def test_segments_are_loaded_ahead_of_their_time() -> None:
    made = tracker()
    for n in range(5):
        made.add((1, n), NOW + 60_000 * (n + 1), NOW)
    made.add((2, 0), NOW + 900_000, NOW)
    bucket, segments = write(made)
    assert made.next_load_millis(NOW) == NOW + 60_000 - LOAD_AHEAD_MILLIS
    assert made.bucket_to_load(NOW + 50_000) is None
    assert made.bucket_to_load(NOW + 55_000) is bucket
    made.loaded(bucket, segments[0])
    assert made.next_load_millis(NOW) == NOW + 120_000 - LOAD_AHEAD_MILLIS
    assert made.take_due(10, NOW + 59_999) == []
    assert made.take_due(10, NOW + 61_000) == [(1, 0)]


def test_skipped_entries_are_forgotten() -> None:
    made = tracker(min_indexes=100)
    for n in range(6):
        made.add((1, n), NOW + 5000, NOW)
    made.discard_up_to(Position(1, 3))
    assert len(made) == 2
    assert made.take_due(10, NOW + 9000) == [(1, 4), (1, 5)]
    assert made.next_check_millis(NOW) is None


def test_overdue_entries_come_first_and_once() -> None:
    made = BucketDelayedDeliveryTracker(tick_millis=1000, settings=BucketSettings())
    assert not made.is_ready
    held, overdue = PositionRangeSet(), PositionRangeSet()
    held.add_range(1, 0, 9)
    overdue.add_range(1, 3, 4)
    made.found((), held, overdue)
    assert (made.is_ready, made.has_due(NOW), made.next_check_millis(NOW)) == (True, True, 0)
    assert made.take_due(1, NOW) == [(1, 3)]
    assert made.take_due(9, NOW) == [(1, 4)]
    assert len(made) == 8
    assert made.memory_bytes > 0
