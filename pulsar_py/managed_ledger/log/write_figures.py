"""`WriteFigures`: counts how large the entries of a window were, and how long each took (pure).

Counting is done once for each group of entries that became durable together: mostly all of a group
fall into one bucket, and then nothing is done for the single entry. A managed ledger to which
nothing was written in a window keeps no counts.

Source: ManagedLedgerMBeanImpl, StatsBuckets in Pulsar's managed-ledger.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

SIZE_BOUNDS_BYTES: Final = (128, 512, 1024, 2048, 4096, 16_384, 102_400, 1_048_576)
"""Upper bounds of all buckets of sizes but the last, as Apache Pulsar has them."""

LATENCY_BOUNDS_SECONDS: Final = (0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)
"""Upper bounds of all buckets of latencies but the last, likewise."""

_MICROS: Final = 1_000_000


class WriteWindow(Struct, frozen=True):
    """What became durable in one window: of each, buckets, then the count, then the sum.

    Attributes:
        sizes: Of entries, in bytes.
        latencies: From the append to its confirmation; the sum is in microseconds.
        ledger_latencies: The same without the wait for a ledger, while there was none.
    """

    sizes: tuple[int, ...]
    latencies: tuple[int, ...]
    ledger_latencies: tuple[int, ...]


_NO_SIZES = (0,) * (len(SIZE_BOUNDS_BYTES) + 3)
_NO_LATENCIES = (0,) * (len(LATENCY_BOUNDS_SECONDS) + 3)

NOTHING_WRITTEN: Final = WriteWindow(_NO_SIZES, _NO_LATENCIES, _NO_LATENCIES)
"""A window without entries; all idle managed ledgers share it."""


class _Counts:
    """The counts of a window that has entries."""

    __slots__ = (
        "entries",
        "latencies",
        "seconds",
        "size_bytes",
        "sizes",
        "waited",
        "waited_seconds",
    )

    def __init__(self) -> None:
        self.entries = 0
        self.sizes = [0] * (len(SIZE_BOUNDS_BYTES) + 1)
        self.size_bytes = 0
        self.latencies = [0] * (len(LATENCY_BOUNDS_SECONDS) + 1)  # from the push to a ledger
        self.seconds = 0.0
        self.waited: list[int] | None = None  # added to the above for those from the append
        self.waited_seconds = 0.0


class WriteFigures:
    """The figures of one managed ledger. Owned by its appender."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: _Counts | None = None  # None until something is written in the window

    def add(
        self,
        datas: Sequence[bytes],
        pushed: Sequence[float],
        now: float,
        waited_since: Sequence[float] = (),
    ) -> None:
        """Count a durable group. Hot path: publish, once a group.

        `pushed` has the times at which its entries were given to the ledger, in order; the first
        ones may have waited for it since the times in `waited_since`.
        """
        counts = self._counts
        if counts is None:
            counts = self._counts = _Counts()
        count = len(datas)
        counts.entries += count
        if count == 1:  # of a slow producer; what several take would need three times as long
            size_bytes, seconds = len(datas[0]), now - pushed[0]
            counts.size_bytes += size_bytes
            counts.sizes[bisect_left(SIZE_BOUNDS_BYTES, size_bytes)] += 1
            counts.seconds += seconds
            counts.latencies[bisect_left(LATENCY_BOUNDS_SECONDS, seconds)] += 1
        else:
            _add_several(counts, datas, pushed, now)
        if waited_since:
            _add_waits(counts, pushed, now, waited_since)

    def roll(self) -> WriteWindow:
        """End the window, and begin the next one."""
        counts, self._counts = self._counts, None
        if counts is None:
            return NOTHING_WRITTEN
        entries, waited = counts.entries, counts.waited or [0] * len(counts.latencies)
        latencies = [a + b for a, b in zip(counts.latencies, waited, strict=True)]
        seconds = counts.seconds + counts.waited_seconds
        return WriteWindow(
            (*counts.sizes, entries, counts.size_bytes),
            (*latencies, entries, round(seconds * _MICROS)),
            (*counts.latencies, entries, round(counts.seconds * _MICROS)),
        )


def _add_several(
    counts: _Counts, datas: Sequence[bytes], pushed: Sequence[float], now: float
) -> None:
    count = len(datas)
    sizes = list(map(len, datas))
    counts.size_bytes += sum(sizes)
    place = bisect_left(SIZE_BOUNDS_BYTES, min(sizes))
    if place == bisect_left(SIZE_BOUNDS_BYTES, max(sizes)):
        counts.sizes[place] += count
    else:
        for each in sizes:
            counts.sizes[bisect_left(SIZE_BOUNDS_BYTES, each)] += 1
    counts.seconds += now * count - sum(pushed)
    # Times only grow: a search for each bound counts those that took longer.
    slowest = bisect_left(LATENCY_BOUNDS_SECONDS, now - pushed[0])
    for place in range(bisect_left(LATENCY_BOUNDS_SECONDS, now - pushed[-1]), slowest):
        slower = bisect_left(pushed, now - LATENCY_BOUNDS_SECONDS[place])
        counts.latencies[place] += count - slower
        count = slower
    counts.latencies[slowest] += count


def _add_waits(
    counts: _Counts, pushed: Sequence[float], now: float, waited_since: Sequence[float]
) -> None:
    """Count where entries that waited for a ledger fall otherwise, with their wait."""
    waited = counts.waited
    if waited is None:
        waited = counts.waited = [0] * len(counts.latencies)
    for since, began in zip(waited_since, pushed, strict=False):
        waited[bisect_left(LATENCY_BOUNDS_SECONDS, now - began)] -= 1
        waited[bisect_left(LATENCY_BOUNDS_SECONDS, now - since)] += 1
        counts.waited_seconds += began - since
