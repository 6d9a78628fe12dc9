"""Spans of sending, receiving and processing, seen by the SDK's in-memory exporter."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import pulsar_py
from pulsar_py import blocking
from pulsar_py.admin_client.client import AdminClient
from pulsar_py.telemetry import (
    TracingConsumerInterceptor,
    TracingProducerInterceptor,
    processing,
)
from pulsar_py.testing import BrokerThread

TOPIC = "persistent://public/default/orders"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


async def test_a_trace_goes_through_topic_and_services(
    async_pulsar_broker: object, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        consumer = await client.subscribe(
            "orders", "billing", interceptors=[TracingConsumerInterceptor(provider)]
        )
        producer = await client.create_producer(
            "orders", interceptors=[TracingProducerInterceptor(provider)]
        )
        onwards = await client.create_producer(
            "bills", interceptors=[TracingProducerInterceptor(provider)]
        )
        with provider.get_tracer("shop").start_as_current_span("checkout"):
            sent = await producer.send(b"coffee", {"shop": "7"}, key="k")
        message = await consumer.receive(timeout_millis=30_000)
        with processing(message, subscription_name="billing", tracer_provider=provider):
            await onwards.send(b"bill")
        await consumer.acknowledge(message)

    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {
        "checkout",
        f"send {TOPIC}",
        f"receive {TOPIC}",
        f"process {TOPIC}",
        "send persistent://public/default/bills",
    }
    assert len({span.context.trace_id for span in spans.values()}) == 1
    send = spans[f"send {TOPIC}"]
    assert send.kind is SpanKind.PRODUCER
    assert send.parent.span_id == spans["checkout"].context.span_id
    assert dict(send.attributes) == {
        "messaging.system": "pulsar",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": TOPIC,
        "messaging.client.id": "standalone-0-0",
        "messaging.message.body.size": 6,
        "messaging.message.key": "k",
        "messaging.message.id": str(sent),
    }
    for operation in ("receive", "process"):
        span = spans[f"{operation} {TOPIC}"]
        assert span.kind is SpanKind.CONSUMER
        assert span.parent.span_id == send.context.span_id
        assert span.attributes["messaging.operation.type"] == operation
        assert span.attributes["messaging.destination.subscription.name"] == "billing"
        assert span.attributes["messaging.message.id"] == str(sent)
    bill = spans["send persistent://public/default/bills"]
    assert bill.parent.span_id == spans[f"process {TOPIC}"].context.span_id
    assert message.properties()["shop"] == "7"
    assert message.properties()["traceparent"].split("-")[2] == f"{send.context.span_id:016x}"


async def test_errors_end_spans_too(
    async_pulsar_broker: object, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        interceptor = TracingProducerInterceptor(provider)
        producer = await client.create_producer("orders", interceptors=[interceptor])
        with pytest.raises(pulsar_py.MessageTooBigError):
            await producer.send(bytes(6 << 20))
        (span,) = exporter.get_finished_spans()
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == "MessageTooBigError"
        assert interceptor._spans == {}

        reader = await client.create_reader("orders", pulsar_py.MessageId.earliest)
        await producer.send(b"x")
        message = await reader.read_next(30_000)
        exporter.clear()
        with pytest.raises(KeyError), processing(message, tracer_provider=provider):
            raise KeyError("k")
        (span,) = exporter.get_finished_spans()
        assert span.attributes["error.type"] == "KeyError"
        assert [event.name for event in span.events] == ["exception"]


async def test_partitions_are_told(
    async_pulsar_broker: object, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    with AdminClient(async_pulsar_broker.web_service_url) as admin:
        await asyncio.to_thread(admin.create_partitioned_topic, "orders", 1)
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        producer = await client.create_producer("orders-partition-0")
        await producer.send(b"x")
        consumer = await client.subscribe(
            "orders-partition-0",
            "s",
            initial_position=pulsar_py.InitialPosition.Earliest,
            interceptors=[TracingConsumerInterceptor(provider)],
        )
        await consumer.receive(30_000)
    (span,) = exporter.get_finished_spans()
    assert span.name == f"receive {TOPIC}"
    assert span.attributes["messaging.destination.partition.id"] == "0"
    assert span.parent is None


async def test_without_an_sdk_messages_pass(async_pulsar_broker: object) -> None:
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        producer = await client.create_producer(
            "orders", interceptors=[TracingProducerInterceptor()]
        )
        async with asyncio.timeout(30):
            await producer.send(b"x")


def test_the_span_of_a_thread_is_the_parent_with_the_blocking_client(
    session_pulsar_broker: BrokerThread, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    with blocking.Client(session_pulsar_broker.service_url) as client:
        producer = client.create_producer(
            "traced", interceptors=[TracingProducerInterceptor(provider)]
        )
        with provider.get_tracer("shop").start_as_current_span("checkout"):
            producer.send(b"x")
            producer.send_nowait(b"y", key="k")
        producer.flush()
    spans = exporter.get_finished_spans()
    (checkout,) = [span for span in spans if span.name == "checkout"]
    sends = [span for span in spans if span.name.startswith("send ")]
    assert [span.parent.span_id for span in sends] == [checkout.context.span_id] * 2
