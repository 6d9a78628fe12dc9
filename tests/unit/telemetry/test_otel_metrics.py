"""A client's metrics in OpenTelemetry's in-memory reader."""

from __future__ import annotations

import asyncio

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import pulsar_py
from pulsar_py.telemetry import observe


async def test_a_reader_in_another_thread_gets_them(async_pulsar_broker: object) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        observe(client, provider)
        consumer = await client.subscribe("t", "s")
        producer = await client.create_producer("t")
        for _ in range(3):
            await producer.send(b"12345")
            await consumer.acknowledge(await consumer.receive())
        await asyncio.sleep(0.15)  # statistics are asked for anew
        data = await asyncio.to_thread(reader.get_metrics_data)
    (scope,) = data.resource_metrics[0].scope_metrics
    found = {
        metric.name: (metric.unit, metric.data.is_monotonic, metric.data.data_points[0])
        for metric in scope.metrics
    }
    unit, counts, point = found["messaging.client.sent.messages"]
    assert (unit, counts, point.value) == ("{message}", True, 3)
    assert point.attributes["messaging.destination.name"] == "persistent://public/default/t"
    assert found["pulsar.client.sent.size"][2].value == 15
    assert found["messaging.client.consumed.messages"][2].value == 3
    assert found["pulsar.client.acknowledged"][2].value == 3
    assert found["pulsar.client.connections"][1:][0] is False
    provider.shutdown()
