"""Bounds out of filters: they never drop what a filter would keep."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pulsar_py.common.position import Position
from pulsar_py.spark.planning.pruning import NOTHING_PRUNED, FilterParts, Pruning, prune

TOPIC = "persistent://public/default/t-partition-2"
AT = datetime.fromtimestamp(1.5, UTC)


def test_topics_and_partitions_are_excluded() -> None:
    pruning, used = prune([("EqualTo", "__topic", TOPIC), ("In", "__partition", (1, 2))])
    assert len(used) == 2
    assert pruning.keeps_topic(TOPIC)
    assert not pruning.keeps_topic("persistent://public/default/u-partition-2")
    assert not prune([("EqualTo", "__partition", 1)])[0].keeps_topic(TOPIC)


def test_a_conjunction_narrows() -> None:
    pruning, _ = prune(
        [
            ("GreaterThan", "__ledgerId", 5),
            ("GreaterThanOrEqual", "__ledgerId", 3),
            ("LessThan", "__ledgerId", 9),
            ("In", "__topic", ("a", "b")),
            ("In", "__topic", ("b", "c")),
        ]
    )
    assert (pruning.min_ledger_id, pruning.max_ledger_id) == (5, 9)
    assert pruning.topics == {"b"}


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("GreaterThan", 1500, None),
        ("LessThanOrEqual", None, 1501),
        ("EqualTo", 1500, 1501),
    ],
)
def test_times_become_milliseconds(kind: str, low: int | None, high: int | None) -> None:
    pruning, _ = prune([(kind, "__publishTime", AT)])
    assert (pruning.min_publish_millis, pruning.max_publish_millis) == (low, high)


@pytest.mark.parametrize(
    "unused",
    [
        ("StringContains", "__topic", "x"),
        ("IsNull", "__partition", None),
        ("GreaterThan", "value", 5),
        ("In", "__publishTime", (AT,)),
        ("GreaterThan", "__publishTime", "1970"),
        ("In", "__ledgerId", (1,)),
        ("GreaterThan", "__ledgerId", None),
    ],
)
def test_other_filters_are_left_to_spark(unused: FilterParts) -> None:
    assert prune([unused]) == (NOTHING_PRUNED, [])


def test_ranges_of_ledgers_cut_positions() -> None:
    pruning = Pruning(min_ledger_id=3, max_ledger_id=5)
    assert pruning.clamp(Position(1, 7), Position(9, 2)) == (Position(3, 0), Position(6, 0))
    assert pruning.clamp(Position(7, 1), Position(9, 2)) == (Position(7, 1), Position(7, 1))
