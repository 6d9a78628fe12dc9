"""PositionRangeSet: ranges of positions out of one bitmap a ledger."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRange, PositionRangeSet


def ranges_of(*positions):
    found = PositionRangeSet()
    for text in positions:
        found.add(Position.parse(text))
    found.check()
    return found


def test_neighbours_merge_into_ranges_open_below_and_closed_above():
    found = ranges_of("5:7", "5:0", "5:2", "5:1", "5:5", "5:4", "5:3")
    assert str(found) == "[(5:-1..5:5],(5:6..5:7]]"
    assert found.ranges_count() == 2


def test_ranges_never_span_ledgers():
    found = ranges_of("5:9", "7:0")
    assert list(found.ranges()) == [PositionRange(5, 9, 9), PositionRange(7, 0, 0)]


def test_adding_twice_counts_once():
    found = PositionRangeSet()
    assert found.add(Position(1, 1))
    assert not found.add(Position(1, 1))
    assert len(found) == 1


def test_adding_a_range_counts_only_what_is_new():
    found = ranges_of("1:3", "1:5")
    assert found.add_range(1, 2, 6) == 3
    assert found.add_range(1, 6, 2) == 0
    assert str(found) == "[(1:1..1:6]]"
    found.check()


@given(
    there=st.lists(st.integers(0, 40)),
    entry_ids=st.lists(st.integers(0, 40)),
    after=st.integers(-1, 41),
)
def test_adding_entries_of_a_ledger_is_adding_each(there, entry_ids, after):
    found, expected = (ranges_of("4:1", *(f"5:{each}" for each in there)) for _ in range(2))
    new = [each for each in entry_ids if each > after and expected.add(Position(5, each))]
    assert list(found.add_entries(5, entry_ids, after=after)) == sorted(new)
    assert found == expected
    assert len(found) == len(expected)
    found.check()


def test_a_run_ends_before_the_first_missing_entry():
    found = PositionRangeSet()
    found.add_range(1, 10, 1010)
    assert found.run_end(1, 10) == 1010
    assert found.run_end(1, 500) == 1010
    assert found.run_end(1, 9) == 8
    assert found.run_end(2, 9) == 8


def test_sets_are_compared_ledger_by_ledger():
    found, other = ranges_of("1:3", "1:4", "2:0", "3:9"), ranges_of("1:4", "1:5", "3:9", "4:0")
    common, rest = found.common_with(other), found.without(other)
    assert str(common) == "[(1:3..1:4],(3:8..3:9]]"
    assert str(rest) == "[(1:2..1:3],(2:-1..2:0]]"
    for each in (common, rest):
        each.check()
        assert len(each) == 2
    assert found == ranges_of("1:3", "1:4", "2:0", "3:9")
    common.add(Position(1, 3))
    assert Position(1, 3) not in other


def test_positions_that_are_among_a_set():
    ours = ranges_of("1:3", "1:4", "2:0", "3:9")
    asked = {3: [9], 1: [5, 4, 4], 4: [1], 2: [1]}
    found = ours.among({ledger_id: array("I", each) for ledger_id, each in asked.items()})
    found.check()
    assert str(found) == "[(1:3..1:4],(3:8..3:9]]"
    found.add(Position(2, 7))
    found.add(Position(1, 3))
    assert ours == ranges_of("1:3", "1:4", "2:0", "3:9")
    assert not ours.among({})
    assert not ours.among({2: array("I", [1])}).ledger_ids()


def test_positions_between_two_entries_are_counted():
    found = ranges_of("1:3", "1:4", "1:9")
    assert found.count_between(1, 3, 9) == 3
    assert found.count_between(1, 4, 8) == 1
    assert found.count_between(2, 0, 9) == 0


def test_removing_through_a_position_takes_whole_ledgers_and_a_part():
    found = ranges_of("1:5", "2:0", "2:1", "2:2", "3:0")
    assert found.remove_through(Position(2, 1)) == 3
    assert str(found) == "[(2:1..2:2],(3:-1..3:0]]"
    assert found.remove_through(Position(2, -1)) == 0
    found.check()


def test_counting_through_a_position_includes_it():
    found = ranges_of("1:5", "2:0", "2:2", "3:0")
    assert found.count_through(Position(2, 1)) == 2
    assert found.count_through(Position(2, 2)) == 3
    assert found.count_through(Position(9, -1)) == 4


def test_discarding_and_truncating_keep_the_count():
    found = ranges_of("1:1", "1:2", "1:3", "2:0")
    assert found.discard(Position(2, 0))
    assert not found.discard(Position(2, 0))
    assert found.truncate_ledger(1, 2) == 2
    assert found.truncate_ledger(9, 0) == 0
    assert str(found) == "[(1:0..1:1]]"
    assert found.remove_ledger(1) == 1
    assert not found
    found.check()


def test_words_have_a_bit_for_each_entry_and_read_back():
    found = ranges_of("1:0", "1:63", "1:64")
    assert found.words(1) == [-(2**63) + 1, 1]
    assert found.words(2) == []
    again = PositionRangeSet()
    again.add_words(1, found.words(1))
    again.add_words(2, [])
    assert again == found


def test_missing_entries_are_what_is_not_in_the_set():
    found = ranges_of("1:1", "1:3")
    assert list(found.missing_in(1, 0, 4)) == [0, 2, 4]
    assert list(found.missing_in(2, 0, 1)) == [0, 1]


def test_a_copy_is_independent():
    found = ranges_of("1:1")
    copy = found.copy()
    copy.add(Position(1, 2))
    assert (len(found), len(copy)) == (1, 2)
    assert found != copy


def test_five_million_holes_cost_no_object_each():
    found = PositionRangeSet()
    for ledger_id in range(100):
        found._new_bitmap(ledger_id).update(range(0, 100_000, 2))
        found._count += 50_000
    assert found.ranges_count() == 5_000_000
    assert sum(len(found._bitmaps[each].serialize()) for each in found.ledger_ids()) < 2_000_000


def test_pages_of_a_ledger_read_back():
    found = PositionRangeSet()
    for entry_id in (*range(0, 5000, 2), *range(70_000, 70_010), 3 << 16):
        found.add(Position(5, entry_id))
    assert found.page_numbers(5, 16) == [0, 1, 3]
    assert found.page_numbers(6, 16) == []
    pages = [found.page(5, number, 16) for number in found.page_numbers(5, 16)]
    assert [page.entries_count for page in pages] == [2500, 10, 1]
    assert [page.ranges_count for page in pages] == [2500, 1, 1]
    again = PositionRangeSet()
    again.add_range(5, 0, 3)
    assert [again.add_serialized(5, page.data) for page in pages] == [2498, 10, 1]
    again.discard(Position(5, 1))
    again.discard(Position(5, 3))
    assert again == found
    again.check()
    assert found.page(5, 2, 16).entries_count == 0
    assert again.add_serialized(6, found.page(5, 2, 16).data) == 0
    again.check()


def test_present_and_missing_entries_complete_each_other():
    found = PositionRangeSet()
    found.add_range(5, 3, 6)
    assert list(found.present_in(5, 0, 4)) == [3, 4]
    assert list(found.missing_in(5, 0, 4)) == [0, 1, 2]
    assert list(found.present_in(6, 0, 4)) == []


def test_the_lowest_pages_are_copied():
    found = PositionRangeSet()
    for ledger_id in (5, 6):
        for entry_id in (*range(0, 100, 2), *range(70_000, 70_100, 2)):
            found.add(Position(ledger_id, entry_id))
    assert found.lowest(60, 16).ranges_count() == 100
    assert found.lowest(60, 16).ledger_ids() == [5]
    assert found.lowest(1000, 16) == found
    assert found.words_count() == 2 * (70_098 // 64 + 1)
