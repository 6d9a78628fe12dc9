"""Positions."""

from __future__ import annotations

import pytest

from pulsar_py.common.position import EARLIEST, LATEST, LedgerPositions, Position


def test_positions_are_ordered_by_ledger_first() -> None:
    positions = [LATEST, Position(2, 0), Position(1, 9), Position(1, -1), EARLIEST]

    assert sorted(positions) == [EARLIEST, Position(1, -1), Position(1, 9), Position(2, 0), LATEST]


@pytest.mark.parametrize("position", [Position(7, 3), EARLIEST, LATEST], ids=str)
def test_the_text_form_reads_back(position: Position) -> None:
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize("text", ["", "7", "7:", ":3", "7:3:1", "a:b"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Position.parse(text)


@pytest.mark.parametrize("entry_ids", [range(5, 9), [7, 3, 7], [4]], ids=str)
def test_they_are_a_sequence_of_positions(entry_ids: range | list[int]) -> None:
    positions = LedgerPositions(6, entry_ids)
    expected = [Position(6, entry_id) for entry_id in entry_ids]
    assert list(positions) == list(positions.keys()) == expected
    assert all(type(each) is Position for each in positions)
    assert len(positions) == len(expected)
    assert [positions[index] for index in range(len(expected))] == expected
    assert positions[-1] == expected[-1]
    for stop in range(len(expected) + 1):
        assert positions[:stop] == expected[:stop]
    assert positions.highest_entry_id == max(entry_ids)
    assert str(entry_ids) in repr(positions)


def test_only_neighbours_cover_an_entry() -> None:
    assert [LedgerPositions(6, range(5, 9)).covers(each) for each in (4, 5, 8, 9)] == [
        False,
        True,
        True,
        False,
    ]
    assert not LedgerPositions(6, [5, 6, 7, 8]).covers(5)
