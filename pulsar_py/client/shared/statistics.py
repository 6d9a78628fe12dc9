"""Counts what producers and consumers do, and reports it once an interval.

Components count in plain integers (`ProducerCounters`, `ConsumerCounters`). Their `take` returns
the frozen values that users and the log get: rates and latencies of the last interval, totals since
the beginning, and sizes of queues now. Pure but for `StatisticsReporter`, whose timer calls all
registered sources.

Source: ProducerStatsRecorderImpl and ConsumerStatsRecorderImpl in Pulsar's client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from pulsar_py.common.latency_histogram import LatencyHistogram
from pulsar_py.common.loops.clock import Clock

__all__ = [
    "ClientStatistics",
    "ConsumerCounters",
    "ConsumerStatistics",
    "ProducerCounters",
    "ProducerStatistics",
    "StatisticsReporter",
    "StatisticsSource",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatistics:
    """A producer's figures of the last interval, and (`total_…`) since it was made."""

    interval_seconds: float
    """Length of the interval."""
    messages_sent: int
    """Messages handed to the producer."""
    bytes_sent: int
    """Bytes of their payloads, before compression."""
    send_failures: int
    """Messages that failed."""
    receipts_received: int
    """Messages that the broker confirmed."""
    messages_rate: float
    """Messages sent a second."""
    bytes_rate: float
    """Bytes sent a second."""
    latency_p50_millis: float
    """Median time from `send` to the receipt; all latencies are 0 without receipts."""
    latency_p75_millis: float
    """As `latency_p50_millis`."""
    latency_p95_millis: float
    """As `latency_p50_millis`."""
    latency_p99_millis: float
    """As `latency_p50_millis`."""
    latency_p999_millis: float
    """As `latency_p50_millis`."""
    latency_max_millis: float
    """The longest latency."""
    pending_queue_size: int
    """Messages without receipt, now."""
    total_messages_sent: int
    """Messages since it was made; so are all totals."""
    total_bytes_sent: int
    """Bytes of payloads."""
    total_send_failures: int
    """Messages that failed."""
    total_receipts_received: int
    """Messages that the broker confirmed."""


class ProducerCounters:
    """A producer's counters: plain integers that its hot path adds to."""

    __slots__ = (
        "_begun_at",
        "_taken",
        "bytes_sent",
        "latencies",
        "messages_sent",
        "receipts_received",
        "send_failures",
    )

    def __init__(self, now: float) -> None:
        self.messages_sent = 0
        self.bytes_sent = 0
        self.send_failures = 0
        self.receipts_received = 0
        self.latencies = LatencyHistogram()
        # When the interval began, and the counters then.
        self._begun_at = now
        self._taken = (0, 0, 0, 0)

    def _now(self) -> tuple[int, int, int, int]:
        return (self.messages_sent, self.bytes_sent, self.send_failures, self.receipts_received)

    def peek(self, now: float, *, pending_queue_size: int) -> ProducerStatistics:
        """The figures of the interval so far, which goes on."""
        seconds = now - self._begun_at
        sent, sent_bytes, failures, receipts = (
            after - before for after, before in zip(self._now(), self._taken, strict=True)
        )
        latencies = self.latencies
        return ProducerStatistics(
            interval_seconds=seconds,
            messages_sent=sent,
            bytes_sent=sent_bytes,
            send_failures=failures,
            receipts_received=receipts,
            messages_rate=_rate(sent, seconds),
            bytes_rate=_rate(sent_bytes, seconds),
            latency_p50_millis=latencies.percentile_millis(0.5),
            latency_p75_millis=latencies.percentile_millis(0.75),
            latency_p95_millis=latencies.percentile_millis(0.95),
            latency_p99_millis=latencies.percentile_millis(0.99),
            latency_p999_millis=latencies.percentile_millis(0.999),
            latency_max_millis=latencies.maximum_millis,
            pending_queue_size=pending_queue_size,
            total_messages_sent=self.messages_sent,
            total_bytes_sent=self.bytes_sent,
            total_send_failures=self.send_failures,
            total_receipts_received=self.receipts_received,
        )

    def take(self, now: float, *, pending_queue_size: int) -> ProducerStatistics:
        """The figures of the interval that ends now; the next one begins."""
        taken = self.peek(now, pending_queue_size=pending_queue_size)
        self._begun_at = now
        self._taken = self._now()
        self.latencies = LatencyHistogram()
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatistics:
    """A consumer's figures of the last interval, and (`total_…`) since it was made."""

    interval_seconds: float
    """Length of the interval."""
    messages_received: int
    """Messages handed to the application."""
    bytes_received: int
    """Bytes of their payloads."""
    acks_sent: int
    """Messages acknowledged."""
    ack_failures: int
    """Acknowledgements that failed."""
    receive_failures: int
    """Entries that could not be read: checksum, decompression, decryption."""
    redeliveries_requested: int
    """Messages asked for again."""
    messages_rate: float
    """Messages received a second."""
    bytes_rate: float
    """Bytes received a second."""
    acks_rate: float
    """Messages acknowledged a second."""
    receiver_queue_size: int
    """Messages that wait to be received, now."""
    unacknowledged: int
    """Messages handed out and not acknowledged, now; 0 if they are not tracked."""
    total_messages_received: int
    """Messages since it was made; so are all totals."""
    total_bytes_received: int
    """Bytes of payloads."""
    total_acks_sent: int
    """Messages acknowledged."""
    total_ack_failures: int
    """Acknowledgements that failed."""
    total_receive_failures: int
    """Entries that could not be read."""
    total_redeliveries_requested: int
    """Messages asked for again."""


class ConsumerCounters:
    """A consumer's counters: plain integers that its hot path adds to."""

    __slots__ = (
        "_begun_at",
        "_taken",
        "ack_failures",
        "acks_sent",
        "bytes_received",
        "messages_received",
        "receive_failures",
        "redeliveries_requested",
    )

    def __init__(self, now: float) -> None:
        self.messages_received = 0
        self.bytes_received = 0
        self.acks_sent = 0
        self.ack_failures = 0
        self.receive_failures = 0
        self.redeliveries_requested = 0
        # When the interval began, and the counters then.
        self._begun_at = now
        self._taken = (0, 0, 0, 0, 0, 0)

    def _now(self) -> tuple[int, int, int, int, int, int]:
        return (
            self.messages_received,
            self.bytes_received,
            self.acks_sent,
            self.ack_failures,
            self.receive_failures,
            self.redeliveries_requested,
        )

    def peek(
        self, now: float, *, receiver_queue_size: int, unacknowledged: int = 0
    ) -> ConsumerStatistics:
        """The figures of the interval so far, which goes on."""
        seconds = now - self._begun_at
        received, received_bytes, acks, ack_failures, failures, redeliveries = (
            after - before for after, before in zip(self._now(), self._taken, strict=True)
        )
        return ConsumerStatistics(
            interval_seconds=seconds,
            messages_received=received,
            bytes_received=received_bytes,
            acks_sent=acks,
            ack_failures=ack_failures,
            receive_failures=failures,
            redeliveries_requested=redeliveries,
            messages_rate=_rate(received, seconds),
            bytes_rate=_rate(received_bytes, seconds),
            acks_rate=_rate(acks, seconds),
            receiver_queue_size=receiver_queue_size,
            unacknowledged=unacknowledged,
            total_messages_received=self.messages_received,
            total_bytes_received=self.bytes_received,
            total_acks_sent=self.acks_sent,
            total_ack_failures=self.ack_failures,
            total_receive_failures=self.receive_failures,
            total_redeliveries_requested=self.redeliveries_requested,
        )

    def take(
        self, now: float, *, receiver_queue_size: int, unacknowledged: int = 0
    ) -> ConsumerStatistics:
        """The figures of the interval that ends now; the next one begins."""
        taken = self.peek(
            now, receiver_queue_size=receiver_queue_size, unacknowledged=unacknowledged
        )
        self._begun_at = now
        self._taken = self._now()
        return taken


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


class StatisticsSource(Protocol):
    """A producer or consumer of one topic."""

    def take_statistics(self, now: float) -> ProducerStatistics | ConsumerStatistics:
        """End the interval: `take` of its counters. Called by the reporter alone."""

    def peek(self) -> ProducerStatistics | ConsumerStatistics:
        """The figures of the interval so far, which goes on."""

    def statistics_fields(self) -> Mapping[str, str]:
        """Log fields that identify it: `topic`, and `producer` or `subscription`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """The figures of one client, and of its producers and consumers, now."""

    producers: Sequence[tuple[Mapping[str, str], ProducerStatistics]]
    """Of each producer, its partitions together: `topic`, `producer` (its name); and figures."""
    consumers: Sequence[tuple[Mapping[str, str], ConsumerStatistics]]
    """Of each consumer of one topic: `topic`, `subscription`, `consumer` (the name); figures."""
    connections_count: int
    """Connections to brokers."""
    pending_bytes: int
    """Bytes of messages without a receipt, of all producers; `memory_limit_bytes` limits them."""


class StatisticsReporter:
    """Logs the statistics of all sources once an interval. Owned by the ClientContext.

    The timer runs only while there are sources.
    """

    def __init__(self, clock: Clock, interval_seconds: float) -> None:
        """`interval_seconds` 0: intervals never end, and nothing is logged."""
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._sources: dict[StatisticsSource, None] = {}  # in the order of their registration
        self._timer: asyncio.TimerHandle | None = None

    def register(self, source: StatisticsSource) -> None:
        """Report `source` from now on."""
        self._sources[source] = None
        self._set_timer()

    def unregister(self, source: StatisticsSource) -> None:
        """Forget `source`; unknown ones are ignored."""
        self._sources.pop(source, None)
        if not self._sources:
            self.close()

    def peek(self, *, connections_count: int, pending_bytes: int) -> ClientStatistics:
        """The figures of all sources so far; their intervals go on."""
        producers: list[tuple[Mapping[str, str], ProducerStatistics]] = []
        consumers: list[tuple[Mapping[str, str], ConsumerStatistics]] = []
        for source in self._sources:
            figures = source.peek()
            if isinstance(figures, ProducerStatistics):
                producers.append((source.statistics_fields(), figures))
            else:
                consumers.append((source.statistics_fields(), figures))
        return ClientStatistics(
            producers=producers,
            consumers=consumers,
            connections_count=connections_count,
            pending_bytes=pending_bytes,
        )

    def _set_timer(self) -> None:
        if self._timer is None and self._interval_seconds > 0 and self._sources:
            self._timer = self._clock.call_later(self._interval_seconds, self._report)

    def _report(self) -> None:
        self._timer = None
        now = self._clock.monotonic_seconds()
        for source in list(self._sources):
            fields = {**source.statistics_fields(), **_rounded(source.take_statistics(now))}
            text = " ".join(f"{name}={value}" for name, value in fields.items())
            logger.info("statistics: %s", text, extra=fields)
        self._set_timer()

    def close(self) -> None:
        """Stop reporting."""
        self._sources.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _rounded(statistics: ProducerStatistics | ConsumerStatistics) -> dict[str, float]:
    """The statistics as fields of a log record, rounded."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in asdict(statistics).items()
    }
