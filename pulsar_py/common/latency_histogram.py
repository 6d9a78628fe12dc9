"""`LatencyHistogram`: how long things took, in few integers. Pure."""

from __future__ import annotations

from typing import Final

_SUB_BITS: Final = 3
_SUBS: Final = 1 << _SUB_BITS


class LatencyHistogram:
    """Latencies in buckets of an eighth of a power of two of microseconds: off by at most 12.5 %.

    Takes a count with each, so that a batch is one call.
    """

    __slots__ = ("_buckets", "_maximum_micros", "count")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._maximum_micros = 0
        self.count = 0

    def record(self, seconds: float, count: int = 1) -> None:
        """Add `count` latencies of that length."""
        micros = max(int(seconds * 1e6), 0)
        shift = max(micros.bit_length() - 1 - _SUB_BITS, 0)
        bucket = (shift << _SUB_BITS) + (micros >> shift)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        self.count += count
        self._maximum_micros = max(self._maximum_micros, micros)

    def percentile_millis(self, share: float) -> float:
        """The latency that `share` of 0 to 1 of all do not pass; 0 while there are none."""
        wanted = share * self.count
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return min(_upper_micros(bucket), self._maximum_micros) / 1000
        return self._maximum_micros / 1000

    @property
    def maximum_millis(self) -> float:
        """The longest one."""
        return self._maximum_micros / 1000


def _upper_micros(bucket: int) -> int:
    """The longest latency that falls into a bucket."""
    if bucket < 2 * _SUBS:
        return bucket
    shift = (bucket >> _SUB_BITS) - 1
    return (((bucket & (_SUBS - 1)) + _SUBS + 1) << shift) - 1
