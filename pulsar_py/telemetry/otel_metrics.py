"""Metrics of a client for OpenTelemetry: observable instruments that read its statistics (edge)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter

from pulsar_py import blocking
from pulsar_py.client.client import Client
from pulsar_py.telemetry.figures import METRICS, Metric
from pulsar_py.telemetry.snapshots import Snapshots

__all__ = ["observe"]


def observe(client: Client | blocking.Client, meter_provider: MeterProvider | None = None) -> None:
    """Register the client's metrics; readers of the provider ask for them from then on.

    Messages cost nothing more: the figures are those of `statistics`. OpenTelemetry can't take
    instruments back, so a closed client goes on with its last figures.

    Args:
        client: Of asyncio or blocking, before or after its first use.
        meter_provider: None for the global one.
    """
    meter = get_meter("pulsar_py", meter_provider=meter_provider)
    snapshots = Snapshots(client)
    for metric in METRICS:
        callbacks = [_callback(metric, snapshots)]
        if metric.is_counter:
            meter.create_observable_counter(metric.name, callbacks, metric.unit, metric.text)
        else:
            meter.create_observable_up_down_counter(
                metric.name, callbacks, metric.unit, metric.text
            )


def _callback(
    metric: Metric, snapshots: Snapshots
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observed(options: CallbackOptions) -> Iterable[Observation]:
        del options
        statistics = snapshots.take()
        if statistics is None:
            return []
        return [Observation(value, labels) for labels, value in metric.samples(statistics)]

    return observed
