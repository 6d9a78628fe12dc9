"""Traces of messages by OpenTelemetry: spans for sending, receiving and processing (edge).

    send order ──(properties: traceparent)──> receive order
        │                                         process order   (`with processing(message)`)
        └ ends with the receipt

The context travels in the message's properties by the propagator in use (W3C's `traceparent` by
default), as with Pulsar's clients for other languages, so a trace goes through services in any of
them. Spans of receiving and processing are children of the one that sent.

Attributes and names are those of OpenTelemetry's semantic conventions for messaging, which are in
development. Without an SDK everything costs little and does nothing, as all of OpenTelemetry's API.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
from pulsar_py.client.messages.message import Message
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

__all__ = ["TracingConsumerInterceptor", "TracingProducerInterceptor", "processing"]

Attributes = dict[str, str | int]


def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer("pulsar_py", tracer_provider=provider)


class TracingProducerInterceptor(ProducerInterceptor):
    """Makes a span of kind PRODUCER for each message, from `send` to its receipt or error.

    Its parent is the current span of the task or thread that sends. One interceptor may serve many
    producers.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        """`tracer_provider`: None for the global one."""
        self._tracer = _tracer(tracer_provider)
        # Spans of messages without a receipt, by the context that the message carries; at most
        # `max_pending_messages` of each producer.
        self._spans: dict[int, Span] = {}

    def __repr__(self) -> str:
        return f"TracingProducerInterceptor({len(self._spans)} messages on their way)"

    def before_send(
        self, producer: Producer[Any], message: OutgoingMessage
    ) -> OutgoingMessage:  # Any: of whatever values
        """Start the message's span, and put its context into the properties."""
        topic = producer.topic()
        attributes = _attributes("send", "send", topic)
        attributes["messaging.client.id"] = producer.producer_name()
        if message.payload:
            attributes["messaging.message.body.size"] = len(message.payload)
        elif isinstance(message.content, bytes):
            attributes["messaging.message.body.size"] = len(message.content)
        if key := message.partition_key():
            attributes["messaging.message.key"] = key
        span = self._tracer.start_span(
            _name("send", topic), kind=SpanKind.PRODUCER, attributes=attributes
        )
        carrier: dict[str, str] = {}
        propagate.inject(carrier, context=trace.set_span_in_context(span))
        for name, text in carrier.items():
            message.set_property(name, text)
        if span.get_span_context().is_valid:
            self._spans[span.get_span_context().span_id] = span
        return message

    def on_send_acknowledgement(
        self,
        producer: Producer[Any],  # Any: as above
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        """End the message's span."""
        del producer
        context = propagate.extract(message.properties())
        span = self._spans.pop(trace.get_current_span(context).get_span_context().span_id, None)
        if span is None:
            return
        if message_id is not None:
            span.set_attribute("messaging.message.id", str(message_id))
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()


class TracingConsumerInterceptor(ConsumerInterceptor):
    """Makes a span of kind CONSUMER when a message is handed out, a child of its producer's.

    It tells when the message was received; `processing` makes the span of the work on it.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        """`tracer_provider`: None for the global one."""
        self._tracer = _tracer(tracer_provider)

    def __repr__(self) -> str:
        return "TracingConsumerInterceptor()"

    def before_consume(
        self, consumer: Consumer[Any], message: Message
    ) -> Message:  # Any: of whatever values
        """Make the span."""
        attributes = _received("receive", "receive", message)
        attributes["messaging.destination.subscription.name"] = consumer.subscription_name()
        attributes["messaging.client.id"] = consumer.consumer_name()
        span = self._tracer.start_span(
            _name("receive", message.topic_name()),
            context=propagate.extract(message.properties()),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
        )
        span.end()
        return message


@contextmanager
def processing(
    message: Message[Any],  # Any: of whatever values
    *,
    subscription_name: str | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Iterator[Span]:
    """A span of kind CONSUMER around the work on a message, a child of its producer's.

    It is the current span within the block, so what the work sends or calls belongs to the trace.
    An exception is recorded, sets the status, and goes on. Works in coroutines, too.

    Args:
        message: A received message.
        subscription_name: For the attribute of the conventions; None leaves it out.
        tracer_provider: None for the global one.
    """
    attributes = _received("process", "process", message)
    if subscription_name is not None:
        attributes["messaging.destination.subscription.name"] = subscription_name
    span = _tracer(tracer_provider).start_span(
        _name("process", message.topic_name()),
        context=propagate.extract(message.properties()),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
    )
    token = otel_context.attach(trace.set_span_in_context(span))
    try:
        yield span
    except Exception as error:  # whatever the application's work raises; raised again
        span.record_exception(error)
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(Status(StatusCode.ERROR, str(error)))
        raise
    finally:
        otel_context.detach(token)
        span.end()


def _name(operation: str, topic: str) -> str:
    return f"{operation} {TopicName.parse(topic).base}"


def _attributes(name: str, kind: str, topic: str) -> Attributes:
    parsed = TopicName.parse(topic)
    attributes: Attributes = {
        "messaging.system": "pulsar",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(parsed.base),
    }
    if parsed.is_partition:
        attributes["messaging.destination.partition.id"] = str(parsed.partition_index)
    return attributes


def _received(name: str, kind: str, message: Message[Any]) -> Attributes:  # Any: as above
    attributes = _attributes(name, kind, message.topic_name())
    attributes["messaging.message.id"] = str(message.message_id())
    attributes["messaging.message.body.size"] = message.size()
    if (key := message.key()) is not None:
        attributes["messaging.message.key"] = key
    return attributes
