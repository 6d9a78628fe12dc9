"""The settings of broker.conf for `/metrics`, and for the windows that rates are measured over."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings import Settings, setting

METRICS: Final = "Metrics"


class MetricsSettings(Settings):
    """Which lines `/metrics` has."""

    exposeTopicLevelMetricsInPrometheus: bool = setting(
        default=True,
        category=METRICS,
        doc="Whether `/metrics` has lines of each topic and subscription; else it has their sums "
        "by namespace.",
    )
    exposeConsumerLevelMetricsInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether `/metrics` has lines of each consumer, too, where it has those of topics.",
    )
    exposeProducerLevelMetricsInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether `/metrics` has lines of each producer, too, where it has those of topics.",
    )
    splitTopicAndPartitionLabelInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether partitions have the name of their topic as label `topic`, and a label "
        "`partition` with their index, which is -1 for topics without partitions.",
    )
    statsUpdateFrequencyInSecs: int = setting(
        default=60,
        minimum=1,
        category=METRICS,
        doc="Seconds over which the rates in statistics and metrics are measured.",
    )
