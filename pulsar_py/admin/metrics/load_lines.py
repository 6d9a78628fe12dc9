"""Makes the lines of `/metrics` on load balancing: reports, unloads, splits, bundles.

Source: LoadManager.getLoadBalancingMetrics, ModularLoadManagerImpl.updateLoadBalancingMetrics,
updateBundleUnloadingMetrics, updateBundleSplitMetrics in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_py.admin.metrics.text_format import labels_text, line, type_line
from pulsar_py.admin.resources.topic_access import broker_id_of
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.load.balancer import Balancer
from pulsar_py.server.load.broker_report import BrokerReport


def load_lines(broker: BrokerService, cluster: str) -> Iterator[str]:
    """The lines of load and ownership; a broker without others has those of ownership alone."""
    yield from _ownership_lines(broker, cluster)
    membership = broker.membership
    if membership is None or not membership.is_joined:
        return
    host = broker_id_of(broker).rpartition(":")[0]
    yield from _usage_lines(membership.own, host, cluster)
    if broker.cluster_load is not None:
        yield from _balancing_lines(broker.cluster_load.balancer, cluster)
    labels = f"{{{labels_text({'cluster': cluster})}}}"
    for name, value in (
        ("pulsar_py_cluster_brokers", len(membership.directory.brokers)),
        ("pulsar_py_cluster_leading", int(membership.is_leader)),
        ("pulsar_py_lookups_held", broker.namespaces.held_lookups_count),
    ):
        yield type_line(name, "gauge")
        yield line(name, labels, value)
    for name, value in (
        ("pulsar_py_metadata_session_doubts_total", broker.namespaces.doubts_count),
        ("pulsar_py_clients_redirected_total", broker.bundle_moves.redirected_count),
        ("pulsar_py_broker_calls_total", broker.other_brokers.calls_count),
    ):
        yield type_line(name, "counter")
        yield line(name, labels, value)


def _usage_lines(report: BrokerReport, host: str, cluster: str) -> Iterator[str]:
    """The broker's usage in percent; of a process without Java all its memory is direct."""
    labels = labels_text({"cluster": cluster, "broker": host, "metric": "loadBalancing"})
    for name, usage in (
        ("pulsar_lb_cpu_usage", report.cpu),
        ("pulsar_lb_memory_usage", report.memory),
        ("pulsar_lb_directMemory_usage", report.memory),
        ("pulsar_lb_bandwidth_in_usage", report.bandwidth_in),
        ("pulsar_lb_bandwidth_out_usage", report.bandwidth_out),
    ):
        yield type_line(name, "gauge")
        yield line(name, f"{{{labels}}}", usage.share * 100)


def _balancing_lines(balancer: Balancer, cluster: str) -> Iterator[str]:
    """What this broker did while it led."""
    name = "pulsar_lb_unload_broker_total"
    yield type_line(name, "counter")
    for broker_id, count in sorted(balancer.moved_from.items()):
        labels = {"cluster": cluster, "broker": broker_id, "metric": "bundleUnloading"}
        yield line(name, f"{{{labels_text(labels)}}}", count)
    for name, metric, value in (
        ("pulsar_lb_unload_bundle_total", "bundleUnloading", balancer.moved_count),
        ("pulsar_lb_bundles_split_total", "bundlesSplit", balancer.split_count),
    ):
        yield type_line(name, "counter")
        yield line(name, f"{{{labels_text({'cluster': cluster, 'metric': metric})}}}", value)


def _ownership_lines(broker: BrokerService, cluster: str) -> Iterator[str]:
    log = broker.namespaces.log
    name = "pulsar_py_bundles_owned"
    yield type_line(name, "gauge")
    yield line(name, f"{{{labels_text({'cluster': cluster})}}}", len(log.since_millis))
    for name, is_gain in (
        ("pulsar_py_bundles_gained_total", True),
        ("pulsar_py_bundles_lost_total", False),
    ):
        counts: dict[str, int] = {}
        for (gain, reason), count in log.counts.items():
            if gain is is_gain:
                kind = reason.partition(" to ")[0]  # not a series for each destination
                counts[kind] = counts.get(kind, 0) + count
        yield type_line(name, "counter")
        for reason, count in sorted(counts.items()):
            labels = labels_text({"cluster": cluster, "reason": reason})
            yield line(name, f"{{{labels}}}", count)
