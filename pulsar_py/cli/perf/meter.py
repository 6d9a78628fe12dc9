"""`Meter`: counts messages and latencies, and says in a line how it goes, as text or JSON (pure).

Source: the report lines of PerformanceProducer and PerformanceConsumer in Pulsar's test client.
"""

from __future__ import annotations

import json
from typing import Final

from pulsar_py.common.latency_histogram import LatencyHistogram

_SHARES: Final = (("med", 0.5), ("95pct", 0.95), ("99pct", 0.99), ("99.9pct", 0.999),
                  ("99.99pct", 0.9999))  # fmt: skip
_MEGABIT: Final = 125_000


class _Span:
    """What was counted since a time."""

    def __init__(self, now: float) -> None:
        self.begun = now
        self.count = 0
        self.size_bytes = 0
        self.latency_seconds = 0.0
        self.latencies = LatencyHistogram()

    def figures(self, now: float, total: int, done: str, kind: str) -> str:
        seconds = max(now - self.begun, 1e-9)
        figures: dict[str, object] = {
            "kind": kind,
            "what": done,
            "messages": total,
            "seconds": round(seconds, 6),
            "messagesPerSecond": round(self.count / seconds, 3),
            "bytesPerSecond": round(self.size_bytes / seconds, 3),
        }
        if self.latencies.count:
            figures["latencyMillis"] = {
                "mean": round(1000 * self.latency_seconds / self.latencies.count, 3),
                **{name: round(self.latencies.percentile_millis(of), 3) for name, of in _SHARES},
                "max": round(self.latencies.maximum_millis, 3),
            }
        return json.dumps(figures)

    def text(self, now: float, total: int, done: str) -> str:
        seconds = max(now - self.begun, 1e-9)
        rate, megabits = self.count / seconds, self.size_bytes / seconds / _MEGABIT
        line = f"{done}: {total} msg --- {rate:.3f} msg/s --- {megabits:.3f} Mbit/s"
        if not self.latencies.count:
            return line
        mean = 1000 * self.latency_seconds / self.latencies.count
        shares = " - ".join(
            f"{name}: {self.latencies.percentile_millis(share):.3f}" for name, share in _SHARES
        )
        longest = self.latencies.maximum_millis
        return f"{line} --- Latency: mean: {mean:.3f} ms - {shares} - Max: {longest:.3f}"


class Meter:
    """Counts of one run; times are those of a monotonic clock, in seconds."""

    def __init__(self, done: str, now: float, *, is_json: bool = False) -> None:
        """`done` begins each line; `is_json` makes each an object."""
        self._is_json = is_json
        self._done = done
        self._all = _Span(now)
        self._since_line = _Span(now)

    @property
    def count(self) -> int:
        """All messages."""
        return self._all.count

    def add(self, size_bytes: int, latency_seconds: float | None = None) -> None:
        """Count a message, and how long it took if that is known."""
        for span in (self._all, self._since_line):
            span.count += 1
            span.size_bytes += size_bytes
            if latency_seconds is not None:
                span.latency_seconds += latency_seconds
                span.latencies.record(latency_seconds)

    def line(self, now: float) -> str:
        """The line about the time since the last one."""
        span, self._since_line = self._since_line, _Span(now)
        if self._is_json:
            return span.figures(now, self._all.count, self._done, "interval")
        return span.text(now, self._all.count, f"Throughput {self._done}")

    def summary(self, now: float) -> str:
        """The line about the whole run."""
        if self._is_json:
            return self._all.figures(now, self._all.count, self._done, "all")
        return self._all.text(now, self._all.count, f"Aggregated throughput {self._done}")

    def histogram(self) -> str:
        """The latencies of all messages, as lines of CSV: up to which share, and milliseconds."""
        lines = ["percentile,millis"]
        if self._all.latencies.count:
            shares = [*(number / 100 for number in range(1, 100)), 0.999, 0.9999, 0.99999]
            lines += [
                f"{100 * share:g},{self._all.latencies.percentile_millis(share):.3f}"
                for share in shares
            ]
            lines.append(f"100,{self._all.latencies.maximum_millis:.3f}")
        return "\n".join(lines) + "\n"
