"""REST resource of `/metrics`, the page for Prometheus.

It has a few figures of the ledger store and of cursors, and satisfies probes that want a 200.

Source: PrometheusMetricsServlet in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from pulsar_py.admin.http_messages import Request, Response
from pulsar_py.admin.router import Route
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker import BrokerService

STORAGE_METRICS = {
    "journal_groups_count": ("pulsar_py_storage_journal_groups_total", "counter"),
    "write_cache_bytes": ("pulsar_py_storage_write_cache_bytes", "gauge"),
    "read_cache_bytes": ("pulsar_py_storage_read_cache_bytes", "gauge"),
    "entry_log_bytes": ("pulsar_py_storage_entry_log_bytes", "gauge"),
    "entry_log_live_bytes": ("pulsar_py_storage_entry_log_live_bytes", "gauge"),
    "entry_log_read_bytes": ("pulsar_py_storage_entry_log_read_bytes_total", "counter"),
    "index_tables_count": ("pulsar_py_storage_index_tables", "gauge"),
    "is_taking_writes": ("pulsar_py_storage_writable", "gauge"),
}
"""The embedded ledger store's own figures, by their names there: exported name and type."""

CURSOR_METRICS = {
    "ranges_over_limit_count": "pulsar_py_cursor_ranges_over_limit",
    "ranges_not_persisted_count": "pulsar_py_cursor_ranges_not_persisted",
}
"""Gauges of durable cursors, by attribute of the cursor: exported name. A 0 is left out.

Over the limit: acknowledgements beyond `managedLedgerMaxUnackedRangesToPersist` and similar
settings; they are stored all the same. Not persisted: acknowledgements that neither a cursor ledger
nor the metadata store had room for at the last write; after a crash their messages come again.
"""

OPEN = "open to every caller: Prometheus asks it"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Serves `/metrics`, with and without a slash at the end."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (Route("GET", "/metrics", self.page, OPEN, produces="text/plain"),)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        """Return the metrics in the text format of Prometheus."""
        cluster = self._broker.config.clusterName
        topics = self._broker.topics.topics
        producers_count = sum(len(topic.producers) for topic in topics.values())
        consumers_count = sum(topic.consumers_count for topic in topics.values())
        values: list[tuple[str, str, float]] = [
            ("pulsar_topics_count", "gauge", len(topics)),
            ("pulsar_producers_count", "gauge", producers_count),
            ("pulsar_consumers_count", "gauge", consumers_count),
        ]
        figures = self._broker.ledger_store.figures()
        for figure, (name, kind) in STORAGE_METRICS.items():
            if figure in figures:
                values.append((name, kind, figures[figure]))
        lines = []
        for name, kind, value in values:
            lines.append(f"# TYPE {name} {kind}")
            lines.append(f'{name}{{cluster="{cluster}"}} {value:.15g}')
        lines += self._cursor_lines(cluster)
        return Response(HTTPStatus.OK, ("\n".join(lines) + "\n").encode(), CONTENT_TYPE)

    def _cursor_lines(self, cluster: str) -> list[str]:
        lines = {name: [f"# TYPE {name} gauge"] for name in CURSOR_METRICS.values()}
        for ledger in self._broker.managed_ledgers.ledgers:
            for cursor in ledger.cursors.values():
                for attribute, name in CURSOR_METRICS.items():
                    if value := getattr(cursor, attribute):
                        labels = {"cluster": cluster} | _labels_of(ledger.name, cursor.name)
                        lines[name].append(f"{name}{{{_labels_text(labels)}}} {value}")
        return [line for part in lines.values() for line in part]


def _labels_of(ledger_name: str, cursor_name: str) -> dict[str, str]:
    """Pulsar's labels of a subscription, from `tenant/namespace/persistent/topic`."""
    topic = TopicName.from_managed_ledger_name(ledger_name)
    return {
        "namespace": str(topic.namespace_name),
        "topic": str(topic),
        "subscription": cursor_name,
    }


def _labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
