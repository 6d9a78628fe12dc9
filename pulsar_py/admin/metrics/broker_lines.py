"""Makes the broker's own lines of `/metrics`: totals, connections, cache, process, loop.

`broker_lines` reads plain counts. What a number means where Pulsar's name does not tell stands
beside it; rates of the cache are means between two looks (`CounterRates`).

Source: AggregatedBrokerStats, BrokerOperabilityMetrics, ManagedLedgerCacheMetrics in Pulsar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pulsar_py.admin.metrics.process_figures import ProcessFigures
from pulsar_py.admin.metrics.text_format import labels_text, line, type_line
from pulsar_py.admin.metrics.topic_lines import TopicFigures
from pulsar_py.admin.resources.brokers import VERSION
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.topics.persistent import PersistentTopic

BROKER_SUMS: Final = (
    "pulsar_subscriptions_count",
    "pulsar_producers_count",
    "pulsar_consumers_count",
    "pulsar_rate_in",
    "pulsar_rate_out",
    "pulsar_throughput_in",
    "pulsar_throughput_out",
    "pulsar_storage_size",
    "pulsar_storage_logical_size",
    "pulsar_storage_write_rate",
    "pulsar_storage_read_rate",
    "pulsar_storage_read_cache_misses_rate",
    "pulsar_msg_backlog",
)
"""Metrics of topics whose sum over all topics is shown as `pulsar_broker_…`."""


class CounterRates:
    """Rates of counters: the mean of the last whole window, of the first one until it ends."""

    def __init__(self, window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._start: tuple[float, Mapping[str, float]] | None = None  # None before the first look
        self._rates: dict[str, float] | None = None  # None during the first window

    def rates(self, now: float, counts: Mapping[str, float]) -> dict[str, float]:
        """Each count's growth a second, at `now` in seconds; 0 at the first look."""
        if self._start is None:
            self._start = now, counts
            return dict.fromkeys(counts, 0.0)
        began, before = self._start
        elapsed = now - began
        if elapsed <= 0:
            return self._rates or dict.fromkeys(counts, 0.0)
        rates = {name: (count - before[name]) / elapsed for name, count in counts.items()}
        if elapsed >= self._window_seconds:
            self._start, self._rates = (now, counts), rates
        return rates if self._rates is None else self._rates


def broker_lines(
    broker: BrokerService, figures: TopicFigures, cache_rates: CounterRates
) -> Iterator[str]:
    """All lines of the broker but those of its process."""
    cluster = labels_text({"cluster": figures.cluster})
    yield type_line("pulsar_version_info", "gauge")
    version = labels_text({"version": VERSION, "commit": ""})
    yield line("pulsar_version_info", f"{{{version},{cluster}}}", 1)
    values: dict[str, float] = {
        "pulsar_broker_topics_count": sum(figures.topics_by_namespace.values())
    }
    for name in BROKER_SUMS:
        values[name.replace("pulsar_", "pulsar_broker_", 1)] = figures.total(name)
    values |= _cache_values(broker, cache_rates)
    connections = broker.connections
    values["pulsar_broker_lookup_pending_requests"] = connections.pending_lookups_count
    values["pulsar_broker_topic_load_pending_requests"] = broker.topics.loads_count
    values["pulsar_broker_throttled_connections"] = connections.paused_count
    for name, value in values.items():
        yield type_line(name, "gauge")
        yield line(name, f"{{{cluster}}}", value)
    yield from _byte_lines(figures)
    yield from _connection_lines(broker, figures.cluster)
    name = "pulsar_py_loop_lag_seconds"
    yield type_line(name, "histogram")
    for each, labels, value in broker.loop_lag.durations.figures(name):
        yield line(each, f"{{{labels_text({'cluster': figures.cluster} | labels)}}}", value)


def _byte_lines(figures: TopicFigures) -> Iterator[str]:
    """Bytes in and out, those of the brokers themselves apart from all others."""
    for name, label, total, of_system in (
        (
            "pulsar_broker_in_bytes_total",
            "system_topic",
            figures.total("pulsar_in_bytes_total"),
            figures.system_bytes["in"],
        ),
        (
            "pulsar_broker_out_bytes_total",
            "system_subscription",
            figures.bytes_out,
            figures.system_bytes["out"],
        ),
    ):
        yield type_line(name, "gauge")
        for is_system, value in (("true", of_system), ("false", total - of_system)):
            labels = labels_text({"cluster": figures.cluster, label: is_system})
            yield line(name, f"{{{labels}}}", value)


def _cache_values(broker: BrokerService, rates: CounterRates) -> dict[str, float]:
    """The cache of entries; a hit is an entry, a miss a read that was not served."""
    cache = broker.managed_ledgers.cache_manager
    counts = {
        "pulsar_ml_cache_hits_rate": float(cache.hits_count),
        "pulsar_ml_cache_misses_rate": float(cache.misses_count),
    }
    counts["pulsar_ml_cache_evictions"] = float(cache.evictions_count)
    found = rates.rates(broker.clock.monotonic_seconds(), counts)
    # Apache Pulsar shows how many there were in a window, not a second.
    found["pulsar_ml_cache_evictions"] *= broker.config.statsUpdateFrequencyInSecs
    return {
        "pulsar_ml_count": sum(
            isinstance(each, PersistentTopic) for each in broker.topics.topics.values()
        ),
        "pulsar_ml_cache_used_size": cache.used_bytes,
        "pulsar_ml_cache_entries": cache.entries_count,
        "pulsar_ml_cache_inserted_entries_total": cache.entries_count + cache.evicted_entries_count,
        "pulsar_ml_cache_evicted_entries_total": cache.evicted_entries_count,
        **found,
    }


def _connection_lines(broker: BrokerService, cluster: str) -> Iterator[str]:
    connections = broker.connections
    address = broker.addresses.default
    url = address.broker_url or address.broker_url_tls or ""
    host = url.partition("://")[2].rpartition(":")[0]
    labels = labels_text({"cluster": cluster, "broker": host, "metric": "broker_connection"})
    for name, value in (
        ("pulsar_active_connections", connections.count),
        ("pulsar_connection_created_total_count", connections.created_count),
        ("pulsar_connection_create_success_count", connections.handshakes_count),
        ("pulsar_connection_create_fail_count", connections.refused_handshakes_count),
        ("pulsar_connection_closed_total_count", connections.created_count - connections.count),
    ):
        yield type_line(name, "gauge")
        yield line(name, f"{{{labels}}}", value)


def process_lines(process: ProcessFigures, cluster: str) -> Iterator[str]:
    """The lines of the process, which every client library of Prometheus has."""
    labels = f"{{{labels_text({'cluster': cluster})}}}"
    for name, kind, value in (
        ("process_cpu_seconds_total", "counter", process.cpu_seconds),
        ("process_open_fds", "gauge", process.open_descriptors_count),
        ("process_max_fds", "gauge", process.max_descriptors_count),
        ("process_resident_memory_bytes", "gauge", process.resident_bytes),
        ("process_virtual_memory_bytes", "gauge", process.virtual_bytes),
        ("process_start_time_seconds", "gauge", process.started_seconds),
    ):
        if value is not None:
            yield type_line(name, kind)
            yield line(name, labels, value)
