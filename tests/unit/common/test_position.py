"""Positions."""

from __future__ import annotations

import pytest

from pulsar_py.common.position import EARLIEST, LATEST, Position


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
