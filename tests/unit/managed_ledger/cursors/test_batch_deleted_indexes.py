"""BatchDeletedIndexes: bit sets by position."""

import random
import tracemalloc

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors.batch_deleted_indexes import BatchDeletedIndexes


def filled():
    found = BatchDeletedIndexes()
    for ledger_id, entry_id in ((5, 1), (5, 0), (3, 9), (7, 2)):
        found.put(Position(ledger_id, entry_id), 0b101)
    return found


def test_what_is_put_is_found_in_order():
    found = filled()
    found.put(Position(5, 1), 0b1)
    assert len(found) == 4
    assert found.get(Position(5, 1)) == 0b1
    assert found.get(Position(5, 2)) is None
    assert found.get(Position(9, 2)) is None
    assert Position(7, 2) in found
    assert Position(7, 3) not in found
    assert [str(position) for position, _ in found.items()] == ["3:9", "5:0", "5:1", "7:2"]
    assert found.ledger_ids() == [3, 5, 7]
    found.check()


def test_removing_through_a_position_includes_it():
    found = filled()
    found.remove_through(Position(5, 0))
    assert [str(position) for position, _ in found.items()] == ["5:1", "7:2"]
    found.remove_through(Position(5, 1))
    found.remove_through(Position(6, 100))
    found.check()
    assert len(found) == 1


def test_discarding_twice_counts_once():
    found = filled()
    assert found.discard(Position(7, 2))
    assert not found.discard(Position(7, 2))
    found.check()
    found.clear()
    assert not found
    found.remove_through(Position(9, 9))


def test_bit_sets_of_any_width_are_kept():
    found = BatchDeletedIndexes()
    wanted = {}
    chance = random.Random(5)
    for _ in range(3000):
        position = Position(chance.choice((3, 4)), chance.randrange(9000))
        if chance.random() < 0.3:
            assert found.discard(position) == (wanted.pop(position, None) is not None)
        else:
            wanted[position] = bits = chance.getrandbits(chance.choice((3, 10, 64, 100, 900))) | 1
            found.put(position, bits)
        if chance.random() < 0.002:
            upper = Position(3, chance.randrange(9000))
            found.remove_through(upper)
            wanted = {each: bits for each, bits in wanted.items() if each > upper}
    found.check()
    assert dict(found.items()) == wanted
    assert len(found) == len(wanted)


def test_a_ledger_is_cut_at_its_end():
    found = BatchDeletedIndexes()
    for entry_id in (0, 4095, 4096, 8191, 8192, 20000):
        found.put(Position(5, entry_id), 0b1)
    found.put(Position(6, 0), 0b1)
    found.truncate_ledger(5, 8192)
    found.check()
    assert [str(position) for position, _ in found.items()] == [
        "5:0",
        "5:4095",
        "5:4096",
        "5:8191",
        "6:0",
    ]
    found.remove_through(Position(5, 4095))
    found.remove_ledger(6)
    assert [str(position) for position, _ in found.items()] == ["5:4096", "5:8191"]
    assert found.has_ledger(5)
    assert not found.has_ledger(6)
    found.check()


def test_what_is_acknowledged_as_a_whole_is_left_out():
    found = filled()
    whole = PositionRangeSet()
    whole.add_range(5, 1, 3)
    whole.add_range(7, 2, 2)
    found.discard_members_of(whole)
    assert [str(position) for position, _ in found.items()] == ["3:9", "5:0"]


def test_pages_read_back_and_merge():
    found = BatchDeletedIndexes()
    chance = random.Random(6)
    for entry_id in chance.sample(range(8192), 3000):
        found.put(Position(5, entry_id), chance.getrandbits(chance.choice((3, 40, 200))) | 1)
    again = BatchDeletedIndexes()
    for key in found.page_keys():
        assert again.merge_page(key, found.encode_page(key)[0]) == []
        assert again.page_entries_count(key) == found.page_entries_count(key)
    again.check()
    assert list(again.items()) == list(found.items())
    assert found.encode_page((9, 9))[0] == b""


def test_merging_a_page_keeps_what_waits_in_both():
    stored, found = BatchDeletedIndexes(), BatchDeletedIndexes()
    for entry_id, bits in ((0, 0b110), (1, 0b100), (2, 0b111)):
        stored.put(Position(5, entry_id), bits)
    for entry_id, bits in ((0, 0b011), (1, 0b011), (3, 0b001)):
        found.put(Position(5, entry_id), bits)
    assert found.merge_page((5, 0), stored.encode_page((5, 0))[0]) == [Position(5, 1)]
    assert dict(found.items()) == {
        Position(5, 0): 0b010,
        Position(5, 2): 0b111,
        Position(5, 3): 0b001,
    }
    found.check()


@pytest.mark.parametrize(
    "data",
    [
        b"\x01",
        b"\x03\x00\x00\x00\x00\x00\x01\x01\x01",
        b"\x01\x00\x05\x00\x00",
        b"\x01\x00\x00\x00\x00\x10\x01",
    ],
)
def test_a_page_that_makes_no_sense_is_refused(data):
    with pytest.raises(CorruptDataError):
        BatchDeletedIndexes().merge_page((5, 0), data)


def test_a_hundred_thousand_half_acknowledged_batches_are_packed():
    tracemalloc.start()
    found = BatchDeletedIndexes()
    for entry_id in range(100_000):
        found.put(Position(5, entry_id), 0b1010101010)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 100_000
    assert used < 1_000_000, used


def test_a_page_that_is_too_large_goes_without_its_highest_entries():
    found = BatchDeletedIndexes()
    for entry_id in range(40):
        found.put(Position(5, entry_id), (1 << (8 * 1024)) - 1 if entry_id % 2 else 0b1)
    whole, count = found.encode_page((5, 0))
    assert count == 40
    limit = 10 * 1024 + 9000
    data, count = found.encode_page((5, 0), limit)
    assert len(data) <= limit < len(whole)
    again = BatchDeletedIndexes()
    again.merge_page((5, 0), data)
    assert len(again) == count
    assert list(again.items()) == list(found.items())[:count]
    assert count == 21
