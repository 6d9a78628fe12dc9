"""What blocking consumers have in common."""

from __future__ import annotations

import threading

import pytest

from pulsar_py import blocking
from tests.unit.blocking.test_prefetch import fill, numbers


def test_properties(client: blocking.Client, topic: str) -> None:
    with client.subscribe(topic, "s", consumer_name="c") as consumer:
        assert consumer.topic().endswith(topic)
        assert (consumer.subscription_name(), consumer.consumer_name()) == ("s", "c")
        assert consumer.is_connected()
        assert not consumer.has_reached_end_of_topic
        assert repr(consumer).startswith("blocking.Consumer(")
    assert consumer.is_closed


def test_refused_messages_come_again(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", negative_ack_redelivery_delay_ms=10)
    fill(client, topic, 1)
    consumer.negative_acknowledge(consumer.receive(30_000))
    assert numbers(consumer, 1) == [0]


def test_the_type_may_be_the_third_argument(client: blocking.Client, topic: str) -> None:
    first = client.subscribe(topic, "s", blocking.ConsumerType.Shared)
    second = client.subscribe(topic, "s", blocking.ConsumerType.Shared)
    assert first.is_connected()
    assert second.is_connected()


def test_a_message_can_be_postponed(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(
        topic, "s", consumer_type=blocking.ConsumerType.Shared, retry_enable=True
    )
    fill(client, topic, 1)
    consumer.reconsume_later(consumer.receive(30_000), 1, {"why": "later"})
    assert consumer.receive(30_000).properties()["why"] == "later"


def test_iterating_ends_when_it_is_closed(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 5)
    got = []
    for message in consumer:
        got.append(int(message.data()))
        consumer.acknowledge(message)
        if len(got) == 5:
            threading.Timer(0.01, consumer.close).start()
    assert got == list(range(5))


def test_a_paused_consumer_asks_for_nothing(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", start_paused=True)
    fill(client, topic, 1)
    with pytest.raises(blocking.ClientTimeoutError):
        consumer.receive(100)
    consumer.resume()
    assert numbers(consumer, 1) == [0]
    consumer.pause()


def test_unsubscribe_deletes_the_subscription(client: blocking.Client, topic: str) -> None:
    fill(client, topic, 1)
    consumer = client.subscribe(topic, "s", initial_position=blocking.InitialPosition.Earliest)
    consumer.unsubscribe()
    again = client.subscribe(topic, "s", initial_position=blocking.InitialPosition.Earliest)
    assert numbers(again, 1) == [0]


def test_drain_waits_for_calls_of_the_listener(client: blocking.Client, topic: str) -> None:
    begun, free, done = threading.Event(), threading.Event(), []
    refused = []

    def listen(consumer: blocking.Consumer, message: blocking.Message) -> None:
        begun.set()
        assert free.wait(30)
        try:
            consumer.drain()
        except blocking.OperationNotSupportedError as error:
            refused.append(error)
        consumer.acknowledge(message)
        done.append(message.data())

    consumer = client.subscribe(topic, "s", message_listener=listen)
    fill(client, topic, 1)
    assert begun.wait(30)
    with pytest.raises(TimeoutError), blocking.timeout(0.05):
        consumer.drain()
    assert not consumer.is_closed
    threading.Timer(0.02, free.set).start()
    consumer.drain()
    assert done == [b"0"]
    assert "waits for that listener" in str(refused[0])
    assert consumer.is_closed
