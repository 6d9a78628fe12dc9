"""Which entries are missing."""

from __future__ import annotations

import pytest

from pulsar_py.storage.inspection.coverage import missing_ranges, ranges_text, useful_runs
from pulsar_py.storage.shared.location import Location


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        ([], [(0, 9)]),
        ([(0, 9)], []),
        ([(5, 20), (0, 4)], []),
        ([(2, 3), (3, 5), (8, 8)], [(0, 1), (6, 7), (9, 9)]),
        ([(0, 8), (2, 3)], [(9, 9)]),
        ([(12, 15)], [(0, 9)]),
    ],
)
def test_what_no_range_has_is_missing(
    present: list[tuple[int, int]], missing: list[tuple[int, int]]
) -> None:
    assert missing_ranges(present, 0, 9) == missing


def test_nothing_is_missing_of_an_empty_ledger() -> None:
    assert missing_ranges([], 0, -1) == []


def test_runs_within_others_are_left_out() -> None:
    def place(count: int) -> Location:
        return Location(1, 0, 10, count)

    runs = {0: place(10), 3: place(2), 8: place(5), 13: place(1)}
    assert sorted(useful_runs(runs)) == [0, 8, 13]


def test_long_lists_are_cut_in_messages() -> None:
    assert ranges_text([(1, 1), (3, 5)]) == "1, 3-5"
    assert ranges_text([(n, n) for n in range(5)], 2) == "0, 1 and 3 ranges more"
