"""Traces by OpenTelemetry that go through topics; needs pulsar_py[otel] and opentelemetry-sdk.

.venv/bin/python examples/client/tracing.py [URL]
"""

import asyncio
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import pulsar_py
from pulsar_py.telemetry import (
    TracingConsumerInterceptor,
    TracingProducerInterceptor,
    processing,
)


async def main(url: str) -> None:
    """A service would export to a collector and set its provider as the global one."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe(
            "payments", "books", interceptors=[TracingConsumerInterceptor(provider)]
        )
        producer = await client.create_producer(
            "payments", interceptors=[TracingProducerInterceptor(provider)]
        )
        await producer.send(b"12.50")
        message = await consumer.receive()
        with processing(message, subscription_name="books", tracer_provider=provider):
            await consumer.acknowledge(message)
    names = sorted(span.name for span in spans.get_finished_spans())
    traces = {span.context.trace_id for span in spans.get_finished_spans() if span.context}
    print(len(traces), "trace:", *(name.split()[0] for name in names))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
