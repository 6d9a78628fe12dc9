"""Statistics of a ZooKeeper client: latencies of its requests, events of its session (values).

Plain integers, counted where it happens; `ZooKeeperStatistics` is a snapshot of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

LATENCY_BOUNDS_MILLIS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
"""Upper ends of the ranges in which answers are counted by their latency; one more is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStatistics:
    """Reads, or changes, since the start."""

    answered_count: int
    """Requests that got an answer, whatever it was."""
    failed_count: int
    """Requests without one: not sent, or lost with their connection."""
    latency_micros: int
    """Of all that were answered together, from the call on."""
    latency_counts: tuple[int, ...]
    """Answers by latency: up to each of `LATENCY_BOUNDS_MILLIS`, and above the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperStatistics:
    """Counts since the start, and how it is now."""

    reads: OperationStatistics
    changes: OperationStatistics
    change_requests_count: int
    """Requests that the changes were sent by: fewer, where several went together."""
    unknown_outcomes_count: int
    """Changes that were sent and not answered."""
    under_way_count: int
    """Requests without an answer now, those that wait for room or a connection too."""
    server: str
    """The one that is connected now; empty: none."""
    session_id: str
    session_timeout_millis: int
    """As the server granted it; 0 before it did."""
    is_session_good: bool
    connections_count: int
    """Connections on which a session was granted, the first one too."""
    failed_connections_count: int
    """Attempts that ended before a session was granted."""
    lost_connections_count: int
    doubts_count: int
    """Times that the session was in doubt for longer than 5/6 of its time-out."""
    expired_sessions_count: int
    watch_events_count: int
    watch_gaps_count: int
    """Times that watches may have missed something, which was told as "anything"."""

    def figures(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Name, labels and value of all but the texts; latencies as Prometheus has them.

        Each of their counts stands for all answers up to its `le`, in milliseconds.
        """
        for operation, counted in (("read", self.reads), ("change", self.changes)):
            labels = {"operation": operation}
            bounds = (*map(str, LATENCY_BOUNDS_MILLIS), "+Inf")
            counts = accumulate(counted.latency_counts)
            for bound, count in zip(bounds, counts, strict=True):
                yield "latency_ms_bucket", labels | {"le": bound}, count
            yield "latency_ms_sum", labels, counted.latency_micros / 1000
            yield "latency_ms_count", labels, counted.answered_count
            yield "failed_requests", labels, counted.failed_count
        nothing: dict[str, str] = {}
        yield "is_connected", nothing, bool(self.server)
        yield "is_session_good", nothing, self.is_session_good
        yield "session_timeout_millis", nothing, self.session_timeout_millis
        yield "requests_under_way", nothing, self.under_way_count
        yield "change_requests", nothing, self.change_requests_count
        yield "unknown_outcomes", nothing, self.unknown_outcomes_count
        yield "connections", nothing, self.connections_count
        yield "failed_connections", nothing, self.failed_connections_count
        yield "lost_connections", nothing, self.lost_connections_count
        yield "session_doubts", nothing, self.doubts_count
        yield "expired_sessions", nothing, self.expired_sessions_count
        yield "watch_events", nothing, self.watch_events_count
        yield "watch_gaps", nothing, self.watch_gaps_count


class _Operations:
    """Counts reads, or changes."""

    __slots__ = ("answered_count", "failed_count", "latency_counts", "latency_micros")

    def __init__(self) -> None:
        self.answered_count = self.failed_count = self.latency_micros = 0
        self.latency_counts = [0] * (len(LATENCY_BOUNDS_MILLIS) + 1)

    def answered(self, latency_seconds: float) -> None:
        """Count an answer."""
        self.answered_count += 1
        self.latency_micros += round(latency_seconds * 1e6)
        self.latency_counts[bisect_left(LATENCY_BOUNDS_MILLIS, latency_seconds * 1e3)] += 1

    def snapshot(self) -> OperationStatistics:
        """The counts as they are now."""
        return OperationStatistics(
            answered_count=self.answered_count,
            failed_count=self.failed_count,
            latency_micros=self.latency_micros,
            latency_counts=tuple(self.latency_counts),
        )


@dataclass(slots=True)
class ZooKeeperCounters:
    """The counts of one client, which it owns."""

    reads: _Operations = field(default_factory=_Operations)
    changes: _Operations = field(default_factory=_Operations)
    unknown_outcomes_count: int = 0
    under_way_count: int = 0
    connections_count: int = 0
    failed_connections_count: int = 0
    lost_connections_count: int = 0
    doubts_count: int = 0
    expired_sessions_count: int = 0
    watch_events_count: int = 0
    watch_gaps_count: int = 0
