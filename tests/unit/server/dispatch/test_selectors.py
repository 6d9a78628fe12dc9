from __future__ import annotations

from collections.abc import Sequence

import pytest

from pulsar_py.common.errors import ConsumerAssignError
from pulsar_py.server.dispatch.selectors import (
    ConsistentHashingSelector,
    HashRange,
    HashRangeAutoSplitSelector,
    HashRangeConflictError,
    HashRangeExclusiveSelector,
    covers,
    validated_ranges,
)


class Named:
    def __init__(self, name: str, ranges: Sequence[HashRange] = ()) -> None:
        self.name = name
        self.requested_ranges = ranges

    def __str__(self) -> str:
        return self.name


def ring(*names: str) -> tuple[ConsistentHashingSelector[Named], list[Named]]:
    selector: ConsistentHashingSelector[Named] = ConsistentHashingSelector()
    consumers = [Named(name) for name in names]
    for consumer in consumers:
        selector.add(consumer)
    return selector, consumers


def test_the_ring_of_three_consumers_has_the_known_points() -> None:
    selector, _ = ring("c1", "c2", "c3")
    assert len(selector.points) == 299
    alone, _ = ring("c1")
    assert list(alone.points[:5]) == [1031, 1551, 1726, 1870, 2137]


def test_the_ring_gives_the_known_keys_and_slots() -> None:
    selector, consumers = ring("c1", "c2", "c3")
    owners = {}
    for key in ("a", "key-1", "key-2", "key-3", "order-42"):
        owner = selector.select(selector.slot_of(key.encode()))
        assert owner is not None
        owners[key] = owner.name
    assert owners == {"a": "c2", "key-1": "c2", "key-2": "c3", "key-3": "c2", "order-42": "c3"}
    slots = [sum(end - start + 1 for start, end in selector.ranges_of(c)) for c in consumers]
    assert slots == [20340, 21396, 23799]
    assert sum(slots) == 65535


def test_the_ranges_of_the_ring_say_what_select_says() -> None:
    selector, consumers = ring("c1", "c2", "c3")
    for consumer in consumers:
        for start, end in selector.ranges_of(consumer):
            assert selector.select(start) is consumer
            assert selector.select(end) is consumer


def test_consumers_of_one_name_share_the_ring() -> None:
    selector, (first, second) = ring("same", "same")
    assert selector.ranges_of(first)
    assert selector.ranges_of(second)
    selector.remove(first)
    assert selector.select(1) is second
    third = Named("same")
    selector.add(third)
    selector.remove(second)
    selector.remove(third)
    assert selector.select(1) is None


def test_a_name_index_is_used_again() -> None:
    selector, (first, _) = ring("same", "same")
    before = selector.ranges_of(first)
    selector.remove(first)
    again = Named("same")
    selector.add(again)
    assert selector.ranges_of(again) == before


def test_a_consumer_takes_from_the_ring_and_gives_back_the_same() -> None:
    selector, (first,) = ring("c1")
    newcomer = Named("c2")
    selector.add(newcomer)
    taken = selector.ranges_of(newcomer)
    selector.remove(newcomer)
    assert taken
    assert selector.ranges_of(first) == [(1, 65535)]


def test_auto_split_halves_the_widest_range() -> None:
    selector: HashRangeAutoSplitSelector[Named] = HashRangeAutoSplitSelector(64)
    consumers = [Named(f"c{i}") for i in range(1, 5)]
    for consumer in consumers:
        selector.add(consumer)
    assert [selector.ranges_of(consumer) for consumer in consumers] == [
        [(49, 64)],
        [(17, 32)],
        [(0, 16)],
        [(33, 48)],
    ]


def test_auto_split_gives_a_range_to_the_next_higher() -> None:
    selector: HashRangeAutoSplitSelector[Named] = HashRangeAutoSplitSelector(64)
    c1, c2, c3 = consumers = [Named(f"c{i}") for i in range(1, 4)]
    for consumer in consumers:
        selector.add(consumer)
    selector.remove(c3)
    assert selector.ranges_of(c2) == [(0, 32)]
    selector.remove(c1)
    assert selector.ranges_of(c2) == [(0, 64)]
    selector.remove(c2)
    assert selector.select(5) is None


def test_auto_split_refuses_what_can_not_be_split() -> None:
    selector: HashRangeAutoSplitSelector[Named] = HashRangeAutoSplitSelector(2)
    selector.add(Named("c1"))
    selector.add(Named("c2"))
    with pytest.raises(ConsumerAssignError):
        selector.add(Named("c3"))


def test_sticky_ranges_leave_gaps_to_nobody() -> None:
    selector: HashRangeExclusiveSelector[Named] = HashRangeExclusiveSelector()
    consumer = Named("c", [(20001, 30000), (0, 10000)])
    selector.add(consumer)
    assert [selector.select(slot) for slot in (0, 10000, 20001, 30000)] == [consumer] * 4
    assert [selector.select(slot) for slot in (10001, 15000, 20000, 30001)] == [None] * 4
    assert selector.ranges_of(consumer) == [(0, 10000), (20001, 30000)]


@pytest.mark.parametrize("ranges", [[(40000, 65535)], [(100, 200)], [(0, 65535)]])
def test_sticky_ranges_of_others_are_refused(ranges: list[HashRange]) -> None:
    selector: HashRangeExclusiveSelector[Named] = HashRangeExclusiveSelector()
    owner = Named("owner", [(0, 40000)])
    selector.add(owner)
    with pytest.raises(
        HashRangeConflictError, match="Range conflict with consumer owner"
    ) as caught:
        selector.add(Named("newcomer", ranges))
    assert caught.value.owner is owner
    selector.remove(owner)
    selector.add(Named("newcomer", ranges))


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([], "must not be empty"),
        ([(5, 4)], "above its end"),
        ([(0, 100), (100, 200)], r"\[0,100\] overlaps with \[100,200\]"),
    ],
)
def test_bad_ranges_are_refused(ranges: list[HashRange], message: str) -> None:
    with pytest.raises(ConsumerAssignError, match=message):
        validated_ranges(ranges)


@pytest.mark.parametrize("ranges", [[(-5, 100)], [(0, 65536)]])
def test_bounds_outside_the_slots_are_accepted(ranges: list[HashRange]) -> None:
    HashRangeExclusiveSelector[Named]().add(Named("c", ranges))


def test_covers_tells_gaps_from_ranges() -> None:
    ranges = [(0, 10000), (20001, 30000)]
    assert [covers(ranges, slot) for slot in (0, 10000, 15000, 20001, 30000, 30001)] == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert not covers([], 5)
