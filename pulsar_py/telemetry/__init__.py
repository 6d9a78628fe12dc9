"""Traces and metrics of clients: OpenTelemetry and Prometheus.

In: producers, consumers, messages and statistics of the client. Out: spans by OpenTelemetry's
conventions for messaging, whose context travels in the messages' properties, and metrics. Importing
this loads neither; each name needs its extra: `pulsar_py[otel]`, `pulsar_py[prometheus]`.

Third-party packages it may import: opentelemetry, prometheus-client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.telemetry.otel_metrics import observe
    from pulsar_py.telemetry.prometheus_metrics import ClientCollector
    from pulsar_py.telemetry.tracing import (
        TracingConsumerInterceptor,
        TracingProducerInterceptor,
        processing,
    )

__all__ = [
    "ClientCollector",
    "TracingConsumerInterceptor",
    "TracingProducerInterceptor",
    "observe",
    "processing",
]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> object:
        """Load a public name from the module it lives in; say which extra it needs."""
        homes = {
            "ClientCollector": ("prometheus_metrics", "prometheus"),
            "TracingConsumerInterceptor": ("tracing", "otel"),
            "TracingProducerInterceptor": ("tracing", "otel"),
            "observe": ("otel_metrics", "otel"),
            "processing": ("tracing", "otel"),
        }
        if name not in homes:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, extra = homes[name]
        try:
            return getattr(import_module(f"{__name__}.{module}"), name)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{__name__}.{name} needs {error.name}: pip install 'pulsar_py[{extra}]', in a"
                f" checkout pip install '.[{extra}]'",
                name=error.name,
            ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
