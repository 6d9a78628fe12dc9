"""part_that_fits: a record takes what it can, and keeps what it has."""

import random

import pytest

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.record_part import part_that_fits


def state(*acknowledged, mark_delete="3:-1", **batches):
    """Entries of ledger 3 by number, batches as `b7=0b101`: bits that are acknowledged."""
    content = CursorSnapshot(Position.parse(mark_delete), properties={"n": 7})
    for entry_id in acknowledged:
        content.individual_deleted_messages.add(Position(3, entry_id))
    for name, bits in batches.items():
        content.batch_deleted_indexes.put(Position(3, int(name[1:])), bits)
    return content


def entries_of(part):
    return [(first, last) for _, first, last in part.individual_deleted_messages.ranges()]


def batches_of(part):
    return {position.entry_id: bits for position, bits in part.batch_deleted_indexes.items()}


@pytest.mark.parametrize("recorded", [None, state()])
def test_the_lowest_are_taken_while_there_is_room(recorded):
    content = state(1, 3, 4, 8, b5=0b1, b6=0b10, b9=0b11)
    part, left_out_count = part_that_fits(content, recorded, 2)
    assert entries_of(part) == [(1, 1), (3, 4)]
    assert batches_of(part) == {5: 0b1, 6: 0b10}
    assert left_out_count == 2
    assert part.mark_delete_position == content.mark_delete_position
    assert part.properties == {"n": 7}


def test_nothing_is_left_out_where_all_fits():
    content = state(1, 3, b5=0b1)
    part, left_out_count = part_that_fits(content, None, 2)
    assert left_out_count == 0
    assert entries_of(part) == [(1, 1), (3, 3)]
    assert batches_of(part) == {5: 0b1}


def test_what_is_recorded_stays_as_it_is_now():
    recorded = state(7, b8=0b1, b9=0b1)
    content = state(1, 3, 6, 7, 8, b2=0b1, b9=0b101)
    part, left_out_count = part_that_fits(content, recorded, 1)
    assert entries_of(part) == [(7, 8)]
    assert batches_of(part) == {9: 0b101}
    assert left_out_count == 4  # 1, 3, 6 and the batch 2


def test_what_is_recorded_stays_beyond_the_limit():
    part, left_out_count = part_that_fits(state(1, 3, 9, b5=0b1), state(3, 9, b5=0b1), 0)
    assert entries_of(part) == [(3, 3), (9, 9)]
    assert batches_of(part) == {5: 0b1}
    assert left_out_count == 1


def test_what_does_not_count_any_more_is_not_kept():
    """The mark-delete position has passed it, or a reset took it back."""
    recorded = state(1, 7, b2=0b1, b8=0b1)
    part, left_out_count = part_that_fits(state(9, mark_delete="3:2"), recorded, 2)
    assert entries_of(part) == [(9, 9)]
    assert batches_of(part) == {}
    assert left_out_count == 0


@pytest.mark.parametrize("seed", range(100))
def test_no_record_loses_anything_and_none_grows_beyond_twice_the_limit(seed):
    chance = random.Random(seed)
    limit = chance.choice((0, 1, 2, 5))
    content, recorded = state(), None
    for _ in range(30):
        for _ in range(chance.randint(1, 6)):
            position = Position(3, chance.randint(0, 60))
            if position in content.individual_deleted_messages:
                continue
            bits = (content.batch_deleted_indexes.get(position) or 0) | 1 << chance.randrange(3)
            if bits == 0b111:
                content.batch_deleted_indexes.discard(position)
                content.individual_deleted_messages.add(position)
            else:
                content.batch_deleted_indexes.put(position, bits)
        part, left_out_count = part_that_fits(content, recorded, limit)
        part.individual_deleted_messages.check()
        whole = content.individual_deleted_messages
        assert not part.individual_deleted_messages.without(whole)
        for position, bits in part.batch_deleted_indexes.items():
            assert content.batch_deleted_indexes.get(position) == bits
        if recorded is not None:
            kept = part.individual_deleted_messages
            assert not recorded.individual_deleted_messages.without(kept)
            for position, bits in recorded.batch_deleted_indexes.items():
                now = part.batch_deleted_indexes.get(position) or 0
                assert position in kept or now & bits == bits
        is_whole = part.individual_deleted_messages == whole and list(
            part.batch_deleted_indexes.items()
        ) == list(content.batch_deleted_indexes.items())
        assert is_whole == (left_out_count == 0)
        ranges_count = part.individual_deleted_messages.ranges_count()
        assert ranges_count + len(part.batch_deleted_indexes) <= 2 * limit
        recorded = part


def test_batches_are_taken_as_far_as_their_bytes_go():
    content = state(b1=(1 << 800) - 1, b2=(1 << 800) - 1, b3=0b1)
    part, left_out_count = part_that_fits(content, None, 10, max_batches_bytes=150)
    assert list(batches_of(part)) == [1]
    assert left_out_count == 2
