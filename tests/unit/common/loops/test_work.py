"""How much one command may look at before others have a turn."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.loops.work import (
    MAX_HOLDERS_A_TURN,
    MAX_IDS_A_TURN,
    MAX_UNITS,
    Turns,
    check_units,
    ids_a_turn,
    in_turns,
)


def test_more_than_the_bound_at_once_is_our_own_mistake() -> None:
    check_units(MAX_UNITS)
    with pytest.raises(AssertionError, match=f"{MAX_UNITS + 1} units at once"):
        check_units(MAX_UNITS + 1)


@pytest.mark.parametrize("consumers_count", [0, 1, 150, 1000, 10**6])
def test_ids_a_turn_times_consumers_is_bounded(consumers_count: int) -> None:
    count = ids_a_turn(consumers_count)
    assert 1 <= count <= MAX_IDS_A_TURN
    assert count == 1 or count * consumers_count <= MAX_HOLDERS_A_TURN


async def test_others_have_a_turn_between_two_stretches() -> None:
    turns = 0

    def on_turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(on_turn)

    on_turn()
    seen = [(turns, list(some)) async for some in in_turns(range(5), 2)]
    assert [items for _, items in seen] == [[0, 1], [2, 3], [4]]
    assert seen[0][0] < seen[1][0] < seen[2][0]


async def test_units_between_two_turns_of_others_are_bounded() -> None:
    taken = [3, 4, 4, 1, 9, 2, 8]
    stretches = [0]

    def on_turn() -> None:
        stretches.append(0)
        asyncio.get_running_loop().call_soon(on_turn)

    asyncio.get_running_loop().call_soon(on_turn)
    turns = Turns(8)
    for units in taken:
        await turns.take(units)
        stretches[-1] += units
    assert sum(stretches) == sum(taken)
    assert stretches == [7, 5, 9, 2, 8]  # one that is larger than a stretch has its own
    with pytest.raises(AssertionError, match="units at once"):
        await turns.take(MAX_UNITS + 1)
