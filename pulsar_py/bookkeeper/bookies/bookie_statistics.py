"""Statistics of each bookie: latencies, errors, waiting requests (pure).

`BookieCounters` is plain integers and histograms that a link counts in, a call for the answers of
one read; `RemoteBookieStatistics` is a snapshot of them for who reports.

Source: BookKeeperClientStats, PerChannelBookieClient in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_py.bookkeeper.bookies.requests import BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieCode, BookieOperation
from pulsar_py.common.latency_histogram import LatencyHistogram

NO_FAILURES: Final = frozenset(
    {int(BookieCode.EOK), int(BookieCode.EFENCED), int(BookieCode.EUA), *frames.NOT_HERE}
)
"""Codes that say nothing against the bookie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBookieStatistics:
    """One bookie's figures since the store was connected, and what is true of it now."""

    bookie_id: str
    adds: LatencyHistogram
    """Of adds that the bookie answered, from when they were sent; not to be changed."""
    reads: LatencyHistogram
    """The same of reads."""
    errors: Mapping[str, int]
    """Requests that failed, by the name of their code (`frames.code_name`)."""
    pending_bytes: int
    """Of requests without an answer."""
    is_connected: bool
    is_failing: bool
    is_quarantined: bool


QUANTILES: Final = (0.5, 0.95, 0.99)
"""Of latencies, as they are reported."""


def labelled(
    statistics: RemoteBookieStatistics,
) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """One bookie's figures for `LedgerStore.labelled_figures`."""
    bookie = {"bookie": statistics.bookie_id}
    yield "bookie_pending_bytes", bookie, statistics.pending_bytes
    yield "bookie_is_connected", bookie, statistics.is_connected
    yield "bookie_is_failing", bookie, statistics.is_failing
    yield "bookie_is_quarantined", bookie, statistics.is_quarantined
    for code, count in statistics.errors.items():
        yield "bookie_errors_count", bookie | {"code": code}, count
    for name, histogram in (("add", statistics.adds), ("read", statistics.reads)):
        yield f"bookie_{name}s_count", bookie, histogram.count
        for quantile in QUANTILES:
            millis = histogram.percentile_millis(quantile)
            yield f"bookie_{name}_latency_millis", bookie | {"quantile": f"{quantile:g}"}, millis


class BookieCounters:
    """The counts of one bookie; owned by its link."""

    def __init__(self, request_timeout_seconds: float) -> None:
        self._timeout_seconds = request_timeout_seconds
        reads = LatencyHistogram()
        self.latencies = {
            int(BookieOperation.ADD): LatencyHistogram(),
            int(BookieOperation.READ): reads,
            int(BookieOperation.BATCH_READ): reads,
        }
        self.errors: dict[int, int] = {}  # by code

    def count(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]], now: float) -> int:
        """Take answers that came together; returns the code of the last one.

        # Hot path: one call for many answers; those sent together are one record.
        """
        errors = self.errors
        deadline, operation, count = 0.0, 0, 0
        code = 0
        for request, answer in answers:
            code = answer.code
            if code not in NO_FAILURES:
                errors[code] = errors.get(code, 0) + 1
                if code < 0:
                    continue  # nobody answered
            if request.deadline != deadline or request.operation != operation:
                self._record(operation, now - deadline, count)
                deadline, operation, count = request.deadline, request.operation, 0
            count += 1
        self._record(operation, now - deadline, count)
        return code

    def count_stored(self, stored: Sequence[tuple[float, int]], now: float) -> None:
        """Take entries that were stored: the deadline of their request, and how many.

        # Hot path: one call for many answers.
        """
        for deadline, count in stored:
            self._record(BookieOperation.ADD, now - deadline, count)

    def _record(self, operation: int, since_deadline_seconds: float, count: int) -> None:
        if count:
            seconds = since_deadline_seconds + self._timeout_seconds
            self.latencies[operation].record(seconds, count)

    def errors_by_name(self) -> dict[str, int]:
        """How many requests failed, by the name of the code."""
        return {frames.code_name(code): count for code, count in self.errors.items()}
