"""What every selector of sticky keys does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from pulsar_py.server.dispatch.selectors import (
    ConsistentHashingSelector,
    HashRange,
    HashRangeAutoSplitSelector,
    HashRangeExclusiveSelector,
    StickyKeySelector,
)

SLOTS = [1, 2, 1000, 20000, 32767, 32768, 32769, 50000, 65534, 65535]
KEYS = [f"key-{index}".encode() for index in range(300)]


class Named:
    def __init__(self, name: str, requested_ranges: Sequence[HashRange] = ()) -> None:
        self.name = name
        self.requested_ranges = requested_ranges


Selector = StickyKeySelector[Named]
AUTOMATIC: list[Callable[[], Selector]] = [ConsistentHashingSelector, HashRangeAutoSplitSelector]
ALL: list[Callable[[], Selector]] = [*AUTOMATIC, HashRangeExclusiveSelector]


def four() -> list[Named]:
    return [Named(f"c{index}", [(index * 16384, index * 16384 + 16383)]) for index in range(4)]


def filled(new: Callable[[], Selector]) -> tuple[Selector, list[Named]]:
    selector, consumers = new(), four()
    for consumer in consumers:
        selector.add(consumer)
    return selector, consumers


@pytest.mark.parametrize("new", ALL)
def test_without_consumers_nobody_owns_a_slot(new: Callable[[], Selector]) -> None:
    assert [new().select(slot) for slot in SLOTS] == [None] * len(SLOTS)


@pytest.mark.parametrize("new", ALL)
def test_no_key_has_slot_0(new: Callable[[], Selector]) -> None:
    selector = new()
    slots = {selector.slot_of(key) for key in KEYS}
    assert min(slots) > 0
    assert max(slots) <= 65535


@pytest.mark.parametrize("new", ALL)
def test_all_slots_have_an_owner_who_says_so(new: Callable[[], Selector]) -> None:
    selector, consumers = filled(new)
    for slot in SLOTS:
        owner = selector.select(slot)
        assert owner in consumers
        owned = selector.ranges_of(owner)
        assert any(start <= slot <= end for start, end in owned)


@pytest.mark.parametrize("new", ALL)
def test_ranges_are_in_order_and_do_not_overlap(new: Callable[[], Selector]) -> None:
    selector, consumers = filled(new)
    every = sorted(each for consumer in consumers for each in selector.ranges_of(consumer))
    for (_, end), (start, _) in pairwise(every):
        assert end < start


@pytest.mark.parametrize("new", ALL)
def test_who_left_owns_nothing(new: Callable[[], Selector]) -> None:
    selector, consumers = filled(new)
    for consumer in consumers:
        selector.remove(consumer)
        assert selector.ranges_of(consumer) == []
        assert all(selector.select(slot) is not consumer for slot in SLOTS)
    assert selector.select(1) is None


@pytest.mark.parametrize("new", ALL)
def test_removing_a_stranger_changes_nothing(new: Callable[[], Selector]) -> None:
    selector, _ = filled(new)
    before = [selector.select(slot) for slot in SLOTS]
    selector.remove(Named("stranger"))
    assert [selector.select(slot) for slot in SLOTS] == before


@pytest.mark.parametrize("new", AUTOMATIC)
def test_a_newcomer_only_takes(new: Callable[[], Selector]) -> None:
    selector, _ = filled(new)
    before = {slot: selector.select(slot) for slot in range(1, 65536, 7)}
    newcomer = Named("c9")
    selector.add(newcomer)
    for slot, owner in before.items():
        assert selector.select(slot) in (owner, newcomer)


@pytest.mark.parametrize("new", AUTOMATIC)
def test_who_leaves_only_gives(new: Callable[[], Selector]) -> None:
    selector, consumers = filled(new)
    before = {slot: selector.select(slot) for slot in range(1, 65536, 7)}
    selector.remove(consumers[1])
    for slot, owner in before.items():
        if owner is not consumers[1]:
            assert selector.select(slot) is owner
