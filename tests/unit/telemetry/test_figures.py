"""The metrics' names, units and samples."""

from __future__ import annotations

import pulsar_py
from pulsar_py.client.shared.statistics import ConsumerCounters, ProducerCounters
from pulsar_py.telemetry.figures import METRICS


def statistics() -> pulsar_py.ClientStatistics:
    producer, consumer = ProducerCounters(0.0), ConsumerCounters(0.0)
    producer.messages_sent, producer.bytes_sent, producer.receipts_received = 5, 50, 4
    producer.send_failures = 1
    consumer.messages_received, consumer.bytes_received, consumer.acks_sent = 3, 30, 2
    consumer.ack_failures, consumer.receive_failures, consumer.redeliveries_requested = 6, 7, 8
    topic = "persistent://public/default/t-partition-1"
    return pulsar_py.ClientStatistics(
        producers=[({"topic": topic, "producer": "p"}, producer.peek(1.0, pending_queue_size=9))],
        consumers=[
            (
                {"topic": topic, "subscription": "s", "consumer": "c"},
                consumer.peek(1.0, receiver_queue_size=10),
            )
        ],
        connections_count=11,
        pending_bytes=12,
    )


def test_each_metric_has_its_figure() -> None:
    figures = {each.name: [value for _, value in each.samples(statistics())] for each in METRICS}
    assert figures == {
        "messaging.client.sent.messages": [5],
        "pulsar.client.sent.size": [50],
        "pulsar.client.sent.confirmed": [4],
        "pulsar.client.sent.failures": [1],
        "pulsar.client.sent.pending": [9],
        "messaging.client.consumed.messages": [3],
        "pulsar.client.consumed.size": [30],
        "pulsar.client.acknowledged": [2],
        "pulsar.client.acknowledged.failures": [6],
        "pulsar.client.receive.failures": [7],
        "pulsar.client.redeliveries": [8],
        "pulsar.client.receiver_queue": [10],
        "pulsar.client.connections": [11],
        "pulsar.client.pending.size": [12],
    }


def test_samples_have_the_labels_that_the_metric_names() -> None:
    for metric in METRICS:
        for labels, _ in metric.samples(statistics()):
            assert set(labels) == set(metric.labels)
    sample, _ = next(METRICS[5].samples(statistics()))
    assert sample == {
        "messaging.system": "pulsar",
        "messaging.destination.name": "persistent://public/default/t",
        "messaging.client.id": "c",
        "messaging.destination.partition.id": "1",
        "messaging.destination.subscription.name": "s",
    }
