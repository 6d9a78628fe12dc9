from __future__ import annotations

import json
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
