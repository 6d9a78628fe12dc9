"""What a consumer of one topic has beside `ConsumerCalls`."""

from __future__ import annotations

from pulsar_py import blocking
from tests.unit.blocking.test_prefetch import fill, numbers


def test_positions_and_statistics(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    assert isinstance(consumer, blocking.Consumer)
    assert consumer.is_active
    fill(client, topic, 10)
    messages = [consumer.receive(30_000) for _ in range(10)]
    assert consumer.get_last_message_id().entry_id >= 0
    assert not consumer.has_message_available()
    consumer.acknowledge_cumulative(messages[-1])
    consumer.resize_receiver_queue(10)
    assert consumer.broker_statistics().consumer_name == consumer.consumer_name()
    consumer.seek(0)
    assert consumer.has_message_available()
    assert numbers(consumer, 10) == list(range(10))
    consumer.seek(lambda topic: blocking.MessageId.latest)
    assert not consumer.has_message_available()
