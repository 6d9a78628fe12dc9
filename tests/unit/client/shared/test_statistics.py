"""Counting, and reporting once an interval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from pulsar_py.client.shared.statistics import (
    ConsumerCounters,
    ProducerCounters,
    ProducerStatistics,
    StatisticsReporter,
)
from pulsar_py.testing.clock import VirtualClock, run_virtual


def test_a_producers_interval_begins_anew_and_totals_go_on() -> None:
    counters = ProducerCounters(100.0)
    counters.messages_sent += 10
    counters.bytes_sent += 1000
    counters.receipts_received += 9
    counters.send_failures += 1
    counters.latencies.record(0.004, 9)

    first = counters.take(102.0, pending_queue_size=3)
    counters.messages_sent += 2
    second = counters.take(103.0, pending_queue_size=0)

    assert (first.messages_sent, first.messages_rate, first.bytes_rate) == (10, 5.0, 500.0)
    assert (first.receipts_received, first.send_failures) == (9, 1)
    assert first.latency_p50_millis == pytest.approx(4.0)
    assert first.pending_queue_size == 3
    assert (second.messages_sent, second.total_messages_sent) == (2, 12)
    assert second.latency_max_millis == 0


def test_a_look_does_not_end_the_interval() -> None:
    counters = ConsumerCounters(0.0)
    counters.messages_received += 4
    counters.acks_sent += 2

    seen = counters.peek(2.0, receiver_queue_size=7, unacknowledged=2)
    taken = counters.take(4.0, receiver_queue_size=7)

    assert (seen.messages_received, seen.messages_rate, seen.acks_rate) == (4, 2.0, 1.0)
    assert (seen.receiver_queue_size, seen.unacknowledged) == (7, 2)
    assert (taken.messages_received, taken.total_messages_received) == (4, 4)


class Source:
    def __init__(self, clock: VirtualClock) -> None:
        self.counters = ProducerCounters(clock.monotonic_seconds())

    def take_statistics(self, now: float) -> ProducerStatistics:
        return self.counters.take(now, pending_queue_size=0)

    def statistics_fields(self) -> Mapping[str, str]:
        return {"topic": "t", "producer": "p"}


def test_sources_are_reported_once_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        clock = VirtualClock()
        reporter = StatisticsReporter(clock, 60)
        source = Source(clock)
        reporter.register(source)
        for _ in range(3):
            source.counters.messages_sent += 6
            await asyncio.sleep(60.5)
        reporter.unregister(source)
        await asyncio.sleep(200)

    with caplog.at_level(logging.INFO, logger="pulsar_py.client.shared.statistics"):
        run_virtual(work())

    records = [record for record in caplog.records if record.message.startswith("statistics: ")]
    assert [record.messages_sent for record in records] == [6, 6, 6]
    assert records[0].topic == "t"
    assert records[0].messages_rate == 0.1
    assert records[0].message.startswith("statistics: topic=t producer=p ")
    assert " messages_sent=6 " in records[0].message


def test_an_interval_of_zero_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        clock = VirtualClock()
        reporter = StatisticsReporter(clock, 0)
        reporter.register(Source(clock))
        await asyncio.sleep(5000)
        reporter.close()

    with caplog.at_level(logging.INFO):
        run_virtual(work())
    assert not caplog.records
