"""The metrics of a client, with their names, units and attributes (pure).

Where OpenTelemetry's conventions for messaging have a metric it has that name; the others begin
with `pulsar.client`. Prometheus' names follow from these: dots become underscores, the unit is
appended, and a counter ends in `_total`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pulsar_py.client.shared.statistics import (
    ClientStatistics,
    ConsumerStatistics,
    ProducerStatistics,
)
from pulsar_py.common.names import TopicName

__all__ = ["METRICS", "Metric", "Sample"]

Sample = tuple[Mapping[str, str], int]
"""Attributes, and the figure."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a client."""

    name: str
    unit: str
    """OpenTelemetry's: `{message}`, `By`, `{connection}`."""
    text: str
    is_counter: bool
    """Whether it only grows; otherwise it is what there is now."""
    samples: Callable[[ClientStatistics], Iterator[Sample]]
    labels: tuple[str, ...]
    """The names of its attributes."""


_PRODUCER: Final = ("messaging.system", "messaging.destination.name", "messaging.client.id")
_CONSUMER: Final = (
    *_PRODUCER,
    "messaging.destination.partition.id",
    "messaging.destination.subscription.name",
)


def _destination(topic: str, client_id: str) -> dict[str, str]:
    return {
        "messaging.system": "pulsar",
        "messaging.destination.name": str(TopicName.parse(topic).base),
        "messaging.client.id": client_id,
    }


def _of_producers(
    figure: Callable[[ProducerStatistics], int],
) -> Callable[[ClientStatistics], Iterator[Sample]]:
    def samples(statistics: ClientStatistics) -> Iterator[Sample]:
        for fields, figures in statistics.producers:
            yield _destination(fields["topic"], fields["producer"]), figure(figures)

    return samples


def _of_consumers(
    figure: Callable[[ConsumerStatistics], int],
) -> Callable[[ClientStatistics], Iterator[Sample]]:
    def samples(statistics: ClientStatistics) -> Iterator[Sample]:
        for fields, figures in statistics.consumers:
            labels = _destination(fields["topic"], fields["consumer"])
            name = TopicName.parse(fields["topic"])
            partition = str(name.partition_index) if name.is_partition else ""
            labels["messaging.destination.partition.id"] = partition
            labels["messaging.destination.subscription.name"] = fields["subscription"]
            yield labels, figure(figures)

    return samples


def _producer(
    name: str, unit: str, text: str, figure: Callable[[ProducerStatistics], int], *, counts: bool
) -> Metric:
    return Metric(name, unit, text, counts, _of_producers(figure), _PRODUCER)


def _consumer(
    name: str, unit: str, text: str, figure: Callable[[ConsumerStatistics], int], *, counts: bool
) -> Metric:
    return Metric(name, unit, text, counts, _of_consumers(figure), _CONSUMER)


METRICS: Final = (
    _producer(
        "messaging.client.sent.messages",
        "{message}",
        "Messages handed to the producer.",
        lambda each: each.total_messages_sent,
        counts=True,
    ),
    _producer(
        "pulsar.client.sent.size",
        "By",
        "Bytes of their payloads, before compression.",
        lambda each: each.total_bytes_sent,
        counts=True,
    ),
    _producer(
        "pulsar.client.sent.confirmed",
        "{message}",
        "Messages that the broker confirmed.",
        lambda each: each.total_receipts_received,
        counts=True,
    ),
    _producer(
        "pulsar.client.sent.failures",
        "{message}",
        "Messages that failed.",
        lambda each: each.total_send_failures,
        counts=True,
    ),
    _producer(
        "pulsar.client.sent.pending",
        "{message}",
        "Messages without a receipt.",
        lambda each: each.pending_queue_size,
        counts=False,
    ),
    _consumer(
        "messaging.client.consumed.messages",
        "{message}",
        "Messages handed to the application.",
        lambda each: each.total_messages_received,
        counts=True,
    ),
    _consumer(
        "pulsar.client.consumed.size",
        "By",
        "Bytes of their payloads.",
        lambda each: each.total_bytes_received,
        counts=True,
    ),
    _consumer(
        "pulsar.client.acknowledged",
        "{message}",
        "Messages acknowledged.",
        lambda each: each.total_acks_sent,
        counts=True,
    ),
    _consumer(
        "pulsar.client.acknowledged.failures",
        "{message}",
        "Acknowledgements that failed.",
        lambda each: each.total_ack_failures,
        counts=True,
    ),
    _consumer(
        "pulsar.client.receive.failures",
        "{entry}",
        "Entries that could not be read.",
        lambda each: each.total_receive_failures,
        counts=True,
    ),
    _consumer(
        "pulsar.client.redeliveries",
        "{message}",
        "Messages asked for again.",
        lambda each: each.total_redeliveries_requested,
        counts=True,
    ),
    _consumer(
        "pulsar.client.receiver_queue",
        "{message}",
        "Messages that wait to be received.",
        lambda each: each.receiver_queue_size,
        counts=False,
    ),
    Metric(
        "pulsar.client.connections",
        "{connection}",
        "Connections to brokers.",
        is_counter=False,
        samples=lambda each: iter([({"messaging.system": "pulsar"}, each.connections_count)]),
        labels=("messaging.system",),
    ),
    Metric(
        "pulsar.client.pending.size",
        "By",
        "Bytes of messages without a receipt, of all producers.",
        is_counter=False,
        samples=lambda each: iter([({"messaging.system": "pulsar"}, each.pending_bytes)]),
        labels=("messaging.system",),
    ),
)
