"""Metrics of a client for Prometheus: a collector that reads its statistics (edge)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from pulsar_py import blocking
from pulsar_py.client.client import Client
from pulsar_py.telemetry.figures import METRICS, Metric
from pulsar_py.telemetry.snapshots import Snapshots

__all__ = ["ClientCollector"]

Family = CounterMetricFamily | GaugeMetricFamily

_UNITS: Final = {"By": "bytes"}
"""Units that Prometheus' names have."""


class ClientCollector(Collector):
    """Give it to `prometheus_client.REGISTRY.register`; take it out with `unregister`.

    Messages cost nothing more: the figures are those of `statistics`, read when they are scraped.
    """

    def __init__(self, client: Client | blocking.Client) -> None:
        """`client`: of asyncio or blocking, before or after its first use."""
        self._snapshots = Snapshots(client)

    def __repr__(self) -> str:
        return f"ClientCollector({self._snapshots.client!r})"

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """One family for each metric; without samples before the client was used."""
        statistics = self._snapshots.take()
        for metric in METRICS:
            family = _family(metric)
            if statistics is not None:
                for labels, value in metric.samples(statistics):
                    family.add_metric([labels[name] for name in metric.labels], value)
            yield family

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The families without samples, for the registry's look at names."""
        return map(_family, METRICS)


def _family(metric: Metric) -> Family:
    name = metric.name.replace(".", "_")
    labels = [each.replace(".", "_") for each in metric.labels]
    kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
    return kind(name, metric.text, labels=labels, unit=_UNITS.get(metric.unit, ""))
