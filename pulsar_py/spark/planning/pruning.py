"""Derives bounds on topics and positions from the filters of a query (pure).

Only filters that exclude whole topics or ranges count: equality and `In` of `__topic` and
`__partition`, comparisons of `__publishTime` and `__ledgerId`. Spark evaluates all filters again,
so pruning may keep too much and never drops a row that a filter would keep. All filters hold
together (a conjunction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position

FilterParts = tuple[str, str, Any]
"""The kind of a filter (`EqualTo`, `In`, `GreaterThan` …), its column and value."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """Bounds on every row that the query wants; None: no bound."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    # Both bounds are inclusive.
    min_publish_millis: int | None = None
    max_publish_millis: int | None = None
    # Both bounds are inclusive.
    min_ledger_id: int | None = None
    max_ledger_id: int | None = None

    def keeps_topic(self, topic: str) -> bool:
        """Whether a topic partition may have rows within the bounds."""
        if self.topics is not None and topic not in self.topics:
            return False
        index = TopicName.parse(topic).partition_index
        return self.partitions is None or index in self.partitions

    def clamp(self, start: Position, end: Position) -> tuple[Position, Position]:
        """The part of `[start, end)` that may have rows within the bounds."""
        if self.min_ledger_id is not None:
            start = max(start, Position(self.min_ledger_id, 0))
        if self.max_ledger_id is not None:
            end = min(end, Position(self.max_ledger_id + 1, 0))
        return start, max(start, end)


NOTHING_PRUNED: Final = Pruning()


def prune(filters: Iterable[FilterParts]) -> tuple[Pruning, list[FilterParts]]:
    """The bounds that filters imply, and the filters that gave one."""
    pruning, used = NOTHING_PRUNED, []
    for each in filters:
        narrow = _RULES.get(each[1])
        narrowed = narrow(pruning, each[0], each[2]) if narrow is not None else None
        if narrowed is not None:
            pruning = narrowed
            used.append(each)
    return pruning, used


Rule = Callable[[Pruning, str, Any], Pruning | None]  # Any: of the column's type


def _values(kind: str, value: Any) -> frozenset[Any] | None:  # Any: of the column's type
    if kind == "In":
        return frozenset(value)
    return frozenset([value]) if kind in ("EqualTo", "EqualNullSafe") else None


def _topic(pruning: Pruning, kind: str, value: Any) -> Pruning | None:
    values = _values(kind, value)
    if values is None:
        return None
    return replace(pruning, topics=values if pruning.topics is None else pruning.topics & values)


def _partition(pruning: Pruning, kind: str, value: Any) -> Pruning | None:
    values = _values(kind, value)
    if values is None:
        return None
    known = pruning.partitions
    return replace(pruning, partitions=values if known is None else known & values)


def _publish_time(pruning: Pruning, kind: str, value: Any) -> Pruning | None:
    if not isinstance(value, datetime):
        return None
    # Publish times are whole milliseconds, and a filter's time has microseconds: rounded down at
    # the lower end, and one more at the upper end, no row of either end is lost.
    millis = int(value.timestamp() * 1000)
    low = kind in ("GreaterThan", "GreaterThanOrEqual", "EqualTo", "EqualNullSafe")
    high = kind in ("LessThan", "LessThanOrEqual", "EqualTo", "EqualNullSafe")
    if not low and not high:
        return None
    minimum, maximum = pruning.min_publish_millis, pruning.max_publish_millis
    if low:
        minimum = millis if minimum is None else max(minimum, millis)
    if high:
        maximum = millis + 1 if maximum is None else min(maximum, millis + 1)
    return replace(pruning, min_publish_millis=minimum, max_publish_millis=maximum)


def _ledger(pruning: Pruning, kind: str, value: Any) -> Pruning | None:
    if not isinstance(value, int):
        return None
    low = kind in ("GreaterThan", "GreaterThanOrEqual", "EqualTo", "EqualNullSafe")
    high = kind in ("LessThan", "LessThanOrEqual", "EqualTo", "EqualNullSafe")
    if not low and not high:
        return None
    minimum, maximum = pruning.min_ledger_id, pruning.max_ledger_id
    if low:
        minimum = value if minimum is None else max(minimum, value)
    if high:
        maximum = value if maximum is None else min(maximum, value)
    return replace(pruning, min_ledger_id=minimum, max_ledger_id=maximum)


_RULES: Final[dict[str, Rule]] = {
    "__topic": _topic,
    "__partition": _partition,
    "__publishTime": _publish_time,
    "__ledgerId": _ledger,
}
