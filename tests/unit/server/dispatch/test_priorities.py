from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulsar_py.server.dispatch.priorities import PriorityRoundRobin, choose_active

RING = json.loads(
    (Path(__file__).parents[3] / "recordings" / "failover_ring.json").read_text(encoding="utf-8")
)


@dataclass(eq=False)
class Named:
    name: str
    priority_level: int = 0
    permits: int = 10**9


def order(consumers: list[Named], turns: int) -> list[str]:
    turn: PriorityRoundRobin[Named] = PriorityRoundRobin()
    for consumer in consumers:
        turn.add(consumer)
    served = []
    for _ in range(turns):
        consumer = turn.next(lambda each: each.permits > 0)
        if consumer is None:
            break
        consumer.permits -= 1
        served.append(consumer.name)
    return served


def test_the_published_example_of_priorities() -> None:
    consumers = [
        Named("C1", 0, 2),
        Named("C2", 0, 1),
        Named("C3", 0, 1),
        Named("C4", 1, 2),
        Named("C5", 1, 1),
    ]
    assert order(consumers, 9) == ["C1", "C2", "C3", "C1", "C4", "C5", "C4"]


def test_equal_priorities_take_turns() -> None:
    assert order([Named("a"), Named("b"), Named("c")], 5) == ["a", "b", "c", "a", "b"]


def test_priorities_count_not_the_order_of_joining() -> None:
    assert order([Named("low", 2), Named("high", 0, 2)], 3) == ["high", "high", "low"]


def test_a_better_priority_is_served_as_soon_as_it_has_permits() -> None:
    turn: PriorityRoundRobin[Named] = PriorityRoundRobin()
    high, low = Named("high", 0, 0), Named("low", 1)
    turn.add(high)
    turn.add(low)
    assert turn.next(lambda each: each.permits > 0) is low
    high.permits = 1
    assert turn.next(lambda each: each.permits > 0) is high


def test_nobody_is_next_when_nobody_is_available() -> None:
    turn: PriorityRoundRobin[Named] = PriorityRoundRobin()
    assert turn.next(lambda _: True) is None
    turn.add(Named("a"))
    assert turn.next(lambda _: False) is None


def test_a_consumer_that_leaves_does_not_cost_another_its_turn() -> None:
    turn: PriorityRoundRobin[Named] = PriorityRoundRobin()
    a, b, c = Named("a"), Named("b"), Named("c")
    for each in (a, b, c):
        turn.add(each)
    turn.next(lambda _: True)
    turn.next(lambda _: True)
    turn.remove(a)
    assert turn.next(lambda _: True) is c


@pytest.mark.parametrize(
    ("partition_index", "active"), [(-1, "aaa"), (0, "aaa"), (1, "bbb"), (2, "ccc"), (3, "aaa")]
)
def test_failover_by_index(partition_index: int, active: str) -> None:
    consumers = [Named("ccc"), Named("bbb"), Named("aaa")]
    chosen = choose_active(
        consumers, topic_name="t", partition_index=partition_index, uses_ring=False
    )
    assert chosen.name == active


def test_failover_considers_the_best_priority_only() -> None:
    consumers = [Named("aaa", 2), Named("bbb", 1), Named("ccc", 0), Named("aab", 0)]
    for partition_index in (-1, 0):
        chosen = choose_active(
            consumers, topic_name="t", partition_index=partition_index, uses_ring=False
        )
        assert chosen.name == "aab"


@pytest.mark.parametrize(
    ("topic", "active"),
    [("a", ["bbb", "bbb", "ccc"]), ("d", ["bbb", "aaa", "ccc"])],
)
def test_failover_by_the_ring_chooses_as_recorded(topic: str, active: list[str]) -> None:
    name = f"persistent://public/default/wire-failover-ring-{topic}"
    joined = []
    chosen = []
    for consumer in ("bbb", "aaa", "ccc"):
        joined.append(Named(consumer))
        chosen.append(
            choose_active(joined, topic_name=name, partition_index=-1, uses_ring=True).name
        )
    assert chosen == active


def test_failover_by_the_ring_chooses_what_a_thousand_names_were_recorded_to_get() -> None:
    assert len(RING["cases"]) == 1000
    for topic, names, priorities, recorded in RING["cases"]:
        name = f"persistent://public/default/{topic}"
        _, is_partition, index = topic.rpartition("-partition-")
        joined: list[Named] = []
        chosen: list[int] = []
        for consumer, priority in zip(names, priorities or [0] * len(names), strict=True):
            joined.append(Named(consumer, priority))
            active = choose_active(
                joined,
                topic_name=name,
                partition_index=int(index) if is_partition else -1,
                uses_ring=True,
            )
            chosen.append(joined.index(active))
        assert chosen == recorded, topic


def first_available(consumers: list[Named], index: int) -> int | None:
    """The rule as it is written down: the place of the consumer to serve after `index`."""
    priority = consumers[index].priority_level
    level = [place for place, each in enumerate(consumers) if each.priority_level == priority]
    order = [
        *range(level[0]),
        *(place for place in level if place >= index),
        *(place for place in level if place < index),
        *range(level[-1] + 1, len(consumers)),
    ]
    return next((place for place in order if consumers[place].permits > 0), None)


@pytest.mark.parametrize("seed", range(20))
def test_consumers_at_rest_change_nothing_of_the_order(seed: int) -> None:
    chance = random.Random(seed)
    turn: PriorityRoundRobin[Named] = PriorityRoundRobin(lambda each: each.permits <= 0)
    consumers: list[Named] = []
    index = 0
    for number in range(400):
        action = chance.random()
        if action < 0.1 or not consumers:
            joined = Named(str(number), chance.randrange(3), chance.randrange(3))
            turn.add(joined)
            place = sum(each.priority_level <= joined.priority_level for each in consumers)
            consumers.insert(place, joined)
        elif action < 0.15:
            gone = chance.randrange(len(consumers))
            turn.remove(consumers.pop(gone))
            index -= gone < index
        elif action < 0.4:
            woken = chance.choice(consumers)
            woken.permits += 1
            turn.wake(woken)
        elif action < 0.5:
            assert list(turn.ready()) == [each for each in consumers if each.permits > 0]
        else:
            index = index if index < len(consumers) else 0
            expected = first_available(consumers, index)
            served = turn.next(lambda each: each.permits > 0)
            assert served is (None if expected is None else consumers[expected])
            if expected is not None:
                index = expected + 1
                consumers[expected].permits -= 1
        assert turn.consumers == consumers


def test_one_at_rest_is_looked_at_once() -> None:
    looked_at: list[str] = []

    def may_rest(each: Named) -> bool:
        looked_at.append(each.name)
        return each.permits <= 0

    turn: PriorityRoundRobin[Named] = PriorityRoundRobin(may_rest)
    for number in range(1000):
        turn.add(Named(str(number), 0, 0))
    last = Named("last")
    turn.add(last)
    for _ in range(10):
        assert turn.next(lambda each: each.permits > 0) is last
    assert len(looked_at) == 1000
    assert last in turn
    assert Named("another") not in turn
