from __future__ import annotations

from pulsar_py.admin.metrics.store_lines import BOOKIE_METRICS
from pulsar_py.bookkeeper.bookies.bookie_statistics import (
    BookieCounters,
    RemoteBookieStatistics,
    labelled,
)
from pulsar_py.bookkeeper.bookies.requests import BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieCode, BookieOperation
from pulsar_py.common.latency_histogram import LatencyHistogram
from tests.unit.bookkeeper.bookies.test_connection import Asker, add, read

Pair = tuple[BookieRequest, BookieAnswer]


def answered(request: BookieRequest, sent_seconds: float, code: int = BookieCode.EOK) -> Pair:
    request.deadline = sent_seconds + 10
    return request, BookieAnswer(request.operation, code, 7, request.entry_id)


def test_latencies_are_counted_by_operation_from_the_sending_on() -> None:
    counters = BookieCounters(request_timeout_seconds=10)
    asker = Asker()
    pairs = [
        answered(add(asker, 0), 100.0),
        answered(add(asker, 1), 100.0),
        answered(read(asker, 0), 100.0),
        answered(add(asker, 2), 100.5, BookieCode.EIO),
        answered(read(asker, 9), 100.5, BookieCode.ENOENTRY),
    ]
    assert counters.count(pairs, now=101.0) == BookieCode.ENOENTRY
    adds, reads = (counters.latencies[each] for each in (BookieOperation.ADD, BookieOperation.READ))
    assert (adds.count, reads.count) == (3, 2)
    assert adds.maximum_millis == reads.maximum_millis == 1000
    assert 400 < adds.percentile_millis(0.3) < 600
    assert counters.errors_by_name() == {"EIO": 1}


def test_stored_entries_are_counted_by_their_request() -> None:
    counters = BookieCounters(request_timeout_seconds=10)
    counters.count_stored([(110.0, 3), (110.5, 1)], now=101.0)
    adds = counters.latencies[BookieOperation.ADD]
    assert (adds.count, adds.maximum_millis) == (4, 1000)
    assert counters.errors_by_name() == {}


def test_what_was_not_answered_has_no_latency_and_counts_as_an_error() -> None:
    counters = BookieCounters(request_timeout_seconds=10)
    late = answered(add(Asker(), 0), 0.0, frames.TIMED_OUT)
    lost = answered(add(Asker(), 1), 0.0, frames.LOST)
    assert counters.count([late, lost, lost], now=10.0) == frames.LOST
    assert counters.latencies[BookieOperation.ADD].count == 0
    assert counters.errors_by_name() == {"no answer in time": 1, "no connection": 2}


def test_refusals_for_good_are_no_errors_of_the_bookie() -> None:
    counters = BookieCounters(request_timeout_seconds=10)
    for code in (BookieCode.EFENCED, BookieCode.EUA, BookieCode.ENOLEDGER):
        counters.count([answered(add(Asker(), 0), 0.0, code)], now=0.0)
    assert counters.errors_by_name() == {}
    assert counters.latencies[BookieOperation.ADD].count == 3


def test_figures_bear_the_bookies_name_and_are_known_to_the_page_of_metrics() -> None:
    histogram = LatencyHistogram()
    histogram.record(0.02, 10)
    statistics = RemoteBookieStatistics(
        bookie_id="b:1", adds=histogram, reads=LatencyHistogram(), errors={"EIO": 3},
        pending_bytes=77, is_connected=True, is_failing=False, is_quarantined=True,
    )  # fmt: skip
    found = {(name, *labels.values()): value for name, labels, value in labelled(statistics)}
    assert found["bookie_pending_bytes", "b:1"] == 77
    assert found["bookie_is_quarantined", "b:1"] == 1
    assert found["bookie_errors_count", "b:1", "EIO"] == 3
    assert found["bookie_adds_count", "b:1"] == 10
    assert found["bookie_add_latency_millis", "b:1", "0.99"] == 20
    assert found["bookie_read_latency_millis", "b:1", "0.99"] == 0
    assert {name for name, *_ in found} == BOOKIE_METRICS.keys()
