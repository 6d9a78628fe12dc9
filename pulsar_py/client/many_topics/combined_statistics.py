"""Adds up the statistics of several consumers, for a consumer of several topics (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from pulsar_py.client.shared.statistics import ConsumerStatistics

__all__ = ["combine"]


def combine(parts: Sequence[ConsumerStatistics]) -> ConsumerStatistics:
    """The sums of counts and rates; the interval is the longest one."""
    values = {
        each.name: sum(getattr(part, each.name) for part in parts)
        for each in fields(ConsumerStatistics)
    }
    values["interval_seconds"] = max((part.interval_seconds for part in parts), default=0.0)
    return ConsumerStatistics(**values)
