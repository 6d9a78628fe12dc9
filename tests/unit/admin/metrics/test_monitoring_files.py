"""The dashboard and alert rules under `docker/monitoring` ask for metrics that the page has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.package_source import ROOT
from tests.unit.admin.metrics.metric_pages import page_text, parsed
from tests.unit.admin.metrics.test_topic_names import load
from tests.unit.settings.parts import broker

MONITORING = ROOT / "docker" / "monitoring"
_METRIC = re.compile(r"\b(?:pulsar|process)_\w+")


def shown() -> set[str]:
    async def run() -> set[str]:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            return set(parsed(await page_text(rig.broker)))

    return run_virtual(run())


def queries() -> Iterator[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for line in (MONITORING / "alerts.yml").read_text().splitlines():
        if line.strip().startswith("expr:"):
            yield line.partition("expr:")[2]


def test_each_metric_asked_for_is_on_the_page() -> None:
    asked = {name for query in queries() for name in _METRIC.findall(query)}
    assert len(asked) > 20
    assert not asked - shown()


PUBLIC_DASHBOARDS = {
    "Topic": """
        pulsar_rate_in pulsar_subscription_msg_rate_out pulsar_throughput_in
        pulsar_subscription_msg_throughput_out pulsar_producers_count pulsar_subscriptions_count
        pulsar_consumers_count pulsar_subscription_back_log pulsar_storage_size
        pulsar_storage_write_latency_le_0_5 pulsar_storage_write_latency_le_1
        pulsar_storage_write_latency_le_5 pulsar_storage_write_latency_le_10
        pulsar_storage_write_latency_le_20 pulsar_storage_write_latency_le_50
        pulsar_storage_write_latency_le_100 pulsar_storage_write_latency_le_200
        pulsar_storage_write_latency_le_1000 pulsar_storage_write_latency_overflow
        pulsar_entry_size_le_128 pulsar_entry_size_le_512 pulsar_entry_size_le_1_kb
        pulsar_entry_size_le_2_kb pulsar_entry_size_le_4_kb pulsar_entry_size_le_16_kb
        pulsar_entry_size_le_100_kb pulsar_entry_size_le_1_mb pulsar_entry_size_overflow
    """,
    "Messaging": """
        pulsar_topics_count pulsar_rate_out pulsar_throughput_out pulsar_msg_backlog
        pulsar_storage_write_latency_count pulsar_storage_read_latency_count
        pulsar_replication_rate_in pulsar_replication_rate_out pulsar_replication_backlog
    """,
    "Broker": """
        pulsar_rate_in pulsar_rate_out pulsar_throughput_in pulsar_throughput_out
        pulsar_topics_count pulsar_producers_count pulsar_msg_backlog
        pulsar_broker_publish_latency caffeine_cache_estimated_size caffeine_cache_hit_total
    """,
}
"""What panels of the dashboards of `streamnative/apache-pulsar-grafana-dashboard` ask for."""

EMPTY = {
    "pulsar_entry_size_overflow",
    "pulsar_storage_read_latency_count",
    "pulsar_replication_rate_in",
    "pulsar_replication_rate_out",
    "pulsar_replication_backlog",
    "pulsar_broker_publish_latency",
    "caffeine_cache_estimated_size",
    "caffeine_cache_hit_total",
}
"""Those that METRICS lists as empty, with the reason."""


def test_panels_of_public_dashboards_fill_or_are_listed() -> None:
    asked = {name for names in PUBLIC_DASHBOARDS.values() for name in names.split()}
    assert asked - shown() == EMPTY
    text = (ROOT / "docs/METRICS.md").read_text()
    listed = text[text.index("stay\nempty here") : text.index("## What is left out")]
    families = [name.removesuffix("…") for name in re.findall(r"`(\w+…?)`", listed)]
    assert not [name for name in EMPTY if not name.startswith(tuple(families))]
