"""`Durations`: counts of durations by length, for histograms (pure).

Bounds are in seconds and fixed, so that what several processes counted may be added up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

BOUNDS_SECONDS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Upper bounds of all buckets but the last, which has none."""


class Durations:
    """How often something took how long, since it was made."""

    __slots__ = ("_counts", "sum_seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def add(self, seconds: float) -> None:
        """Count one; less than nothing counts as nothing."""
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        if seconds > 0.0:
            self.sum_seconds += seconds

    def figures(self, name: str) -> Iterator[tuple[str, dict[str, str], float]]:
        """The lines of a histogram: name with its end, labels, value; buckets are cumulative."""
        total = 0
        for bound, count in zip((*BOUNDS_SECONDS, None), self._counts, strict=True):
            total += count
            yield f"{name}_bucket", {"le": "+Inf" if bound is None else f"{bound:g}"}, total
        yield f"{name}_sum", {}, self.sum_seconds
        yield f"{name}_count", {}, total
