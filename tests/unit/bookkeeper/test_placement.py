from __future__ import annotations

from random import Random

import pytest

from pulsar_py.bookkeeper.placement import choose
from pulsar_py.common.errors import NotEnoughBookiesError

ALL = [f"b:{number}" for number in range(5)]


def nobody(_: str) -> bool:
    return False


def test_bookies_differ_and_all_get_their_share() -> None:
    chance = Random(1)
    chosen = [choose(3, ALL, is_suspect=nobody, chance=chance) for _ in range(100)]
    assert all(len(set(each)) == 3 for each in chosen)
    assert {bookie_id for each in chosen for bookie_id in each} == set(ALL)


def test_who_is_excluded_is_not_chosen_and_who_is_suspect_comes_last() -> None:
    for seed in range(20):
        chosen = choose(
            3, ALL, excluded={"b:0"}, is_suspect=lambda each: each in {"b:1", "b:2"},
            chance=Random(seed),
        )  # fmt: skip
        assert set(chosen[:2]) == {"b:3", "b:4"}
        assert chosen[2] in {"b:1", "b:2"}


def test_too_few_bookies_are_told_with_both_numbers() -> None:
    with pytest.raises(NotEnoughBookiesError, match="3 bookies are needed, 2 take entries"):
        choose(3, ALL[:2], is_suspect=nobody, chance=Random(1))
    with pytest.raises(NotEnoughBookiesError, match="beside the 4"):
        choose(2, ALL, excluded=ALL[:4], is_suspect=nobody, chance=Random(1))
