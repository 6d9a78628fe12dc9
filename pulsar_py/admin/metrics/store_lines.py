"""Makes the lines of `/metrics` on stores, large cursors, refused topics and users' classes.

These are our own names, `pulsar_py_…`: Apache Pulsar's broker has none for them, or its bookies do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

from pulsar_py.admin.metrics.text_format import labels_text, line, type_line
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.topics.refused_topics import REASONS

STORAGE_METRICS = {
    "journal_groups_count": ("pulsar_py_storage_journal_groups_total", "counter"),
    "write_cache_bytes": ("pulsar_py_storage_write_cache_bytes", "gauge"),
    "read_cache_bytes": ("pulsar_py_storage_read_cache_bytes", "gauge"),
    "entry_log_bytes": ("pulsar_py_storage_entry_log_bytes", "gauge"),
    "entry_log_live_bytes": ("pulsar_py_storage_entry_log_live_bytes", "gauge"),
    "entry_log_read_bytes": ("pulsar_py_storage_entry_log_read_bytes_total", "counter"),
    "lent_entries_count": ("pulsar_py_storage_lent_entries_total", "counter"),
    "lent_bytes": ("pulsar_py_storage_lent_bytes_total", "counter"),
    "index_tables_count": ("pulsar_py_storage_index_tables", "gauge"),
    "is_taking_writes": ("pulsar_py_storage_writable", "gauge"),
    "disk_free_bytes": ("pulsar_py_storage_disk_free_bytes", "gauge"),
}
"""The embedded ledger store's own figures, by their names there: exported name and type."""

BOOKKEEPER_METRICS = {
    "pinned_bytes": ("pulsar_py_bookkeeper_pinned_bytes", "gauge"),
    "waiting_bytes": ("pulsar_py_bookkeeper_waiting_bytes", "gauge"),
    "read_ahead_bytes": ("pulsar_py_bookkeeper_read_ahead_bytes", "gauge"),
    "connected_bookies": ("pulsar_py_bookkeeper_connected_bookies", "gauge"),
    "open_writers": ("pulsar_py_bookkeeper_open_ledgers", "gauge"),
    "open_ledgers_below_policy": ("pulsar_py_bookkeeper_open_ledgers_below_policy", "gauge"),
    "waiting_ledgers": ("pulsar_py_bookkeeper_waiting_ledgers", "gauge"),
    "reduced_ensembles_count": ("pulsar_py_bookkeeper_reduced_ensembles_total", "counter"),
    "quarantines_count": ("pulsar_py_bookkeeper_quarantines_total", "counter"),
    "ensemble_changes_count": ("pulsar_py_bookkeeper_ensemble_changes_total", "counter"),
    "same_bookie_retries_count": ("pulsar_py_bookkeeper_same_bookie_retries_total", "counter"),
    "recoveries_count": ("pulsar_py_bookkeeper_recoveries_total", "counter"),
    "failed_recoveries_count": ("pulsar_py_bookkeeper_failed_recoveries_total", "counter"),
    "speculative_reads_count": ("pulsar_py_bookkeeper_speculative_reads_total", "counter"),
    "explicit_lac_failures_count": (
        "pulsar_py_bookkeeper_explicit_lac_failures_total",
        "counter",
    ),
    "busy_refusals_count": ("pulsar_py_bookkeeper_busy_refusals_total", "counter"),
}
"""The figures of the ledger store on Apache BookKeeper, likewise."""

JOURNAL_METRICS = {
    "journal_write_seconds": ("pulsar_py_storage_journal_write_seconds", "histogram"),
}
"""Seconds from taking a group of entries to its end, of which the sync is nearly all."""

BOOKIE_METRICS = {
    "bookie_pending_bytes": ("pulsar_py_bookkeeper_bookie_pending_bytes", "gauge"),
    "bookie_is_connected": ("pulsar_py_bookkeeper_bookie_connected", "gauge"),
    "bookie_is_failing": ("pulsar_py_bookkeeper_bookie_failing", "gauge"),
    "bookie_is_quarantined": ("pulsar_py_bookkeeper_bookie_quarantined", "gauge"),
    "bookie_errors_count": ("pulsar_py_bookkeeper_bookie_errors_total", "counter"),
    "bookie_adds_count": ("pulsar_py_bookkeeper_bookie_adds_total", "counter"),
    "bookie_reads_count": ("pulsar_py_bookkeeper_bookie_reads_total", "counter"),
    "bookie_add_latency_millis": ("pulsar_py_bookkeeper_bookie_add_latency_ms", "gauge"),
    "bookie_read_latency_millis": ("pulsar_py_bookkeeper_bookie_read_latency_ms", "gauge"),
}
"""Those of each bookie, with its id as a label; latencies by quantile, since the start."""

ZOOKEEPER_METRICS = {
    "latency_ms": ("pulsar_py_zookeeper_latency_ms", "histogram"),
    "failed_requests": ("pulsar_py_zookeeper_failed_requests_total", "counter"),
    "is_connected": ("pulsar_py_zookeeper_connected", "gauge"),
    "is_session_good": ("pulsar_py_zookeeper_session_good", "gauge"),
    "session_timeout_millis": ("pulsar_py_zookeeper_session_timeout_ms", "gauge"),
    "requests_under_way": ("pulsar_py_zookeeper_requests_under_way", "gauge"),
    "change_requests": ("pulsar_py_zookeeper_change_requests_total", "counter"),
    "unknown_outcomes": ("pulsar_py_zookeeper_unknown_outcomes_total", "counter"),
    "connections": ("pulsar_py_zookeeper_connections_total", "counter"),
    "failed_connections": ("pulsar_py_zookeeper_failed_connections_total", "counter"),
    "lost_connections": ("pulsar_py_zookeeper_lost_connections_total", "counter"),
    "session_doubts": ("pulsar_py_zookeeper_session_doubts_total", "counter"),
    "expired_sessions": ("pulsar_py_zookeeper_expired_sessions_total", "counter"),
    "watch_events": ("pulsar_py_zookeeper_watch_events_total", "counter"),
    "watch_gaps": ("pulsar_py_zookeeper_watch_gaps_total", "counter"),
}
"""Figures of a metadata store on ZooKeeper: name there, exported name and type."""

_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")

CURSOR_METRICS = {
    "ranges_over_limit_count": "pulsar_py_cursor_ranges_over_limit",
    "ranges_not_persisted_count": "pulsar_py_cursor_ranges_not_persisted",
}
"""Gauges of durable cursors, by attribute of the cursor: exported name. A 0 is left out.

Over the limit: acknowledgements beyond `managedLedgerMaxUnackedRangesToPersist` and similar
settings; they are stored all the same. Not persisted: acknowledgements that neither a cursor ledger
nor the metadata store had room for at the last write; after a crash their messages come again.
"""

REFUSED = "pulsar_py_refused_topics_total"
"""Topics that were not opened, or not read further, because they need what is not there."""

HOOK_ERRORS = "pulsar_py_hook_errors_total"
"""Errors of users' entry filters and interceptors, by class and method."""


def store_lines(broker: BrokerService, cluster: str) -> Iterator[str]:
    """The lines of the ledger store, the metadata store, refused topics and hooks."""
    yield from ledger_store_lines(broker.ledger_store, cluster)
    yield from metadata_lines(broker.metadata, cluster)
    if (refused := broker.refused_topics) is not None:
        yield type_line(REFUSED, "counter")
        for reason in REASONS:
            labels = labels_text({"cluster": cluster, "reason": reason})
            yield line(REFUSED, f"{{{labels}}}", refused.counts[reason])
    if counts := broker.hooks.errors.counts:
        yield type_line(HOOK_ERRORS, "counter")
        for hook, count in sorted(counts.items()):
            labels = labels_text({"cluster": cluster, "hook": hook})
            yield line(HOOK_ERRORS, f"{{{labels}}}", count)


def ledger_store_lines(store: LedgerStore, cluster: str) -> Iterator[str]:
    """The lines of a ledger store and of the bookies that it uses."""
    own = f"{{{labels_text({'cluster': cluster})}}}"
    figures = store.figures()
    for figure, (name, kind) in (STORAGE_METRICS | BOOKKEEPER_METRICS).items():
        if figure in figures:
            yield type_line(name, kind)
            yield line(name, own, figures[figure])
    parts = JOURNAL_METRICS | BOOKIE_METRICS
    yield from _labelled_lines(cluster, store.labelled_figures(), parts)


def metadata_lines(store: MetadataStore, cluster: str) -> Iterator[str]:
    """The lines of a metadata store; none where it has no figures."""
    yield from _labelled_lines(cluster, store.labelled_figures(), ZOOKEEPER_METRICS)


async def cursor_lines(broker: BrokerService, cluster: str, turns: Turns) -> AsyncIterator[str]:
    """The lines of cursors that have something to show; there are few, so they are collected."""
    lines = {name: [type_line(name, "gauge")] for name in CURSOR_METRICS.values()}
    for ledger in list(broker.managed_ledgers.ledgers):
        for cursor in list(ledger.cursors.values()):
            await turns.take()
            for attribute, name in CURSOR_METRICS.items():
                if value := getattr(cursor, attribute):
                    labels = {"cluster": cluster} | _labels_of(ledger.name, cursor.name)
                    lines[name].append(line(name, f"{{{labels_text(labels)}}}", value))
    for part in lines.values():
        yield "".join(part)


def _labels_of(ledger_name: str, cursor_name: str) -> dict[str, str]:
    """Pulsar's labels of a subscription, from `tenant/namespace/persistent/topic`."""
    topic = TopicName.from_managed_ledger_name(ledger_name)
    return {
        "namespace": str(topic.namespace_name),
        "topic": str(topic),
        "subscription": cursor_name,
    }


def _labelled_lines(
    cluster: str,
    figures: Iterable[tuple[str, Mapping[str, str], float]],
    metrics: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """Lines of labelled figures by metric; those of a histogram have its name and an end."""
    lines: dict[str, list[str]] = {}
    for figure, labels, value in figures:
        end = ""
        if figure not in metrics:
            end = next((each for each in _OF_HISTOGRAMS if figure.endswith(each)), "")
        name, kind = metrics[figure.removesuffix(end)]
        text = labels_text({"cluster": cluster} | dict(labels))
        part = lines.setdefault(name, [type_line(name, kind)])
        part.append(line(f"{name}{end}", f"{{{text}}}", value))
    for part in lines.values():
        yield "".join(part)
